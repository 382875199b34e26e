#!/usr/bin/env python3
"""How long one step of a network of ranktrain takes in torch: 96 samples, from weights to new weights.

    torch_step.py cpu|cuda [STEPS [lenet|resnet18 [WIDTH]]]

Prints "label ..." and "step_us P50 P10 P90", as spawn_step does. Exit: 0, 3 when there is no torch or
no device.
"""
import sys
import time

try:
    import torch
    from torch import nn
except ImportError as error:
    print(f"torch_step: {error}", file=sys.stderr)
    sys.exit(3)

WARM, BATCH = 20, 96


class Block(nn.Module):
    def __init__(self, before, channels, stride):
        super().__init__()
        self.way = nn.Sequential(
            nn.Conv2d(before, channels, 3, stride, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(),
            nn.Conv2d(channels, channels, 3, 1, 1, bias=False), nn.BatchNorm2d(channels))
        self.around = nn.Identity() if stride == 1 and before == channels else nn.Sequential(
            nn.Conv2d(before, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x):
        return nn.functional.relu(self.way(x) + self.around(x))


def resnet18(width):
    layers = [nn.Conv2d(1, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    before = width
    for stage in range(4):
        for i in range(2):
            channels = width << stage
            layers.append(Block(before, channels, 2 if stage and i == 0 else 1))
            before = channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 10))


def lenet(width):
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))


def main():
    kind, steps = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 300
    if kind == "cuda" and not torch.cuda.is_available():
        print("torch_step: this torch finds no GPU", file=sys.stderr)
        return 3
    torch.set_num_threads(1)
    torch.manual_seed(1)
    device = torch.device(kind)
    make = {"lenet": lenet, "resnet18": resnet18}[sys.argv[3] if len(sys.argv) > 3 else "lenet"]
    model = make(int(sys.argv[4]) if len(sys.argv) > 4 else 64).to(device)
    loss = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    images = torch.randint(0, 256, (BATCH, 1, 28, 28), dtype=torch.uint8)
    labels = torch.randint(0, 10, (BATCH,))
    if kind == "cuda":
        images, labels = images.pin_memory(), labels.pin_memory()
    times = []
    for i in range(-WARM, steps):
        begin = time.perf_counter()
        x = images.to(device, non_blocking=True).float().div(255).sub(0.2860).div(0.3530)
        value = loss(model(x), labels.to(device, non_blocking=True))
        optimizer.zero_grad(set_to_none=True)
        value.backward()
        optimizer.step()
        value.item()  # as ranktrain does: every step waits for its loss
        if kind == "cuda":
            torch.cuda.synchronize()
        if i >= 0:
            times.append((time.perf_counter() - begin) * 1e6)
    times.sort()
    name = torch.cuda.get_device_name() if kind == "cuda" else "cpu"
    print(f"label torch {torch.__version__} {name}")
    print(f"step_us {times[steps // 2]:.1f} {times[steps // 10]:.1f} {times[steps * 9 // 10]:.1f}")
    return 0


sys.exit(main())
