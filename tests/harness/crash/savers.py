"""savers.py SHAPE DIR: a small training job of PyTorch that saves every other step and goes on by itself, in the shapes in
which scripts save: overwrite, replace (a temporary file, then os.replace), fsync (the same, synced), ddp (two ranks by gloo,
rank 0 replaces)."""
import os
import sys

import torch

shape, where = sys.argv[1:3]
STEPS, EVERY = 6, 2
torch.manual_seed(1)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
rank = int(os.environ.get("RANK", 0))
os.makedirs(where, exist_ok=True)
path = os.path.join(where, "ckpt.pt")
done = 0


def state():
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": done}


def save():
    if rank:
        return
    if shape == "overwrite":
        return torch.save(state(), path)
    with open(path + ".tmp", "wb") as f:
        torch.save(state(), f)
        if shape == "fsync":
            f.flush()
            os.fsync(f.fileno())
    os.replace(path + ".tmp", path)
    if shape == "fsync":
        folder = os.open(where, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)


if os.path.exists(path):
    was = torch.load(path)
    model.load_state_dict(was["model"])
    optimizer.load_state_dict(was["optimizer"])
    done = was["step"]
if done:
    print(f"resumed step {done}", flush=True)
net = model
if shape == "ddp":
    torch.distributed.init_process_group("gloo")
    net = torch.nn.parallel.DistributedDataParallel(model)
while done < STEPS:
    torch.manual_seed(100 + 10 * done + rank)
    optimizer.zero_grad()
    loss = net(torch.randn(32, 16)).square().mean()
    loss.backward()
    optimizer.step()
    done += 1
    if done % EVERY == 0:
        save()
        if shape == "ddp":
            torch.distributed.barrier()
if rank == 0:
    import hashlib

    weights = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
    print(f"model {hashlib.sha256(weights).hexdigest()}")
