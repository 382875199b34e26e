"""Runs programs under valgrind, and says what they did not give back at their end, used after they had, read beyond its end or never
set, and which descriptors they left open. Of the standard library alone; needs valgrind and a C compiler.

    watched.py [--threads] NAME[,NAME...] TABLE

gives each line of the table to a bash, for which each program NAME of the PATH is watched, and each process that it becomes or starts of
itself. A line has an exit code and a command, which runs in an empty folder of its own, beside others. What begins with ". " is shell that each
has before it, and "#" begins a remark. $HERE is the folder of this file. Prints what was wrong with which process, each command that ended
otherwise, and in the last line how many were as they must be. Exit: 0, or 1 where something was wrong.

With --threads it is told instead what threads of a process did to each other: locks that were not held when they were given back, or held at a thread's end, and
what two have reached for with no lock, and nothing else that orders it, in between.

A process that was killed, or has executed another program, has not come to its end, and is asked for its errors alone."""
import concurrent.futures
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
SHOW, AT_ONCE, PATIENCE = os.environ.get("SHOW"), 4, int(os.environ.get("PATIENCE", "100"))
BOTH = ("--num-callers=24", "--fair-sched=try", "--vgdb=no")
OPTIONS = (*BOTH, "--leak-check=full", "--show-leak-kinds=all", "--errors-for-leak-kinds=all", "--track-fds=yes", "--malloc-fill=0xa5", "--free-fill=0x5a")
THREADS = (*BOTH, "--tool=helgrind")
ARENA = "arena_alloc", "arena_fini", "arena_clear"
# What libjpeg computes by wide registers valgrind takes for never set.
WRAPPER = """#!/bin/sh
rm -f {logs}/$$.copy
: >{logs}/$$.began
[ -z "$DESCRIPTORS" ] || ulimit -Sn "$DESCRIPTORS"
export JSIMD_FORCENONE=1 WATCHED_PIDFDS={socket} WATCHED_LOGS={logs} WATCHED_ANEW={path} LD_PRELOAD={beneath}
exec valgrind {options} --log-file={logs}/%p {program} "$@"
"""

class Watch:
    """A folder with what stands in the PATH in place of the programs, and what valgrind has noted of each process."""

    def __init__(self, *names, options=OPTIONS):
        self.options = options
        self.folder = tempfile.mkdtemp(prefix="watched-")
        self.bin, self.logs = os.path.join(self.folder, "bin"), os.path.join(self.folder, "logs")
        os.mkdir(self.bin)
        os.mkdir(self.logs)
        os.chmod(self.folder, 0o755)
        os.chmod(self.logs, 0o1777)
        self.beneath = os.path.join(self.folder, "beneath.so")
        instead = [f"-D{name}=_vgr00000ZU_NONE_{name}" for name in ARENA] # so named, valgrind has a function in place of the program's own
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-I", os.path.join(HERE, "..", ".."), *instead, "-o", self.beneath,
                        os.path.join(HERE, "beneath.c"), os.path.join(HERE, "bounds.c")], check=True)
        self.socket = f"watched-{os.getpid()}-{os.path.basename(self.folder)}"
        self.listens = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listens.bind("\0" + self.socket)
        self.listens.listen(64)
        threading.Thread(target=self.open_pidfds, daemon=True).start()
        for name in names:
            self.instead_of(name)

    def instead_of(self, program):
        """The path of what runs it watched: a program of the PATH, or one at this path."""
        real = shutil.which(program)
        if not real:
            sys.exit(f"watched.py: {program}: no such program is in the PATH")
        path = os.path.join(self.bin, os.path.basename(program))
        text = WRAPPER.format(path=path, socket=self.socket, beneath=self.beneath, logs=self.logs, program=os.path.realpath(real), options=" ".join(self.options))
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, 0o755)
        return path

    def open_pidfds(self):
        while True:
            asks, _ = self.listens.accept()
            with asks:
                pid = int.from_bytes(asks.recv(4), sys.byteorder)
                try:
                    fd = os.pidfd_open(pid)
                except OSError as e:
                    asks.send(e.errno.to_bytes(4, sys.byteorder))
                else:
                    socket.send_fds(asks, [bytes(4)], [fd])
                    os.close(fd)

    def env(self, env=None):
        """With the watched programs before all others."""
        env = dict(os.environ if env is None else env)
        return {**env, "PATH": self.bin + ":" + env.get("PATH", "/usr/local/bin:/usr/bin:/bin")}

    def noted(self):
        """How many processes came to their end, and what was wrong with each, in words. What was noted so far is forgotten."""
        ended, wrong = 0, []
        for name in sorted(filter(str.isdigit, os.listdir(self.logs)), key=int):
            path = os.path.join(self.logs, name)
            with open(path, errors="replace") as f:
                text = re.sub(r"^(==|--)\d+(==|--) ?", "", f.read(), flags=re.M)
            whole = "\nERROR SUMMARY: " in text and "\nProcess terminating " not in text and not os.path.exists(path + ".copy")
            ended += whole
            said = faults_of(text, whole, os.path.exists(path + ".began"))
            if said:
                command = re.search(r"^Command: (.*)", text, re.M)
                wrong.append(f"{command[1] if command else '?'} (process {name}):\n{said}")
            os.unlink(path)
        return ended, wrong

    def fini(self):
        self.listens.close()
        shutil.rmtree(self.folder)


CALL = re.compile(r" +(at|by) 0x")
# Streams that print in place of the standard ones to the very end; what libraries keep that are not ours, nor libc.
KEPT = re.compile(r" (printing_begin|_dl_\w+|__tls_get_addr) \(|\(in (?!\S*/(libc|vgpreload|beneath))\S+\.so")
ENDED = re.compile(r"Process terminating with default action of signal (1|2|3|9|10|12|13|14|15|25) ")


def faults_of(text, whole, began):
    """The paragraphs that tell of an error; and, of one that came to its end, of what it did not give back: what nobody can reach, and,
    of one that is no fork, and holds nothing of its parent, what is reachable, too."""
    body = text.split("\nParent PID: ", 1)[-1].split("\n", 1)[-1]
    paragraphs = [p.strip("\n") for p in re.split(r"\n\s*\n", body)]
    return "\n".join(p for p in paragraphs if is_fault(p, whole, began))


def is_fault(paragraph, whole, began):
    if re.match(r"Thread #\d+ was created", paragraph):  # of which a fault is told behind it
        return False
    if re.search(r"^Open ", paragraph, re.M):
        reports = not began and " process_report_pipe (" in paragraph  # a child that could not execute says so by it, to the end
        return whole and not reports and not paragraph.endswith("<inherited from parent>")
    if re.search(r"are (definitely|indirectly) lost in loss record", paragraph):
        return whole
    if re.search(r"are (still reachable|possibly lost) in loss record", paragraph):
        return whole and began and not KEPT.search(paragraph)
    return bool(CALL.search(paragraph)) and not ENDED.match(paragraph)


# ---- a table ----


def read_table(path):
    """Shell that all have before them, and the lines: exit code and command."""
    with open(path) as f:
        lines = [line.rstrip("\n") for line in f if line.strip() and not line.startswith("#")]
    prelude = "\n".join(line[2:] for line in lines if line.startswith(". "))
    return prelude, [line.split(" ", 1) for line in lines if not line.startswith(". ")]


def play(watch, prelude, code, command, folder=None):
    """What was wrong with it, in words."""
    folder = folder or tempfile.mkdtemp(dir=watch.folder)
    os.chmod(folder, 0o755)
    known = ("RANK", "LOCAL_", "GROUP_", "ROLE_", "WORLD_SIZE", "MASTER_", "TORCHELASTIC", "PET_", "RANKQUAKE")
    env = {k: v for k, v in watch.env().items() if not k.startswith(known)}
    env.update(HERE=HERE, TMPDIR=folder, OMP_NUM_THREADS="1", LC_ALL="C")
    child = subprocess.Popen(["bash", "-c", prelude + "\n" + command], env=env, cwd=folder, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
    try:
        said, ended = child.communicate(timeout=PATIENCE)[0], child.returncode
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        said, ended = child.communicate()[0], f"nothing within {PATIENCE} s"
    if str(ended) != code:
        return f"otherwise: {command}\n  ended with {ended} and not {code}, and said:\n{said}"
    return SHOW and f"{command}\n{said}"


def main():
    threads = sys.argv[1:2] == ["--threads"]
    words = sys.argv[1 + threads:]
    if len(words) != 2:
        sys.exit("usage: watched.py [--threads] NAME[,NAME...] TABLE")
    watch, (prelude, lines) = Watch(*words[0].split(","), options=THREADS if threads else OPTIONS), read_table(words[1])
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        otherwise = list(filter(None, pool.map(lambda line: play(watch, prelude, *line), lines)))
    ended, wrong = watch.noted()
    print("\n".join(otherwise + [f"wrong: {text}" for text in wrong]))
    print(f"{len(lines) - len(otherwise)} of {len(lines)} lines ended as they must, {ended - len(wrong)} of {ended} processes gave back what they had")
    watch.fini()
    sys.exit(1 if otherwise or wrong else 0)


if __name__ == "__main__":
    main()
