"""Speaks with ranks that form a group as others may: as rank 0 with each answer that it can give, as callers of whom each word but one is right, and between
two ranks, where a connection is cut or a byte changes on its way. All that is answered, said and done is compared with strangers.txt.

Usage: strangers.py, in an empty directory; WRITE=1 writes it down. What is otherwise is a line that begins with "otherwise: "."""
import contextlib
import difflib
import hashlib
import os
import re
import signal
import socket
import struct
import subprocess
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = os.path.join(HERE, "strangers.txt")
LONG = 60  # seconds; whatever is waited for comes within one
MAGIC = 0x3230414E54524B52
HELLO = struct.Struct("<QIiiiq32s32s16s")
NAMES = "magic", "purpose", "rank", "world", "port", "round", "run", "job", "session"
ANSWER = struct.Struct("<QIiq")
JOIN, RING, PAIR = 1, 2, 3
ACCEPTED, ANOTHER_RUN, OLDER, NEWER, ANOTHER_WORLD, ANOTHER_JOB, ANOTHER_RANK = range(1, 8)
RUN, ROUND = "run", 5
STEP = 15  # seconds; what is waited for is said in such
CALLERS = 64  # that may be silent at once
TRAIN = "ranktrain --dataset=generated --samples=24 --width=1 --batch-size=12 --shards=4 --steps=2 --log-every=1".split()
lines = []


def say(text):
    lines.append(re.sub(r"127\.0\.0\.1:\d+", "ADDRESS", re.sub(r"port \d+", "port N", text)))


class Rank:
    """One that is asked. It tells, by a pipe, when it listens, and for how long it would wait."""

    def __init__(self, rank, world, port, *more, cwd=None):
        env = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(world), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1",
               "MASTER_PORT": str(port), "RANKRUN_ROUND": str(ROUND), "TORCHELASTIC_RUN_ID": RUN}
        told, tells = os.pipe()
        self.child = subprocess.Popen(["strace", "-qq", "-s", "0", "-e", "trace=listen,poll", "-e", "signal=none", "-o", f"/dev/fd/{tells}", *TRAIN, *more], env=env, pass_fds=[tells],
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd)
        os.close(tells)
        self.told = os.fdopen(told)

    def listens(self):
        first = self.told.readline()
        assert first.startswith("listen("), f"it did {first!r} before it listened"

    def hear(self):
        """Time has passed of what it waits for, but none of the LONG."""
        self.waits = {-(-int(m[1]) // 1000 // STEP) * STEP for m in (re.search(r", (\d+)\) += ", line) for line in self.told) if m}

    def end(self, name, waits=False):
        """What came of it."""
        reader = threading.Thread(target=self.hear)  # or it stands still when the pipe is full
        reader.start()
        out, err = self.child.communicate(timeout=LONG)
        reader.join()
        self.told.close()
        say(f"{name} ends with {self.child.returncode}")
        if waits:
            say(f"  it would have waited for {max(self.waits)} s")
        for line in err.splitlines():
            say(f"  {line}")
        return out

    def tell_to_end(self):
        with open(f"/proc/{self.child.pid}/task/{self.child.pid}/children") as f:
            os.kill(int(f.read()), signal.SIGTERM)


def listener():
    s = socket.create_server(("127.0.0.1", 0))
    s.settimeout(LONG)
    return s, s.getsockname()[1]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def take(s, n):
    """n bytes, or fewer where it ends."""
    ret = b""
    with contextlib.suppress(ConnectionResetError):
        while len(ret) < n:
            got = s.recv(n - len(ret))
            if not got:
                break
            ret += got
    return ret


def hello_of(s):
    return dict(zip(NAMES, HELLO.unpack(take(s, HELLO.size))))


# ---- as rank 0 ----


def be_rank_0(name, *answers, told=False, more=()):
    """A rank calls; each of its calls gets the next answer: bytes, behind which the connection ends."""
    with listener()[0] as door:
        rank = Rank(1, 2, door.getsockname()[1], *more)
        first = None
        for answer in answers:
            caller, _ = door.accept()
            with caller:
                caller.settimeout(LONG)
                hello = hello_of(caller)
                first = first or hello
                assert hello == first, (hello, first)
                caller.sendall(answer)
        if told:
            caller, _ = door.accept()
            rank.tell_to_end()
        rank.end(f"{name}: after {len(answers)} answers rank 1", told)
    return first


def answer(code, world=2, round_=ROUND, magic=MAGIC):
    return ANSWER.pack(magic, code, world, round_)


def learn():
    """What a rank says of itself; all that it may hear and call again."""
    hello = be_rank_0("rank 0 is of a later round", b"", b"short", answer(ACCEPTED, magic=MAGIC + 1), answer(ANOTHER_RUN), answer(NEWER, round_=4), answer(ANOTHER_WORLD, world=3), answer(0), answer(8),
                      answer(OLDER, round_=9))
    for name in NAMES:
        said = hello[name]
        if name == "run":
            said = "of the run" if said == hashlib.sha256(RUN.encode()).hexdigest()[:32].encode() else said
        elif name in ("job", "session"):
            said = "nothing" if not any(said) else "a digest" if re.fullmatch(rb"[0-9a-f]{32}", said) else said
        elif name == "port":
            said = "a port" if said else 0
        say(f"  rank 1 says {name}: {said:#x}" if name == "magic" else f"  rank 1 says {name}: {said}")
    be_rank_0("rank 0 is of another job", answer(ANOTHER_JOB))
    be_rank_0("rank 0 has that rank", answer(ANOTHER_RANK))
    be_rank_0("rank 0 says nothing, and rank 1 is told to end", answer(ANOTHER_WORLD), told=True)
    for timeout in 29, 31, 600:
        be_rank_0(f"so with --collective-timeout={timeout}", told=True, more=[f"--collective-timeout={timeout}"])
    be_rank_0("rank 0 accepts, and leaves", answer(ACCEPTED))
    return hello


# ---- as callers ----


def call(port, data):
    s = socket.create_connection(("127.0.0.1", port), timeout=LONG)
    s.sendall(data)
    return s


def heard(s):
    got = take(s, ANSWER.size)
    if len(got) < ANSWER.size:
        return "nothing" if not got else f"{len(got)} bytes"
    magic, code, world, round_ = ANSWER.unpack(got)
    return f"{'' if magic == MAGIC else 'another magic, '}code {code}, world {world}, round {round_}"


def ask(port, hello, what, **changes):
    with call(port, HELLO.pack(*{**hello, **changes}.values())) as s:
        said = heard(s)
        say(f"  {what}: {said}{', and it ends' if take(s, 1) == b'' else ', and it goes on'}")


def be_callers(hello):
    say("callers of rank 0, in a world of 3")
    port = free_port()
    rank = Rank(0, 3, port)
    rank.listens()
    hello = {**hello, "world": 3, "rank": 2}
    other = lambda digest: digest[:-1] + (b"0" if digest[-1:] != b"0" else b"1")
    for what, changes in (("another magic", {"magic": MAGIC + 1}), ("for a ring", {"purpose": RING}), ("for a pair", {"purpose": PAIR}), ("for nothing", {"purpose": 0}),
                          ("another run", {"run": other(hello["run"])}), ("the round before", {"round": ROUND - 1}), ("the round behind", {"round": ROUND + 1}),
                          ("a smaller world", {"world": 2}), ("a larger world", {"world": 4}), ("another job", {"job": other(hello["job"])}),
                          ("rank 0", {"rank": 0}), ("rank -1", {"rank": -1}), ("rank 3", {"rank": 3})):
        ask(port, hello, what, **changes)
    whole = HELLO.pack(*hello.values())
    silent = [call(port, whole[:i]) for i in range(1, CALLERS)]  # none of them says all
    with call(port, whole[:-1]) as late, call(port, b"") as first_too_many:
        say(f"  the oldest of {CALLERS + 1} silent ones: {heard(silent[0])}, and it ends")
        late.sendall(whole[-1:])
        say(f"  rank 2, in two pieces: {heard(late)}")
        for s in silent:
            s.close()
        ask(port, hello, "rank 2 again")
        first_too_many.close()
        late.close()
        rank.end("when rank 2 has gone rank 0")


# ---- between two ranks ----


class Between:
    """Hands on what two ranks send each other, over connections of which each has a name; and does one thing to it."""

    def __init__(self, *more, where=None, at=0, how=None, again=0, cwd=(None, None)):
        self.where, self.at, self.how, self.passed, self.threads = where, at, how, {}, []
        self.lock, self.doors, self.come, self.pairs = threading.Lock(), [], b"", "--mode=ps" in more
        self.again = again
        door = self.stand_before("join", lambda: master)
        master = free_port()  # which is not that of the door
        self.ranks = [Rank(0, 2, master, *more, cwd=cwd[0])]
        self.ranks[0].listens()
        self.ranks.append(Rank(1, 2, door, *more, cwd=cwd[1]))

    def stand_before(self, name, port):
        """A door at which ranks call, and from which they are led to that port."""
        door, own = listener()
        self.doors.append(door)
        self.start(self.let_in, name, door, port)
        return own

    def start(self, what, *args):
        self.threads.append(threading.Thread(target=what, args=args, daemon=True))
        self.threads[-1].start()

    def let_in(self, name, door, port):
        with contextlib.suppress(OSError):
            while True:
                caller, _ = door.accept()
                caller.settimeout(LONG)
                callee = socket.create_connection(("127.0.0.1", port()), timeout=LONG)
                there = name
                if name != "join":  # who rings and who speaks in pairs calls at the same door
                    hello = hello_of(caller)
                    there = f"{name} {('', '', 'next', 'pair')[hello['purpose']]}"
                    self.call_before(there, port(), hello)
                    callee.sendall(HELLO.pack(*hello.values()))
                for s in (caller, callee):
                    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.start(self.hand_on, f"{there} out", caller, callee)
                self.start(self.hand_on, f"{there} back", callee, caller)

    def call_before(self, there, port, hello):
        """Who is not of this group, or has no place in it, is not spoken with."""
        for name, value in (("magic", MAGIC - 1), ("purpose", JOIN), ("purpose", PAIR + RING - hello["purpose"]), ("rank", 1 - hello["rank"]), ("rank", 2), ("rank", -1), ("world", 3),
                            ("session", bytes([hello["session"][0] ^ 1]) + hello["session"][1:]), ("session", hello["session"][:-1] + bytes([hello["session"][-1] ^ 1]))):
            if self.mistaken(hello, name, value):
                continue
            with call(port, HELLO.pack(*{**hello, name: value}.values())) as s:
                if take(s, 1):
                    print(f"otherwise: {there}: one with another {name} is answered", flush=True)

    def mistaken(self, hello, name, value):
        """In a world of two the next is the one before, too, and a pair: it may be taken for the other connection of its rank."""
        return name == "purpose" and value != JOIN and self.pairs

    def hand_on(self, name, source, sink):
        n = 0
        with contextlib.suppress(OSError):
            if name == "join out":  # the door of rank 1 is one of ours
                hello = hello_of(source)
                door = hello["port"]
                hello["port"] = self.stand_before("ring of 0", lambda: door)
                sink.sendall(HELLO.pack(*hello.values()))
            if name == "join back":
                sink.sendall(take(source, ANSWER.size))
                table = take(source, 20)
                ring = struct.unpack("<i", table[16:])[0]
                sink.sendall(table[:16] + struct.pack("<i", self.stand_before("ring of 1", lambda: ring)))
            while data := source.recv(1 << 16):
                if name == self.where and n <= self.at < n + len(data):
                    i = self.at - n
                    if self.again:  # the last bytes come once more
                        sink.sendall(data[:i] + self.first(name, data[:i])[-self.again:] + data[i:])
                        n += len(data)
                        continue
                    if self.how == "cut":
                        sink.sendall(data[:i])
                        break
                    data = data[:i] + bytes([data[i] ^ 0x10]) + data[i + 1:]
                n += len(data)
                self.first(name, data)
                sink.sendall(data)
        for s in (source, sink):
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)
        with self.lock:
            self.passed[name] = self.passed.get(name, 0) + n

    def first(self, name, data):
        """All that has come on it."""
        if name == self.where and self.again:
            self.come += data
        return self.come

    def end(self, what):
        say(what)
        said = [rank.end(f"  rank {i}") for i, rank in enumerate(self.ranks)]
        for door in self.doors:
            with contextlib.suppress(OSError):
                door.shutdown(socket.SHUT_RDWR)
            door.close()
        for thread in list(self.threads):
            thread.join(LONG)
        return said


def be_between():
    for more in ((), ("--mode=ps",), ("--mode=ps", "--ps-async"), ("--mode=zero",), ("--mode=fsdp",), ("--mode=manual",), ("--overlap",)):
        between = Between(*more)
        out, _ = between.end(f"undisturbed, {' '.join(more)}")
        say("  " + "".join(re.findall(r"^model .{16}", out, re.M)))
        for name, n in sorted(between.passed.items()):
            say(f"  {name}: {n} bytes")
    for where, at, how in [("join back", at, "cut") for at in (0, 1000, 10000)] + [("join out", 0, "cut")]:
        Between("--checkpoint-dir=ck", where=where, at=at, how=how).end(f"{where} is cut at {at}")
    # A message in the place of one that has its length: of a number, behind that of a loss; and of sums, behind that of the step before.
    for where, at, again in ("ring of 0 next out", 68912, 24), ("ring of 1 pair out", 137752, 137752):
        Between("--mode=ps", where=where, at=at, again=again).end(f"{where} has {again} bytes again behind {at}")
    for where in "ring of 0 next out", "ring of 1 next out":
        for at in 0, 7, 8, 15, 16, 17, 5000, 70000:
            Between(where=where, at=at, how="changed").end(f"{where} is changed at {at}")
        for at in 0, 16, 100:
            Between(where=where, at=at, how="cut").end(f"{where} is cut at {at}")
    for where in "ring of 1 pair out", "ring of 1 pair back":
        for at in 0, 8, 16, 5000:
            Between("--mode=ps", "--ps-async", where=where, at=at, how="changed").end(f"{where} is changed at {at}")
        Between("--mode=ps", "--ps-async", where=where, at=5000, how="cut").end(f"{where} is cut at 5000")


def compare(table):
    """Whether all was as it stands there; what was not is told."""
    if os.environ.get("WRITE"):
        with open(table, "w") as f:
            f.write("\n".join(lines) + "\n")
        return False
    with open(table) as f:
        then = f.read().splitlines()
    for line in list(difflib.unified_diff(then, lines, "written", "now", lineterm="", n=2))[:60]:
        print(f"otherwise: {line}")
    return then == lines


def alone():
    """In an environment of its own, whoever started this."""
    os.environ.update(LC_ALL="C", OPENBLAS_NUM_THREADS="1", XDG_CACHE_HOME=os.path.abspath("cache"))
    for name in [k for k in os.environ if re.match("RANK|WORLD_SIZE|LOCAL_|MASTER_|TORCHELASTIC|GROUP_|ROLE_", k)]:
        del os.environ[name]


def main():
    alone()
    be_callers(learn())
    be_between()
    if compare(TABLE):
        print("strangers hear what they must", flush=True)


if __name__ == "__main__":
    main()
