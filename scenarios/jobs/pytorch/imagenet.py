"""An image classifier on a folder of class folders, DIR/train/CLASS/FILE and DIR/val/CLASS/FILE, that may lose and gain nodes.

    torchrun --nnodes=1:4 --nproc-per-node=2 ... imagenet.py --arch=resnet18 --epochs=90 --batch-size=256 -j 4 DIR

--batch-size is that of all workers together. A checkpoint holds how far the epoch has been read, so that whoever goes on,
however many they are, uses each image once per epoch. It is kept by one worker of each node, on the node's own disk; with
--shared, by rank 0 alone, for all. Where the group meets, whoever holds the newest one sends it to the others.
"""

import argparse
import io
import os
import shlex
import subprocess
import sys
import time

try:
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader
    from torchvision import datasets, models, transforms
except ImportError as error:
    sys.exit(f"imagenet.py: {error}: install PyTorch and torchvision, as in apt install python3-torchvision")

try:
    import rankquake
except ImportError:
    rankquake = None

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Images(datasets.ImageFolder):
    """Pictures with their numbers. What chance does to one depends on the epoch and on the picture, not on who reads it."""

    def __init__(self, folder, size, varied):
        steps = [transforms.RandomResizedCrop(size), transforms.RandomHorizontalFlip()] if varied else \
            [transforms.Resize(size * 8 // 7), transforms.CenterCrop(size)]
        super().__init__(folder, transforms.Compose(steps + [transforms.ToTensor(), transforms.Normalize(MEAN, DEVIATION)]))
        self.epoch = 0

    def __getitem__(self, number):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.epoch * len(self) + number)
            x, y = super().__getitem__(number)
        return x, y, number


class ElasticSampler(torch.utils.data.Sampler):
    """The images of one worker, batch after batch, from where the epoch was left: `used` of them are done."""

    def __init__(self, samples, batch, seed):
        self.samples, self.batch, self.seed = samples, batch, seed
        self.epoch = self.used = 0

    def batches_left(self):
        return (self.samples - self.used) // self.batch

    def __iter__(self):
        made = torch.Generator().manual_seed(self.seed + self.epoch)
        order = torch.randperm(self.samples, generator=made)[self.used:]
        share = self.batch // dist.get_world_size()
        for step in range(self.batches_left()):
            first = step * self.batch + dist.get_rank() * share
            yield order[first:first + share].tolist()

    def __len__(self):
        return self.batches_left()

    def advance(self):
        """A batch is done, and with the last whole one the epoch."""
        self.used += self.batch
        if self.batches_left() == 0:
            self.epoch, self.used = self.epoch + 1, 0

    def state_dict(self):
        return {"epoch": self.epoch, "used": self.used}

    def load_state_dict(self, state):
        self.epoch, self.used = state["epoch"], state["used"]


class Run:
    def __init__(self, arguments, device):
        torch.manual_seed(arguments.seed)
        self.arguments, self.device, self.step, self.best = arguments, device, 0, 0.0
        self.events = rankquake.Client() if rankquake else None
        self.images = Images(os.path.join(arguments.data, "train"), arguments.image_size, varied=True)
        self.held_out = Images(os.path.join(arguments.data, "val"), arguments.image_size, varied=False)
        if len(self.images) < arguments.batch_size:
            sys.exit(f"imagenet.py: {arguments.data} has {len(self.images)} images, less than a batch of {arguments.batch_size}")
        self.sampler = ElasticSampler(len(self.images), arguments.batch_size, arguments.seed)
        model = models.__dict__[arguments.arch](num_classes=len(self.images.classes)).to(device)
        self.model = DistributedDataParallel(model)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=arguments.lr, momentum=arguments.momentum,
                                         weight_decay=arguments.weight_decay)
        self.path = os.path.join(arguments.checkpoint_dir, "checkpoint.pt")

    # ---- checkpoints ----

    def state(self):
        return {"step": self.step, "arch": self.arguments.arch, "sampler": self.sampler.state_dict(), "best": self.best,
                "model": self.model.module.state_dict(), "optimizer": self.optimizer.state_dict()}

    def load_checkpoint(self):
        """Everybody tells which step it holds; the first that holds the newest sends it to all."""
        mine = read_checkpoint(self.path, self.arguments.arch)
        held = [None] * dist.get_world_size()
        dist.all_gather_object(held, mine["step"] if mine else 0)
        newest = max(held)
        if newest > 0:
            holder = held.index(newest)
            sent = send_bytes(mine if dist.get_rank() == holder else None, holder, self.device)
            state = torch.load(io.BytesIO(sent), map_location=self.device)
            self.model.module.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.sampler.load_state_dict(state["sampler"])
            self.step, self.best = state["step"], state["best"]
            if dist.get_rank() == holder:
                print(f"rank {holder} holds step {newest}, which all {len(held)} go on from", flush=True)
        if self.events:
            self.events.resume(self.step, self.path if self.step else "")

    def should_checkpoint(self):
        return self.step % self.arguments.checkpoint_every == 0 or self.sampler.used == 0

    def save_checkpoint(self):
        keeper = dist.get_rank() if self.arguments.shared else int(os.environ["LOCAL_RANK"])
        if keeper != 0:
            return
        os.makedirs(self.arguments.checkpoint_dir, exist_ok=True)
        part = f"{self.path}.{os.getpid()}.part"
        with open(part, "wb") as file:
            torch.save(self.state(), file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, self.path)  # under its name it is complete
        if self.events:
            self.events.checkpoint_commit(self.step, self.path)

    # ---- training ----

    def loader(self, images, batches):
        return DataLoader(images, batch_sampler=batches, num_workers=self.arguments.workers,
                          pin_memory=self.device == "cuda")

    def train_epoch(self):
        epoch = self.images.epoch = self.sampler.epoch
        of = len(self.images) // self.arguments.batch_size * self.arguments.batch_size
        self.model.train()
        for x, y, numbers in self.loader(self.images, self.sampler):
            self.optimizer.zero_grad()
            loss = nn.functional.cross_entropy(self.model(x.to(self.device, non_blocking=True)), y.to(self.device))
            loss.backward()
            self.optimizer.step()
            self.step += 1
            self.sampler.advance()
            time.sleep(self.arguments.pause)
            if self.events:
                self.tell_step(loss.item(), epoch, of, numbers)
            if self.should_checkpoint():
                self.save_checkpoint()
            if self.step % self.arguments.print_freq == 0 and dist.get_rank() == 0:
                print(f"epoch {epoch} step {self.step} loss {loss.item():.4f}", flush=True)

    def tell_step(self, loss, epoch, of, numbers):
        if self.events.asks("samples"):
            self.events.samples(self.step, epoch, of, numbers.tolist())
        weights = self.digest() if self.events.asks("weights") else None
        self.events.step(self.step, loss=loss, samples=len(numbers), weights=weights)

    def digest(self):
        """Of what is trained; the running means of batch norm are each worker's own until they are saved."""
        return rankquake.digest(dict(self.model.module.named_parameters()))

    def validate(self):
        """Top 1 and top 5 on the held-out images, each worker its part of them."""
        rank, world, size = dist.get_rank(), dist.get_world_size(), self.arguments.batch_size
        numbers = list(range(rank, len(self.held_out), world))
        right = torch.zeros(3, device=self.device)
        self.model.eval()
        with torch.no_grad():
            for x, y, _ in self.loader(self.held_out, [numbers[i:i + size] for i in range(0, len(numbers), size)]):
                y = y.to(self.device)
                _, top = self.model.module(x.to(self.device)).topk(min(5, len(self.images.classes)), dim=1)
                hits = top.eq(y.reshape(-1, 1)).float()
                right += torch.stack([hits[:, 0].sum(), hits.sum(), torch.tensor(float(len(y)), device=self.device)])
        dist.all_reduce(right)
        first, five, of = right.tolist()
        self.best = max(self.best, first / of)
        if rank == 0:
            print(f"accuracy {first / of:.4f}, among the first five {five / of:.4f}, best {self.best:.4f}", flush=True)

    def train(self):
        self.load_checkpoint()
        while self.sampler.epoch < self.arguments.epochs:
            self.train_epoch()
            self.validate()
        if self.events:
            weights = self.digest()
            self.events.done(weights)
            if dist.get_rank() == 0:
                print(f"model {weights}", flush=True)


def read_checkpoint(path, arch):
    """What lies there, if it is whole and of this network; None, and why, otherwise."""
    if not os.path.exists(path):
        return None
    try:
        state = torch.load(path, map_location="cpu")
        if state["arch"] == arch:
            return state
        why = f"it is of {state['arch']}, not of {arch}"
    except Exception as error:  # whatever a torn or foreign file makes of torch.load
        why = str(error) or type(error).__name__
    print(f"{path} is passed over: {why}", file=sys.stderr, flush=True)
    return None


def send_bytes(state, holder, device):
    """What torch.save makes of the holder's state, on every rank."""
    made = io.BytesIO()
    if state:
        torch.save(state, made)
    size = torch.tensor([made.tell()], device=device)
    dist.broadcast(size, src=holder)
    sent = torch.frombuffer(bytearray(made.getvalue() or bytes(int(size))), dtype=torch.uint8).to(device)
    dist.broadcast(sent, src=holder)
    return sent.cpu().numpy().tobytes()


def parse():
    known = sorted(n for n, v in models.__dict__.items() if n.islower() and not n.startswith("_") and callable(v))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", help="the folder with train/ and val/")
    parser.add_argument("-a", "--arch", default="resnet18", choices=known, metavar="NAME", help="a network of torchvision")
    parser.add_argument("-j", "--workers", type=int, default=2, help="loaders of each worker")
    parser.add_argument("--epochs", type=int, default=90)
    parser.add_argument("-b", "--batch-size", type=int, default=256, help="of all workers together")
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--wd", "--weight-decay", dest="weight_decay", type=float, default=1e-4)
    parser.add_argument("-p", "--print-freq", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dist-backend", choices=["gloo", "nccl"], help="NCCL where there is a GPU unless said")
    parser.add_argument("--checkpoint-dir", default="checkpoints")
    parser.add_argument("--checkpoint-every", type=int, default=100, help="steps; one comes after each epoch, too")
    parser.add_argument("--shared", action="store_true", help="--checkpoint-dir is the same for all nodes")
    parser.add_argument("--prepare", metavar="COMMAND", help="what puts the images into the folder behind it, and is asked first")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds that a step takes longer")
    return parser.parse_args()


def main():
    arguments = parse()
    if arguments.prepare:
        subprocess.run(shlex.split(arguments.prepare) + [arguments.data], check=True, stdout=subprocess.DEVNULL)
    for part in ("train", "val"):
        if not os.path.isdir(os.path.join(arguments.data, part)):
            sys.exit(f"imagenet.py: {arguments.data} has no folder {part}: class folders are expected in train/ and val/")
    cuda = torch.cuda.is_available() and arguments.dist_backend != "gloo"
    if cuda:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    dist.init_process_group(arguments.dist_backend or ("nccl" if cuda else "gloo"))
    world = dist.get_world_size()
    if arguments.batch_size % world != 0:
        sys.exit(f"imagenet.py: --batch-size={arguments.batch_size} cannot be shared by {world} workers")
    Run(arguments, "cuda" if cuda else "cpu").train()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
