"""Runs a command in which a program of the PATH is found with a library before all others, by which each of its processes is asked at its end for memory that nobody
can reach any more and for descriptors that it has left open. It costs so little that whoever tries a program in a thousand ways may ask each. Of the standard library
alone; needs a C compiler with its library for leaks.

Usage: given_back.py NAME COMMAND... What a process has not given back is a line that begins with "otherwise: ", and the last says how many were asked. Exit: that
of the command, or 1. Who was killed, or left by _exit, is not asked."""
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
CC = "cc", "-O1"


def build(folder, *sources):
    """The library, of such sources beside this file, with what looks for leaks."""
    held = os.path.join(folder, "held.so")
    subprocess.run([*CC, "-shared", "-fPIC", "-fsanitize=leak", "-o", held, *(os.path.join(HERE, name) for name in sources)], check=True)
    return held


def environment(logs, held):
    return {"LSAN_OPTIONS": f"log_path={logs}/leaks:exitcode=0:print_suppressions=0", "HELD_LOGS": logs, "LD_PRELOAD": held}


def wrapped(program, folder):
    """A folder with what stands in the PATH in place of the program; None: it was built so that it asks itself."""
    real, logs, ret = shutil.which(program), os.path.join(folder, "logs"), os.path.join(folder, "bin")
    if not real:
        sys.exit(f"given_back.py: {program}: no such program is in the PATH")
    with open(real, "rb") as f:
        if b"__asan_init" in f.read():
            return None
    os.mkdir(logs)
    os.mkdir(ret)
    sets = "".join(f'setenv("{name}", "{value}", 1);' for name, value in environment(logs, build(folder, "held.c")).items())
    subprocess.run([*CC, f'-DPROGRAM="{os.path.realpath(real)}"', f"-DSETS={sets}", "-o", os.path.join(ret, program), os.path.join(HERE, "holder.c")], check=True)
    return ret


def noted(logs):
    """Of each process that came to its end its command line, and what it has not given back, in lines."""
    names = sorted(os.listdir(logs))
    leads = {name: os.readlink(os.path.join(logs, name)) for name in names if not name.startswith("leaks.")}
    for name in names:
        kind, pid = name.split(".")[:2]
        if kind == "open":
            yield leads.get("began." + pid, "a fork"), [f"descriptor {name.split('.')[2]}, which leads to {leads[name]}"]
        elif kind == "leaks":
            with open(os.path.join(logs, name), errors="replace") as f:
                yield leads.get("began." + pid, "a fork"), [line.strip() for line in f if line.strip() and not line.startswith(("=", "Suppressions"))]
        elif kind == "ended":
            yield None, []


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: given_back.py NAME COMMAND...")
    folder = tempfile.mkdtemp(prefix="given-back-")
    instead = wrapped(sys.argv[1], folder)
    env = {**os.environ, "PATH": f"{instead}:{os.environ['PATH']}"} if instead else None
    code = subprocess.run(sys.argv[2:], env=env, check=False).returncode
    ended = 0
    for words, lines in noted(os.path.join(folder, "logs")) if instead else ():
        ended += words is None
        if lines:
            code = code or 1
            print("\n".join([f"otherwise: {words} has not given back", *("otherwise: " + line for line in lines)]))
    print(f"{ended} processes were asked what they have not given back" if instead else f"{sys.argv[1]} asks itself what it has not given back", flush=True)
    shutil.rmtree(folder)
    sys.exit(code)


if __name__ == "__main__":
    main()
