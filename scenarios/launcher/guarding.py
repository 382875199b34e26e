#!/usr/bin/env python3
"""Is the agent to a guard: starts rankrun under the guard's name, gives it orders, and writes down what it reports, what becomes of workers, and how
it ends. Usage: guarding.py RECORD, which is what must be written down; WRITE=1 writes it anew, to be read before it is believed.

Nothing waits for time but what waits for a deadline. Processes stand as P0, P1 in the order in which they are told of."""
import array
import os
import select
import shutil
import signal
import socket
import struct
import sys
import tempfile
import time

from noted import note, settle

LIFELINE, START, DEADLINE, STOP, KILL, SIGNAL = range(6)
REPORTS = ["started", "running", "exec failed", "exited", "reaped"]
REASONS = ["ended", "stopped", "killed", "fenced", "refused"]
HOUR = 3600 * 10**9


def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def ended(status):
    return f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"code {os.WEXITSTATUS(status)}"


def texts(words):
    return struct.pack("I", len(words)) + b"".join(w.encode() + b"\0" for w in words)


def launch(workers, deadline=0, scratch="", sandbox=0):
    """workers: (argv, env, out, err) each; a text is a shell's."""
    b = struct.pack("I", deadline) + scratch.encode() + b"\0" + struct.pack("II", sandbox, len(workers))
    for w in workers:
        argv, env, out, err = w if isinstance(w, tuple) else (["sh", "-c", w], [], "", "")
        b += texts(argv) + texts(env) + out.encode() + b"\0" + err.encode() + b"\0"
    return b


class Guard:
    def __init__(self):
        self.sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        page = os.memfd_create("page")
        os.truncate(page, 8)
        self.page, self.names, self.passed, self.heard = page, {}, [], []
        program = shutil.which("rankrun")
        self.pid = os.fork()
        if self.pid == 0:
            ends = [os.dup(fd) for fd in (theirs.fileno(), page)]
            high = [os.dup2(fd, 100 + i) for i, fd in enumerate(ends)]
            for i, fd in enumerate(high):
                os.dup2(fd, 3 + i)
            os.execv(program, ["rankrun-guard"])
        theirs.close()

    def order(self, kind, signo=0, grace_ms=0, fence=0, hard=0, fd=None):
        passed = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))] if fd is not None else []
        self.sock.sendmsg([struct.pack("iiqqq", kind, signo, grace_ms, fence, hard)], passed)

    def start(self, *workers, **more):
        self.start_by(launch(workers, **more))

    def start_by(self, data):
        fd = os.memfd_create("launch")
        os.write(fd, data)
        os.lseek(fd, 0, os.SEEK_SET)
        self.order(START, fd=fd)
        os.close(fd)

    def name(self, pid):
        return "none" if not pid else self.names.setdefault(pid, f"P{len(self.names)}")

    def hear(self):
        """One report; False at the end."""
        data, passed, _, _ = self.sock.recvmsg(64, socket.CMSG_SPACE(16))
        if not data:
            return False
        kind, rank, pid, status, at = struct.unpack("iiiiq", data)
        fds = [fd for _, _, d in passed for fd in array.array("i", d)]
        words = [REPORTS[kind]]
        if kind in (0, 2, 3):
            words += [rank]
        if kind in (0, 3):
            words += [self.name(pid)]
        if kind == 0:
            words += ["with a pidfd" if fds and "Pid:\t" in open(f"/proc/self/fdinfo/{fds[0]}").read() else "without a pidfd"]
        if kind == 2:
            words += [os.strerror(-status)]
        if kind == 3:
            words += [ended(status), "just now" if abs(time.time_ns() - at) < 60 * 10**9 else at]
        if kind == 4:
            words += [REASONS[status]]
        self.passed += fds
        self.heard.append((kind, rank, " ".join(str(w) for w in words)))
        return REPORTS[kind]

    def until(self, what):
        """Of workers that begin and end beside each other reports come in any order: they are noted by kind and rank."""
        while self.hear() not in (what, False):
            pass
        if what != "reaped":
            return
        for _, _, line in sorted(self.heard):
            note(line)
        self.heard = []

    def due(self):
        return struct.unpack("q", os.pread(self.page, 8, 0))[0]

    def end(self):
        self.sock.close()
        self.gone()

    def gone(self):
        note("the guard ended:", ended(os.waitpid(self.pid, 0)[1]))
        for fd in [self.page, *self.passed]:
            os.close(fd)
        self.sock.close()


class Told:
    """A FIFO on which a worker says that it has come so far."""

    def __init__(self, name="told"):
        os.mkfifo(name)
        self.file = os.open(name, os.O_RDWR)

    def wait(self, times=1):
        for _ in range(times):
            os.read(self.file, 1)


def words_of(path):
    with open(path) as f:
        return f.read().split()


# ---- how groups end ----


def play_ends():
    g = Guard()
    os.mkdir("scratch")
    open("scratch/file", "w").close()
    g.start("exit 3", "exit 0", "kill -9 $$", scratch=os.path.abspath("scratch"))
    g.until("reaped")
    note("due", g.due(), "scratch", os.path.exists("scratch"))
    g.start("exit 0")
    g.until("reaped")
    g.end()
    note("scratch", os.path.exists("scratch"))


def play_not_executed():
    g = Guard()
    for argv in (["nowhere"], ["/"], ["./plain"], ["/dev/null/x"]):
        open("plain", "w").close()
        g.start((argv, [], "", ""))
        g.until("reaped")
    g.start((["nowhere"], [], "", ""), "exit 0")
    g.until("reaped")
    g.start((["sh", "-c", "exit 4"], [], "/nowhere/out", ""), (["sh", "-c", "exit 5"], [], "", "/dev/null/x"))
    g.until("reaped")
    g.end()


def play_environment():
    os.environ.update(KEPT="a", OVER="b", OVERS="c", OVE="d")
    g = Guard()
    g.start((["sh", "-c", 'echo "$KEPT $OVER $OVERS $OVE $NEW $0 $1"', "x y", ""], ["OVER=e", "NEW=f=g"], "out", ""), (["sh", "-c", "echo err >&2; echo out"], [], "one", "one"),
            (["sh", "-c", "ls /proc/self/fd; ps -o pgid= -p $$ | grep -c $$"], [], "fds", ""))
    g.until("reaped")
    for name in ("out", "one", "fds"):
        note(name, *words_of(name))
    g.end()


# ---- told to end ----


def told_to(worker, *orders, times=1):
    told, g = Told(), Guard()
    g.start(*([worker] if isinstance(worker, str) else worker))
    g.until("running")
    told.wait(times)
    for order in orders:
        g.order(**order)
    g.until("reaped")
    g.end()
    os.close(told.file)
    os.unlink("told")


LOOP = "while :; do :; done"


def play_stop():
    for signo in (signal.SIGTERM, signal.SIGUSR1):
        told_to(f"trap 'exit 7' {signo.value}; echo >told; {LOOP}", dict(kind=STOP, signo=signo, grace_ms=3600000))
    told_to(f"trap '' TERM; echo >told; {LOOP}", dict(kind=STOP, signo=15, grace_ms=0))
    told_to(f"trap '' TERM; echo >told; {LOOP}", dict(kind=STOP, signo=15, grace_ms=3600000), dict(kind=STOP, signo=15, grace_ms=0))
    told_to(f"trap '' TERM; echo >told; {LOOP}", dict(kind=STOP, signo=15, grace_ms=100), dict(kind=STOP, signo=15, grace_ms=3600000))
    told_to(f"trap '' TERM; echo >told; {LOOP}", dict(kind=STOP, signo=15, grace_ms=3600000), dict(kind=KILL))
    told_to(f"trap '' TERM; trap 'exit 8' USR2; echo >told; {LOOP}", dict(kind=STOP, signo=15, grace_ms=3600000), dict(kind=STOP, signo=12, grace_ms=3600000))
    told_to("trap 'exit 9' TERM; echo >told; kill -STOP $$; exit 1", dict(kind=STOP, signo=15, grace_ms=3600000))


def play_kill():
    told_to([f"trap '' TERM; echo >told; {LOOP}", f"echo >told; {LOOP}"], dict(kind=KILL), times=2)
    told_to(f"setsid sh -c 'echo >told; {LOOP}' & echo >told; {LOOP}", dict(kind=KILL), times=2)


def play_signal():
    told_to(f"trap 'exit 6' USR1; echo >told; {LOOP}", dict(kind=SIGNAL, signo=10))
    told_to([f"trap 'exit 6' USR2; echo >told; {LOOP}", f"(trap 'exit 5' USR2; echo >told; {LOOP}) & trap : USR2; wait; wait $!; exit $?"], dict(kind=SIGNAL, signo=12), times=2)


def play_those_below():
    """A child of a worker that ends is killed; one that was told with it has the worker's time."""
    told_to(f"(trap '' TERM HUP; {LOOP}) & echo >told; exit 0")
    told_to(f"setsid sh -c '{LOOP}' & echo >told; exit 0")
    told_to(f"(trap 'echo saved >saved; exit 0' TERM; echo >told; {LOOP}) & trap 'exit 2' TERM; echo >told; {LOOP}", dict(kind=STOP, signo=15, grace_ms=3600000), times=2)
    note(*words_of("saved"))
    told_to(f"(trap '' TERM; echo >told; {LOOP}) & trap 'exit 2' TERM; echo >told; {LOOP}", dict(kind=STOP, signo=15, grace_ms=100), times=2)


def play_agent_gone():
    told, g = Told(), Guard()
    os.mkdir("scratch")
    end = os.open("told", os.O_WRONLY)
    g.start(f"trap '' TERM HUP; setsid sh -c 'echo >told; {LOOP}' & echo >told; {LOOP}", scratch=os.path.abspath("scratch"))
    g.until("running")
    told.wait(2)
    os.close(end)
    g.end()
    note("scratch", os.path.exists("scratch"))


# ---- deadlines ----


def play_refused():
    g = Guard()
    for fence in (0, now() - 1):
        if fence:
            g.order(DEADLINE, fence=fence, hard=now() + HOUR)
        g.start("exit 0", deadline=1)
        g.until("reaped")
        note("due", g.due())
    g.start("exit 0")
    g.until("reaped")
    g.end()


def play_fenced():
    told, g = Told(), Guard()
    hard = now() + HOUR
    g.order(DEADLINE, fence=now() + 2 * 10**9, hard=hard)
    g.start(f"trap '' TERM; echo >told; {LOOP}", deadline=1)
    g.until("running")
    told.wait()
    note("due at the hard end", g.due() == hard)
    g.until("reaped")
    note("due", g.due())
    g.order(DEADLINE, fence=now() + HOUR, hard=hard + HOUR)
    g.start(f"trap 'exit 4' TERM; echo >told; {LOOP}", deadline=1)
    g.until("running")
    told.wait()
    note("due at the later one", g.due() == hard + HOUR)
    g.order(DEADLINE, fence=now() - 1, hard=now() + HOUR // 2)  # an older one than is known
    g.order(STOP, signo=15, grace_ms=3600000)
    g.until("reaped")
    g.start(f"trap 'exit 5' TERM; echo >told; {LOOP}")
    g.until("running")
    told.wait()
    note("due", g.due())
    g.order(STOP, signo=15, grace_ms=3600000)
    g.until("reaped")
    g.end()


def play_fenced_while_it_stops():
    told, g = Told(), Guard()
    g.order(DEADLINE, fence=now() + 2 * 10**9, hard=now() + HOUR)
    g.start(f"trap '' TERM; echo >told; {LOOP}", deadline=1)
    g.until("running")
    told.wait()
    g.order(STOP, signo=15, grace_ms=3600000)
    g.until("reaped")
    g.end()


def play_hard_end():
    """A guard that stands still is ended by the kernel, and with it its workers."""
    told, g = Told(), Guard()
    at = now()
    g.order(DEADLINE, fence=at + HOUR, hard=at + 4 * 10**9)
    g.start(f"echo >told; {LOOP}", deadline=1)
    g.until("running")
    told.wait()
    os.kill(g.pid, signal.SIGSTOP)
    pidfd = g.passed[0]
    note("the guard ended:", ended(os.waitpid(g.pid, 0)[1]), "not before its time" if now() >= at + 4 * 10**9 else "early")
    select.select([pidfd], [], [])
    note("its worker too")
    g.sock.close()


# ---- what is handed over ----


def play_lifeline():
    g = Guard()
    for again in (False, True):
        pipes = [os.pipe() for _ in range(2)]
        for i in range(2 if again else 1):
            g.order(LIFELINE, fd=pipes[i][1])
            os.close(pipes[i][1])
        g.start((["sh", "-c", "ls /proc/self/fd; exit 0"], [], "fds", ""))
        g.until("reaped")
        note("fds", *words_of("fds"))
        for i in range(2 if again else 1):
            note("the lifeline ended:", os.read(pipes[i][0], 1) == b"")
    g.start((["sh", "-c", "ls /proc/self/fd; exit 0"], [], "fds", ""))
    g.until("reaped")
    note("fds", *words_of("fds"))
    ends = os.pipe()
    g.order(LIFELINE, fd=ends[1])
    os.close(ends[1])
    g.start((["sh", "-c", "ls /proc/self/fd; exit 0"], [], "fds", ""), deadline=1)
    g.until("reaped")
    note("the lifeline of those that were not started ended:", os.read(ends[0], 1) == b"")
    g.start((["sh", "-c", "ls /proc/self/fd; exit 0"], [], "fds", ""))
    g.until("reaped")
    note("fds", *words_of("fds"))
    g.end()


def play_broken_orders():
    whole = launch(["exit 0"], scratch="x")
    for n in range(len(whole)):
        g = Guard()
        g.start_by(whole[:n])
        status = os.waitpid(g.pid, 0)[1]
        if n in (0, len(whole) - 1) or ended(status) != "code 74":
            note(n, "bytes:", ended(status))
        g.sock.close()
    for n in (0, 1025, 0xffffffff):
        g = Guard()
        g.start_by(struct.pack("I", 0) + b"\0" + struct.pack("II", 0, n) + 1025 * (texts(["true"]) + texts([]) + b"\0\0"))
        note(n, "workers")
        g.gone()
    g = Guard()
    g.order(START)
    note("no worker group")
    g.gone()
    for size in (0, 1, 31):
        g = Guard()
        g.sock.send(b"\0" * size)
        note(size, "bytes for an order")
        g.gone()
    for kind in (STOP, KILL, SIGNAL, DEADLINE):
        g = Guard()
        g.order(kind, signo=9, fence=1, hard=2)
        g.start("exit 2")
        g.until("reaped")
        g.end()


def play_no_agent():
    for kind in (None, socket.SOCK_STREAM, socket.SOCK_DGRAM):
        pid = os.fork()
        if pid == 0:
            os.closerange(3, 64)
            if kind:
                ends = socket.socketpair(socket.AF_UNIX, kind)  # the first is 3
                os.set_inheritable(ends[0].fileno(), True)
            os.execv(shutil.which("rankrun"), ["rankrun-guard"])
        note(kind and kind.name, ended(os.waitpid(pid, 0)[1]))


def main():
    record = os.path.abspath(sys.argv[1])
    place = tempfile.mkdtemp(prefix="guarded-")
    for name, play in [(n, f) for n, f in globals().items() if n.startswith("play_")]:
        note(f"# {name[5:].replace('_', ' ')}")
        folder = os.path.join(place, name)
        os.mkdir(folder)
        os.chdir(folder)
        play()
    shutil.rmtree(place)
    settle(record)


main()
