"""savers.py SHAPE DIR: a small training job of PyTorch that saves every other step and goes on by itself, in the shapes in
which scripts save:

    overwrite    torch.save over the old file                      replace    a temporary file, then os.replace
    fsync        the same, both synced                             ddp        two ranks by gloo, rank 0 replaces
    direct       two ranks write into checkpoint-N                 renamed    into a temporary one, which rank 0 renames
    dcp          torch.distributed.checkpoint, two ranks, each with its half of the momentum
    multinode    the saver of pytorch/examples' distributed/ddp-tutorial-series/multinode.py
    mingpt       that of distributed/minGPT-ddp/mingpt/trainer.py  imagenet   save_checkpoint of imagenet/main.py

The last three are the real ones, out of the directory FOREIGN, which holds a copy of pytorch/examples as `examples`; what
they import that is not there is left empty. A rank tells its steps and where it waits, where rankquake.py is at hand."""
import hashlib
import json
import os
import sys
import types

import torch
import torch.distributed as dist

try:
    import rankquake
except ImportError:
    rankquake = None

shape, where = sys.argv[1:3]
STEPS, EVERY = 6, 2
SHARED = ("ddp", "direct", "renamed", "dcp")
torch.manual_seed(1)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0 if shape == "multinode" else 0.9)
rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
events = rankquake.Client() if rankquake and shape in SHARED else None
os.makedirs(where, exist_ok=True)
path = os.path.join(where, "ckpt.pt")
done = 0


def barrier():
    dist.barrier()
    if events:
        events.event("barrier")


def state():
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": done}


def take(was):
    global done
    model.load_state_dict(was["model"])
    optimizer.load_state_dict(was["optimizer"])
    done = was["step"]


# ---- a file ----


def save_file():
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


def load_file():
    if os.path.exists(path):
        take(torch.load(path))


# ---- a directory for each step ----


def newest(has=""):
    steps = [int(d[11:]) for d in os.listdir(where) if d[11:].isdigit() and os.path.exists(os.path.join(where, d, has))]
    return os.path.join(where, f"checkpoint-{max(steps)}") if steps else None


def save_folder():
    final = os.path.join(where, f"checkpoint-{done}")
    work = final if shape == "direct" else final + ".tmp"
    os.makedirs(work, exist_ok=True)
    if rank == 0:
        torch.save(model.state_dict(), os.path.join(work, "model.pt"))
        torch.save(optimizer.state_dict(), os.path.join(work, "optimizer.pt"))
    torch.save({"step": done}, os.path.join(work, f"rank-{rank}.pt"))
    barrier()
    if rank == 0:
        with open(os.path.join(work, "state.json"), "w") as f:
            json.dump({"step": done}, f)
        if shape == "renamed":
            os.rename(work, final)
    barrier()


def load_folder():
    folder = newest()
    if not folder:
        return
    torch.load(os.path.join(folder, f"rank-{rank}.pt"))
    with open(os.path.join(folder, "state.json")) as f:
        take({"model": torch.load(os.path.join(folder, "model.pt")), "step": json.load(f)["step"],
              "optimizer": torch.load(os.path.join(folder, "optimizer.pt"))})


# ---- torch.distributed.checkpoint ----


def import_dcp():
    """In torch 1.13 it has this name, and Python 3.11 refuses a dataclass that is another's default: sharded_tensor/metadata.py
    line 70 has one, which only wants a hash."""
    import dataclasses

    plain = dataclasses.dataclass

    def hashed(cls=None, **options):
        def make(c):
            return plain(c, **options) if options or "__hash__" in vars(c) else plain(c, unsafe_hash=True)

        return make(cls) if cls else make

    dataclasses.dataclass = hashed
    try:
        import torch.distributed._shard.checkpoint as checkpoint
    finally:
        dataclasses.dataclass = plain
    return checkpoint


def momenta():
    for p in model.parameters():
        optimizer.state[p].setdefault("momentum_buffer", torch.zeros_like(p))
    return [optimizer.state[p]["momentum_buffer"] for p in model.parameters()]


def dcp_state():
    """Each rank has its half of the momentum, and rank 0 what all have."""
    from torch.distributed._shard.metadata import ShardMetadata
    from torch.distributed._shard.sharded_tensor import Shard, init_from_local_shards

    flat = torch.cat([m.reshape(-1) for m in momenta()])
    half = (len(flat) + world - 1) // world
    mine = flat[rank * half : (rank + 1) * half].clone()
    at = ShardMetadata([rank * half], [len(mine)], f"rank:{rank}/cpu")
    sharded = init_from_local_shards([Shard(mine, at)], [len(flat)])
    return {"momentum": sharded, "step": torch.tensor(done), **{"model." + k: v for k, v in model.state_dict().items()}}, mine


def tell_waits():
    """In the middle of a save all wait for what all have written, inside of torch."""
    from torch.distributed._shard.checkpoint.utils import _DistWrapper

    gather = _DistWrapper.gather_object

    def told(self, found):
        if events:
            events.event("barrier")
        return gather(self, found)

    _DistWrapper.gather_object = told


def save_dcp():
    folder = os.path.join(where, f"checkpoint-{done}")
    dcp.save_state_dict(dcp_state()[0], dcp.FileSystemWriter(folder))
    barrier()


def load_dcp():
    global done
    folder = newest(".metadata")
    if not folder:
        return
    was, mine = dcp_state()
    dcp.load_state_dict(was, dcp.FileSystemReader(folder))
    halves = [torch.zeros((sum(m.numel() for m in momenta()) + world - 1) // world) for _ in range(world)]
    padded = torch.zeros_like(halves[0])
    padded[: len(mine)] = mine
    dist.all_gather(halves, padded)
    flat, at = torch.cat(halves), 0
    for m in momenta():
        m.copy_(flat[at : at + m.numel()].reshape(m.shape))
        at += m.numel()
    done = int(was["step"])


# ---- the real savers of pytorch/examples ----


class Empty(types.ModuleType):
    """Stands for whatever is imported and not used."""

    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Empty(name)


def foreign(folder, module, *missing):
    for name in missing:
        sys.modules[name] = Empty(name)
    sys.path.insert(0, os.path.join(os.environ["FOREIGN"], "examples", folder))
    return __import__(module)


def make_trainer():
    os.environ.setdefault("LOCAL_RANK", "0")
    if shape == "multinode":
        t = object.__new__(foreign("distributed/ddp-tutorial-series", "multinode").Trainer)
        t.snapshot_path, t.device, t.local_rank, t.epochs_run = path, "cpu", 0, 0
        load_anywhere = torch.load
        torch.load = lambda f, map_location=None: load_anywhere(f, map_location="cpu")
    else:
        module = foreign("distributed/minGPT-ddp/mingpt", "trainer", "boto3", "fsspec")
        module.fsspec.open = lambda name: open(name, "rb")
        t = object.__new__(module.Trainer)
        t.config, t.optimizer, t.epochs_run = types.SimpleNamespace(snapshot_path=path), optimizer, 0
    t.model = model
    return t


def save_trainer():
    trainer.model = types.SimpleNamespace(module=model)
    trainer._save_snapshot(done)


def load_trainer():
    global done
    if shape == "mingpt":
        trainer._load_snapshot()
    elif os.path.exists(path):
        trainer._load_snapshot(path)
    done = trainer.epochs_run


def save_imagenet():
    imagenet.save_checkpoint({**state(), "epoch": done}, True, filename=os.path.abspath(path))


if shape in SHARED:
    dist.init_process_group("gloo")
if shape == "dcp":
    dcp = import_dcp()
    tell_waits()
if shape in ("multinode", "mingpt"):
    trainer = make_trainer()
if shape == "imagenet":
    imagenet = foreign("imagenet", "main", *("torchvision torchvision.datasets torchvision.models torchvision.transforms".split()))
    os.chdir(where)
    path, where = "ckpt.pt", "."
save, load = {
    "direct": (save_folder, load_folder),
    "renamed": (save_folder, load_folder),
    "dcp": (save_dcp, load_dcp),
    "multinode": (save_trainer, load_trainer),
    "mingpt": (save_trainer, load_trainer),
    "imagenet": (save_imagenet, load_file),
}.get(shape, (save_file, load_file))
load()
if done:
    print(f"resumed step {done}", flush=True)
net = torch.nn.parallel.DistributedDataParallel(model) if shape in SHARED else model
while done < STEPS:
    torch.manual_seed(100 + 10 * done + rank)
    optimizer.zero_grad()
    loss = net(torch.randn(32, 16)).square().mean()
    loss.backward()
    optimizer.step()
    done += 1
    if events:
        events.step(done)
    if done % EVERY == 0:
        save()
        if shape == "ddp":
            barrier()
if rank == 0:
    weights = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
    print(f"model {hashlib.sha256(weights).hexdigest()}")
