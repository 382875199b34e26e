"""A synchronous parameter server: rank 0 announces the step and hands out the model, all others send gradients of it.

    torchrun --nproc-per-node=9 parameter_server.py --max-steps=100 --eval-freq=20 --train-dir=/shared/models
    python parameter_server.py --evaluate --train-dir=/shared/models --max-steps=100

The server takes the mean of the workers' gradients, updates, and saves the model every --eval-freq steps, from where a
job that has failed goes on. The evaluator is no rank: it follows the directory and tells loss and accuracy on data
that no worker has.
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

CLASSES = 4


def make_model():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, CLASSES))


def make_data(samples, seed):
    made = torch.Generator().manual_seed(seed)
    x = torch.randn(samples, 20, generator=made)
    return x, x[:, :CLASSES].argmax(dim=1)


def flat(tensors):
    return torch.cat([t.reshape(-1) for t in tensors])


def put(tensors, values):
    at = 0
    for t in tensors:
        t.copy_(values[at:at + t.numel()].view_as(t))
        at += t.numel()


class Run:
    def __init__(self, arguments):
        self.arguments, self.step = arguments, 0
        self.events = rankquake.Client() if rankquake else None
        self.model = make_model()
        self.parameters = [p.data for p in self.model.parameters()]
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=arguments.lr, momentum=arguments.momentum)
        self.rank, self.world = dist.get_rank(), dist.get_world_size()

    def load(self):
        newest = newest_model(self.arguments.train_dir) if self.rank == 0 else None
        if newest:
            state = torch.load(newest)
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.step = state["step"]
            print(f"server goes on from step {self.step}")
        step = torch.tensor([self.step])
        dist.broadcast(step, src=0)
        self.step = int(step)
        if self.events:
            self.events.resume(self.step, newest or "")

    def save(self):
        path = os.path.join(self.arguments.train_dir, f"model_step_{self.step}")
        part = f"{path}.{os.getpid()}.part"
        torch.save({"step": self.step, "model": self.model.state_dict(),
                    "optimizer": self.optimizer.state_dict()}, part)
        os.replace(part, path)
        if self.events:
            self.events.checkpoint_commit(self.step, path)

    def serve(self, size):
        """Rank 0: the mean of what the workers send, in the order of their ranks; returns the mean loss."""
        got, mean = torch.empty(size + 1), torch.zeros(size + 1)
        for worker in range(1, self.world):
            dist.recv(got, src=worker)
            mean += got
        mean /= self.world - 1
        for p in self.model.parameters():
            p.grad = torch.empty_like(p)
        put([p.grad for p in self.model.parameters()], mean)
        self.optimizer.step()
        return mean[-1].item()

    def work(self):
        """Every other rank: the gradient on a batch of its own, and the loss behind it, to the server."""
        x, y = make_data(self.arguments.batch_size, 1000 * self.step + self.rank)
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(x), y)
        loss.backward()
        dist.send(torch.cat([flat([p.grad for p in self.model.parameters()]), loss.detach().reshape(1)]), dst=0)
        return loss.item()

    def train(self):
        self.load()
        size = flat(self.parameters).numel()
        while self.step < self.arguments.max_steps:
            announced = torch.cat([torch.tensor([float(self.step)]), flat(self.parameters)])
            dist.broadcast(announced, src=0)
            put(self.parameters, announced[1:])
            loss = self.serve(size) if self.rank == 0 else self.work()
            self.step += 1
            time.sleep(self.arguments.pause)
            if self.events:
                self.events.step(self.step, loss=loss, samples=self.arguments.batch_size if self.rank else 0)
            if self.rank == 0 and self.step % self.arguments.eval_freq == 0:
                self.save()
                print(f"step {self.step}/{self.arguments.max_steps} loss {loss:.4f}", flush=True)
        final = flat(self.parameters)
        dist.broadcast(final, src=0)  # the workers end with the model, too
        put(self.parameters, final)
        if self.events:
            weights = rankquake.digest(self.model.state_dict())
            self.events.done(weights)
            if self.rank == 0:
                print(f"model {weights}")


def models(directory):
    """The steps that have been saved, and their files."""
    found = {}
    for name in os.listdir(directory):
        if name.startswith("model_step_") and name[len("model_step_"):].isdigit():
            found[int(name[len("model_step_"):])] = os.path.join(directory, name)
    return found


def newest_model(directory):
    found = models(directory)
    return found[max(found)] if found else None


def evaluate(arguments):
    """Loss and accuracy of each model as it comes, until that of the last step."""
    x, y = make_data(1000, 7)
    done, last = set(), arguments.max_steps // arguments.eval_freq * arguments.eval_freq
    while last not in done:
        for step, path in sorted(models(arguments.train_dir).items()):
            if step in done:
                continue
            model = make_model()
            model.load_state_dict(torch.load(path)["model"])
            with torch.no_grad():
                out = model(x)
            loss, right = nn.functional.cross_entropy(out, y), (out.argmax(dim=1) == y).float().mean()
            print(f"evaluator: step {step} loss {loss:.4f} accuracy {right:.4f}", flush=True)
            done.add(step)
        time.sleep(arguments.interval)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--max-steps", type=int, default=100)
    parser.add_argument("--eval-freq", type=int, default=20, help="steps from one saved model to the next")
    parser.add_argument("--batch-size", type=int, default=32, help="of each worker")
    parser.add_argument("--train-dir", default="models", help="where the models are")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds that a step takes longer")
    parser.add_argument("--evaluate", action="store_true", help="follow the directory instead of training")
    parser.add_argument("--interval", type=float, default=0.2, help="seconds between two looks of the evaluator")
    arguments = parser.parse_args()
    os.makedirs(arguments.train_dir, exist_ok=True)
    if arguments.evaluate:
        return evaluate(arguments)
    dist.init_process_group("gloo")  # the model is on the server's CPU
    Run(arguments).train()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
