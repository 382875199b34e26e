"""A job whose last rank starts launchers and stores of its own where something is missing: programs, directories, descriptors,
processes, streams. Each must do its work, or say in a sentence what it lacks and end; nothing of it may be left, and what it holds
must not grow. Usage: trying.py STEPS CHAPTER...; the chapters are the functions below whose name begins with try_. Without a job, of the
rankrun in the PATH: trying.py alone CHAPTER...

What is not as it should be ends the job with a sentence. Of the standard library alone."""
import base64
import http.client
import json
import os
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import garbling
import rankquake

KEY = "L3RyeQ=="
PIECE, FAILED, USAGE, LOST, PAGE = 64 << 10, 1, 64, 69, os.sysconf("SC_PAGESIZE")
SHOW = os.environ.get("SHOW")
MARK = f"RANKQUAKE_TRIED=by-{os.getpid()}"


def holds(what, good, got):
    if not good:
        sys.exit(f"{what[:1000]}: {got!r:.2000}")


def same(what, got, wanted):
    holds(f"{what}, wanted {wanted!r:.500}", got == wanted, got)


def rankrun():
    """The launcher that has started this worker."""
    if sys.argv[1] == "alone":
        return shutil.which("rankrun")
    pid = os.getpid()
    while pid > 1:
        with open(f"/proc/{pid}/status") as f:
            pid = int(next(line for line in f if line.startswith("PPid:")).split()[1])
        program = os.readlink(f"/proc/{pid}/exe")
        if os.path.basename(program) == "rankrun":
            return program
    sys.exit("no rankrun is above this worker")


class Place:
    """A directory in which one launcher is tried: its temporary files are below it, and gone with it."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="tried-")
        self.tmp, self.spared = self.inside("tmp"), set()
        self.mark = f"{MARK}-{os.path.basename(self.folder)}"
        os.mkdir(self.tmp)
        os.chmod(self.folder, 0o755)
        os.chmod(self.tmp, 0o1777)

    def inside(self, name):
        return os.path.join(self.folder, name)

    def program(self, text, mode=0o755, name="worker"):
        path = self.inside(name)
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, mode)
        return path

    def env(self, **more):
        """The caller's, without what a launcher or the harness has told this worker."""
        known = ("RANKQUAKE", "TORCHELASTIC", "RANKRUN", "PET_")
        env = {k: v for k, v in os.environ.items() if not k.startswith(known)}
        name, value = self.mark.split("=")
        return {**env, name: value, "TMPDIR": self.tmp, "XDG_RUNTIME_DIR": self.tmp, **more}

    def begin(self, *words, env=None, limits=(), user=None, **more):
        def prepare():
            for which, value in limits:
                resource.setrlimit(which, (value, value))
            if user:
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)
        more = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL, "text": True, **more}
        return subprocess.Popen([rankrun(), *words], env=self.env(**(env or {})), preexec_fn=prepare if limits or user else None, **more)

    def run(self, *words, options=(), **more):
        """The exit code of a job of one node, and what was said."""
        child = self.begin("--standalone", "--max-restarts=0", *options, "--no-python", *words, **more)
        said = child.communicate(timeout=60)[0]
        self.nothing_left(said)
        return child.returncode, said or ""

    def nothing_left(self, said):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            if int(pid) in self.spared:
                continue
            try:
                with open(f"/proc/{pid}/environ") as f, open(f"/proc/{pid}/stat") as stat:
                    ended = stat.read().rsplit(")", 1)[1].split()[0] == "Z"
                    holds(f"a process that is left, after {said!r}", ended or self.mark not in f.read(), pid)
            except OSError:
                pass  # it has ended, or is another's
        left = [name for name in os.listdir(self.tmp) if name != "rankrun"]
        same(f"files that are left in TMPDIR, after {said!r}", left, [])

    def end_all(self):
        """Whatever was begun here and runs on."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ") as f:
                    if self.mark in f.read():
                        os.kill(int(pid), signal.SIGKILL)
            except OSError:
                pass  # it has ended, or is another's

    def fini(self):
        shutil.rmtree(self.folder)


# ---- programs ----


def try_programs(place):
    """What cannot be executed is named with the system's word, by every worker, and is no reason to start again without end."""
    plain = place.program("echo it became the shell of $LOCAL_RANK\n")
    folder = place.inside("folder")
    os.mkdir(folder)
    os.symlink("round", place.inside("round"))
    rows = (("is-not-there", "cannot execute is-not-there: No such file or directory"),
            (place.inside("none"), "none: No such file or directory"),
            (f"{plain}/below", "below: Not a directory"),
            (folder, "folder: Permission denied"),
            (place.program("exit 0\n", 0o644, "not-for-that"), "not-for-that: Permission denied"),
            (place.program("#!/is/not/there\n", name="of-none"), "of-none: No such file or directory"),
            (place.inside("round"), "round: Too many levels of symbolic links"))
    for program, words in rows:
        code, said = place.run(program, options=["--nproc-per-node=2", "--max-restarts=1"])
        holds(f"a program that cannot be executed ({words})", code == FAILED and words in said and "cannot execute" in said, (code, said))
        holds("its exit code", "exited with code 12" in said, said)
    code, said = place.run(plain, options=["--nproc-per-node=2"])
    holds("a script that names no shell", code == 0 and said.count("it became the shell of") == 2, (code, said))
    env = {"PATH": f"{place.inside('none')}:{plain}:{folder}:{place.folder}::/bin:/usr/bin"}
    code, said = place.run("worker", env=env)
    holds("a program behind directories that are none", code == 0 and "it became the shell of 0" in said, (code, said))
    code, said = place.run("not-for-that", env=env)
    holds("a program of the path that nobody may execute", code == FAILED and "Permission denied" in said, (code, said))


# ---- where output goes ----


def try_logs(place):
    """A directory of logs that is none, or is one no longer when the next round wants it."""
    file = place.program("")
    for dir_, words in ((file, "Not a directory"), (file + "/below", "Not a directory"), ("/proc/none", "No such file")):
        code, said = place.run("true", options=[f"--log-dir={dir_}", "--redirects=3"])
        holds(f"the log directory {dir_}", code == USAGE and "--log-dir: " in said and words in said, (code, said))
    code, said = place.run("true", env={"TMPDIR": place.inside("none")}, options=["--redirects=3"])
    holds("a TMPDIR that is not there", code == 0 or (code == FAILED and "none" in said), (code, said))

    logs = place.inside("logs")
    spoil = 'rm -r "$0"; : >"$0"; exit 3'
    code, said = place.run("sh", "-c", spoil, logs, options=["--max-restarts=2", f"--log-dir={logs}", "--redirects=3"])
    holds("a log directory that has become a file", code == FAILED and "logs" in said and ("Not a directory" in said or "File exists" in said), (code, said))
    os.unlink(logs)

    # Where a file of the next round should be lies a directory.
    for name, options in (("1/stdout.log", ["--redirects=1"]), ("1/stderr.log", ["--redirects=2"]), ("1/stdout.log", ["--tee=1"]),
                          ("filtered_stderr.log", ["--tee=2", "--duplicate-stderr-filters=oh"])):
        spoil = f'[ $LOCAL_RANK$TORCHELASTIC_RESTART_COUNT = 00 ] || exec sleep 60; for run in "$0"/*; do mkdir -p "$run/attempt_1/{name}"; done; exit 3'
        code, said = place.run("sh", "-c", spoil, logs, options=["--max-restarts=1", "--nproc-per-node=2", f"--log-dir={logs}", *options])
        holds(f"a directory at {name} {options}", code == FAILED and "Is a directory" in said, (code, said))
        shutil.rmtree(logs)

    # A round that costs nothing keeps the files of the one before: each lies where it says.
    os.mkfifo(place.inside("told"))  # the first ends when the second has printed, too
    words = 'echo "round of $TORCHELASTIC_RESTART_COUNT"; echo oh >&2; [ $LOCAL_RANK = 0 ] || { echo >"$0"; exec sleep 60; }; read -r _ <"$0"; exit 5'
    code, said = place.run("sh", "-c", words, place.inside("told"),
                           options=["--max-restarts=2", f"--log-dir={logs}", "--redirects=3", "--tee=3", "--nproc-per-node=2"])
    same(f"exit code of one that fails three times ({said})", code, FAILED)
    kept = sorted(os.path.relpath(os.path.join(d, f), logs).split("/", 1)[1] for d, _, files in os.walk(logs) for f in files)
    same("files of three attempts", kept, sorted(f"attempt_{a}/{w}/{s}.log" for a in range(3) for w in range(2) for s in ("stdout", "stderr")))
    for dir_, _, files in os.walk(logs):
        for name in filter(lambda n: n == "stdout.log", files):
            with open(os.path.join(dir_, name)) as f:
                attempt = dir_.split("attempt_")[1].split("/")[0]
                same("what a worker has printed", f.read(), f"round of {attempt}\n")
    # Each line is shown once, of each attempt and worker.
    for attempt in range(3):
        same(f"lines of attempt {attempt} ({said})", said.count(f"]:round of {attempt}\n"), 2)
    same("lines of standard error", said.count("]:oh\n"), 6)
    shutil.rmtree(logs)
    try_small_files(place, logs)


def try_small_files(place, logs):
    """Nothing may be longer than 4 KiB: what is shown besides must come out, and the job must not fail for it."""
    flood = 'i=0; while [ $i -lt 300 ]; do echo "$i of many lines that are long enough"; i=$((i + 1)); done'
    code, said = place.run("sh", "-c", flood, options=[f"--log-dir={logs}", "--tee=1"], limits=[(resource.RLIMIT_FSIZE, 4096)])
    holds("a worker that may not write so much is ended", code == FAILED and "SIGXFSZ" in said, (code, said[-300:]))
    holds("what came before is shown", "]:0 of many" in said, said[:300])
    shutil.rmtree(logs)


# ---- descriptors ----


def filtered(logs, attempt):
    """What was duplicated into the file of an attempt."""
    names = [os.path.join(logs, run, f"attempt_{attempt}", "filtered_stdout.log") for run in (os.listdir(logs) if os.path.exists(logs) else [])]
    lines = []
    for name in filter(os.path.exists, names):
        with open(name) as f:
            lines += f.readlines()
    return lines


def try_files(place):
    """With any number of descriptors a launcher does its work, or says that they are too few."""
    logs, good = place.inside("logs"), []
    for options in ((), (f"--log-dir={logs}", "--tee=3", "--nproc-per-node=2", "--duplicate-stdout-filters=work")):
        for n in list(range(4, 36)) + [40, 48, 64]:
            code, said = place.run("sh", "-c", "echo at work", options=options, limits=[(resource.RLIMIT_NOFILE, n)])
            worked = code == 0 and "at work" in said
            holds(f"a launcher that may have {n} files open {options}", worked or (0 < code < 128 and "Too many open files" in said), (code, said))
            same("lines that the filter has kept", filtered(logs, 0), ["at work\n"] * 2 if worked and options else [])
            good.append(worked)
            shutil.rmtree(logs, ignore_errors=True)
        holds("it works with 64", good[-1], good)


def try_store_files(place):
    """So does a store; and who comes when no more can come in waits, and harms nobody who is in."""
    answers = []
    for n in range(4, 25):
        store = Store(place, limits=[(resource.RLIMIT_NOFILE, n)])
        holds(f"a store that may have {n} files open ({store.said})", store.port or "Too many open files" in store.said, store.said)
        if store.port:
            asks = socket.create_connection(("127.0.0.1", store.port))
            asks.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
            ready = select.select([asks, store.child.stdout], [], [], 30)[0]
            holds(f"a store that may have {n} files open answers, or says why not", ready, store.said)
            answers.append(asks in ready)
            asks.close()
        said = store.ends(0 if store.port else FAILED)
        holds(f"what is said by one that may have {n} files open", "Too many open files" in said or (answers and answers[-1]), said)
    holds("it answers with 24", answers[-1], answers)
    store = Store(place)
    same("status", store.ask("/metrics", method="GET")[0], 200)
    lower(store.child.pid, resource.RLIMIT_NOFILE, lowest_free(store.child.pid))
    late = socket.create_connection(("127.0.0.1", store.port), timeout=30)
    late.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    same("status of one that was there before", store.ask("/metrics", method="GET")[0], 200)
    while "Too many open files" not in store.said:
        line = store.child.stdout.readline()
        holds("a store says that nobody can come in", line, store.said)
        store.said += line
    lower(store.child.pid, resource.RLIMIT_NOFILE, 1000)
    holds("one that has waited", late.recv(PIECE).startswith(b"HTTP/1.1 200"), "")
    late.close()
    store.ends(0)
    store = Store(place, limits=[(resource.RLIMIT_NOFILE, 24)])
    same("status", store.ask("/metrics", method="GET")[0], 200)
    crowd = [socket.create_connection(("127.0.0.1", store.port)) for _ in range(40)]
    late = store.connect()
    same("status of one that comes behind many", store.ask("/metrics", method="GET", connection=late)[0], 200)
    for c in crowd:
        c.close()
    same("status of one that comes behind them", store.ask("/metrics", method="GET", connection=store.connect())[0], 200)
    said = store.ends(0)
    same(f"how often it is told that no more can come in ({said})", said.count("can be taken for now: Too many open files (ulimit -n)"), 1)


def lower(pid, which, to):
    """Sets a soft limit of another process; returns what it was."""
    _, hard = resource.prlimit(pid, which)
    return resource.prlimit(pid, which, (to, hard))


def lowest_free(pid):
    """The descriptor that it would open next."""
    used = set(map(int, os.listdir(f"/proc/{pid}/fd")))
    return next(n for n in range(len(used) + 1) if n not in used)


class Working:
    """A launcher whose two workers are at work, and wait; those of later rounds end well."""

    def __init__(self, place, *options, env=None):
        work = 'echo "at work $TORCHELASTIC_RESTART_COUNT $$$$"; [ $TORCHELASTIC_RESTART_COUNT -gt 0 ] || exec sleep 60'
        self.place, self.said, self.workers = place, "", []
        self.child = place.begin("--standalone", "--nproc-per-node=2", *options, "--no-python", "sh", "-c", work, env=env)
        while len(self.workers) < 2:
            self.until("at work 0")
            self.workers.append(int(self.said.split()[-1]))
        with open(f"/proc/{self.workers[0]}/stat") as f:
            self.guard = int(f.read().rsplit(")", 1)[1].split()[1])

    def until(self, words):
        line = ""
        while words not in line:
            line = self.child.stdout.readline()
            holds(f"a launcher says {words}", line, self.said)
            self.said += line

    def ends(self):
        os.kill(self.workers[0], signal.SIGKILL)
        return self.ended()

    def ended(self):
        self.said += self.child.communicate(timeout=60)[0]
        self.place.nothing_left(self.said)
        return self.child.returncode


def try_fewer(place):
    """What a launcher may do no longer when a worker is to be started again: it does so all the same, or says why not, and when it may
    again it goes on."""
    logs = place.inside("logs")
    for options in ((), (f"--log-dir={logs}", "--tee=3")):
        for more in range(-8, 5):
            one = Working(place, "--max-restarts=2", *options)
            lower(one.child.pid, resource.RLIMIT_NOFILE, lowest_free(one.child.pid) + more)
            code = one.ends()
            worked = code == 0 and one.said.count("at work 1") == 2
            holds(f"a launcher that may open {more} files more {options}", worked or (code == FAILED and "Too many open files" in one.said), (code, one.said))
            holds("it names the first failure", worked or "max_restarts 2 is used up" in one.said, one.said)
        one = Working(place, "--max-restarts=10000", *options)
        before = lower(one.child.pid, resource.RLIMIT_NOFILE, 3)
        os.kill(one.workers[0], signal.SIGKILL)
        one.until("Too many open files")
        resource.prlimit(one.child.pid, resource.RLIMIT_NOFILE, before)
        holds("one that may open files again", one.ended() == 0 and "at work" in one.said, one.said)
        shutil.rmtree(logs, ignore_errors=True)

    timers = place.inside("timers")
    one = Working(place, "--max-restarts=1", env={"TORCHELASTIC_ENABLE_FILE_TIMER": "1", "TORCHELASTIC_TIMER_FILE": timers})
    flood = [subprocess.Popen(["sh", "-c", 'exec yes "no timer" >"$0" 2>/dev/null', timers]) for _ in range(2)]
    code = one.ends()
    for child in flood:
        child.kill()
        child.wait()
    holds("a launcher whose file of timers is flooded", code == 0 and one.said.count("at work 1") == 2, (code, one.said))

    one = Working(place, "--max-restarts=1")
    lower(one.child.pid, resource.RLIMIT_FSIZE, 100)
    code = one.ends()
    holds("a launcher that can hand nothing on", code == FAILED and "File too large" in one.said, (code, one.said))

    one = Working(place, "--max-restarts=5")
    lower(one.guard, resource.RLIMIT_NOFILE, lowest_free(one.guard))
    code = one.ends()
    holds("a launcher whose guard can open nothing", code == 0 and one.said.count("at work ") >= 4, (code, one.said))


# ---- processes ----


def someone():
    """A number that no user has, here or in another run of this."""
    return 100000 + int.from_bytes(os.urandom(3), "big")


def try_processes(place):
    """A user who may have few processes: the guard, or a worker, cannot be made, and that is said."""
    if os.geteuid() != 0:
        print("not root: nobody else can be had who may start few processes")
        return
    uid, good = someone(), []
    for n in (1, 2, 3, 4, 8):
        try:
            code, said = place.run("sh", "-c", "echo at work; exec sleep 0.05", options=["--nproc-per-node=3"], user=uid, limits=[(resource.RLIMIT_NPROC, n)])
        except (PermissionError, subprocess.SubprocessError) as e:
            print(f"another user cannot be had here, or cannot execute {rankrun()}: {e}")
            return
        worked = code == 0 and said.count("at work") == 3
        holds(f"a launcher that may have {n} processes", worked or (code == FAILED and "Resource temporarily unavailable" in said), (code, said))
        good.append(worked)
    same("with how many it works", good, [False, False, False, False, True])


# ---- streams ----


def try_streams(place):
    """Standard streams that are closed, full or gone make no difference to a job."""
    made = place.inside("made")
    for name, how in (("closed", "<&- >&- 2>&-"), ("no input", "<&-"), ("full", ">/dev/full 2>&1"), ("no error", "2>&-")):
        for options in ("", f"--log-dir={place.inside('logs')} --tee=3 --nproc-per-node=2 --event-log-handler=console"):
            words = f'exec "$0" --standalone {options} --no-python sh -c \'echo shown; : <&0 && : >&1 && : >&2 && echo done >>{made}\' {how}'
            child = subprocess.run(["sh", "-c", words, rankrun()], env=place.env(), capture_output=True, text=True, timeout=60)
            same(f"exit code with {name} streams {options} ({child.stderr})", child.returncode, 0)
            with open(made) as f:
                same(f"workers that had their streams with {name} ones {options}", f.read().count("done"), 2 if options else 1)
            os.unlink(made)
            place.nothing_left(child.stderr)
    read, write = os.pipe()
    os.close(read)
    child = place.begin("--standalone", f"--log-dir={place.inside('logs')}", "--tee=1", "--no-python", "sh", "-c", "echo nobody hears", stdout=write, stderr=write)
    os.close(write)
    same("exit code where nobody reads", child.wait(60), 0)
    place.nothing_left("")


# ---- what is held ----


def held_by(pid):
    """Bytes that are resident, and descriptors."""
    with open(f"/proc/{pid}/statm") as f:
        return int(f.read().split()[1]) * PAGE, len(os.listdir(f"/proc/{pid}/fd"))


HOLD = """
long=$1 looks=$2
if [ "$LOCAL_RANK" = 0 ]; then
    read -r pid name state agent rest </proc/$PPID/stat
    set -- /proc/$agent/fd/*; fds=$#
    set -- /proc/$PPID/fd/*
    read -r all rss rest </proc/$agent/statm
    read -r all guard rest </proc/$PPID/statm
    echo "$rss $fds $guard $#" >>$looks
fi
printf '{"message": "%s"}' "$long" >"$TORCHELASTIC_ERROR_FILE"
echo "$long"
[ "$LOCAL_RANK" = 0 ] || [ "$TORCHELASTIC_RESTART_COUNT" = 23 ] || exec sleep 60
exit $((TORCHELASTIC_RESTART_COUNT < 23))
"""


def try_rounds(place):
    """Nothing piles up in agent and guard in twenty-four rounds, though all that they are given is long: arguments, variables, errors,
    lines and names. By themselves, with output shown besides, and as clients of a store that they ask all the time."""
    store, logs, long = Store(place), place.inside("logs"), "long " * 8000
    place.spared.add(store.child.pid)
    timing = "hb=5ms,fence=10s,hard=10.1s,suspect=10.5s"
    for options in ((), (f"--log-dir={logs}", "--tee=3", "--duplicate-stdout-filters=long"),
                    ("--rdzv-backend=embedded", f"--rdzv-endpoint=127.0.0.1:{store.port}", f"--rdzv-conf={timing}")):
        rows = rounds_of(place, long, options)
        for k, what in enumerate(("pages of the agent", "descriptors of the agent", "pages of the guard", "descriptors of the guard")):
            grows_not(f"{what} in twenty-four rounds {options}", [row[k] for row in rows], 7 if k % 2 else 64)
        shutil.rmtree(logs, ignore_errors=True)
    place.spared.clear()
    store.ends(0)


def rounds_of(place, long, options):
    """What agent and guard held in each."""
    looks = place.inside("looks")
    child = place.begin("--nnodes=1", f"--rdzv-id={'i' * 100}", "--nproc-per-node=4", "--max-restarts=23", f"--role={'r' * 60}", *options,
                        "--no-python", "sh", "-c", HOLD, "worker", long, looks, env={"LONG": long, "TORCHELASTIC_ENABLE_FILE_TIMER": "1"})
    said = child.communicate(timeout=100)[0]
    same(f"exit code of twenty-four rounds {options} ({said[-1000:]})", child.returncode, 0)
    place.nothing_left("")
    with open(looks) as f:
        rows = [tuple(map(int, line.split())) for line in f]
    os.unlink(looks)
    same("rounds", len(rows), 24)
    SHOW and print(rows, flush=True)
    return rows


def grows_not(what, looks, room):
    """The least of the last third of the looks, against that of the second: what is new in the first piles up no further, and a
    look may come in the midst of something."""
    third = len(looks) // 3
    holds(what, min(looks[2 * third:]) - min(looks[third:2 * third]) <= room, looks)


class Store:
    """A store of our own, with nobody's token."""

    def __init__(self, place, *words, **more):
        self.place = place
        self.child = place.begin("store", "--host=127.0.0.1", "--port=0", *words, **more)
        self.said, self.port = "", 0
        while not self.port:
            line = self.child.stdout.readline()
            self.said += line
            if not line:
                break
            if "listening on 127.0.0.1:" in line:
                self.port = int(line.rsplit(":", 1)[1])
        self.connection = self.connect() if self.port else None

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)

    def ask(self, path, body=None, method="POST", connection=None, **headers):
        c = connection or self.connection
        c.request(method, path, body=json.dumps(body) if body is not None else None, headers=headers)
        answer = c.getresponse()
        return answer.status, answer.read().decode()

    def ends(self, code, how=signal.SIGTERM):
        if self.connection:
            self.connection.close()
        if self.port:
            self.child.send_signal(how)
        self.said += self.child.communicate(timeout=60)[0]
        same(f"how a store ends, after {self.said!r}", self.child.returncode, code)
        self.place.nothing_left(self.said)
        return self.said


def request(path, body=None, method="POST"):
    body = json.dumps(body).encode() if body is not None else b""
    return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def ask_many(store, n, *requests):
    """One behind the other on one connection, without waiting for answers in between; each is answered."""
    with socket.create_connection(("127.0.0.1", store.port), timeout=30) as c:
        for _ in range(0, n, 25):
            c.sendall(b"".join(requests) * 25)
            answers = b""
            while answers.count(b"HTTP/1.1 ") < 25 * len(requests):
                answers += c.recv(PIECE)


def connect_many(store, n, text):
    """Each on a connection of its own that ends behind it; what is answered is read."""
    for _ in range(n):
        with socket.create_connection(("127.0.0.1", store.port), timeout=30) as c:
            c.sendall(text(c) if callable(text) else text)
            c.shutdown(socket.SHUT_WR)
            try:
                while c.recv(PIECE):
                    pass
            except ConnectionResetError:
                pass


def lifeline_of(c):
    own, peer = ("%s:%d" % c.getsockname()[:2]), ("%s:%d" % c.getpeername()[:2])
    return request("/v3/rankrun/lifeline", {"run_id": "nobody", "inc": "0" * 16, "uid": "0" * 32, "revision": "1", "from": own, "to": peer})


def watch_many(store, n, key):
    for _ in range(n):
        with socket.create_connection(("127.0.0.1", store.port), timeout=30) as c:
            c.sendall(request("/v3/watch", {"create_request": {"key": key}}))
            said = b""
            while b'"created"' not in said:
                said += c.recv(PIECE)


def often_asked():
    """Of each kind of request: its name, how it is sent often, and what is sent."""
    key, other, long = KEY, "L3RyeTI=", "bG9u" * 1000
    get = {"request_range": {"key": key}}
    is_long = {"key": key, "target": "VALUE", "result": "EQUAL", "value": long}
    return (
        ("a put", ask_many, [request("/v3/kv/put", {"key": key, "value": long})]),
        ("a range", ask_many, [request("/v3/kv/range", {"key": key}), request("/v3/kv/range", {"key": "AA==", "range_end": "AA=="})]),
        ("a put and its end", ask_many, [request("/v3/kv/put", {"key": other, "value": "MQ==", "prev_kv": True}),
                                             request("/v3/kv/deleterange", {"key": other, "prev_kv": True})]),
        ("a transaction", ask_many, [request("/v3/kv/txn", {"compare": [is_long], "success": [get], "failure": [get, get]})]),
        ("a lease", ask_many, [request("/v3/lease/grant", {"TTL": "60", "ID": "77"}), request("/v3/kv/put", {"key": other, "value": "MQ==", "lease": "77"}),
                                   request("/v3/lease/keepalive", {"ID": "77"}), request("/v3/lease/revoke", {"ID": "77"})]),
        ("what is refused", ask_many, [request("/v3/kv/put", {"key": "*" * 400}), request("/v3/kv/txn", {"compare": [{}]}), request("/v3/watch", {}),
                                           request("/v3/none", {"key": long}), request("/v3/rankrun/lifeline", {"run_id": long}),
                                           request("/v3/lease/grant", {"TTL": 1.5}), request("/metrics"), request("/v3/kv/range", method="GET")]),
        ("the page of metrics", ask_many, [request("/metrics", method="GET"), request("/v3/auth/authenticate", {})]),
        ("a watch", watch_many, [key]),
        ("a lifeline", connect_many, [lifeline_of]),
        ("half a request", connect_many, [request("/v3/kv/put", {"key": key, "value": long})[:-9]]),
        ("what is no HTTP", connect_many, [b"\x01\x02\x03\r\n\r\n"]),
        ("a connection", connect_many, [b""]))


def try_asked_often(place):
    """A store that is asked very often holds no more than before: by each kind of request, also by those that are refused or that do
    not come whole. What was before is forgotten at each look; where it was, puts may go on for some more pages."""
    store = Store(place)
    for what, often, asked in often_asked():
        looks, n = [], 400 if often is ask_many else 200
        for _ in range(6):
            often(store, n, *asked)
            last = json.loads(store.ask("/v3/kv/range", {"key": KEY})[1])["header"]["revision"]
            store.ask("/v3/kv/compaction", {"revision": last})
            looks.append(held_by(store.child.pid))
        grows_not(f"bytes that a store holds, {n} times more of {what} at each look", [held for held, _ in looks], 16 * PAGE if what == "a put" else 4 * PAGE)
        grows_not(f"descriptors of a store, {n} times more of {what} at each look", [fds for _, fds in looks], n // 4)
        SHOW and print(what, looks, round(time.monotonic(),2), flush=True)
    store.ends(0)


def try_asked_once(place):
    """By each kind of request some times; then it is told to end while somebody watches, has a lifeline, has sent half, or reads nothing."""
    store = Store(place)
    for _, often, asked in often_asked():
        often(store, 25 if often is ask_many else 2, *asked)
    long = base64.b64encode(b"long" * 50000).decode()
    same("status of a long put", store.ask("/v3/kv/put", {"key": KEY, "value": long})[0], 200)
    same("status of a lease", store.ask("/v3/lease/grant", {"TTL": "60", "ID": "78"})[0], 200)
    same("status of a key of it", store.ask("/v3/kv/put", {"key": "L2xlYXNl", "value": "MQ==", "lease": "78"})[0], 200)
    here = [socket.create_connection(("127.0.0.1", store.port), timeout=30) for _ in range(4)]
    here[0].sendall(request("/v3/watch", {"create_request": {"key": KEY}}))
    here[1].sendall(lifeline_of(here[1]))
    here[2].sendall(request("/v3/kv/put", {"key": KEY, "value": long})[:-9])
    here[3].sendall(request("/v3/kv/range", {"key": KEY}) * 40)
    for c in (here[0], here[3]):
        holds("it answers", c.recv(100), "")
    store.ends(0)
    for c in here:
        c.close()


# ---- what stands before a store ----


PATIENT, HASTY = "hb=100ms,fence=20s,hard=20.1s,suspect=21s", "join_timeout=1s"
PROXIES = ( # what becomes of answers (garbling.py), of one in how many, and what is said where nothing comes of it
    ("pieces", 1, None), ("lost", 4, None), ("busy", 3, None), ("half", 5, None), ("ended", 1, None), ("canceled", 2, None), ("nonsense", 2, None),
    ("beta", 1, None), ("page", 1, "JSON: expected a value"), ("nothing", 1, "HTTP status 404, 404 page not found"),
    ("closed", 1, "permission denied"), ("full", 1, "space exceeded"))


def try_proxies(place):
    """A job whose store answers oddly does its work all the same; where it does not answer at all, that is said, with its words. All of
    them at once, each in a run of its own."""
    store, jobs = Store(place), []
    work = 'echo "at work $TORCHELASTIC_RESTART_COUNT"; exit $((TORCHELASTIC_RESTART_COUNT < 2))'
    for how, every, words in PROXIES:
        proxy = garbling.Garbling(store.port, how, every)
        jobs.append((proxy, words, place.begin("--nnodes=1", f"--rdzv-id={how}", "--rdzv-backend=etcd-v3", f"--rdzv-endpoint=127.0.0.1:{proxy.port}",
                                               f"--rdzv-conf=profile=fast,{HASTY if words else PATIENT}", "--max-restarts=2", "--no-python", "sh", "-c", work)))
    for proxy, words, child in jobs:
        said, done = child.communicate(timeout=60)[0], child.returncode
        if words:
            holds(f"a job whose store answers nothing, but {proxy.how}", done == LOST and words in said and "at work" not in said, (done, said))
        else:
            holds(f"a job whose store's answers are {proxy.how}", done == 0 and all(f"at work {k}" in said for k in range(3)), (done, said))
        proxy.fini()
    store.ends(0)


# ---- what a store leaves ----

HELD = "first rounds are held back"


def try_markers(place):
    """A store that ends in order leaves nothing, unless a job is still there; the next one at its port knows by a file which it was, and
    whether the host has been up all the time."""
    store, folder = Store(place), os.path.join(place.tmp, "rankrun")
    marker, port = os.path.join(folder, f"store-127.0.0.1-{store.port}"), store.port
    with open("/proc/sys/kernel/random/boot_id") as f, open(marker) as g:
        same("what a store's marker says", g.read(), f.read())
    same("rights of its directory", oct(os.stat(folder).st_mode & 0o7777), "0o700")
    said = store.ends(0)
    holds("what one says that finds nothing", HELD not in said, said)
    same("markers of a store that has ended", os.listdir(folder), [])

    def next_one(what, left, held, stays, *words, session=False):
        if left is not None:
            with open(marker, "w") as f:
                f.write(left)
        one = Store(place, f"--port={port}", *words)
        count = {"key": "AA==", "range_end": "AA==", "count_only": True}
        same(f"keys of {what}", json.loads(one.ask("/v3/kv/range", count)[1]).get("count", "0"), "1" if held else "0")
        if session:
            key = base64.b64encode(b"/rankrun/of-mine/0123456789abcdef/" + session).decode()
            same("status of a put", one.ask("/v3/kv/put", {"key": key, "value": "MQ=="})[0], 200)
        text = one.ends(0)
        same(f"whether {what} holds first rounds back ({text})", HELD in text, held)
        same(f"whether the marker of {what} stays", os.listdir(folder), [os.path.basename(marker)] if stays else [])
        if stays:
            os.unlink(marker)

    with open("/proc/sys/kernel/random/boot_id") as f:
        boot = f.read()
    next_one("one behind a store that was killed", boot, True, True)
    next_one("one behind a store of an earlier boot", boot[:-3] + "xx\n", False, False)
    next_one("one whose marker was cut short", boot[:-1], True, True)
    next_one("one whose marker is empty", "", True, True)
    next_one("one that never waits", boot, False, False, "--quarantine=never")
    next_one("one that always waits", None, True, True, "--quarantine=always")
    next_one("one in which a job is", None, False, True, session=b"s/" + b"0" * 32)
    next_one("one in which a job was", None, False, False, session=b"cur")
    os.chmod(folder, 0o777)
    said = Store(place).ends(0)
    same(f"markers in a directory that is everybody's ({said})", os.listdir(folder), [])
    if os.geteuid() == 0:
        try_no_marker(place)


def try_no_marker(place):
    """A user whose three directories are others' has a store all the same, that says so."""
    uid = someone()
    others = f"/tmp/rankrun-{uid}"
    with open(others, "w"):
        pass
    try:
        store = Store(place, user=uid, env={"XDG_RUNTIME_DIR": "not/absolute"})
        same("status of a store without a marker", store.ask("/metrics", method="GET")[0], 200)
        said = store.ends(0)
        holds("what is said where no marker can be", f"no folder for the store's marker: neither $XDG_RUNTIME_DIR/rankrun nor /run/rankrun nor {others}" in said, said)
    except (PermissionError, subprocess.SubprocessError) as e:
        print(f"another user cannot be had here, or cannot execute {rankrun()}: {e}")
    os.unlink(others)


# ---- the job ----


def meet(last):
    """Who has tried nothing waits here for who has: nobody is struck while it tries."""
    path = os.path.join(os.environ["MEET"], os.environ["TORCHELASTIC_RUN_ID"])
    try:
        os.mkfifo(path)
    except FileExistsError:
        pass
    with open(path, "w" if last else "r"):
        pass


def try_all(chapters, known):
    for name in chapters:
        place, began = Place(), time.monotonic()
        known["try_" + name](place)
        print(f"{name} took {time.monotonic() - began:.1f} s", flush=True)
        place.fini()


def main(known=None):
    known = known or globals()
    if sys.argv[1] == "alone":
        return try_all(sys.argv[2:], known)
    steps, chapters = int(sys.argv[1]), sys.argv[2:]
    last, first_round = os.environ["RANK"] == str(int(os.environ["WORLD_SIZE"]) - 1), os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
    rq = rankquake.Client()
    rq.ready()
    for step in range(1, steps + 1):
        if step == 2 and first_round:
            try_all(chapters if last else [], known)
            meet(last)
        time.sleep(0.02)
        rq.step(step, loss=1 / step, samples=1)
    rq.done("0" * 64)


def main_once(known):
    """The same, but in a control run, which says by the variable OUT that it is one: it would try the same twice."""
    if os.environ.get("OUT", "").endswith("/control"):
        del sys.argv[2:]
    main(known)


if __name__ == "__main__":
    main()
