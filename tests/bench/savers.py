#!/usr/bin/env python3
"""savers.py BIN BENCH DIR ROUNDS [SHAPE...]: how much longer a save of a real job takes because it is recorded.

    BIN    where rankquake is                      BENCH  where spawn_called and spawn_saver are
    DIR    an empty folder on the disk, whose savers have a folder each
    SHAPE  words of a shape that must be in it, as "fsync" or "ranktrain"; all without

For each way (plain, by a FUSE disk, by system calls, and by both with the directory in memory and the record on the disk, as
`crashpoints` has them in namespaces and, by system calls, on processes) there is one saver of each kind, which waits for its turn. In a round each saves once, each first in every so manieth round, so that what else the machine
does meets all of them. Prints for each shape "save SHAPE PLAIN_MS" and, for each way, "WAY MS MORE_PERCENT": medians over the
rounds, MORE_PERCENT the median of each round's own. Where there is no torch its shapes are left out. Exit: 0, 1 when a saver failed."""
import os
import statistics
import subprocess
import sys
import tempfile

PYTHON = "/usr/bin/python3"
SHAPES = ["ranktrain 1", "ranktrain 0", "ranktrain 12", "torch 10000 fsync", "torch 200000 fsync", "torch 5000000 fsync",
          "torch 10000 plain", "torch 200000 plain", "torch 5000000 plain"]
WAYS = ["plain", "fuse", "calls", "memory-fuse", "memory-calls"]
HERE = os.path.dirname(os.path.abspath(__file__))
WARM = 3


class Saver:
    def __init__(self, way, command, folder, record, programs):
        over = [programs[0] + "/rankquake", "disk", "--over", folder, "--record", record, "--max-bytes", str(1 << 36), "--"]
        called = [programs[1] + "/spawn_called", folder, record]
        before = over if "fuse" in way else called if "calls" in way else []
        os.makedirs(folder)
        self.way = way
        self.process = subprocess.Popen(before + command + [folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def save(self, shape):
        self.process.stdin.write(shape + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"savers.py: the saver of {shape} has ended ({self.way})")
        return float(answer)

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def measure(shape, savers, rounds):
    took = {way: [] for way in WAYS}
    for i in range(-WARM, rounds):
        for k in range(len(WAYS)):
            way = WAYS[(i + k) % len(WAYS)]
            seconds = savers[way].save(shape)
            if i >= 0:
                took[way].append(seconds)
    line = f"save {shape.replace(' ', '-')} {1e3 * statistics.median(took['plain']):.3f}"
    for way in WAYS[1:]:
        more = statistics.median(100 * (b / a - 1) for a, b in zip(took["plain"], took[way]))
        line += f" {way} {1e3 * statistics.median(took[way]):.3f} {more:.1f}"
    print(line, flush=True)


def main():
    programs, place, rounds = sys.argv[1:3], sys.argv[3], int(sys.argv[4])
    shapes = [s for s in SHAPES if all(word in s.split() for word in sys.argv[5:])]
    kinds = {"ranktrain": [programs[1] + "/spawn_saver"], "torch": [PYTHON, HERE + "/saver.py"]}
    if subprocess.run([PYTHON, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode != 0:
        del kinds["torch"]
    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        for kind, command in kinds.items():
            wanted = [s for s in shapes if s.split()[0] == kind]
            savers = {way: Saver(way, command, f"{memory if 'memory' in way else place}/{kind}-{way}",
                                 f"{place}/{kind}-{way}.record", programs) for way in WAYS if wanted}
            for shape in wanted:
                measure(shape, savers, rounds if "5000000" not in shape else max(1, rounds // 3))
            for saver in savers.values():
                saver.end()


main()
