"""Lets small jobs train, prepare data and evaluate, and compares all that can be seen of it with what is written down in records/WAY.txt: what each thread
asks of the system (strace), what each rank tells a harness, what it prints, and what lies on disk behind it. Sums and lengths stand for bytes; what is
another each time - processes, ports, times, names that are drawn - has a name.

Usage: recorded.py WAY..., in an empty directory; WRITE=1 writes them down. What is otherwise is a line that begins with "otherwise: ". The words are those of
one C library and of one OpenBLAS with its kernel for Haswell."""
import array
import difflib
import hashlib
import itertools
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
RECORDS = os.path.join(HERE, "records")
LONG = 90  # seconds; each way ends within a few
CALLS = """openat creat close read readv pread64 write pwrite64 writev fsync fdatasync sync_file_range renameat renameat2 rename unlink unlinkat mkdir mkdirat rmdir
    ftruncate fallocate flock fcntl newfstatat statx fstatfs utimensat getdents64 lseek mmap memfd_create linkat access faccessat2 copy_file_range fadvise64
    execve clone clone3 vfork wait4 waitid kill tgkill pidfd_open pidfd_send_signal prctl prlimit64 setpgid setsid rt_sigaction signalfd4 dup2 dup3 pipe2
    socket socketpair bind listen connect accept4 setsockopt shutdown sendto recvfrom sendmsg recvmsg eventfd2 inotify_init1 inotify_add_watch
    inotify_rm_watch""".split()
MOVES = {"read": "reads", "pread64": "reads at", "recvfrom": "receives", "recvmsg": "receives", "readv": "reads", "write": "writes", "pwrite64": "writes at", "writev": "writes",
         "sendto": "sends", "sendmsg": "sends"}
PAGE = struct.pack("IIQQ", 1, 1 << 30 | 1 << 31, 0, 0)  # nothing is armed; each step is to tell its weights and samples

TRAIN = "ranktrain --dataset=generated --samples=36 --width=1 --batch-size=12 --shards=4 --steps=4 --checkpoint-every=2 --log-every=1 --checkpoint-dir=ck".split()
DATA = ["python3", os.path.join(HERE, "../jobs/datasets.py")]
MNIST = "ranktrain --dataset=mnist --data-dir=idx --width=1 --batch-size=12 --shards=4 --steps=2 --log-every=1".split()
FOLDER = "ranktrain --dataset=folder --data-dir=jpeg --image-size=16 --width=1 --batch-size=12 --shards=4 --steps=2 --log-every=1".split()
EVALUATE = "ranktrain evaluate --dataset=generated --model-dir=ck --eval-batch-size=100 --eval-freq=2".split()
FEW = [[*DATA, "jpeg", "jpeg"], ["sh", "-c", "rm jpeg/*/*/0[1-3]?.jpg jpeg/*/*/00[3-9].jpg"]]
FETCH = [*DATA, "cifar10", "published", "--"]  # URL stands for where it serves

# Of each way: what comes before it, ranks, and what is watched. "own": each rank is in a directory of its own, as on another host; "hosts": two are.
WAYS = {
    "alone": ([], 1, [*TRAIN, "--checkpoint-keep=1"]),
    "goes-on": ([[*TRAIN, "--steps=3"]], 1, [*TRAIN, "--steps=5"]),
    "beside": ([], 1, [*TRAIN, "--checkpoint-async", "--optimizer=adam", "--drop-last", "--samples=40"]),
    "parts-alone": ([], 1, [*TRAIN, "--checkpoint-sharded", "--epochs=2", "--steps=0", "--checkpoint-every=1ep", "--scale-lr=2"]),
    "devices": ([], 1, [*TRAIN, "--mode=dp", "--devices=2"]),
    "ddp": ([], 2, [*TRAIN, "--mode=ddp"]),
    "overlap": ([], 2, [*TRAIN, "--mode=ddp", "--overlap", "--optimizer=adam"]),
    "manual": ([], 3, [*TRAIN, "--mode=manual"]),
    "zero-parts": ([], 2, [*TRAIN, "--mode=zero", "--checkpoint-sharded"]),
    "fsdp-parts-beside": ([], 2, [*TRAIN, "--mode=fsdp", "--checkpoint-sharded", "--checkpoint-async", "--checkpoint-every=1"]),  # else how far it is asked is chance
    "server": ([], 3, [*TRAIN, "--mode=ps"]),
    "server-first": ([], 2, [*TRAIN, "--mode=ps", "--ps-async"]),
    "own-ddp": ([[*TRAIN, "--steps=2"]], 2, [*TRAIN, "--mode=ddp"]),
    "own-zero": ([], 2, [*TRAIN, "--mode=zero"]),
    "own-zero-parts": ([[*TRAIN, "--steps=1"]], 2, [*TRAIN, "--mode=zero", "--checkpoint-sharded"]),
    "own-fsdp-beside": ([], 2, [*TRAIN, "--mode=fsdp", "--checkpoint-async"]),
    "own-server": ([], 3, [*TRAIN, "--mode=ps"]),
    "own-server-first": ([[*TRAIN, "--steps=1"]], 2, [*TRAIN, "--mode=ps", "--ps-async", "--steps=7", "--checkpoint-every=3"]),
    "hosts-zero-parts": ([[*TRAIN, "--steps=1"]], 4, [*TRAIN, "--mode=zero", "--checkpoint-sharded", "--checkpoint-every=4"]),
    "hosts-server": ([], 4, [*TRAIN, "--mode=ps", "--batch-size=12", "--shards=3"]),
    "hosts-fsdp": ([[*TRAIN, "--checkpoint-sharded", "--steps=2"]], 4, [*TRAIN, "--mode=fsdp", "--optimizer=sgd"]),
    "spawned": ([], 1, [*TRAIN, "--spawn=2"]),
    "files": ([[*DATA, "idx", "idx"]], 1, MNIST),
    "kept": ([[*DATA, "idx", "idx"], MNIST], 1, [*MNIST, "--samples=24"]),
    "pictures": (FEW, 1, FOLDER),
    "loaders": (FEW, 1, [*FOLDER, "--loaders=1"]),
    "packed": ([[*DATA, "idx", "idx"]], 1, "ranktrain prepare --to=to --dataset=mnist --from=idx --no-verify --split=1/2".split()),
    "unfolded": ([[*DATA, "idx", "idx"]], 1, "ranktrain prepare --to=to --dataset=mnist --from=idx --no-verify --as=folders --samples=12".split()),
    "pictured": (FEW, 1, "ranktrain prepare --to=to --dataset=folder --from=jpeg --image-size=8".split()),
    "fetched": ([], 1, [*FETCH, *"ranktrain prepare --to=to --dataset=cifar10 --from=URL --no-verify".split()]),
    "made-up": ([], 1, "ranktrain prepare --to=to --dataset=generated --samples=48 --seed=3".split()),
    "evaluated": ([TRAIN], 1, [*EVALUATE, "--max-steps=4"]),
}
others = 0


def otherwise(what, *seen):
    global others
    others += 1
    for line in (what, *seen):
        print(f"otherwise: {line}", flush=True)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Harness:
    """What a job tells it: of each process all that it says."""

    def __init__(self, path):
        self.heard, self.threads = {}, []
        self.page = os.memfd_create("page")
        os.write(self.page, PAGE)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(path)
        self.listener.listen(16)
        self.own = threading.Thread(target=self.accept)
        self.own.start()

    def accept(self):
        while True:
            try:
                caller, _ = self.listener.accept()
            except OSError:  # it was shut
                return
            pid, _, _ = struct.unpack("3i", caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            self.threads.append(threading.Thread(target=self.hear, args=(caller, self.heard.setdefault(str(pid), []))))
            self.threads[-1].start()

    def hear(self, caller, said):
        with caller:
            caller.sendmsg([b"P"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [self.page]))])
            while message := caller.recv(8192):
                said.append(message.decode())

    def fini(self):
        """All have ended: what they have said is heard to its end."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.own.join()
        for thread in self.threads:
            thread.join()
        self.listener.close()
        os.close(self.page)
        return self.heard


def sum_of(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()[:16]


def lying(top):
    """All that lies there, with its length and sum."""
    ret = []
    for folder, folders, files in os.walk(top):
        folders.sort()
        for name in sorted(files):
            path = os.path.join(folder, name)
            said = f"{os.path.getsize(path)} bytes {sum_of(path)}"
            if name == "manifest.json":
                with open(path) as f:
                    said = f.read().strip()
            ret.append(f"{os.path.relpath(path, top)}: {said}")
        ret += [f"{os.path.relpath(os.path.join(folder, name), top)}: empty" for name in folders if not os.listdir(os.path.join(folder, name))]
    return ret


class Way:
    """A small job in a directory, or one for each rank, and the logs of what it did beside that."""

    def __init__(self, name):
        self.name, (self.before, self.ranks, self.words) = name, WAYS[name]
        self.above, self.top = os.getcwd(), os.path.abspath(name)
        self.places = [os.path.join(self.top, self.place_of(rank)) for rank in range(self.ranks)]
        self.is_alone = name.startswith("own-") or (self.ranks == 1 and name != "spawned")
        for place in self.places:
            os.makedirs(place if self.is_alone else os.path.join(place, "ck"), exist_ok=True)  # who of several makes it is chance

    def place_of(self, rank):
        return f"host-{rank}" if self.name.startswith("own-") else f"host-{rank // 2}" if self.name.startswith("hosts-") else "job"

    def play(self):
        """Of each rank its exit status and what it printed."""
        for words in self.before:
            subprocess.run(words, cwd=self.places[0], check=True, stdout=subprocess.DEVNULL)
        name = f"recorded-{os.getpid():07}"  # a path may be too long
        harness = Harness("\0" + name)
        port, children = free_port(), []
        for rank in range(self.ranks):
            env = {**os.environ, "MASTER_PORT": str(port), "RANKQUAKE_EVENTS": "@" + name, "RANKRUN_ROUND": "3", "TORCHELASTIC_RUN_ID": "run",
                   "XDG_CACHE_HOME": os.path.join(self.places[rank] if self.name in ("alone", "files", "kept") else self.above, "cache")}
            if self.ranks > 1:
                env.update(RANK=str(rank), WORLD_SIZE=str(self.ranks), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(self.ranks), MASTER_ADDR="127.0.0.1")
            at = self.words.index("ranktrain")
            strace = ["strace", "-ff", "-yy", "-qq", "-s", "64", "-o", self.log(rank), "-e", "trace=" + ",".join(CALLS), "-e", "signal=!SIGCHLD"]
            with open(self.log(f"out.{rank}"), "w") as out, open(self.log(f"err.{rank}"), "w") as err:
                children.append(subprocess.Popen(self.words[:at] + strace + self.words[at:], env=env, cwd=self.places[rank], stdin=subprocess.DEVNULL, stdout=out, stderr=err))
        signal.signal(signal.SIGALRM, lambda *_: [child.send_signal(signal.SIGTERM) for child in children])
        signal.alarm(LONG)
        self.ended = [child.wait() for child in children]
        signal.alarm(0)
        self.heard = harness.fini()

    def log(self, name):
        return os.path.join(self.top, f"log.{name}")

    def threads(self, rank):
        """The log of each thread of a rank, under a name that tells who began it: by the numbers that clone returned."""
        start = f"log.{rank}."
        logs = {name[len(start):]: name for name in os.listdir(self.top) if name.startswith(start)}
        lines, begun = {}, set()
        for pid, name in logs.items():
            with open(os.path.join(self.top, name), errors="replace") as f:
                lines[pid] = f.read().splitlines()
        children = {pid: [m[1] for m in (re.match(r"(?:clone3?|v?fork)\(.* = (\d+)", line) for line in lines[pid]) if m] for pid in lines}
        begun.update(child for each in children.values() for child in each)
        names, ret = {}, []
        for pid in sorted(set(lines) - begun, key=int):
            self.name_all(pid, str(rank), children, names)
        for pid, name in names.items():
            ret.append((pid, name, told(lines.get(pid, []), names, self.places[rank])))
        return ret

    def is_chance(self, line):
        """How much others have put into one directory; and what localhost is, where ranks meet by that name."""
        return ("entries" in line and not self.is_alone) or ("AF_INET" in line and self.name == "spawned")

    def told_by(self, pid):
        """What a thread that saves tells comes between two steps at any time: it stands behind the others."""
        return sorted(self.heard.get(pid, []), key=lambda message: "beside" in self.name and '"kind":"checkpoint' in message)

    def name_all(self, pid, name, children, names):
        names[pid] = name
        for i, child in enumerate(children.get(pid, [])):
            self.name_all(child, f"{name}.{i + 1}", children, names)

    def record(self):
        """All of it, in lines."""
        ret = []
        for rank in range(self.ranks):
            ret.append(f"rank {rank} ends with {self.ended[rank]}")
            for kind in ("out", "err"):
                with open(self.log(f"{kind}.{rank}")) as f:
                    lines = f.read().splitlines()
                    ret += [f"  {kind}: {anyhow(line, self.places[rank])}" for line in sorted(lines, key=lambda line: (not line.startswith("rank"), line.startswith("rank") and line))]
        for rank in range(self.ranks):
            for pid, name, lines in self.threads(rank):
                ret.append(f"thread {name}")
                ret += ["  " + line for line in lines if not self.is_chance(line)]
                ret += ["  tells " + event(message, self.places[0]) for message in self.told_by(pid)]
        for place in sorted(set(self.places)):
            ret.append(f"{os.path.basename(place)} holds")
            ret += sorted("  " + anyhow(line, place) for line in lying(place))
        return ret


def event(message, place):
    return anyhow(re.sub(r'"(v|seq|lost)":\d+,', "", message), place)


def anyhow(line, place):
    """Without what is another each time."""
    for what, instead in ((re.escape(place), "."), (re.escape(os.path.dirname(place)), ".."), (r"in [0-9.]+ ms", "in T ms"), (r"127\.0\.0\.1:\d+", "ADDRESS"),
                          (r"pid-\d+", "pid-P"), (r"place-[0-9a-f]{16}", "place-H"), (r"0x[0-9a-f]{9,}", "POINTER"), (r"evaluator-[^ ]*-\d+\.lease", "LEASE"),
                          (r"recorded-\d{7}", "harness"), (r"\b[0-9a-f]{16}-", "KEY-"), (r'"address":\d+', '"address":A')):
        line = re.sub(what, instead, line)
    return line


# What the loader, the C library and OpenBLAS read for themselves.
ELSEWHERE = re.compile(r"[<\"]/(?!memfd:)")
# What the C library asks for a stream or a list that it opens.
BESIDE_IT = re.compile(r'^newfstatat\(\d+<[^"]*"", {st_mode=S_IFDIR|^newfstatat\(\d+<\.\./log|F_GETFL|F_SETFD|NETLINK|<UDP|SOCK_DGRAM|/\* 0 entries')
SHARED = "TCP", "UNIX", "pipe", "eventfd"  # how much of what is moved there at once is chance
OF_HOSTS = "prlimit64", "fstatfs", "getdents64"  # what they answer is the host's, or the file system's


def told(lines, names, place):
    """What a thread has asked of the system. Bytes that it moves are counted until it does something else; where others are at the other end, from beginning to end."""
    ret, moved = [], {}
    for line in lines:
        line = anyhow(line, place)
        m = re.match(r"(\w+)\((.*)\)\s+= (.+)$", line)
        on = re.match(r"\d+<(.*?)>(?=,)", m[2]) if m and m[1] in MOVES else None
        if not m:
            ret.append(line.split(" {")[0])
        elif "EAGAIN" in m[3] or (m[1] == "mmap" and "<" not in m[2]) or BESIDE_IT.search(line) or ELSEWHERE.search(f"<{on[1]}>" if on else line):
            continue
        elif on:
            add(ret, moved, MOVES[m[1]], thing(on[1]), m[3])
        else:
            ret.append(asked(*m.groups(), names))
    return in_any_order(without_attempts(ret)) + [f"{how} {what}: {n} bytes in all" for (how, what), n in sorted(moved.items())]


def thing(what):
    for begin in SHARED:
        if re.match(rf"(anon_inode:\[)?{begin}", what):
            return begin
    return what


def add(ret, moved, how, what, result):
    said = f"{how} {what}"
    if not result.split()[0].isdigit():
        ret.append(f"{said}: {result}")
    elif what == "UNIX" or what.startswith("../log"):  # what it tells and prints is compared as such
        ret += [said] if ret[-1:] != [said] else []
    elif what in SHARED:
        how = "sends" if how in ("sends", "writes") else "receives"
        moved[how, what] = moved.get((how, what), 0) + int(result.split()[0])
    elif ret and ret[-1].startswith(said + ": ") and ret[-1].split()[-1].isdigit():
        ret[-1] = f"{said}: {int(ret[-1].split()[-1]) + int(result.split()[0])}"
    else:
        ret.append(f"{said}: {result.split()[0]}")


def asked(call, arguments, result, names):
    arguments = re.sub(r"\d+<(.*?)>(\(deleted\))?(?=[],)}]|$)", lambda m: f"<{thing(m[1])}>", arguments)
    result = re.sub(r"^\d+<(.*)>(\(deleted\))?$", lambda m: f"<{thing(m[1])}>", result)
    if call in OF_HOSTS and not result.startswith("-1"):
        arguments, result = re.sub(r"\{.*\}|POINTER /\* (\d+ entries) .*", r"\1", arguments), "0"
    if "S_IFDIR" in arguments:
        arguments = re.sub(r", st_size=\d+", "", arguments)
    arguments = re.sub(r"htons\([1-9]\d*\)", "htons(N)", arguments)
    named = lambda text: re.sub(r"(?<![\w.-])\d{2,}(?![\w.-])", lambda m: "thread " + names[m[0]] if m[0] in names else m[0], text)
    if call in ("kill", "tgkill", "wait4", "waitid", "pidfd_open", "clone", "clone3", "vfork"):
        arguments, result = named(arguments), named(result)
    return f"{call} {arguments}" if result == "0" or call == "connect" or result.startswith("POINTER") else f"{call} {arguments}: {result}"


def without_attempts(lines):
    """A rank calls until rank 0 listens; how often is chance."""
    ret = []
    for line in lines:
        ret.append(line)
        if line == "close <TCP>" and [each.split()[0] for each in ret[-4:-1]] == ["socket", "setsockopt", "connect"]:
            del ret[-4:]
    return ret


def in_any_order(lines):
    """Files of a directory are taken away in the order in which it lists them, and children are missed as they end."""
    ret = []
    lines = [line for line in lines if not re.match(r"wait4 .*POINTER, WNOHANG", line)]
    for of, some in itertools.groupby(lines, lambda line: line.split()[0]):
        ret += sorted(some) if of in ("unlinkat", "wait4") else some
    return ret


def compare(name):
    way = Way(name)
    way.play()
    path, now = os.path.join(RECORDS, name + ".txt"), way.record()
    if os.environ.get("WRITE"):
        with open(path, "w") as f:
            f.write("\n".join(now) + "\n")
        return
    with open(path) as f:
        then = f.read().splitlines()
    if now != then:
        otherwise(f"{name} is not as it was written down", *list(difflib.unified_diff(then, now, "written", "now", lineterm="", n=2))[:60])
    shutil.rmtree(way.top)


def main():
    os.umask(0o022)
    os.environ.update(OPENBLAS_NUM_THREADS="1", LC_ALL="C")
    for name in [k for k in os.environ if re.match("RANK|WORLD_SIZE|LOCAL_|MASTER_|TORCHELASTIC|GROUP_|ROLE_", k)]:
        del os.environ[name]
    for name in sys.argv[1:]:
        compare(name)
    print(f"{len(sys.argv) - 1} ways are on record" if len(sys.argv) > 1 and not others else f"{others} were otherwise", flush=True)


if __name__ == "__main__":
    main()
