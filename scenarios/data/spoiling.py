"""Spoils data by a program - each byte of each header, each length at its bounds, each field of what ranktrain prepare has made, pictures of each kind and size, entries
of an archive, places of a cache - and has ranktrain prepare and train on each. What is said, what it ends with and the sums of what is made are compared with
spoiled.txt.

Usage: spoiling.py [PART...], in an empty directory; WRITE=1 writes spoiled.txt anew. What is otherwise is a line that begins with "otherwise: "."""
import functools
import gzip
import hashlib
import http.server
import os
import re
import shutil
import struct
import sys
import threading
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.join(HERE, "../jobs"), os.path.join(HERE, "../disk")]
import altering  # noqa: E402
import datasets  # noqa: E402

TABLE = os.path.join(HERE, "spoiled.txt")
TRAIN = "ranktrain --width=1 --batch-size=4 --shards=4 --steps=1 --log-every=0".split()
PREPARE = "ranktrain prepare --to=to".split()
HEADER = 4096
written = altering.written


def asked(words, **env):
    """What is said that is not of every run, with the exit status."""
    lines, status = altering.asked(words, **env)
    said = [re.sub(r"127\.0\.0\.1:\d+", "ADDRESS", line) for line in lines if not re.match(r"(network|rank|world|label|model|accuracy) |fetched|.*: 0 of its files", line)]
    return [line.split(": fetch it: ")[0].replace("ranktrain: rank 0: ", "").replace("ranktrain prepare: ", "") for line in said] + [f"ends with {status}"] * (status != 0)


def sums_of(top):
    ret = []
    for folder, folders, files in os.walk(top):
        folders.sort()
        for name in sorted(files):
            path = os.path.join(folder, name)
            if os.path.getsize(path):
                with open(path, "rb") as f:
                    ret.append(f"{os.path.relpath(path, top)} {hashlib.sha256(f.read()).hexdigest()[:12]}")
    return ret


def prepared(*words, **env):
    """What is said, and made, from nothing."""
    said = asked([*PREPARE, *words], **env) + sums_of("to")
    shutil.rmtree("to", ignore_errors=True)
    return said


def grouped(cases):
    """(of, form, what became of it): those that came to the same stand in one line."""
    groups = {}
    for of, form, said in cases:
        groups.setdefault((of, "; ".join(said)), []).append(form)
    return [f"{of}: {', '.join(forms)}\n  {said}" for (of, said), forms in groups.items()]


def other_bytes(data, first, below, forms=(0, 1, 127, 255)):
    """Each byte there as another: which, and the whole."""
    for at in range(first, below):
        for value in sorted({data[at] ^ 1, (data[at] + 1) % 256, *forms} - {data[at]}):
            yield f"byte {at} is {value}", data[:at] + bytes([value]) + data[at + 1:]


def other_lengths(data, bounds):
    for n in sorted({n + by for n in bounds for by in (-1, 0, 1)} & set(range(len(data)))):
        yield f"{n} bytes", data[:n]
    for more in (b"\0", data):
        yield f"{len(data) + len(more)} bytes", data + more


# ---- the parts ----

def idx_files(counts=(5, 3)):
    ret = {}
    for name, n in zip(("train", "t10k"), counts):
        pixels = bytes((i * 37 + x * y + (x + y) * (i % 10)) % 256 for i in range(n) for y in range(28) for x in range(28))
        ret[f"{name}-images-idx3-ubyte"] = struct.pack(">4I", 0x803, n, 28, 28) + pixels
        ret[f"{name}-labels-idx1-ubyte"] = struct.pack(">2I", 0x801, n) + bytes((i * 3 + 9) % 10 for i in range(n))
    return ret


def put(top, files):
    os.makedirs(top, exist_ok=True)
    for name, data in files.items():
        os.makedirs(os.path.dirname(os.path.join(top, name)), exist_ok=True)
        written(os.path.join(top, name), data)


def from_idx(*words):
    return prepared("--dataset=mnist", "--from=idx", "--no-verify", *words)


def idx():
    files = idx_files()
    put("idx", files)
    cases = [("all", "as it is", from_idx())]
    for name, data in files.items():
        head = 16 if "images" in name else 8
        of = other_bytes(data, 0, head, (255,)) if name.startswith("train") else other_bytes(data, head // 2 - 1, head // 2)
        for form, other in [*of, *other_bytes(data, head, head + 1, (9, 10, 255)), *other_bytes(data, len(data) - 1, len(data), (9, 10)), *other_lengths(data, (0, 1, 4, head, len(data)))]:
            put("idx", {name: other})
            cases.append((name, form, from_idx()))
        put("idx", files)
    name = "train-labels-idx1-ubyte"
    packed = gzip.compress(files[name], mtime=0)
    os.unlink(os.path.join("idx", name))
    for form, other in [("packed", packed), ("packed twice", gzip.compress(packed, mtime=0)), ("in two members", gzip.compress(files[name][:9], mtime=0) + gzip.compress(files[name][9:], mtime=0)),
                        ("unpacked", files[name]), *other_bytes(packed, 0, 4, ()), *other_bytes(packed, len(packed) - 8, len(packed), ()), *other_lengths(packed, (0, 10, len(packed) - 8, len(packed)))]:
        put("idx", {name + ".gz": other})
        cases.append((name + ".gz", form, from_idx()))
    shutil.rmtree("idx")
    return grouped(cases)


FIELDS = [("magic", 0, "8s"), ("version", 8, "I"), ("count", 12, "I"), ("channels", 16, "i"), ("side", 20, "i"), ("classes", 24, "i"), *((f"mean {c}", 28 + 4 * c, "f") for c in range(3)),
          *((f"deviation {c}", 40 + 4 * c, "f") for c in range(3)), ("part", 52, "I"), ("parts", 56, "I"), ("whole", 60, "I"), ("tail", 64, "I"), ("crc", 68, "I")]


def values_of(kind, value):
    if kind == "8s":
        return (b"rqimages", b"RQIMAGE ", b"RQIMAGE\0", bytes(8))
    if kind == "f":
        return (0.0, -0.0, -1.0, 1.0, 1e-45, 3e38, float("inf"), float("nan"))
    least, most = (0, 2**32 - 1) if kind == "I" else (-2**31, 2**31 - 1)
    return [v for v in sorted({0, 1, 3, 4, value - 1, value + 1, 256, 257, 1024, 1025, least, most}) if v != value and least <= v <= most]


def with_field(data, at, kind, value, sums=True):
    """Of a set that was prepared one field another; sums: its header's checksum is right."""
    ret = bytearray(data)
    struct.pack_into("<" + kind, ret, at, value)
    if sums:
        struct.pack_into("<I", ret, 68, zlib.crc32(bytes(ret[:68])))
    return bytes(ret)


def prepared_sets():
    put("idx", idx_files((12, 8)))
    asked([*PREPARE, "--dataset=mnist", "--from=idx", "--no-verify"])
    os.rename("to", "whole")
    with open("whole/train.images", "rb") as f:
        data = f.read()
    labels = HEADER + 12 * 784
    forms = [(name, repr(value), with_field(data, at, kind, value, name != "crc")) for name, at, kind in FIELDS for value in values_of(kind, struct.unpack_from("<" + kind, data, at)[0])]
    forms += [(name, "another with the old checksum", with_field(data, at, kind, values_of(kind, 0)[1], False)) for name, at, kind in FIELDS[2:]]
    forms += [("all", form, other) for form, other in other_lengths(data, (0, 72, HEADER, labels, labels + 12, len(data)))]
    tails = [("labels", form, other) for form, other in other_bytes(data, labels, labels + 1, (9, 10, 255))]
    tails += [("checksums", form, other) for form, other in other_bytes(data, labels + 12, labels + 13, ())]
    forms += tails + [(of, form + " with its checksum", with_field(other, 64, "I", zlib.crc32(other[labels:]))) for of, form, other in tails]
    forms += [("pixels", form, other) for form, other in [*other_bytes(data, HEADER, HEADER + 1, ()), *other_bytes(data, labels - 1, labels, ())]]
    forms += [("between", form, other) for form, other in other_bytes(data, 72, 73, ())]
    cases = [("all", "as it is", asked([*TRAIN, "--dataset=mnist", "--data-dir=whole", "--batch-size=12"]))]
    for of, form, other in forms:
        shutil.copytree("whole", "to")
        written("to/train.images", other)
        said = asked([*TRAIN, "--dataset=mnist", "--data-dir=to", "--batch-size=12"])
        cases.append((of, form, said + asked([*PREPARE, "--dataset=mnist", "--from=idx", "--no-verify"])))
        shutil.rmtree("to")
    shutil.rmtree("whole")
    shutil.rmtree("idx")
    return grouped(cases)


def splits():
    put("idx", idx_files((7, 3)))
    cases = [("split", f"{k}/{n}{' '.join(more)}", from_idx(f"--split={k}/{n}", *more)) for n in (1, 2, 3, 7, 8) for k in range(n) for more in ((), ("--as=folders",)) if not more or n == 3]
    cases += [("samples", str(n), from_idx("--as=folders", f"--samples={n}")) for n in (1, 2, 3, 4, 6, 7, 8)]
    shutil.rmtree("idx")
    return grouped(cases)


def cifar():
    record = bytes((x * 7 + x // 32) % 256 for x in range(3072))
    names = [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]
    files = {name: bytes([i]) + record + bytes([9 - i]) + record[::-1] for i, name in enumerate(names)}
    put("cifar", files)
    words = ("--dataset=cifar10", "--from=cifar", "--no-verify")
    cases = [("all", "as it is", prepared(*words))]
    for name, data in files.items():
        for form, other in [("missing", None), *other_bytes(data, 0, 1, (9, 10)), *other_bytes(data, 3073, 3074, (9, 10)), *other_lengths(data, (0, 3073, 6146))]:
            put("cifar", {name: other or b""})
            if other is None:
                os.unlink(os.path.join("cifar", name))
            cases.append((name, form, prepared(*words)))
        put("cifar", {name: data})
        os.makedirs("cifar/cifar-10-batches-bin", exist_ok=True)
        os.rename(f"cifar/{name}", f"cifar/cifar-10-batches-bin/{name}")
        cases.append((name, "as the archive has it", prepared(*words)))
    shutil.rmtree("cifar")
    return grouped(cases)


def png(width, height, bits, colour, interlaced=0, cut=None):
    """One whose pixels a line makes; colour 0 grey, 2 RGB, 3 of a palette, 4 grey with alpha, 6 RGB with alpha."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    row = (width * bits * {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour] + 7) // 8
    rows = b"".join(b"\0" + bytes((x * 5 + y * 11 + x * y) % 256 for x in range(row)) for y in range(height))
    ret = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">2I5B", width, height, bits, colour, 0, 0, interlaced))
    if colour == 3:
        ret += chunk(b"PLTE", bytes((i * 3) % 256 for i in range(3 << bits)))
    ret += chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b"")
    return ret[:cut]


def jpeg(wide, high, channels=3):
    return datasets.jpeg([bytes((i * 31 + c * 50 + i * c) % 200 + 20 for i in range(wide * high)) for c in range(channels)], wide, high)


def pictures():
    """A folder of two classes, in which one picture is another each time."""
    put("folder", {f"{of}/{name}/a.png": png(9, 9, 8, 2) for of in ("train", "val") for name in ("one", "two")})
    good = png(20, 12, 8, 2)
    forms = [("PNG of kind", f"{colour} with {bits} bits", png(13, 9, bits, colour)) for colour, depths in ((0, (1, 2, 4, 8, 16)), (2, (8, 16)), (3, (1, 2, 4, 8)), (4, (8, 16)), (6, (8, 16)))
             for bits in depths]
    forms += [("PNG of size", f"{w}x{h}", png(w, h, 8, 2)) for w in (1, 2, 7, 8, 9, 16, 31) for h in (1, 7, 8, 9, 17)]
    forms += [("JPEG of size", f"{8 * w}x{8 * h} of {c} channels", jpeg(w, h, c)) for w in (1, 2, 3, 4, 8, 9) for h in (1, 2, 5, 8) for c in (1, 3)]
    forms += [("PNG", form, other) for form, other in [*other_bytes(good, 0, 8, ()), *other_lengths(good, (2, 4, 8, 33, len(good) - 12, len(good)))]]
    small = jpeg(2, 2)
    forms += [("JPEG", form, other) for form, other in [*other_bytes(small, 0, 4, ()), *other_lengths(small, (2, 4, len(small) - 2))]]
    cases = []
    for of, form, other in forms:
        put("folder", {"train/one/a.png": other})
        said = prepared("--dataset=folder", "--from=folder", "--image-size=8")
        cases.append((of, form, [re.sub(r"(is no whole (JPEG|PNG)): .* (\(\d+ bytes\))", r"\1 \3", line) for line in said if not line.startswith(("to/", "test.images"))]))
    wide = jpeg(9, 7)
    for side in (8, 9, 13, 14, 15, 16, 27, 28, 29, 35, 36, 55, 56, 57, 64, 112):
        put("folder", {"train/one/a.png": wide, "train/two/a.png": png(30, 40, 8, 2)})
        cases.append(("at the size", str(side), [line for line in prepared("--dataset=folder", "--from=folder", f"--image-size={side}") if "train" in line]))
    shutil.rmtree("folder")
    return grouped(cases)


def folders():
    """Which files of a folder are pictures, and which folders classes."""
    cases = []
    for name in ("a.png", "a.PNG", "a.jpg", "a.jpeg", "a.JPeG", "a.jpe", "a.gif", "a", "png", ".png", ".a.png", "a.png.txt", "a.txt.png", "a.b.png", "a png", "b/a.png", "a.png/b"):
        put("folder", {f"{of}/{of_class}/m.png": png(9, 9, 8, 2) for of in ("train", "val") for of_class in ("m", "n")})
        put("folder", {f"train/m/{name}": png(8, 8, 8, 0)})
        cases.append(("a file", name, prepared("--dataset=folder", "--from=folder", "--image-size=8")))
        shutil.rmtree("folder")
    for name in ("a", "z", ".a", "a.png", "A", "a b", "mm", "m.", "l"):
        for test in ("val", "test", "both", "none", "valid"):
            put("folder", {f"{of}/{of_class}/m.png": png(9, 9, 8, 2) for of in ("train",) for of_class in ("m", "n")})
            for of in {"both": ("val", "test"), "none": ()}.get(test, (test,)):
                put("folder", {f"{of}/{name}/x.png": png(8, 8, 8, 0), f"{of}/n/y.png": png(8, 8 + len(of), 8, 2)})
            put("folder", {f"train/{name}/m.png": png(8, 8, 8, 0)})
            cases.append(("a class", f"{name!r} and tests in {test}", prepared("--dataset=folder", "--from=folder", "--image-size=8")))
            shutil.rmtree("folder")
    return grouped(cases)


def entry(name, data=b"", size=None, kind=b"0", magic=b"ustar\0"):
    head = bytearray(512)
    head[:len(name)] = name
    head[124:136] = size if size is not None else b"%011o\0" % len(data)
    head[156:157] = kind
    head[257:257 + len(magic)] = magic
    return bytes(head) + data + bytes(-len(data) % 512)


def archives(url):
    """An archive that is fetched, in which one entry is another each time."""
    record = bytes(i % 251 for i in range(3072))
    rest = b"".join(entry(b"d/%s" % name, bytes([i]) + record) for i, name in enumerate([b"data_batch_%d.bin" % i for i in range(2, 6)] + [b"test_batch.bin"]))
    first, data, end = b"data_batch_1.bin", b"\7" + record, bytes(1024)
    forms = [("name", repr(name.decode()), entry(name, data)) for name in (first, b"d/" + first, b"/" + first, b"../" + first, b"d/e/f/" + first, b"d//" + first, b"d/" + first + b"/", b"d/.", b"",
             b"./" + first, b"." + first, b"d/." + first, b"d" * (99 - len(first)) + b"/" + first, b"d" * (83 - len(first)) + b"/" + first + b"\0x")]
    forms += [("kind", repr(kind.decode()), entry(first, data, kind=kind)) for kind in (b"0", b"\0", b"1", b"2", b"5", b"7", b"g", b"x", b"L", b" ")]
    forms += [("magic", repr(magic.decode()), entry(first, data, magic=magic)) for magic in (b"ustar\0", b"ustar ", b"ustar", b"usta", b"ustax", b"Ustar", b"", b"ustar00")]
    forms += [("size", repr(size.decode()), entry(first, data, size=size)) for size in (b"00000006001\0", b"0000006001 \0", b"6001\0\0\0\0\0\0\0\0", b"000000006001", b"       6001\0",
              b"00000006000\0", b"00000006002\0", b"00000005777\0", b"00000007000\0", b"00000007001\0", b"00000000000\0", b"\0" * 12, b"77777777777\0", b"9" * 12)]
    forms += [("before it", what, before + entry(first, data)) for what, before in (("a directory", entry(b"d/", kind=b"5")), ("another file", entry(b"other", b"x" * 513)),
              ("a file of no length", entry(b"other")), ("one that is replaced", entry(first, b"x" * 3073)), ("a block of zeros", bytes(512)), ("a longer name", entry(b"@", b"d/n" * 40, kind=b"L")))]
    cases = []
    whole = entry(first, data) + rest + end
    for of, form, tar in [*((of, form, tar + rest + end) for of, form, tar in forms), *(("all", form, tar) for form, tar in other_lengths(whole, (0, 512, 1024, 512 + 3073, 4096, len(whole) - 1024, len(whole) - 512)))]:
        written("served/cifar-10-binary.tar.gz", gzip.compress(tar, 1, mtime=0))
        cases.append((of, form, [line for line in prepared("--dataset=cifar10", f"--from={url}", "--no-verify") if not line.startswith("test.images")]))
    return grouped(cases)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def fetched():
    os.mkdir("served")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory="served"))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        return archives(f"http://127.0.0.1:{server.server_address[1]}")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        shutil.rmtree("served")


def caches():
    """Where what was unpacked is kept, and when it is not made again."""
    put("idx", idx_files((12, 8)))
    here, words = os.getcwd(), [*TRAIN, "--dataset=mnist", "--data-dir=idx", "--batch-size=12"]
    cases = []

    def trained(what, **env):
        said = asked(words, **{"XDG_CACHE_HOME": "", "HOME": "", **env})
        lies = sorted(sums_of("c") + sums_of("h"), key=lambda line: line.split("-", 1)[-1])  # their keys are of the time
        if os.path.isdir("c/rankquake"):
            lies.append(f"{len(os.listdir('c/rankquake'))} files")
        cases.append(("cache", what, [re.sub(r"\b[0-9a-f]{16}-", "KEY-", line) for line in said + lies]))

    trained("nowhere")
    trained("in no whole path", XDG_CACHE_HOME="c", HOME="h")
    trained("in a place that cannot be", XDG_CACHE_HOME="/proc/none")
    trained("below home", HOME=f"{here}/h")
    trained("below home, where the other is no whole path", XDG_CACHE_HOME="c", HOME=f"{here}/h")
    trained("in its place", XDG_CACHE_HOME=f"{here}/c", HOME=f"{here}/h")
    trained("in a path that is too long", XDG_CACHE_HOME="/" + "c" * 4096)
    for what, name in (("of training", "train"), ("of tests", "test")):
        path = next(os.path.join("c/rankquake", each) for each in os.listdir("c/rankquake") if each.endswith(f"{name}.images"))
        with open(path, "rb") as f:
            before = f.read()
        for form, data in (("cut off", before[:-1]), ("with another byte", before[:5000] + b"\xff\xfe" + before[5002:]), ("of no length", b"")):
            written(path, data)
            trained(f"one {what} there {form}", XDG_CACHE_HOME=f"{here}/c")
        os.unlink(path)
        os.mkdir(path)
        trained(f"a directory for one {what}", XDG_CACHE_HOME=f"{here}/c")
        os.rmdir(path)
        trained(f"one {what} made again", XDG_CACHE_HOME=f"{here}/c")
    os.utime("idx/train-labels-idx1-ubyte", (1, 1))
    trained("files that are of another time", XDG_CACHE_HOME=f"{here}/c")
    put("idx", idx_files((13, 8)))
    trained("files that are longer", XDG_CACHE_HOME=f"{here}/c")
    trained("and again", XDG_CACHE_HOME=f"{here}/c")
    for name in ("idx", "c", "h"):
        shutil.rmtree(name, ignore_errors=True)
    return grouped(cases)


PARTS = {"splits": splits, "folders": folders, "fetched": fetched, "caches": caches, "cifar": cifar, "pictures": pictures, "idx": idx, "prepared": prepared_sets}


if __name__ == "__main__":
    altering.settle()
    altering.computes = "\0"
    altering.run(PARTS, TABLE)
