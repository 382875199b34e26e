"""DistributedDataParallel with a snapshot per epoch, as in the usual tutorials.

    torchrun --nnodes=1:3 --nproc-per-node=2 ... ddp.py --epochs=10 --snapshot=/shared/snapshot.pt

Whoever starts anew, alone or with another number of workers, goes on from the newest snapshot. The data is made
up, and small enough that an epoch takes a moment; --pause makes steps longer. gloo, or NCCL where there is a GPU.
"""

import argparse
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

try:
    import rankquake  # so that faults hit a step, and steps are counted; without it all runs the same
except ImportError:
    rankquake = None


def make_data(samples=384, inputs=20, seed=1):
    made = torch.Generator().manual_seed(seed)
    x = torch.randn(samples, inputs, generator=made)
    weights = torch.randn(inputs, 1, generator=made)
    y = x @ weights + 0.1 * torch.randn(samples, 1, generator=made)
    return TensorDataset(x, y, torch.arange(samples))  # each with its number, which is told when asked for


class Trainer:
    def __init__(self, arguments, device):
        torch.manual_seed(1)
        self.arguments, self.device = arguments, device
        self.events = rankquake.Client() if rankquake else None
        self.data = make_data()
        model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 1)).to(device)
        self.model = DistributedDataParallel(model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self.epoch = self.step = 0

    def load(self):
        path = self.arguments.snapshot
        if os.path.exists(path):
            snapshot = torch.load(path, map_location=self.device)
            self.model.module.load_state_dict(snapshot["model"])
            self.optimizer.load_state_dict(snapshot["optimizer"])
            self.epoch, self.step = snapshot["epoch"], snapshot["step"]
            print(f"going on from epoch {self.epoch}, step {self.step}")
        if self.events:
            self.events.resume(self.step, path if self.step else "")

    def save(self):
        if dist.get_rank() == 0:
            path = self.arguments.snapshot
            part = f"{path}.{os.getpid()}.part"
            state = {"model": self.model.module.state_dict(), "optimizer": self.optimizer.state_dict(),
                     "epoch": self.epoch, "step": self.step}
            torch.save(state, part)
            os.replace(part, path)  # a reader sees the old one or the new one
            if self.events:
                self.events.checkpoint_commit(self.step, path)

    def train_epoch(self):
        sampler = DistributedSampler(self.data, seed=1, drop_last=True)
        sampler.set_epoch(self.epoch)
        loader = DataLoader(self.data, batch_size=self.arguments.batch, sampler=sampler, drop_last=True)
        for x, y, numbers in loader:
            self.optimizer.zero_grad()
            loss = nn.functional.mse_loss(self.model(x.to(self.device)), y.to(self.device))
            loss.backward()
            self.optimizer.step()
            self.step += 1
            time.sleep(self.arguments.pause)
            if self.events:
                self.tell_step(loss.item(), numbers, len(loader) * self.arguments.batch * dist.get_world_size())
        return loss.item()

    def tell_step(self, loss, numbers, of):
        if self.events.asks("samples"):
            self.events.samples(self.step, self.epoch, of, numbers.tolist())
        weights = rankquake.digest(self.model.module.state_dict()) if self.events.asks("weights") else None
        self.events.step(self.step, loss=loss, samples=len(numbers), weights=weights)

    def train(self):
        self.load()
        while self.epoch < self.arguments.epochs:
            loss = self.train_epoch()
            self.epoch += 1
            if dist.get_rank() == 0:
                print(f"epoch {self.epoch}/{self.arguments.epochs} step {self.step} loss {loss:.4f}", flush=True)
            self.save()
        if self.events:
            weights = rankquake.digest(self.model.module.state_dict())
            self.events.done(weights)
            if dist.get_rank() == 0:
                print(f"model {weights}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=16, help="of each worker")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds that a step takes longer")
    parser.add_argument("--snapshot", default="snapshot.pt")
    arguments = parser.parse_args()
    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    dist.init_process_group("nccl" if cuda else "gloo")
    Trainer(arguments, "cuda" if cuda else "cpu").train()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
