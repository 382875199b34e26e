"""Lets small jobs train, read, prepare and evaluate, and of each one call to its C library fails at every place of ranktrain that makes it. What is said then and
what it ends with is compared with failed.txt, and each process is asked what it has not given back (given_back.py): what is done where something fails is
done wrongly for long before anybody sees it. Nothing is traced, so that it costs little.

Usage: failed.py [WAY...], in an empty directory; WRITE=1 writes failed.txt anew. What is otherwise is a line that begins with "otherwise: "."""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys

import given_back

TABLE = os.path.join(given_back.HERE, "failed.txt")
DATA = ["python3", os.path.join(given_back.HERE, "../jobs/datasets.py")]
LONG = 90  # seconds; each ends within one
SMALL = "--width=1 --batch-size=12 --shards=4 --samples=24".split()
TRAIN = ["ranktrain", "--dataset=generated", *SMALL, *"--steps=2 --checkpoint-every=1 --checkpoint-keep=1 --checkpoint-dir=ck".split()]
MNIST = ["--dataset=mnist", "--data-dir=idx"]
PREPARE = "ranktrain prepare --to=to".split()
IDX, FEW = [*DATA, "idx", "idx"], ["sh", "-c", f"python3 {DATA[1]} jpeg jpeg && rm jpeg/*/*/0[1-3]?.jpg jpeg/*/*/00[2-9].jpg"]
WAYS = {  # what comes before, once, and what is asked
    "new": ([], [*TRAIN, "--checkpoint-dir=a/b/ck"]),
    "goes-on": ([[*TRAIN, "--checkpoint-keep=9"]], [*TRAIN, "--steps=3"]),
    "replaces": ([[*TRAIN, "--steps=1"], ["sh", "-c", "truncate -s 8 ck/*/weights.f32"]], [*TRAIN, "--steps=1", "--fresh"]),
    "parts": ([], [*TRAIN, "--checkpoint-sharded", "--optimizer=adam", "--steps=1"]),
    "parts-go-on": ([[*TRAIN, "--checkpoint-sharded", "--steps=1"]], [*TRAIN, "--checkpoint-sharded"]),
    "files": ([IDX], ["ranktrain", *MNIST, *SMALL, "--steps=1"]),
    "pictures": ([FEW], ["ranktrain", "--dataset=folder", "--data-dir=jpeg", "--image-size=16", "--width=1", "--batch-size=4", "--shards=4", "--steps=1"]),
    "loaders": ([FEW], ["ranktrain", "--dataset=folder", "--data-dir=jpeg", "--image-size=16", "--width=1", "--batch-size=4", "--shards=4", "--steps=2", "--loaders=2"]),
    "packed": ([IDX], [*PREPARE, "--dataset=mnist", "--from=idx", "--no-verify"]),
    "unfolded": ([IDX], [*PREPARE, "--dataset=mnist", "--from=idx", "--no-verify", "--as=folders", "--samples=2"]),
    "pictured": ([FEW], [*PREPARE, "--dataset=folder", "--from=jpeg", "--image-size=8"]),
    "there": ([IDX, [*PREPARE, "--dataset=mnist", "--from=idx", "--no-verify"]], [*PREPARE, "--dataset=mnist", "--from=idx", "--no-verify"]),
    "trained": ([IDX, [*PREPARE, "--dataset=mnist", "--from=idx", "--no-verify"]], ["ranktrain", "--dataset=mnist", "--data-dir=to", *SMALL, "--steps=1"]),
    "evaluated": ([[*TRAIN, "--checkpoint-keep=9"]], "ranktrain evaluate --dataset=generated --eval-batch-size=100 --eval-freq=1 --max-steps=2 --model-dir=ck".split()),
}
others = 0


def otherwise(*lines):
    global others
    others += 1
    for line in lines:
        print(f"otherwise: {line}", flush=True)


def anyhow(text):
    """Without what is another each time."""
    for what, instead in ((r" in [0-9.]+ ms", ""), (r"pid-\d+", "pid-P"), (r"evaluator-\S*\.lease", "LEASE"), (r"\(lib[^)]*\)", "(LIBRARY)"), (r"[0-9a-f]{16}-", "KEY-"),
                          (r"process \d+", "process P"), (r"model [0-9a-f]{64}", "model M"), (r"(loss|accuracy) [0-9.]+", r"\1 L"), (r"label cpu .*", "label"), (r"class-\w/\d+\.jpg", "PICTURE"),
                          (r"\d{3}/\d{6}\.png", "PICTURE"), (r"class-\w", "CLASS")):
        text = re.sub(what, instead, text)
    return text


def copied(begin, end):
    """Large ones are read alone, and lie there once."""
    (os.link if os.path.getsize(begin) > 1 << 20 else shutil.copy2)(begin, end)


class Way:
    def __init__(self, name, folder):
        self.name, self.folder, self.top = name, folder, os.path.abspath(name)
        before, self.words = WAYS[name]
        self.begun = os.path.join(self.top, "begun")
        os.makedirs(self.begun)
        shutil.copytree(os.path.join(folder, "cache"), os.path.join(self.begun, "cache"), copy_function=copied)
        for words in [*before, *([self.words] if name in ("pictures", "loaders") else [])]:  # what is in its cache later is there from the first
            subprocess.run(words, cwd=self.begun, check=words[0] != "ranktrain", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.env(self.begun))

    def env(self, place):
        return {**os.environ, "XDG_CACHE_HOME": os.path.join(place, "cache")}

    def play(self, at):
        """What is said, and which call failed; at 0: none does, and each is listed."""
        place, logs = (os.path.join(self.top, f"{what}-{at}") for what in ("tried", "logs"))
        shutil.copytree(self.begun, place, symlinks=True, copy_function=copied)
        os.mkdir(logs)
        calls = os.path.join(logs, "calls")
        open(calls, "w").close()
        env = {**self.env(place), **given_back.environment(logs, os.path.join(self.folder, "held.so")), "FAILED_CALLS": calls, "FAILED_AT": str(at)}
        done = subprocess.run(self.words, cwd=place, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LONG)
        with open(calls) as f:
            made = f.read().splitlines()
        os.unlink(calls)
        names = [os.readlink(os.path.join(logs, name)) for name in os.listdir(logs) if name.startswith("failed.")]
        kept = [line for _, lines in given_back.noted(logs) for line in lines]
        out, err = (anyhow(text.decode(errors="replace").replace(place, ".")) for text in (done.stdout, done.stderr))
        lies = sorted({re.sub(r"\d{6}\.png|\d+\.jpg", "N", anyhow(os.path.relpath(os.path.join(top, name), place))) for top, _, files in os.walk(place) for name in files})
        shutil.rmtree(place)
        shutil.rmtree(logs)
        return made, names, kept, out, err, done.returncode, lies

    def places(self):
        """The first and the last call of each place, by number: of a loop both ends, however it was compiled."""
        made, _, kept, self.out, err, code, self.lies = self.play(0)
        if code or kept or not made:
            otherwise(f"{self.name}: undisturbed it ends with {code}", err, *kept)
        first, last = {}, {}
        for n, line in enumerate(made, 1):
            first.setdefault(line, n)
            last[line] = n
        return sorted({*first.values(), *last.values()})

    def fail(self, at):
        _, names, kept, out, err, code, lies = self.play(at)
        said = [line for line in err.splitlines() if line]
        if out != self.out:
            whole = self.out.splitlines()
            said.append(f"prints {len(out.splitlines())} lines of {len(whole)}" if out.splitlines() == whole[:len(out.splitlines())] else "prints " + " / ".join(line for line in out.splitlines() if line not in whole))
        if names == ["unlinkat"]:  # in the order in which the disk lists them
            lies = {*self.lies, *(re.sub(r"/[^/]*$", "/FILE", name) for name in set(lies) - set(self.lies))}
        said += ["lacks " + name for name in sorted(set(self.lies) - set(lies))] + ["leaves " + name for name in sorted(set(lies) - set(self.lies))]
        if kept:
            otherwise(f"{self.name}: {' '.join(names)} number {at} fails, and has not been given back", *kept)
        return f"{self.name}: {' '.join(names) or 'nothing'} fails: ends with {code}: {'; '.join(said) or 'as undisturbed'}" if names else None


def play(name, folder):
    way = Way(name, folder)
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        said = set(filter(None, pool.map(way.fail, way.places())))
    shutil.rmtree(way.top)
    return sorted(said)


def main():
    os.environ.update(OPENBLAS_NUM_THREADS="1", LC_ALL="C")
    os.umask(0o022)
    for name in [k for k in os.environ if re.match("RANK|WORLD_SIZE|LOCAL_|MASTER_|TORCHELASTIC|GROUP_|ROLE_", k)]:
        del os.environ[name]
    folder = os.path.abspath("library")
    os.mkdir(folder)
    given_back.build(folder, "held.c", "failed.c")
    subprocess.run([*TRAIN, "--checkpoint-dir=of"], check=True, stdout=subprocess.DEVNULL, env={**os.environ, "XDG_CACHE_HOME": os.path.join(folder, "cache")})
    names = sys.argv[1:] or list(WAYS)
    now = [line for name in names for line in play(name, folder)]
    if os.environ.get("WRITE"):
        with open(TABLE, "w") as f:
            f.write("\n".join(now) + "\n")
    with open(TABLE) as f:
        then = [line for line in f.read().splitlines() if line.split(":")[0] in names]
    for line in sorted(set(now) ^ set(then)):
        otherwise(line, "of which nothing is written down" if line in now else "which is not so")
    print(f"{len(now)} lines are as they must be" if not others else f"{others} were otherwise", flush=True)


if __name__ == "__main__":
    main()
