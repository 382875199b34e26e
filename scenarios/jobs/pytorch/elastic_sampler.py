"""A sampler that takes up an epoch where it was left, also with another number of workers.

    torchrun --nnodes=1:3 ... elastic_sampler.py --steps=100 --checkpoints=/shared/checkpoints

An epoch is one permutation of the data, the same for everybody; a step takes the next BATCH samples of it, and each
worker every WORLD_SIZE-th of those. What is saved is how many samples were used, so that whoever goes on, however
many they are, uses each sample once per epoch. Gradients are summed by hand: shares may differ in size.
"""

import argparse
import os
import time

import torch
import torch.distributed as dist
from torch import nn

try:
    import rankquake
except ImportError:
    rankquake = None

SAMPLES, INPUTS, BATCH = 480, 20, 12


class ElasticSampler:
    """The indices of one worker, batch after batch; `used` samples of the epoch are done."""

    def __init__(self, samples, batch, seed=1):
        self.samples, self.batch, self.seed = samples, batch, seed
        self.epoch = self.used = 0

    def next(self, rank, world):
        if self.used + self.batch > self.samples:
            self.epoch, self.used = self.epoch + 1, 0
        made = torch.Generator().manual_seed(self.seed + self.epoch)
        order = torch.randperm(self.samples, generator=made)
        batch = order[self.used:self.used + self.batch]
        self.used += self.batch
        return batch[rank::world]

    def state_dict(self):
        return {"epoch": self.epoch, "used": self.used}

    def load_state_dict(self, state):
        self.epoch, self.used = state["epoch"], state["used"]


def save(folder, step, model, optimizer, sampler):
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"step-{step:06d}.pt")
    part = f"{path}.{os.getpid()}.part"
    torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict(),
                "sampler": sampler.state_dict()}, part)
    os.replace(part, path)  # under its name it is complete
    return path


def newest(folder):
    names = [n for n in os.listdir(folder) if n.endswith(".pt")] if os.path.isdir(folder) else []
    return os.path.join(folder, max(names)) if names else None


def train(arguments, device):
    rank, world = dist.get_rank(), dist.get_world_size()
    events = rankquake.Client() if rankquake else None
    made = torch.Generator().manual_seed(1)
    x = torch.randn(SAMPLES, INPUTS, generator=made)
    y = x.sum(dim=1, keepdim=True)
    numbers = torch.arange(SAMPLES)  # read with the samples, and told when asked for
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(INPUTS, 32), nn.Tanh(), nn.Linear(32, 1)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    sampler, step = ElasticSampler(SAMPLES, BATCH), 0
    path = newest(arguments.checkpoints)
    if path:
        state = torch.load(path, map_location=device)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        sampler.load_state_dict(state["sampler"])
        step = state["step"]
        print(f"rank {rank} of {world} goes on from step {step}")
    if events:
        events.resume(step, path or "")
    while step < arguments.steps:
        mine = sampler.next(rank, world)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x[mine].to(device)), y[mine].to(device), reduction="sum") / BATCH
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()
        step += 1
        time.sleep(arguments.pause)
        if events:  # shards: the places in the batch that this worker computed
            if events.asks("samples"):
                events.samples(step, sampler.epoch, SAMPLES // BATCH * BATCH, numbers[mine].tolist())
            weights = rankquake.digest(model.state_dict()) if events.asks("weights") else None
            events.step(step, loss=loss.item(), samples=len(mine), shards=list(range(rank, BATCH, world)),
                        weights=weights)
        if step % arguments.every == 0 and rank == 0:
            path = save(arguments.checkpoints, step, model, optimizer, sampler)
            print(f"step {step}/{arguments.steps} epoch {sampler.epoch} loss {loss.item():.4f}", flush=True)
            if events:
                events.checkpoint_commit(step, path)
    if events:
        weights = rankquake.digest(model.state_dict())
        events.done(weights)
        if rank == 0:
            print(f"model {weights}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--every", type=int, default=10, help="steps from one checkpoint to the next")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds that a step takes longer")
    parser.add_argument("--checkpoints", default="checkpoints", help="the folder that they are kept in")
    arguments = parser.parse_args()
    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    dist.init_process_group("nccl" if cuda else "gloo")
    train(arguments, "cuda" if cuda else "cpu")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
