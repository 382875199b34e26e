"""A job whose last rank starts launchers and stores of its own, each with one system call that fails. It must do its work all the
same, or end and say what failed, in the system's words; no program of it may die of a signal, nothing may be left, and what it says
is done must be done. Usage: failing.py STEPS CHAPTER...; the chapters are the functions below whose name begins with try_.

Nothing here knows how a launcher is made: what calls it makes is learned from one that nothing fails. Of the standard library alone."""
import concurrent.futures
import errno
import os
import re
import subprocess

import trying
from trying import holds

DEADLINE = 60

# What each call fails with; of a few, several kinds. Calls that cannot fail, or whose failing alone leaves the process another than
# the system would (a close that closes nothing, a signal that is not sent), are not here.
FAILS = {
    "openat": ("EMFILE", "EIO"), "read": ("EIO", "EINTR"), "write": ("ENOSPC", "EINTR"), "mkdir": ("ENOSPC",),
    "socket": ("EMFILE",), "bind": ("EADDRINUSE",), "listen": ("EADDRINUSE",), "connect": ("ECONNREFUSED",), "accept4": ("EMFILE", "ECONNABORTED"),
    "pipe2": ("EMFILE",), "socketpair": ("EMFILE",), "epoll_create1": ("EMFILE",), "epoll_ctl": ("ENOSPC",), "epoll_wait": ("EINTR",),
    "timerfd_create": ("EMFILE",), "signalfd4": ("EMFILE",), "eventfd2": ("EMFILE",), "inotify_init1": ("EMFILE",), "inotify_add_watch": ("ENOSPC",),
    "memfd_create": ("EMFILE",), "ftruncate": ("EIO",), "mmap": ("ENOMEM",), "clone": ("EAGAIN",), "clone3": ("EAGAIN",), "vfork": ("EAGAIN",),
    "fork": ("EAGAIN",), "pidfd_open": ("EMFILE",), "sendmsg": ("ENOBUFS", "EINTR"), "recvmsg": ("EINTR",), "sendto": ("ECONNRESET", "EINTR"),
    "recvfrom": ("ECONNRESET", "EINTR"), "poll": ("EINTR",), "ppoll": ("EINTR",), "dup": ("EMFILE",), "dup2": ("EBUSY",), "dup3": ("EBUSY",),
    "fcntl": ("EMFILE",), "newfstatat": ("EIO",), "fstat": ("EIO",), "statx": ("EIO",), "statfs": ("EIO",), "getdents64": ("EIO",), "rename": ("EIO",), "unlink": ("EIO",),
    "rmdir": ("EBUSY",), "chdir": ("EACCES",), "setsockopt": ("ENOBUFS",), "getsockname": ("ENOBUFS",), "prctl": ("EPERM",), "setpriority": ("EACCES",),
    "pwrite64": ("ENOSPC",), "writev": ("EIO", "EINTR"), "fsync": ("EIO",), "fdatasync": ("EIO",), "sched_setaffinity": ("EPERM",), "setsid": ("EPERM",),
    "setpgid": ("EPERM",), "waitid": ("EINTR",), "uname": ("EFAULT",), "prlimit64": ("EPERM",), "execve": ("ENOMEM",),
    "access": ("EACCES",), "readlink": ("EACCES",),
}
WORDS = {name: os.strerror(getattr(errno, name)) for names in FAILS.values() for name in names}

WORK = """
out="out $RANK of $WORLD_SIZE in $TORCHELASTIC_RESTART_COUNT"
echo "$out"
echo "err $RANK in $TORCHELASTIC_RESTART_COUNT" >&2
echo "$out" >>made
[ $TORCHELASTIC_RESTART_COUNT = 0 ] || exit 0
[ $RANK = 1 ] || { echo "$PPID" >told; exec sleep 600; }
read -r guard <told
[ ! -p go ] || { echo "$guard" >ready; read -r go <go; }
printf '{"message": "it is tried"}' >"$TORCHELASTIC_ERROR_FILE"
exit 3
"""
JOB = ("--nproc-per-node=2", "--max-restarts=1", "--log-dir=logs", "--tee=3", "--duplicate-stdout-filters=out",
       "--no-python", "sh", "work.sh")


class Run:
    """One launcher, in a place of its own, of which one call may fail: (name, errno, which of them in each process)."""

    def __init__(self, failing):
        self.place, self.failing, self.said = trying.Place(), failing, ""
        self.log = self.place.inside("log")
        with open(self.place.inside("work.sh"), "w") as f:
            f.write(WORK)
        os.mkfifo(self.place.inside("told"))

    def traced(self, *options):
        """The command that lets the call of what follows fail."""
        name, error, n = self.failing or ("all", None, 0)
        return ["strace", *options, "-o", self.log, "-e", f"trace={name}", *(["-e", f"inject={name}:error={error}:when={n}"] if error else [])]

    def begin(self, *words, before=()):
        return subprocess.Popen([*before, trying.rankrun(), *words], env=self.place.env(OMP_NUM_THREADS="1"), cwd=self.place.folder, text=True,
                                errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def ended(self, child):
        """Its exit code; None: it had to be ended."""
        try:
            self.said += child.communicate(timeout=DEADLINE)[0]
            return child.returncode
        except subprocess.TimeoutExpired:
            self.place.end_all()
            self.said += child.communicate()[0]
            return None

    def calls(self):
        """What was traced, a call each: (process, name, arguments and result)."""
        with open(self.log, errors="replace") as f:
            lines = [re.match(r"(\d+ +)?(\w+)\((.*)", line) for line in f]
        return [(m[1], m[2], m[3]) for m in lines if m]

    def died(self):
        """The signal of which a program of it died that the launcher does not send, or None."""
        with open(self.log, errors="replace") as f:
            of = set(re.findall(r"\+\+\+ killed by (SIG\w+)", f.read())) - {"SIGTERM", "SIGKILL"}
        return " ".join(of) or None

    def lines(self, name):
        """Of all files of that name below the place."""
        found = []
        for dir_, _, files in os.walk(self.place.folder):
            if name in files:
                with open(os.path.join(dir_, name)) as f:
                    found += f.read().splitlines()
        return found

    def lacks(self):
        """What of the work is not there that would be there had nothing failed, or None."""
        made = self.lines("made")
        if sorted(line for line in made if line.endswith("1")) != ["out 0 of 2 in 1", "out 1 of 2 in 1"]:
            return f"the last round has made {made}"
        for out in made:
            err = out.replace("out", "err").replace(" of 2", "")
            for text, files in ((out, ("stdout.log", "filtered_stdout.log")), (err, ("stderr.log",))):
                times = [self.said.count(f"[default{out.split()[1]}]:{text}\n")] + [self.lines(name).count(text) for name in files]
                if set(times) != {1}:
                    return f"'{text}' is shown {times[0]} times, and {times[1:]} times in {files}"
        if "out 1 of 2 in 0" in made and "it is tried" not in self.said:
            return "the error file of the first round"
        return None

    def wrong(self, code):
        """What is not as it should be, or None."""
        word = WORDS[self.failing[1]] if self.failing else "nothing failed"
        told, lack = word in self.said, self.lacks()
        if code is None:
            return f"it does not end within {DEADLINE} s"
        if self.died() or not 0 <= code < 128:
            return f"it ended with {code}, a program of it by {self.died()}"
        if code == 0 and lack and not told:
            return f"it ended well, said nothing of it, and there lacks: {lack}"
        return f"it ended with {code} and did not say why" if code and not told else None


def agent(run):
    """The launcher's first process, from its start to its end."""
    return run.ended(run.begin("--standalone", *JOB, before=run.traced()))


def member(run):
    """The first process of a launcher whose store is another's."""
    store = run.begin("store", "--host=127.0.0.1", "--port=0")
    line = next(line for line in store.stdout if "listening on 127.0.0.1:" in line)
    code = run.ended(run.begin("--nnodes=1", "--rdzv-id=tried", "--rdzv-backend=etcd-v3", f"--rdzv-endpoint=127.0.0.1:{line.rsplit(':', 1)[1].strip()}",
                               *JOB, before=run.traced()))
    store.terminate()
    store.communicate()
    return code


def guard(run):
    """The parent of its workers, from the end of the first round on, and those workers until they are who they are to be."""
    for name in ("go", "ready"):
        os.mkfifo(run.place.inside(name))
    child = run.begin("--standalone", *JOB)
    with open(run.place.inside("ready")) as f:
        pid = f.read().strip()
    with subprocess.Popen([*run.traced("-f", "--detach-on=execve"), "-p", pid], text=True, stderr=subprocess.PIPE) as tracer:
        holds("strace, at a parent of workers", "attached" in tracer.stderr.readline(), pid)
        with open(run.place.inside("go"), "w") as f:
            f.write("go\n")
        code = run.ended(child)
        tracer.communicate()
    return code


def tried(how, failing):
    """What is wrong where that call fails, or None."""
    run = Run(failing)
    try:
        wrong = run.wrong(how(run))
        run.place.nothing_left(run.said)
    except SystemExit as e:
        wrong = str(e)
    run.place.end_all()
    at = [f"{name}({rest}" for _, name, rest in run.calls() if "INJECTED" in rest]
    run.place.fini()
    return wrong and f"a launcher of which fails {at or failing}: {wrong}, after {run.said[-1500:]!r}"


def kind(process, name, rest):
    """Calls that differ in numbers and names alone are of one kind."""
    return process, name, re.sub(r'".*"|[0-9a-fx]+', "", rest.split(" = ")[0])


def distinct(how, most):
    """The calls to let fail, learned from a run in which none does: all behind those of the loader, but lines that are
    shown, and of no kind more than so many."""
    run, count, found, seen = Run(None), {}, set(), {}
    code = how(run)
    holds("a launcher that is traced", code == 0 and not run.wrong(code), run.said)
    calls = run.calls()
    loaded = next((i for i, call in enumerate(calls) if call[1] == "munmap"), 0) if how is not guard else 0
    for i, (process, name, rest) in enumerate(calls):
        count[process, name] = count.get((process, name), 0) + 1
        if i > loaded and not (name == "write" and rest[:2] in ("1,", "2,")):
            of = kind(process, name, rest)
            seen[of] = seen.get(of, 0) + 1
            if seen[of] <= most:
                found |= {(name, error, count[process, name]) for error in FAILS.get(name, ())}
    run.place.nothing_left(run.said)
    run.place.fini()
    return sorted(found)


def sweep(how, most=1000):
    """Each fails once, some side by side; the first that is wrong ends it."""
    failing = distinct(how, most)
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0)) + 1) as pool:
        for wrong in pool.map(lambda one: tried(how, one), failing):
            if wrong:
                pool.shutdown(wait=True, cancel_futures=True)
                holds("of the system calls", False, wrong)
    print(f"{len(failing)} calls of the {how.__name__} have failed")


def refused():
    """Why nothing can be traced here, or None."""
    probe = subprocess.run(["strace", "-o", "/dev/null", "-e", "inject=close:error=EIO:when=1000", "true"], capture_output=True, text=True)
    return probe.stderr.strip() or f"strace exited with {probe.returncode}" if probe.returncode else None


def try_agent(place):
    sweep(agent)


def try_guard(place):
    sweep(guard)


def try_member(place):
    sweep(member, 2)


if __name__ == "__main__":
    why = refused()
    if why:
        print(f"nothing can be traced here, so no call fails: {why}")
    trying.main({"try_agent": lambda place: None, "try_guard": lambda place: None, "try_member": lambda place: None} if why else globals())
