"""Decides what ranks of a small job do next: each reports before it sends a message and when it waits for others (paced.c, preloaded), and goes on when it is told to;
their clocks stand still but for the time that is said to have passed. So each way in which they may come together, miss each other, be late and be lost is the
same each time. What each says and ends with, for how long it has waited, and the model that they come to is compared with paced/CASES.txt.

Usage: paced.py CASES..., in an empty directory; WRITE=1 writes them down. What is otherwise is a line that begins with "otherwise: "."""
import glob
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys

import recorded
import strangers

TABLES = os.path.join(strangers.HERE, "paced")
LONG = 60  # seconds; what is waited for has been sent already
OFTEN = 100  # ms
TRAIN = "ranktrain --dataset=generated --samples=24 --width=1 --batch-size=12 --shards=4 --log-every=1".split()
library = os.path.abspath("paced.so")


class Rank:
    """One that reports. What it does next is in does: "poll", "send", or nothing when it has ended."""

    def __init__(self, job, rank, words, port):
        self.job, self.rank, self.sends, self.passed, self.doors = job, rank, 0, 0, set()
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.settimeout(2 * LONG)
        env = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(job.world), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(job.world), "MASTER_ADDR": "127.0.0.1",
               "MASTER_PORT": str(port), "RANKRUN_ROUND": "5", "TORCHELASTIC_RUN_ID": "run", "LD_PRELOAD": library, "PACED": str(theirs.fileno())}
        self.child = subprocess.Popen(words, env=env, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                      cwd=job.places[rank][0] if job.places else None)
        theirs.close()
        self.signalled, self.reports = False, 0
        self.settle()

    def settle(self):
        """Until it waits to be told."""
        self.does = ""
        while not self.does:
            try:
                report = self.control.recv(8192).decode().split()
            except ConnectionResetError:
                report = []
            if not report:
                self.ends()
                return
            self.reports += 1
            getattr(self, "it_" + report[0])(*report[1:])

    def it_poll(self, timeout, *fds):
        self.does, self.timeout, self.fds = "poll", int(timeout), [fd.split(":") for fd in fds]

    def it_sends(self, name, n):
        self.does, self.link, self.bytes = "send", self.job.link(name), int(n)
        self.sends += 1

    def it_sent(self, name, n):
        self.job.link(name).put(name, int(n))

    def it_listens(self, name):
        own, _ = name.split("-")
        self.doors.add(own)
        self.job.doors[own] = self.rank
        self.job.waiting.setdefault(own, 0)

    def it_calls(self, name):
        _, peer = name.split("-")
        self.job.links[name] = Link(name, self.rank, self.job.doors.get(peer))
        if peer in self.job.waiting:
            self.job.waiting[peer] += 1

    def it_accepts(self, name):
        own, _ = name.split("-")
        self.job.waiting[own] -= 1
        self.job.link(name).is_let_in = True

    def it_closes(self, name):
        own, peer = name.split("-")
        if peer == "0":
            self.hangs_up(own)
        else:
            self.job.link(name).closed.add(name)

    def ends(self):
        self.does = ""
        self.out, self.err = self.child.communicate(timeout=LONG)
        self.control.close()
        for door in list(self.doors):
            self.hangs_up(door)
        for link in self.job.links.values():
            if link.caller == self.rank:
                link.closed.add(link.name)
            if link.callee == self.rank:
                link.closed.add(link.back)

    def hangs_up(self, door):
        """Who called and was not let in is cut off."""
        self.doors.discard(door)
        self.job.waiting.pop(door, None)
        for link in self.job.links.values():
            if not link.is_let_in and link.name.endswith("-" + door):
                link.closed.add(link.back)

    def tell(self, what):
        self.control.send(what.encode())
        self.settle()

    def will_find(self):
        """Whether there is, or will be at once, what it waits for."""
        return any(self.comes(*fd) for fd in self.fds)

    def comes(self, name, got, *events):
        if name in ("asked", "other"):
            return name == "asked" and self.signalled
        if name.endswith("-0"):
            return self.job.waiting[name[:-2]] > 0
        link = self.job.link(name)
        there = link.back if link.name == name else link.name
        came = link.sent.get(there, 0) > int(got) or there in link.closed
        goes = not link.is_let_in or link.sent.get(name, 0) == self.job.got(link, there) or there in link.closed
        return ("i" in events and came) or ("o" in events and goes)

    def look(self):
        waits, said = (self.timeout, self.fds), self.reports
        self.tell(str(LONG * 1000))
        if self.does == "poll" and (self.timeout, self.fds) == waits and self.reports == said + 1:
            raise AssertionError(f"rank {self.rank} has not found what it waits for: {waits}")

    def let_pass(self):
        """As much as it waits for; of who has tried again and again somewhat more."""
        much = self.timeout if self.passed < OFTEN else max(self.timeout, 10 * OFTEN)
        self.passed += much
        self.tell(f"pass {much}")


class Link:
    """A connection of two ranks, by the ports that it has at who called; what was sent from each end."""

    def __init__(self, name, caller, callee):
        self.name, self.back, self.caller, self.callee, self.sent, self.closed = name, "-".join(reversed(name.split("-"))), caller, callee, {}, set()
        self.is_let_in = False

    def put(self, name, n):
        self.sent[name] = self.sent.get(name, 0) + n

    def other(self, rank):
        return self.callee if rank == self.caller else self.caller


class Job:
    """Ranks of which one does something at a time: the first of order that can, or whom a seed draws. What is to happen when one is about to send its n-th message stands in
    events: (rank, n) and a function."""

    def __init__(self, world, *more, order=None, seed=None, events=(), come=None, places=()):
        self.world, self.words, self.links, self.waiting = world, [*TRAIN, *more], {}, {}
        self.order, self.draw, self.events, self.port = order or list(range(world)), random.Random(seed) if seed is not None else None, dict(events), strangers.free_port()
        self.places, self.still, self.ranks, self.doors, self.said, self.sent = places, set(), {}, {}, [], []
        for place, before in places:
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(before, place) if before else os.mkdir(place)
        for rank in range(world) if come is None else come:
            self.begin(rank)
        self.play()

    def begin(self, rank):
        self.ranks[rank] = Rank(self, rank, self.words, self.port)

    def link(self, name):
        return self.links.get(name) or self.links.get("-".join(reversed(name.split("-"))))

    def got(self, link, name):
        """How much has been taken from it at that end, as far as is known."""
        for rank in self.ranks.values():
            for fd in rank.fds if rank.does == "poll" else ():
                if fd[0] == name:
                    return int(fd[1])
        return link.sent.get("-".join(reversed(name.split("-"))), 0)

    def next(self):
        can = [rank for rank in map(self.ranks.get, self.order) if rank and rank.does and rank.rank not in self.still and (rank.does == "send" or rank.will_find())]
        return self.draw.choice(can) if can and self.draw else can[0] if can else None

    def play(self):
        while any(rank.does for each, rank in self.ranks.items() if each not in self.still):
            rank = self.next()
            if rank and rank.does == "send":
                self.sent.append((rank.rank, rank.link.other(rank.rank), rank.bytes))
                self.events.pop((rank.rank, rank.sends), Rank.tell)(rank, "go")
            elif rank:
                rank.look()
            elif not self.time_passes():
                break
        for rank in self.ranks.values():
            if rank.does:
                rank.child.kill()
                rank.ends()
            self.said += self.of(rank)
        self.said += [line for place, _ in self.places for line in holds(place)]

    def time_passes(self):
        """For who waits for the shortest. Returns whether there is such a one."""
        waits = [rank for each, rank in self.ranks.items() if rank.does == "poll" and rank.timeout >= 0 and each not in self.still]
        if waits:
            min(waits, key=lambda rank: (rank.timeout, self.order.index(rank.rank))).let_pass()
        return bool(waits)

    def of(self, rank):
        waited = f", having waited for {rank.passed} ms" if rank.passed else ""
        return [f"rank {rank.rank} ends with {rank.child.returncode}{waited}", *("  " + plain(line) for line in (rank.err + rank.out).splitlines() if not LEFT_OUT.match(line))]


LEFT_OUT = re.compile(r"data |rank . holds|label |network ")


def plain(line):
    for what, instead in ((r" in [0-9.]+ ms", ""), (r"^(model .{16}).*", r"\1"), (r"port \d+", "port N"), (r"(127\.0\.0\.1|\[::1\]):\d+", "ADDRESS")):
        line = re.sub(what, instead, line)
    return line


# ---- what may happen to a rank that is about to send ----


def stands_still(rank, _):
    rank.job.still.add(rank.rank)


def is_killed(rank, _):
    rank.child.kill()
    rank.settle()


def is_told_to_end(rank, _):
    rank.child.send_signal(signal.SIGTERM)
    rank.signalled = True
    rank.tell("go")


def finds_no_room(rank, _):
    rank.tell("full")


def begins_again(rank, _):
    is_killed(rank, _)
    rank.job.said += rank.job.of(rank)
    rank.job.begin(rank.rank)


def goes_on(other):
    """Who stood still does so no more, and this one goes on too."""
    def ret(rank, go):
        rank.job.still.discard(other)
        rank.tell(go)
    return ret


# ---- the cases ----


def of_all(name, world, *more, happens=(stands_still, is_killed, is_told_to_end, finds_no_room), each=1, **how):
    """Undisturbed, with each message; and what happens to each rank before each that it sends, or one thing of all before each. Cases that come to the same stand together."""
    job = Job(world, *more, **how)
    say(name, *(f"rank {a} sends {n} bytes to rank {b}" for a, b, n in job.sent), *job.said)
    for rank in range(world):
        outcomes = {}
        for n in range(1, job.ranks[rank].sends + 1):
            for what in happens if each == 1 else [happens[n % len(happens)]]:
                said = Job(world, *more, **{**how, "events": {**dict(how.get("events", ())), (rank, n): what}}).said
                outcomes.setdefault((what.__name__, *said), []).append(n)
        for (what, *said), ns in outcomes.items():
            say(f"{name}: rank {rank} {what.replace('_', ' ')} before message {', '.join(map(str, ns))}", *said)


def say(head, *lines):
    strangers.lines += [head, *("  " + line for line in lines)]


def holds(place):
    """The checkpoints that lie there."""
    return [f"{place} holds {os.path.relpath(path, place)}: {recorded.sum_of(path)}" for path in sorted(glob.glob(os.path.join(place, "ck", "*", "*.f32*")))] + [
        f"{place} holds {re.sub('pid-[0-9]+', 'pid-P', re.sub('place-[0-9a-f]{16}', 'place-H', name))}" for name in sorted(os.listdir(os.path.join(place, "ck")) if os.path.isdir(os.path.join(place, "ck")) else [])]


SMALL = "--network=resnet18", "--steps=1"  # its messages find room where nobody takes them
ASYNC = "--mode=ps", "--ps-async"
SAVES = "--checkpoint-dir=ck", "--checkpoint-every=1"


def two():
    for mode in "ddp", "zero", "ps":
        of_all(mode, 2, *SMALL, f"--mode={mode}")
    of_all("ps --ps-async", 2, *SMALL, *ASYNC, "--steps=2")
    of_all("manual", 2, "--mode=manual", "--steps=1", each=0)
    of_all("fsdp", 2, "--mode=fsdp", "--steps=1", each=0)


def three():
    for mode in "ddp", "zero", "ps":
        of_all(f"{mode} of three", 3, *SMALL, f"--mode={mode}", each=0)


def not_there():
    """Some never come; and for how long who is there waits."""
    for come in (0,), (1,), (0, 2), (1, 3), (0, 1, 3):
        say(f"of four ranks there are {come}", *Job(4, *SMALL, come=come).said)
    for timeout in "0.5", "29", "31", "600":
        for n in 1, 2, 3, 6:
            say(f"--collective-timeout={timeout}, rank 1 stands still before message {n}", *Job(2, *SMALL, f"--collective-timeout={timeout}", events={(1, n): stands_still}).said)


def again():
    """Who is lost is started again, and the others meet it."""
    for mode in (), ("--mode=ps",), ASYNC:
        of_all(f"in process, {' '.join(mode)}", 2, *SMALL, "--steps=2", *mode, "--recover=in-process", happens=(begins_again, stands_still), each=0)
    for mode in ((), ("--mode=ps",), (*ASYNC, "--backup-workers=1")):
        of_all(f"in process, three, {' '.join(mode)}", 3, *SMALL, "--steps=2", *mode, "--recover=in-process", happens=(begins_again,), each=0)
    places = ("host-0", None), ("host-1", None)
    for mode in (), ("--mode=zero",), ("--mode=ps",):
        of_all(f"in process, saved, {' '.join(mode)}", 2, *SMALL, "--steps=2", *SAVES, *mode, "--recover=in-process", happens=(begins_again,), each=0, places=places)


def backups():
    """Which worker comes first is drawn, or said."""
    for seed in range(16):
        say(f"--backup-workers=1, as seed {seed} draws", *Job(4, *SMALL, *ASYNC, "--backup-workers=1", "--steps=5", seed=seed).said)
        say(f"--backup-workers=2, as seed {seed} draws, and one is killed", *Job(4, *SMALL, *ASYNC, "--backup-workers=2", "--steps=4", seed=seed, events={(3, 5 + seed % 5): is_killed}).said)
    of_all("--backup-workers=1", 3, *SMALL, *ASYNC, "--backup-workers=1", "--steps=3", happens=(is_killed, stands_still, finds_no_room), seed=7)
    of_all("--backup-workers=1, the last first", 3, *SMALL, *ASYNC, "--backup-workers=1", "--steps=3", happens=(is_killed, stands_still), order=[2, 1, 0])
    for n in range(4, 10):
        say(f"two are killed, rank 2 before message {n}", *Job(4, *SMALL, *ASYNC, "--backup-workers=1", "--steps=3", events={(2, n): is_killed, (3, 6): is_killed}).said)
        say(f"rank 2 stands still before message {n} until rank 1 has sent more", *Job(3, *SMALL, *ASYNC, "--backup-workers=1", "--steps=5", events={(2, n): stands_still, (1, n + 2): goes_on(2)}).said)


def far():
    """Each rank has a directory of its own, as on another host, and one of them goes on from there."""
    subprocess.run([*TRAIN, *SMALL, *SAVES, "--steps=2", "--checkpoint-keep=9"], check=True, cwd=made("begun"), stdout=subprocess.DEVNULL)
    for mode in ("--mode=ddp",), ("--mode=zero",), ("--mode=zero", "--checkpoint-sharded"), ("--mode=ps",), ASYNC:
        for begun in (None, None), ("begun", None), (None, "begun"):
            places = [(f"host-{i}", before) for i, before in enumerate(begun)]
            name = f"{' '.join(mode)}, begun {begun}"
            if begun[1]:
                of_all(name, 2, *SMALL, *SAVES, "--steps=3", *mode, places=places, each=0)
            else:
                say(name, *Job(2, *SMALL, *SAVES, "--steps=3", *mode, places=places).said)


def made(name):
    os.mkdir(name)
    return name


def in_pieces():
    """Each call moves little, every other one nothing, and waits are interrupted: that is no difference."""
    for pieces in 1, 13, 1000:
        for more in ("--spawn=2",), ("--spawn=3", "--mode=zero"), ("--spawn=2", "--mode=ps", "--ps-async"), ("--spawn=3", "--mode=ps"), ("--spawn=2", "--mode=fsdp", "--checkpoint-sharded", *SAVES), ("--spawn=2", "--overlap"):
            with_ = {**os.environ, "LD_PRELOAD": library, "PIECES": str(pieces), "MASTER_PORT": str(strangers.free_port())}
            shutil.rmtree("ck", ignore_errors=True)
            done = subprocess.run([*TRAIN, *SMALL, *more], env=with_, capture_output=True, text=True, timeout=LONG)
            say(f"{pieces} bytes at a time, {' '.join(more)}: ends with {done.returncode}", *(plain(line) for line in (done.stderr + done.stdout).splitlines() if not LEFT_OUT.match(line)))


CASES = {case.__name__.replace("_", "-"): case for case in (two, three, not_there, again, backups, far, in_pieces)}


def compare(name):
    del strangers.lines[:]
    CASES[name]()
    return strangers.compare(os.path.join(TABLES, name + ".txt"))


def main():
    strangers.alone()
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, os.path.join(strangers.HERE, "paced.c")], check=True)
    right = [compare(name) for name in sys.argv[1:]]
    if right and all(right):
        print(f"{len(right)} kinds of meetings are as they must be", flush=True)


if __name__ == "__main__":
    main()
