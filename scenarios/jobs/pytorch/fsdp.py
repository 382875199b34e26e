"""FullyShardedDataParallel: each worker keeps its part of parameters, gradients and the optimizer's state.

    torchrun --nnodes=1:3 --nproc-per-node=2 ... fsdp.py --steps=100 --checkpoint=/shared/fsdp.pt

A checkpoint holds all of it, brought together on rank 0, and whoever goes on takes its own part, however many they are.

Not every PyTorch can: 1.13 cannot be imported by Python 3.11, for which its shard metadata has a default that may not be one;
older ones cannot shard on a CPU. Then this says so and ends with 78, before anything is trained. ranktrain --mode=fsdp is
the same on a CPU.
"""

import argparse
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

try:
    import rankquake
except ImportError:
    rankquake = None

CANNOT = 78  # EX_CONFIG


def cannot(why):
    """Ends the worker: torch has no FSDP that works here."""
    print(f"fsdp.py: PyTorch {torch.__version__} on Python {sys.version.split()[0]} cannot shard a model here: {why}; "
          "use PyTorch 2.6 or newer, or ranktrain --mode=fsdp", file=sys.stderr, flush=True)
    sys.exit(CANNOT)


try:
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
    from torch.distributed.fsdp import FullStateDictConfig, StateDictType
except (ImportError, ValueError, AttributeError) as error:  # ValueError: 1.13 on 3.11
    cannot(f"importing torch.distributed.fsdp ends in \"{error}\"")


class Run:
    def __init__(self, arguments, device):
        torch.manual_seed(1)
        self.arguments, self.device, self.step = arguments, device, 0
        self.events = rankquake.Client() if rankquake else None
        layers = [nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)]
        # Each layer with weights is a unit of its own: no more than one is whole at a time.
        self.model = FSDP(nn.Sequential(*[self.shard(layer) for layer in layers]), **self.place())
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.003)

    def place(self):
        return {"device_id": torch.device(self.device if self.device == "cpu" else torch.cuda.current_device())}

    def shard(self, layer):
        return FSDP(layer, **self.place()) if list(layer.parameters()) else layer

    def try_step(self):
        """One that counts for nothing: a backend without the collectives is found before anything is loaded."""
        try:
            self.model(torch.zeros(1, 32, device=self.device)).sum().backward()
        except RuntimeError as error:
            cannot(f"{dist.get_backend()} says \"{str(error).splitlines()[0]}\"")
        self.optimizer.zero_grad()

    def whole(self):
        """Model and optimizer as one process would have them, on rank 0; everybody takes part."""
        config = FullStateDictConfig(offload_to_cpu=self.device != "cpu", rank0_only=True)
        with FSDP.state_dict_type(self.model, StateDictType.FULL_STATE_DICT, config):
            model = self.model.state_dict()
        return model, FSDP.full_optim_state_dict(self.model, self.optimizer, rank0_only=True)

    def load(self):
        path = self.arguments.checkpoint
        if os.path.exists(path):
            state = torch.load(path, map_location=self.device)
            with FSDP.state_dict_type(self.model, StateDictType.FULL_STATE_DICT):
                self.model.load_state_dict(state["model"])
            part = FSDP.shard_full_optim_state_dict(state["optimizer"], self.model)
            self.optimizer.load_state_dict(part)
            self.step = state["step"]
            print(f"rank {dist.get_rank()} goes on from step {self.step}", flush=True)
        if self.events:
            self.events.resume(self.step, path if self.step else "")

    def save(self):
        model, optimizer = self.whole()
        if dist.get_rank() != 0:
            return
        path = self.arguments.checkpoint
        part = f"{path}.{os.getpid()}.part"
        torch.save({"step": self.step, "model": model, "optimizer": optimizer}, part)
        os.replace(part, path)
        if self.events:
            self.events.checkpoint_commit(self.step, path)

    def batch(self):
        made = torch.Generator().manual_seed(1000 * self.step + dist.get_rank())
        x = torch.randn(self.arguments.batch, 32, generator=made)
        return x.to(self.device), x.norm(dim=1, keepdim=True).to(self.device)

    def tell_bytes(self):
        held = sum(p.numel() * p.element_size() for p in self.model.parameters())
        moments = sum(v.numel() * v.element_size() for s in self.optimizer.state.values()
                      for v in s.values() if torch.is_tensor(v))
        print(f"rank {dist.get_rank()} of {dist.get_world_size()} holds {held} bytes of parameters, {moments} of the "
              "optimizer's state", flush=True)

    def train(self):
        self.try_step()
        self.load()
        while self.step < self.arguments.steps:
            x, y = self.batch()
            self.optimizer.zero_grad()
            loss = nn.functional.mse_loss(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            self.step += 1
            time.sleep(self.arguments.pause)
            if self.events:
                self.events.step(self.step, loss=loss.item(), samples=len(x))
            if self.step % self.arguments.every == 0:
                self.save()
                if dist.get_rank() == 0:
                    print(f"step {self.step}/{self.arguments.steps} loss {loss.item():.4f}", flush=True)
        self.tell_bytes()
        with FSDP.state_dict_type(self.model, StateDictType.FULL_STATE_DICT):
            whole = self.model.state_dict()
        if self.events:
            weights = rankquake.digest(whole)
            self.events.done(weights)
            if dist.get_rank() == 0:
                print(f"model {weights}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--every", type=int, default=20, help="steps from one checkpoint to the next")
    parser.add_argument("--batch", type=int, default=16, help="of each worker")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds that a step takes longer")
    parser.add_argument("--checkpoint", default="fsdp.pt")
    arguments = parser.parse_args()
    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    dist.init_process_group("nccl" if cuda else "gloo")
    Run(arguments, "cuda" if cuda else "cpu").train()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
