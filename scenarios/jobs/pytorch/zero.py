"""ZeroRedundancyOptimizer: each worker keeps the optimizer's state of its share of the parameters.

    torchrun --nnodes=1:3 --nproc-per-node=2 ... zero.py --steps=100 --checkpoint=/shared/zero.pt

The share depends on the number of workers, so a checkpoint holds the whole state, brought together on rank 0, and
whoever goes on takes its own part of it, however many they are.
"""

import argparse
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

try:
    import rankquake
except ImportError:
    rankquake = None


class Run:
    def __init__(self, arguments, device):
        torch.manual_seed(1)
        self.arguments, self.device, self.step = arguments, device, 0
        self.events = rankquake.Client() if rankquake else None
        layers = [nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)]
        self.model = DistributedDataParallel(nn.Sequential(*layers).to(device))
        self.optimizer = ZeroRedundancyOptimizer(self.model.parameters(), optimizer_class=torch.optim.Adam, lr=0.003)

    def load(self):
        path = self.arguments.checkpoint
        if os.path.exists(path):
            state = torch.load(path, map_location=self.device)
            self.model.module.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.step = state["step"]
            print(f"rank {dist.get_rank()} goes on from step {self.step}")
        if self.events:
            self.events.resume(self.step, path if self.step else "")

    def save(self):
        self.optimizer.consolidate_state_dict(to=0)  # everybody takes part
        if dist.get_rank() != 0:
            return
        path = self.arguments.checkpoint
        part = f"{path}.{os.getpid()}.part"
        torch.save({"step": self.step, "model": self.model.module.state_dict(),
                    "optimizer": self.optimizer.state_dict()}, part)
        os.replace(part, path)
        if self.events:
            self.events.checkpoint_commit(self.step, path)

    def batch(self):
        made = torch.Generator().manual_seed(1000 * self.step + dist.get_rank())
        x = torch.randn(self.arguments.batch, 32, generator=made)
        return x.to(self.device), x.norm(dim=1, keepdim=True).to(self.device)

    def train(self):
        self.load()
        while self.step < self.arguments.steps:
            x, y = self.batch()
            self.optimizer.zero_grad()
            loss = nn.functional.mse_loss(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            self.step += 1
            time.sleep(self.arguments.pause)
            if self.events:  # its data is made up step by step: no sample has a number
                asked = self.events.asks("weights")
                weights = rankquake.digest(self.model.module.state_dict()) if asked else None
                self.events.step(self.step, loss=loss.item(), samples=len(x), weights=weights)
            if self.step % self.arguments.every == 0:
                self.save()
                if dist.get_rank() == 0:
                    print(f"step {self.step}/{self.arguments.steps} loss {loss.item():.4f}", flush=True)
        if self.events:
            weights = rankquake.digest(self.model.module.state_dict())
            self.events.done(weights)
            if dist.get_rank() == 0:
                print(f"model {weights}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--every", type=int, default=20, help="steps from one checkpoint to the next")
    parser.add_argument("--batch", type=int, default=16, help="of each worker")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds that a step takes longer")
    parser.add_argument("--checkpoint", default="zero.pt")
    arguments = parser.parse_args()
    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    dist.init_process_group("nccl" if cuda else "gloo")
    Run(arguments, "cuda" if cuda else "cpu").train()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
