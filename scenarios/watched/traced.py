"""Plays a table of commands as watched.py does, with a launcher found under strace(1), and compares what each line's launchers have asked of the system with what
is written down: each call with its flags, what it is about and what came of it, and how often, of each process until it becomes another program.
Usage: traced.py TABLE, with its record in records/; WRITE=N plays each line N times and writes the record anew. What is otherwise is a line that begins with "otherwise: ".

How often some calls are made is chance, as where others are at the other end, or a signal comes. What was another number in N times is only asked to be
there ("+"), and what was missing in one of them need not be ("?"). What is rarer than that is told from a difference by playing the line again: what is otherwise
each of TIMES is. What another program says, moved bytes by their length and times are not compared."""
import collections
import concurrent.futures
import os
import re
import shutil
import sys
import tempfile

import watched

TIMES = 3
RECORDS = os.path.join(watched.HERE, "records")
CALLS = """openat creat close read readv pread64 write pwrite64 writev fsync fdatasync renameat renameat2 rename unlink unlinkat mkdir mkdirat rmdir link linkat
    symlink symlinkat readlink readlinkat chdir fchdir chmod fchmod chown fchown umask utimensat ftruncate fallocate flock fcntl newfstatat fstat statx statfs
    fstatfs getdents64 lseek mmap memfd_create access faccessat faccessat2 copy_file_range splice execve clone clone3 vfork fork exit_group wait4 waitid kill
    tgkill pidfd_open pidfd_send_signal prctl setpgid setsid setpriority setuid setgid setgroups capset rt_sigaction rt_sigprocmask signalfd4 dup dup2 dup3 pipe2
    socket socketpair bind listen connect accept4 shutdown getsockopt setsockopt getsockname sendto recvfrom sendmsg recvmsg eventfd2 epoll_create1 epoll_ctl
    timerfd_create timerfd_settime inotify_init1 inotify_add_watch inotify_rm_watch sched_setaffinity sched_getaffinity unshare setns seccomp ioctl""".split()
MOVES = "read", "readv", "pread64", "write", "pwrite64", "writev", "sendto", "sendmsg", "recvfrom", "recvmsg"
WRAPPER = """#!/bin/sh
exec strace -D -ff --detach-on=execve -yy -qq -s 160 -o "${{TMPDIR:-{folder}/none}}.log.$$" -e trace={calls} -e signal=none {program} "$@"
"""


# ---- a line of a log ----

CHANCES = [(re.compile(what), instead) for what, instead in (
    (r"0x[0-9a-f]{6,}", "POINTER"), (r"/proc/\d+", "/proc/P"), (r"htons\([1-9]\d*\)", "htons(N)"), (r"\b(\w*_)[0-9A-Za-z]{8}\b(?=[/\">])", r"\1X"),
    (r"_[0-9a-f]{32}\b", "_H"), (r"\.\d+\.tmp\b", ".P.tmp"), (r"-outcome\.\w{6}\b", "-outcome.X"), (r", sa_restorer=POINTER", ""), (r"\(deleted\)", ""), (r"<pid:\d+>", "<pidfd>"), (r'"(127\.0\.0\.1|198\.18\.\d+\.\d+)"', "OWN"),
    (r"(</proc>, .* /\*) \d+ entries", r"\1 N entries"))]
ELSEWHERE = re.compile(r'"/(?!proc/(?!self/exe)|dev/)|<(?!/proc|/dev|/memfd)/|\.so[."]|RLIMIT_STACK')  # the host's, where all that is asked lies below a folder
CHANCE = re.compile(r"EAGAIN|EINTR|EINPROGRESS|ERESTART|ECHILD|EADDRINUSE|ESRCH")
MEMBERS = re.compile(r"\b(st_\w+|tv_n?sec|u32|u64|si_pid|si_uid|si_utime|si_stime|f_\w+|d_ino|sival_\w+)=[^,}]*")


def thing(what):
    """What a descriptor leads to."""
    for begin in ("TCP", "UDP", "UNIX", "pipe", "NETLINK"):
        if what.startswith(begin):
            return begin
    return re.sub(r"anon_inode:\[?(\w+)\]?", r"\1", what)


def anyhow(line, folder):
    """Without what is another each time."""
    line = line.replace(folder, ".")
    for what, instead in CHANCES:
        line = what.sub(instead, line)
    return re.sub(r"\d+<(.*?)>(?=[],)}]|$| )", lambda m: f"<{thing(m[1])}>", line)


def moved(call, arguments, result):
    flags = "|".join(sorted(set(re.findall(r"MSG_\w+|SCM_\w+", arguments))))
    to = re.match(r"<.*?>|\d+", arguments)[0]
    return " ".join(filter(None, (call, to, flags, result.startswith("-1") and result, result == "0" and "nothing")))


def asked(line):
    """What is compared of a line; None: nothing."""
    m = re.match(r"(\w+)\((.*)\)\s+= (.+)$", line)
    if not m or CHANCE.search(m[3]) or ("/proc/P" in m[2] and m[3].startswith("-1")) or ELSEWHERE.search(line) or (m[1] == "mmap" and "<" not in m[2]):
        return None
    call, arguments, result = m.groups()
    if call in MOVES:
        return moved(call, arguments, result)
    if call == "timerfd_settime":
        arguments = re.sub(r"\{it_interval=.*\}", "a time", arguments)
    if call in ("execve", "getsockopt"):
        arguments = re.split(r', (?:\[|")', arguments)[0]
    arguments = re.sub(r"(?<![\w.])-?[1-9]\d{2,}(?![\w.])", "N", MEMBERS.sub(r"\1", arguments))
    return f"{call} {arguments}: " + re.sub(r"^\d{2,}$", "N", result)


# ---- the processes of a line ----

def began(lines):
    """The processes that it began, each with whether it is a thread."""
    return [(m[3], "CLONE_THREAD" in m[2]) for m in (re.match(r"(clone3?|v?fork)\((.*) = (\d+)$", line) for line in lines) if m]


def role_of(lines):
    """Of a launcher that was begun by another program: its verb."""
    m = re.match(r'execve\("[^"]*", \["[^"]*", "(\w+)"', lines[0]) if lines else None
    return f"rankrun {m[1]}" if m else "rankrun"


class Log:
    """What all launchers of a line did: how often each call, by what the process is to those above it."""

    def __init__(self, folder):
        self.folder, self.lines, self.seen = folder, {}, collections.defaultdict(collections.Counter)
        above, start = os.path.dirname(folder), os.path.basename(folder) + ".log."
        for name in os.listdir(above):
            if name.startswith(start):
                with open(os.path.join(above, name), errors="replace") as f:
                    self.lines[tuple(name[len(start):].split("."))] = f.read().splitlines()
        for log, pid in self.lines:
            if log == pid:
                self.count(log, pid, role_of(self.lines[log, pid]))

    def count(self, log, pid, role):
        """log: of the launcher that another program has begun, of which this is a part. What it becomes may be one itself, with the same number."""
        lines = self.lines.get((log, pid), [])
        for line in lines:
            what = asked(anyhow(line, self.folder))
            if what:
                self.seen[role][what] += 1
        for child, is_thread in began(lines):
            last = (self.lines.get((log, child)) or [""])[-1]
            becomes = re.match(r'execve\("(?:[^"]*/)?([^"/]*)".* = 0$', last)
            self.count(log, child, f"{role} > " + ("thread" if is_thread else becomes[1] if becomes else "process"))


class Trace:
    """A folder with what stands in the PATH in place of the launcher (Watch)."""

    def __init__(self):
        program = shutil.which("rankrun") or sys.exit("traced.py: rankrun: no such program is in the PATH")
        self.folder = tempfile.mkdtemp(prefix="traced-")
        os.chmod(self.folder, 0o1777)
        self.bin = os.path.join(self.folder, "bin")
        os.mkdir(self.bin)
        with open(os.path.join(self.bin, "rankrun"), "w") as f:
            f.write(WRAPPER.format(folder=self.folder, calls=",".join(CALLS), program=program))
        os.chmod(f.name, 0o755)

    def env(self):
        env = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
        return {**env, "PATH": f"{self.bin}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}

    def play(self, prelude, code, command):
        """What was wrong, and what was asked of the system."""
        folder = tempfile.mkdtemp(prefix="line-", dir=self.folder)
        wrong = watched.play(self, prelude, code, command, folder)
        return wrong, Log(folder).seen

    def fini(self):
        shutil.rmtree(self.folder)


# ---- a record ----

# How often they come is chance everywhere: as many as there was something to move, to miss or to wait for, and calls that found nobody yet.
UNCOUNTED = re.compile(r"(wait4|waitid|kill|timerfd_settime|(read|write|send|recv)\w* <(UNIX|pipe|signalfd|timerfd|eventfd)>)|.*(/proc/P|<TCP>|AF_INET)")


def record_of(runs):
    """Of a line that was played several times: each call with its number, "+" or "?"."""
    for role in sorted({role for seen in runs for role in seen}):
        yield f"  {role}"
        for line in sorted({line for seen in runs for line in seen[role]}):
            often = {seen[role][line] for seen in runs}
            yield f"    {'?' if 0 in often else '+' if len(often) > 1 or UNCOUNTED.match(line) else often.pop()} {line}"


def read_record(path):
    ret, of = collections.defaultdict(lambda: collections.defaultdict(dict)), None
    with open(path) as f:
        for line in f.read().splitlines():
            if line.startswith("    "):
                often, _, what = line.strip().partition(" ")
                ret[of][role][what] = often
            elif line.startswith("  "):
                role = line.strip()
            else:
                of = line
    return ret


def differs(seen, known):
    """What is otherwise than in the record: of whom and which call, and in words."""
    ret = {}
    for role in sorted({*seen, *known}):
        now, then = seen.get(role, {}), known.get(role, {})
        for line in sorted({*now, *then}):
            often, is_now = then.get(line, "0"), now.get(line, 0)
            if often != "?" and (not is_now if often == "+" else is_now != int(often)):
                ret[role, line] = f"otherwise: {role}: {is_now} times and not {often}: {line}"
    return ret


def compare(trace, prelude, line, known):
    """What is otherwise each time, in words."""
    ret = None
    for _ in range(TIMES):
        wrong, seen = trace.play(prelude, *line)
        now = {**({"ended": wrong} if wrong else {}), **differs(seen, known)}
        ret = now if ret is None else {what: now[what] for what in now if what in ret}
        if not ret:
            break
    return list(ret.values())


def write(trace, pool, prelude, lines, path, times):
    played = list(pool.map(lambda line: trace.play(prelude, *line), lines * times))  # none beside itself: some have ports of their own
    print("\n".join(filter(None, (wrong for wrong, _ in played))))
    with open(path, "w") as f:
        for i, line in enumerate(lines):
            f.write("\n".join([" ".join(line), *record_of([seen for wrong, seen in played[i::len(lines)] if not wrong])]) + "\n")


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: traced.py TABLE")
    trace, (prelude, lines) = Trace(), watched.read_table(sys.argv[1])
    lines = [line for line in lines if "launcher/trying.py" not in line[1]]  # which has a deadline of its own
    path, times = os.path.join(RECORDS, os.path.basename(sys.argv[1])), os.environ.get("WRITE")
    with concurrent.futures.ThreadPoolExecutor(watched.AT_ONCE) as pool:
        if times:
            write(trace, pool, prelude, lines, path, int(times))
            return trace.fini()
        known, count = read_record(path), 0
        for of, line in zip(pool.map(lambda line: compare(trace, prelude, line, known[" ".join(line)]), lines), lines):
            count += bool(of)
            if of:
                print("\n".join([f"otherwise: {' '.join(line)}"] + of[:40]))
    print(f"{len(lines) - count} of {len(lines)} lines are as they were written down")
    trace.fini()
    sys.exit(1 if count else 0)


if __name__ == "__main__":
    main()
