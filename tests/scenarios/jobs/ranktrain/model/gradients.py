#!/usr/bin/env python3
# Holds ranktrain's networks against PyTorch's: gradients.py SPAWN_GRADIENT NETWORK WIDTH...
# The same parameters, images and labels. Every tensor of the gradient, and every statistic, must be within 1e-5 of the
# largest number of its tensor of what PyTorch computes in double precision; or, as a deep network makes more of a rounding
# than that, within four times the worst that PyTorch itself is off in single precision. Exit: 0, 1 when one is not.
import subprocess
import sys

import numpy
import torch
from torch import nn
from torch.nn import functional as F

STAGES = {"resnet18": ([2, 2, 2, 2], False), "resnet32": ([5, 5, 5], False), "resnet50": ([3, 4, 6, 3], True),
          "resnet110": ([18, 18, 18], False), "resnet152": ([3, 8, 36, 3], True)}
CONVOLUTIONS = {"vgg11": [1, 1, 2, 2, 2], "vgg16": [2, 2, 3, 3, 3]}


def conv(inputs, outputs, kernel, stride=1, padding=None):
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2 if padding is None else padding, bias=False)


class Block(nn.Module):
    def __init__(self, inputs, channels, stride, bottleneck):
        super().__init__()
        outputs = 4 * channels if bottleneck else channels
        shapes = ([(inputs, channels, 1, 1), (channels, channels, 3, stride), (channels, outputs, 1, 1)] if bottleneck
                  else [(inputs, channels, 3, stride), (channels, outputs, 3, 1)])
        self.path = nn.Sequential()
        for i, (a, b, kernel, step) in enumerate(shapes):
            self.path.append(conv(a, b, kernel, step))
            self.path.append(nn.BatchNorm2d(b))
            if i + 1 < len(shapes):
                self.path.append(nn.ReLU())
        self.around = nn.Sequential()
        if inputs != outputs or stride != 1:
            self.around = nn.Sequential(conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return F.relu(self.path(x) + self.around(x))


def resnet(name, width):
    stages, bottleneck = STAGES[name]
    layers, inputs = [conv(1, width, 3), nn.BatchNorm2d(width), nn.ReLU()], width
    for stage, blocks in enumerate(stages):
        channels = width << stage
        for i in range(blocks):
            layers.append(Block(inputs, channels, 2 if stage and i == 0 else 1, bottleneck))
            inputs = 4 * channels if bottleneck else channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 10))


def vgg(name, width):
    layers, inputs, channels = [], 1, width
    for count in CONVOLUTIONS[name]:
        for _ in range(count):
            layers += [conv(inputs, channels, 3, padding=1 if layers else 3), nn.BatchNorm2d(channels), nn.ReLU()]
            inputs = channels
        layers.append(nn.MaxPool2d(2))
        channels = min(2 * channels, 8 * width)
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(inputs, 10))


def lenet(width):
    second = width * 16 // 6
    return nn.Sequential(nn.Conv2d(1, width, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(width, second, 5),
                         nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(second * 25, 120), nn.ReLU(),
                         nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))


def network(name, width):
    if name == "lenet":
        return lenet(width)
    return resnet(name, width) if name in STAGES else vgg(name, width)


def load(net, values):
    at = 0
    for p in net.parameters():
        p.data = torch.from_numpy(values[at:at + p.numel()].astype("f4").reshape(p.shape))
        at += p.numel()
    assert at == len(values), f"PyTorch has {at} parameters, ranktrain {len(values)}"


def gradients(name, width, values, images, labels, dtype):
    """The tensors by name, in ranktrain's order."""
    net = network(name, width)
    load(net, values)
    net = net.to(dtype)
    norms = [m for m in net.modules() if isinstance(m, nn.BatchNorm2d)]
    for m in norms:
        m.momentum = 1.0  # the batch's own
    x = (torch.from_numpy(images.copy()).to(dtype) / 255 - 0.2860) / 0.3530
    loss = F.cross_entropy(net(x), torch.from_numpy(labels.astype("i8")), reduction="sum")
    loss.backward()
    result = [(what, p.grad) for what, p in net.named_parameters()]
    for i, m in enumerate(norms):
        result += [(f"mean of norm {i + 1}", m.running_mean), (f"variance of norm {i + 1}", m.running_var)]
    return [("loss", loss.detach())] + result


def off(exact, got):
    """As a share of the largest number."""
    exact, got = exact.numpy().ravel(), numpy.asarray(got).ravel().astype("f8")
    return numpy.abs(exact - got).max() / max(numpy.abs(exact).max(), 1e-3)


def check(program, name, width):
    out = subprocess.run([program, name, str(width)], stdout=subprocess.PIPE, check=True).stdout
    n, trained = numpy.frombuffer(out, "i8", 2)
    at = 16
    values = numpy.frombuffer(out, "f4", n, at)
    at += 4 * n
    images = numpy.frombuffer(out, "u1", 8 * 784, at).reshape(8, 1, 28, 28)
    labels = numpy.frombuffer(out, "u1", 8, at + 8 * 784)
    at += 8 * 785
    loss = numpy.frombuffer(out, "f8", 1, at)
    got = numpy.concatenate([loss, numpy.frombuffer(out, "f4", n, at + 8)])

    exact, own = (gradients(name, width, values[:trained], images, labels, t) for t in (torch.float64, torch.float32))
    worst = max(off(e, o.numpy()) for (_, e), (_, o) in zip(exact, own))
    wrong, at = [], 0
    for what, e in exact:
        share = off(e, got[at:at + e.numel()])
        if not share <= max(1e-5, 4 * worst):
            wrong.append(f"{what} is off by {share:.3g}")
        at += e.numel()
    assert at == n + 1, f"PyTorch has {at - 1} values, ranktrain {n}"
    print(f"{name} of width {width}: {trained} parameters, {len(exact)} tensors, {len(wrong)} wrong "
          f"(PyTorch in single precision is off by up to {worst:.2g})")
    for line in wrong:
        print(f"  {line}")
    return not wrong


if __name__ == "__main__":
    torch.set_num_threads(1)
    rest = sys.argv[2:]
    results = [check(sys.argv[1], name, int(width)) for name, width in zip(rest[::2], rest[1::2])]
    sys.exit(not all(results))
