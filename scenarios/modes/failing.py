"""Trains small jobs, prepares their data and evaluates what they save, and of each one system call fails, once, at every place in ranktrain
that makes it (strace injects it), or a signal comes there. Each must end soon: well, with the same lines and model as undisturbed, or with 1 and
a sentence that has the system's word. What was saved is complete, no descriptor is left open, and who starts it again goes on from there, to the
same model. Of ways that failing.txt has each sentence is one that it has, and each of these is said (WRITE=1 prints them); where OpenBLAS is another than
it was written beside, that is not asked.

Usage: failing.py WAY..., in an empty directory; of end:WAY signals come and no call fails; what +WAY does is left out in those behind it. What is not as it must be is a line that begins with "otherwise: "."""
import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

EVERY, LAST, BEGUN = 2, 6, 2  # steps between two checkpoints, the last, and the one that a job goes on from
LONG = 90  # seconds; all of them end within one
SHOW, WRITE = os.environ.get("SHOW"), os.environ.get("WRITE")
HERE = os.path.dirname(os.path.abspath(__file__))
BESIDE = "/usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblasp-r0.3.21.so"

# How each call fails, if it may. One that only looks whether something is there must not say that it is not.
FAILS = {
    "EIO": "read pread64 getdents64 fsync fdatasync rename renameat renameat2 unlinkat newfstatat fstatfs utimensat lseek getrandom",
    "ENOSPC": "write pwrite64 ftruncate fallocate mkdir mkdirat inotify_add_watch",
    "EMFILE": "openat memfd_create socket accept4 eventfd2 signalfd4 inotify_init1 socketpair pipe2",
    "ENOMEM": "mmap",
    "EAGAIN": "clone clone3 fork vfork",
    "ENOLCK": "flock fcntl",
    "EADDRINUSE": "bind listen",
    "ECONNRESET": "connect sendto sendmsg recvfrom recvmsg",
}
ERRORS = {call: error for error, calls in FAILS.items() for call in calls.split()}
AGAIN = "poll recvfrom recvmsg sendto sendmsg accept4".split()  # may be interrupted, and are made again
SIGNALLED = "openat write fsync renameat unlinkat mkdirat poll recvfrom sendto".split()
SAVING = "openat write fsync renameat unlinkat mkdirat".split()
OPENING = "openat memfd_create socket accept4 eventfd2 signalfd4 inotify_init1 socketpair pipe2".split()

TRAIN = ["ranktrain", "--dataset=generated", "--samples=48", "--width=2", "--batch-size=24", f"--steps={LAST}", f"--checkpoint-every={EVERY}",
         "--log-every=1", "--checkpoint-dir=ck"]
PARTS = ["--checkpoint-sharded"]
SAID = {"mmap": "Resource temporarily unavailable", "bind": "is in use", "listen": "is in use", "write": "standard output"}
GONE = "is gone", "does not answer", "left while the group was forming"  # what a peer's silence is called
# Who is not understood at the door is not one of the group, which waits on for 10 s; and a write into an eventfd cannot fail.
LEFT_OUT = {("recvfrom", "door_wait"), ("write", "asked_close")}
DEPTH = 5  # places are told apart by so many functions
WAYS = {  # further options, ranks, and of which one a call fails; late: a save is durable when the next one begins
    "alone": ([], 1, 0),
    "beside": (["--checkpoint-async"], 1, 0),
    "devices": (["--mode=dp", "--devices=2"], 1, 0),
    "whole-0": (["--mode=ddp", "--overlap"], 2, 0),
    "whole-1": (["--mode=manual"], 2, 1),
    "parts-0": (["--mode=zero", *PARTS], 2, 0),
    "parts-1": (["--mode=fsdp", *PARTS, "--checkpoint-async"], 2, 1),
    "server": (["--mode=ps"], 3, 0),
    "served": (["--mode=ps"], 3, 1),
    "spawned": (["--spawn=2", "--mode=zero"], 1, 0),
    "loaders": (["--dataset=folder", "--data-dir=pictures", "--image-size=28", "--loaders=2"], 1, 0),
    "new": (["--checkpoint-dir=new/a/ck"], 1, 0),
}
PREPARE = ["ranktrain", "prepare", "--to=to"]
SERVED = ["python3", os.path.join(HERE, "../jobs/datasets.py"), "cifar10", "published", "--"]  # URL stands for where it serves
PREPARED = {  # how the data come there, and what is in front of the program
    "packed": (["--dataset=mnist", "--from=idx", "--no-verify"], []),
    "unfolded": (["--dataset=mnist", "--from=idx", "--no-verify", "--as=folders", "--samples=12"], []),
    "pictured": (["--dataset=folder", "--from=pictures", "--image-size=8"], []),
    "fetched": (["--dataset=cifar10", "--from=URL", "--no-verify"], SERVED),
}
known, wrong = set(), 0  # places that had their turn
sentences = {}  # of each way, what it has said of failures


def otherwise(what, *seen):
    global wrong
    wrong += 1
    for line in (what, *seen):
        print(f"otherwise: {str(line)[-1000:]!r}" if line is not what else f"otherwise: {what}", flush=True)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Way:
    """A small job in a directory of its own, that can be begun again as it was."""

    before, links = (), ("pictures", "idx")

    def __init__(self, name):
        self.name = name
        os.makedirs(self.inside("begun"))
        for each in filter(os.path.isdir, self.links):
            os.symlink(os.path.abspath(each), self.inside(os.path.join("begun", each)))
        self.begin()
        self.afresh()
        self.wanted = [said for code, said, _ in self.train("tried") if code == 0 or otherwise(f"{name}: undisturbed", code)]

    def begin(self):
        more, self.ranks, self.struck = WAYS[self.name]
        self.words = TRAIN + more
        self.saves = "new/a/ck" if self.name == "new" else "ck"
        self.late = EVERY if "--checkpoint-async" in more else 0
        self.follow = [] if self.name == "spawned" else ["-f"]
        self.begun = 0 if self.name == "new" else BEGUN
        if self.begun:
            self.train("begun", words=self.words + [f"--steps={BEGUN}"])

    def ended_well(self, what, said):
        if [s[1] for s in said] != self.wanted or any(s[0] for s in said):
            otherwise(f"{what}: it ends with 0, and did not print the same", *said)
        if LAST not in self.complete():
            otherwise(f"{what}: it ends with 0, and its last checkpoint is not complete", self.complete())

    def ended_badly(self, what, said):
        resumes_well(self, what, durable(self, said[0][1]))

    def was_told(self, what, said):
        """It was asked to end."""
        code, _, err = said[self.struck]
        if code not in (0, -signal.SIGTERM) or any(s[0] not in (0, 1, -signal.SIGTERM) for s in said):
            otherwise(f"{what}: it ends otherwise", *said)
        if code == 0 and [s[1] for s in said] != self.wanted:
            otherwise(f"{what}: it ends with 0, and did not print the same", *said)
        steps = re.findall(r"^step (\d+) ", said[0][1], re.M)
        resumes_well(self, what, int(steps[-1]) if steps and "cannot be saved" not in err and self.ranks == 1 else durable(self, said[0][1]))

    def inside(self, name):
        return os.path.abspath(os.path.join(self.name, name))

    def afresh(self):
        shutil.rmtree(self.inside("tried"), ignore_errors=True)
        shutil.copytree(self.inside("begun"), self.inside("tried"), symlinks=True)

    def train(self, where, before=(), words=None):
        """Of each rank how it ended, and what it printed to both streams. When one has failed the others are told to end, as a launcher does it."""
        port, children = free_port(), []
        for rank in range(self.ranks):
            env = {**os.environ, "MASTER_PORT": str(port), "MASTER_ADDR": "127.0.0.1"}
            if self.ranks > 1:
                env.update(RANK=str(rank), WORLD_SIZE=str(self.ranks), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(self.ranks))
            command = [*self.before, *(before if rank == self.struck else ()), *(words or self.words)]
            with open(self.inside(f"out.{rank}"), "w") as out, open(self.inside(f"err.{rank}"), "w") as err:
                children.append(subprocess.Popen(command, env=env, cwd=self.inside(where), stdin=subprocess.DEVNULL, stdout=out, stderr=err))
        ended = wait_for([child.pid for child in children])
        for child, code in zip(children, ended):
            child.returncode = code
        return [(code, re.sub(r" in [0-9.]+ ms|127\.0\.0\.1:[0-9]+", "", self.read(f"out.{rank}")), self.read(f"err.{rank}")) for rank, code in enumerate(ended)]

    def read(self, name):
        with open(self.inside(name)) as f:
            return f.read()

    def sites(self):
        """Where calls are made - by name, how many came before it in its thread, and the functions that lead there; each once."""
        log = self.inside("log")
        self.afresh()
        self.train("tried", ["strace", *self.follow, "-k", "-qq", "-o", log, "-e", "trace=" + ",".join(ERRORS) + ",poll"])
        made, loading, ret, first = {}, {}, {}, None
        for thread, call, stack, _ in calls_of(log):
            first = first or thread
            n = made[thread, call] = made.get((thread, call), 0) + 1
            inside = [f for f in stack if "/ranktrain(" in f]
            if thread == first and not inside:
                loading[call] = n
            # Of a further thread one counts that the first cannot come to while it is loaded: both would be struck.
            if inside and (thread == first or n > loading.get(call, 0)):
                ret.setdefault((call, tuple(inside[:DEPTH])), n)
        new = [(call, n, " < ".join(re.sub(r".*\((\w+).*", r"\1", f) for f in stack)) for (call, stack), n in ret.items() if (call, stack) not in known]
        known.update(ret)
        return new

    def complete(self):
        """The steps of which all lies there that the manifest says."""
        path, ret = self.inside(os.path.join("tried", self.saves)), []
        for name in os.listdir(path) if os.path.isdir(path) else []:
            with contextlib.suppress(OSError, ValueError):
                with open(os.path.join(path, name, "manifest.json")) as f:
                    files = json.load(f)["files"]
                if all(sum_of(os.path.join(path, name, each["name"])) == each["sha256"] for each in files):
                    ret.append(int(name[len("step-"):]))
        return sorted(ret)

    def drafts(self):
        path = self.inside(os.path.join("tried", self.saves))
        return [name for name in os.listdir(path) if name.startswith(".")] if os.path.isdir(path) else []

    def fini(self):
        shutil.rmtree(self.name)


class Preparing(Way):
    """Data that are brought to where they are trained on: all of it or nothing."""

    ranks, struck, follow = 1, 0, ["-f"]

    def begin(self):
        more, self.before = PREPARED[self.name]
        self.words = PREPARE + more
        if self.before:
            subprocess.run(self.before[:-2] + [self.inside("begun/published")], check=True)
        self.afresh()
        self.train("tried")
        self.tree = self.made()

    def made(self):
        """What lies there, by the sums of the files; a set of class folders that is not whole, or what is left over, shows."""
        ret, top = {}, self.inside("tried/to")
        for folder, _, files in os.walk(top):
            ret.update({os.path.relpath(os.path.join(folder, f), top): sum_of(os.path.join(folder, f)) for f in files})
        return ret

    def again(self, what, said):
        half = {k: v for k, v in self.made().items() if not k.startswith(".prepare.")}
        if any(self.tree.get(k) != v for k, v in half.items()):
            otherwise(f"{what}: it leaves others than it should make", *said)
        for word in ("train", "val"):
            whole = {k for k in self.tree if k.startswith(word + "/")}
            if whole and whole != {k for k in half if k.startswith(word + "/")} and any(k.startswith(word + "/") for k in half):
                otherwise(f"{what}: it leaves a part of {word}", *said)
        repeated = self.train("tried")
        if repeated[0][0] or self.made() != self.tree:
            otherwise(f"{what}: prepared again", *repeated, sorted(set(self.made()) ^ set(self.tree)))

    def ended_well(self, what, said):
        made, tree = ({k: v for k, v in each.items() if "clear" not in what or not k.startswith(".prepare.")} for each in (self.made(), self.tree))
        if [s[1] for s in said] != self.wanted or made != tree:
            otherwise(f"{what}: it ends with 0, and is not the same", *said)

    def ended_badly(self, what, said):
        self.again(what, said)

    def was_told(self, what, said):
        if said[0][0] not in (0, -signal.SIGTERM):
            otherwise(f"{what}: it ends otherwise", *said)
        self.again(what, said)


class Evaluating(Way):
    """Two checkpoints are there, and are tested; none of which it could read all is told as if it had."""

    ranks, struck, follow = 1, 0, ["-f"]

    def begin(self):
        train = ["ranktrain", "--dataset=mnist", "--data-dir=idx", "--width=2", "--batch-size=24", "--steps=4", "--checkpoint-every=2", "--checkpoint-dir=ck"]
        self.train("begun", words=train)
        self.words = ["ranktrain", "evaluate", "--dataset=mnist", "--data-dir=idx", "--model-dir=ck", "--eval-freq=2", "--eval-batch-size=40", "--max-steps=4"]

    def left(self):
        return [name for name in os.listdir(self.inside("tried/ck")) if not name.startswith("step-")]

    def again(self, what):
        repeated = self.train("tried")
        if [(s[0], s[1]) for s in repeated] != [(0, w) for w in self.wanted] or self.left():
            otherwise(f"{what}: evaluated again", *repeated, self.left())

    def ended_well(self, what, said):
        _, out, err = said[0]
        ignored = re.findall(r"^ranktrain evaluate: ignored step (\d+) of ck: .", err, re.M)
        wanted = "".join(line for line in self.wanted[0].splitlines(True) if line.split()[1] not in ignored)
        if out != wanted or (self.left() and "unlinkat" not in what):
            otherwise(f"{what}: it ends with 0, and did not print the same", *said, self.left())

    def ended_badly(self, what, said):
        lost = SAID["write"] in said[0][2]  # a line
        if not (self.wanted[0].startswith(said[0][1]) or (lost and said[0][1] in self.wanted[0])):
            otherwise(f"{what}: it printed something else", *said)
        for name in self.left():
            os.unlink(self.inside(os.path.join("tried/ck", name)))
        self.again(what)

    def was_told(self, what, said):
        if said[0][0] not in (0, -signal.SIGTERM):
            otherwise(f"{what}: it ends otherwise", *said)
        self.ended_badly(what, said)


def way_of(name):
    return (Preparing if name in PREPARED else Evaluating if name == "evaluated" else Way)(name)


def below(pid):
    """The process, or the one that it traces."""
    with contextlib.suppress(OSError, IndexError):
        with open(f"/proc/{pid}/comm") as f, open(f"/proc/{pid}/task/{pid}/children") as g:
            return int(g.read().split()[0]) if f.read() == "strace\n" else pid
    return pid


def send(pid, which):
    with contextlib.suppress(ProcessLookupError):
        os.kill(below(pid), which)


def wait_for(pids):
    """How each ended: its exit status, or less than 0 by a signal. None may take too long."""
    ended = {}
    signal.signal(signal.SIGALRM, lambda *_: [send(pid, signal.SIGABRT) for pid in pids if pid not in ended])
    signal.alarm(LONG)
    while len(ended) < len(pids):
        pid, status = os.wait()
        ended[pid] = os.waitstatus_to_exitcode(status)
        if ended[pid]:
            for other in set(pids) - set(ended):
                send(other, signal.SIGTERM)
    signal.alarm(0)
    return [ended[pid] for pid in pids]


def sum_of(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def calls_of(log):
    """What strace has noted, in the order in which calls began: thread, name, the functions that led there, and the whole line."""
    ret, open_ = [], {}
    with open(log, errors="replace") as f:
        for line in f:
            m = re.match(r"(?:(\d+) +)?(?:<\.\.\. )?(\w+)(\(| resumed)", line)
            if line.startswith(" > ") and ret:
                open_[None][2].append(line.strip())
            elif m and m[3] == "(":
                open_[None] = open_[m[1], m[2]] = [m[1], m[2], [], line]
                ret.append(open_[None])
            elif m and (m[1], m[2]) in open_:
                open_[None] = open_[m[1], m[2]]
                open_[None][3] += line
    return ret


def descriptors(log):
    """What is wrong with those of one process: closed without being open, or left open."""
    held, bad = {}, []
    for _, call, _, line in calls_of(log):
        got = re.search(r" = (-?\d+)", line)
        if call == "close" and " EBADF " in line:
            bad.append(f"closed twice: {line.strip()}")
        elif call == "close":
            held.pop(re.search(r"close\((\d+)", line)[1], None)
        elif got and got[1] != "-1" and call in OPENING:
            for fd in re.findall(r"\[(\d+), (\d+)\]", line)[0] if call in ("socketpair", "pipe2") else [got[1]]:
                held[fd] = line.strip()
    return bad + [f"left open: {line}" for line in held.values()]


def resumes_well(way, what, at_least):
    """Who starts it again goes on from the newest that is complete, and comes to the same model."""
    there = [s for s in way.complete() if s <= LAST]
    newest = max(there, default=0)
    if newest < at_least:
        otherwise(f"{what}: step {at_least} was saved, and {there} lie there")
    again = way.train("tried")
    leader = again[0][1]
    went_on = re.search(r"^resumed step (\d+)", leader, re.M)
    if any(code for code, _, _ in again) or model(leader) != model(way.wanted[0]):
        otherwise(f"{what}: started again", *again)
    elif int(went_on[1] if went_on else 0) != newest:
        otherwise(f"{what}: started again it goes on from {went_on and went_on[0]}, and {there} are complete")
    elif way.drafts():
        otherwise(f"{what}: started again it leaves {way.drafts()}")


def model(said):
    return re.findall(r"^model .*", said, re.M)


def durable(way, said):
    """The step that is durable when this was printed."""
    steps = re.findall(r"^step (\d+) ", said, re.M)
    before = int(steps[-1]) - 1 if steps else 0
    return max(way.begun, before - before % EVERY - way.late)


def strike(way, call, n, how):
    """Lets it happen. None: the call was not made so often this time."""
    log = way.inside("log")
    way.afresh()
    watched = {call, "close", *OPENING} if way.follow else {call}
    said = way.train("tried", ["strace", *way.follow, *(["--seccomp-bpf"] if way.follow else []), "-qq", "-o", log, "-e", "trace=" + ",".join(watched),
                               "-e", f"inject={call}:{how}:when={n}"])
    with open(log, errors="replace") as f:
        text = f.read()
    return said if "INJECTED" in text or "signal" in how else None


def fail(way, call, n, where, error):
    what = f"{way.name}: {call} number {n} fails ({error}) in {where}"
    said = strike(way, call, n, f"error={error}")
    if said is None:
        return 0
    code, out, err = said[way.struck]
    note(way, err)
    words = [os.strerror(getattr(errno, error)), "is not installed (lib", "loader", SAID.get(call, ""), *(GONE if error == "ECONNRESET" else ())]
    if code == 0:
        way.ended_well(what, said)
    elif not any(s[0] == 1 and word and word in s[2] for s in said for word in words) or any(s[0] not in (0, 1, -signal.SIGTERM) for s in said):
        otherwise(f"{what}: it ends without the system's word", *said)
    for gone in re.findall(r".* is gone: .*", "".join(s[2] for s in said)):
        if not re.search(r"rank [0-9] at (127\.0\.0\.1|\?):[0-9]+ is gone: ", gone):
            otherwise(f"{what}: who is gone is not named", gone)
    if error == "EINTR" and code != 0 and SAID["write"] not in err and "OpenBLAS" not in err:
        otherwise(f"{what}: it is interrupted, and does not go on", *said)
    if way.ranks == 1 and way.follow and way.name != "loaders":
        for bad in descriptors(way.inside("log")):
            otherwise(f"{what}: {bad}", err)
    if code != 0:
        way.ended_badly(what, said)
    return 1


def interrupt(way, call):
    """A call that is interrupted every third time is made again."""
    said = strike(way, call, "2+3", "error=EINTR")
    if said and [(code, out) for code, out, _ in said] != [(0, out) for out in way.wanted]:
        otherwise(f"{way.name}: every third {call} is interrupted: it does not go on", *said)


def tell(way, call, n, where):
    """Asked to end it saves what it has got to."""
    what = f"{way.name}: SIGTERM at {call} number {n} in {where}"
    way.was_told(what, strike(way, call, n, "signal=SIGTERM"))


def kill(way, call, n, where):
    """Killed it leaves what it has said."""
    what = f"{way.name}: SIGKILL at {call} number {n} in {where}"
    said = strike(way, call, n, "signal=SIGKILL")
    if said[way.struck][0] not in (0, -signal.SIGKILL):
        otherwise(f"{what}: it ends otherwise", *said)
    way.ended_badly(what, said)


def note(way, err):
    """What it says, without what is another each time."""
    for line in re.findall(r"^ranktrain.*", err, re.M):
        for what, instead in ((r"port \d+", "port N"), (r"/\d{3}(?=[/:])", "/CLASS"), (r"/\d{6}\.png", "/N.png"), (r"evaluator-\S*\.lease", "LEASE"), (r"\(lib[^)]*\)", "(LIBRARY)"), (r"\.pid-\d+", ".pid-N"), (r"[0-9a-f]{16}-", "KEY-"), (r"127\.0\.0\.1:\d+", "ADDRESS")):
            line = re.sub(what, instead, line)
        sentences.setdefault(way.name, set()).add(line)


def compare_sentences():
    with open(os.path.join(HERE, "failing.txt")) as f:
        table = [line.rstrip("\n").split(": ", 1) for line in f if not line.startswith("#")]
    for name in sorted({name for name, _ in table} & set(sentences)):
        written = {sentence for n, sentence in table if n == name}
        for sentence in sorted(sentences[name] - written):
            otherwise(f"{name} says what nobody has written down: {sentence}")
        for sentence in sorted(written - sentences[name]):
            otherwise(f"{name} never says: {sentence}")


def play(name):
    way, struck = way_of(name), 0
    sites = way.sites()
    for call, n, where in sites:
        before, began = wrong, time.monotonic()
        if (call, where.split(" ")[0]) in LEFT_OUT:
            continue
        struck += fail(way, call, n, where, ERRORS[call]) if call in ERRORS else 0
        if call in AGAIN and way.ranks > 1:
            fail(way, call, n, where, "EINTR")
        if SHOW:
            print(f"{time.monotonic() - began:6.2f} s {name} {call} {n} {where}", "WRONG" if wrong > before else "", flush=True)
    for call in AGAIN if way.ranks > 1 else ():
        interrupt(way, call)
    print(f"{name}: {struck} calls of {len(sites)} failed", flush=True)
    way.fini()
    return struck


def look(name):
    way = way_of(name[1:])
    way.sites()
    way.fini()
    return 0


def end(name):
    way = way_of(name)
    sites = way.sites()
    for call, n, where in sites:
        if call in SIGNALLED:
            tell(way, call, n, where)
        if call in SAVING:
            kill(way, call, n, where)
    way.fini()
    return len(sites)


def main():
    os.environ["XDG_CACHE_HOME"] = os.path.abspath("cache")
    os.environ["MALLOC_PERTURB_"] = "165"  # what is not set, or was given back, is no number
    for name in [k for k in os.environ if re.match("RANK|WORLD_SIZE|LOCAL_|MASTER_|TORCHELASTIC|GROUP_|ROLE_", k)]:
        del os.environ[name]
    if {"packed", "unfolded", "evaluated"} & {name.split(":")[-1].strip("+") for name in sys.argv}:
        subprocess.run(["python3", os.path.join(HERE, "../jobs/datasets.py"), "idx", "idx"], check=True)
    if {"loaders", "pictured"} & {name.split(":")[-1].strip("+") for name in sys.argv}:
        subprocess.run(["ranktrain", "prepare", "--dataset=generated", "--as=folders", "--samples=48", "--to=pictures"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    struck = sum(look(name) if name[0] == "+" else end(name[len("end:"):]) if name.startswith("end:") else play(name) for name in sys.argv[1:])
    if WRITE:
        print("\n".join(f"{name}: {sentence}" for name in sentences for sentence in sorted(sentences[name])))
    elif os.path.exists(BESIDE):
        compare_sentences()
    if struck < 60:
        otherwise(f"only {struck} calls failed")
    print("each ends as it must" if not wrong else f"{wrong} were otherwise", flush=True)


if __name__ == "__main__":
    main()
