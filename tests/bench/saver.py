"""saver.py DIR: saves by torch, in turn: for each line "torch BYTES plain|fsync" of its standard input it computes for 5 ms,
saves eight tensors of so many bytes in all into DIR, and prints how many seconds the save took. plain: torch.save into a
temporary file, and os.replace, as most scripts have it; fsync: the file and the directory are synced, too."""
import os
import sys
import time

import torch

where = sys.argv[1]
torch.set_num_threads(1)
states = {}


def compute(state):
    until = time.monotonic() + 0.005
    while time.monotonic() < until:
        for tensor in state.values():
            tensor.mul_(0.999).add_(1)


def save(state, path, synced):
    with open(path + ".tmp", "wb") as f:
        torch.save(state, f)
        if synced:
            f.flush()
            os.fsync(f.fileno())
    os.replace(path + ".tmp", path)
    if synced:
        folder = os.open(where, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)


for line in sys.stdin:
    _, size, how = line.split()
    if size not in states:
        states[size] = {f"layer{i}.weight": torch.ones(int(size) // 32) for i in range(8)}
    compute(states[size])
    begun = time.perf_counter()
    save(states[size], os.path.join(where, size + ".pt"), how == "fsync")
    print(f"{time.perf_counter() - begun:.6f}", flush=True)
