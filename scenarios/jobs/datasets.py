#!/usr/bin/env python3
"""Makes a small data set on the spot, in the form in which others publish theirs, for jobs that read such files.

    datasets.py idx DIR         MNIST's four IDX files, those of training packed by gzip
    datasets.py cifar10 DIR     CIFAR-10's archive, cifar-10-binary.tar.gz
    datasets.py jpeg DIR        class folders of JPEG files, train/CLASS/N.jpg and val/CLASS/N.jpg
    datasets.py KIND DIR -- COMMAND...   and runs a command while DIR is served at a web address: URL in its words

The same bytes everywhere and each time: each class is bright in a place of its own, and all else is noise. Whatever is there already is
left as it is. Needs nothing but Python 3.

SPDX-License-Identifier: Apache-2.0
"""
import functools
import gzip
import http.server
import io
import os
import random
import shutil
import struct
import subprocess
import sys
import tarfile
import threading

CLASSES = 10
DIM = bytes(v // 2 for v in range(256))
BRIGHT = bytes(64 + v // 2 for v in range(256))


class Pictures:
    """One after another: a label, and the pixels of a channel as rows of bytes."""

    def __init__(self, seed, classes):
        self.random = random.Random(seed)
        self.classes = classes

    def label(self):
        return self.random.getrandbits(16) % self.classes

    def channel(self, label, width, height):
        """Noise that is bright in a band of rows: which band says the class."""
        first, last = height * label // self.classes, height * (label + 1) // self.classes
        rows = [self.random.getrandbits(8 * width).to_bytes(width, "little") for _ in range(height)]
        return b"".join(row.translate(BRIGHT if first <= y < last else DIM) for y, row in enumerate(rows))


def write_idx(folder):
    for name, n, packed in (("train", 240, True), ("t10k", 96, False)):
        pictures = Pictures(name, CLASSES)
        labels = bytes(pictures.label() for _ in range(n))
        pixels = b"".join(pictures.channel(label, 28, 28) for label in labels)
        for kind, head, body in (("images-idx3", struct.pack(">4I", 0x803, n, 28, 28), pixels),
                                 ("labels-idx1", struct.pack(">2I", 0x801, n), labels)):
            path = os.path.join(folder, f"{name}-{kind}-ubyte")
            with open(path + ".gz" * packed, "wb") as f:
                f.write(gzip.compress(head + body, mtime=0) if packed else head + body)


def write_cifar10(folder):
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        place = tarfile.TarInfo("cifar-10-batches-bin")
        place.type = tarfile.DIRTYPE
        tar.addfile(place)
        for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
            pictures = Pictures(name, CLASSES)
            labels = [pictures.label() for _ in range(48)]
            body = b"".join(bytes([label]) + b"".join(pictures.channel(label, 32, 32) for _ in range(3)) for label in labels)
            file = tarfile.TarInfo(f"cifar-10-batches-bin/{name}.bin")
            file.size = len(body)
            tar.addfile(file, io.BytesIO(body))
    with open(os.path.join(folder, "cifar-10-binary.tar.gz"), "wb") as f:
        f.write(gzip.compress(archive.getvalue(), mtime=0))


class Bits:
    """The entropy-coded part of a JPEG file: bits from the highest on, and a zero behind each 255."""

    def __init__(self):
        self.value, self.n = 0, 0

    def put(self, value, n):
        self.value, self.n = self.value << n | value, self.n + n

    def bytes(self):
        fill = -self.n % 8
        self.put((1 << fill) - 1, fill)
        return self.value.to_bytes(self.n // 8, "big").replace(b"\xff", b"\xff\x00")


def jpeg(channels, blocks_wide, blocks_high):
    """Baseline JPEG of YCbCr whose blocks of 8x8 pixels are of one colour each: the means of channels, a byte a block."""

    def segment(marker, body):
        return struct.pack(">2BH", 0xFF, marker, len(body) + 2) + body

    n = len(channels)
    # The size of a difference has four bits, 0 to 11; of what varies within a block there is nothing but its end.
    sizes = segment(0xC4, bytes([0x00, 0, 0, 0, 12] + [0] * 12) + bytes(range(12)))
    ends = segment(0xC4, bytes([0x10, 1] + [0] * 15) + bytes([0]))
    frame = struct.pack(">BHHB", 8, 8 * blocks_high, 8 * blocks_wide, n) + b"".join(bytes([i + 1, 0x11, 0]) for i in range(n))
    scan = bytes([n]) + b"".join(bytes([i + 1, 0]) for i in range(n)) + bytes([0, 63, 0])
    bits, before = Bits(), [0] * n
    for block in range(blocks_wide * blocks_high):
        for i, channel in enumerate(channels):
            value = channel[block] - 128
            difference, before[i] = value - before[i], value
            size = abs(difference).bit_length()
            bits.put(size, 4)
            bits.put(difference if difference >= 0 else difference + (1 << size) - 1, size)
            bits.put(0, 1)
    return (b"\xff\xd8" + segment(0xDB, bytes([0] + [8] * 64)) + segment(0xC0, frame) + sizes + ends + segment(0xDA, scan) +
            bits.bytes() + b"\xff\xd9")


def write_jpeg(folder):
    for name, n in (("train", 36), ("val", 12)):
        pictures = Pictures(name, 4)
        for label in range(4):
            place = os.path.join(folder, name, "class-" + "nesw"[label])
            os.makedirs(place)
            for i in range(n):
                wide, high = 8 + i % 3, 8 + i % 2
                with open(os.path.join(place, f"{i:03}.jpg"), "wb") as f:
                    f.write(jpeg([pictures.channel(label, wide, high) for _ in range(3)], wide, high))


KINDS = {"idx": write_idx, "cifar10": write_cifar10, "jpeg": write_jpeg}


def make(kind, folder):
    """It appears whole: what somebody that was killed has left is made again."""
    if os.path.exists(folder):
        return
    part = f"{folder}.{os.getpid()}"
    os.makedirs(part)
    KINDS[kind](part)
    try:
        os.rename(part, folder)
    except OSError:  # somebody else was faster
        shutil.rmtree(part)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def serve(folder, command):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    status = subprocess.call([word.replace("URL", url) for word in command])
    server.shutdown()
    return status


def main(args):
    if len(args) < 2 or args[0] not in KINDS or (len(args) > 2 and (args[2] != "--" or len(args) == 3)):
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 64
    make(args[0], args[1])
    return serve(args[1], args[3:]) if len(args) > 3 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
