"""Holds a job's save at the moment at which all is written and nothing is published - it asks of each checkpoint there who has written it, and one manifest is a pipe -
and changes meanwhile what lies there, or ends the job. What lies there then and at the end, and what is said, is compared with saved.txt.

Usage: saving.py [PART...], in an empty directory; WRITE=1 writes saved.txt anew. What is otherwise is a line that begins with "otherwise: "."""
import os
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(1, os.path.dirname(os.path.abspath(__file__)))
import altering  # noqa: E402
import following  # noqa: E402

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "saved.txt")
LAST = 99999999  # whoever resumes does not look at it
ALONE = ((), ("--checkpoint-async",), ("--checkpoint-sharded",), ("--checkpoint-sharded", "--checkpoint-async"), ("--mode=fsdp",), ("--mode=zero", "--checkpoint-sharded"))
TOGETHER = [("--spawn=2", *words) for words in (("--mode=ddp",), ("--mode=ddp", "--checkpoint-async"), ("--mode=zero",), ("--mode=zero", "--checkpoint-sharded"),
                                               ("--mode=zero", "--checkpoint-sharded", "--checkpoint-async"), ("--mode=fsdp", "--checkpoint-async"), ("--mode=ps",))]


def lying(top="ck"):
    """What lies there: of a checkpoint whether it is complete, and of others what they hold."""
    ret = []
    for name in sorted(set(os.listdir(top)) - {altering.name_of(LAST)}):
        files = altering.lying(os.path.join(top, name))
        said = re.sub(r"pid-\d+", "pid-P", name)
        if not isinstance(files, dict):
            said += " a file"
        elif name.startswith("step-") and altering.is_complete(files, int(name[5:])):
            said += " complete"
        else:
            said += " with " + ", ".join(f"{n} {'complete' if n == 'manifest.json' and is_whole(files) else len(data)}" for n, data in sorted(files.items()))
        ret.append(said)
    return ret


def is_whole(files):
    return altering.is_complete(files, int(re.search(rb'"step":(\d+)', files["manifest.json"])[1]))


class Job:
    def __init__(self, c, *words, **env):
        os.mkdir("ck")
        following.lands(c, 1)
        following.waits_at(c, LAST)
        self.child = subprocess.Popen([*altering.TRAIN, "--checkpoint-dir=ck", "--steps=4", "--log-every=1", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True, env={**os.environ, **env})
        self.pipe = following.Pipe(LAST)

    def goes_on(self, top="ck"):
        """What it says of it; its later saves are not held."""
        altering.written(os.path.join(top, altering.name_of(LAST), "manifest.json"), b"none")
        self.pipe.f.close()
        lines = [re.sub(r"pid-\d+", "pid-P", line) for line in self.child.stdout.read().splitlines()]
        self.child.stdout.close()
        status = self.child.wait()
        self.reached = max([int(line.split()[1]) for line in lines if line.startswith("step ")], default=0)
        return [line.replace("ranktrain: ", "") for line in lines if line.startswith("ranktrain")] + [f"ends with {status} at step {self.reached}"]


def told(title, lines):
    shutil.rmtree("ck", ignore_errors=True)
    shutil.rmtree("gone", ignore_errors=True)
    return [title, *("  " + line for line in lines)]


def meanwhile(c):
    """What comes to lie there while it is held, at the place of what is saved and beside it."""
    at = os.path.join("ck", altering.name_of(2))

    def moved():
        os.rename("ck", "gone")

    def put(step, **fields):
        shutil.rmtree(os.path.join("ck", altering.name_of(step)), ignore_errors=True)
        c.put("ck", step, c.text(step, **fields))
    return (("nothing", lambda: None), ("another in its place", lambda: put(2)), ("a damaged one in its place", lambda: c.put("ck", 2, c.text(3))), ("an empty one in its place", lambda: os.mkdir(at)),
            ("a file in its place", lambda: altering.written(at, b"x")), ("one of a higher round", lambda: put(1, round=7)), ("one of a higher round in its place", lambda: put(2, round=7)),
            ("one of a higher round of another run", lambda: put(1, round=7, run_id="other")), ("one of its own round", lambda: put(1, round=0)), ("it is moved", moved),
            ("a later one", lambda: put(9)))


def alone():
    c, said = altering.Checkpoint("of"), []
    for words in ALONE:
        for what, change in meanwhile(c):
            job = Job(c, *words)
            drafts = lying()
            change()
            top = "gone" if what == "it is moved" else "ck"
            lines = ([] if what != "nothing" else ["held: " + line for line in drafts]) + job.goes_on(top)
            for place in ("ck", "gone"):
                lines += [f"in {place}: {line}" for line in (lying(place) if os.path.isdir(place) else [])]
            said += told(" ".join((*words, what)), lines)
    return said


def ended():
    """Ended while it is held: what it has got to is saved, and who begins again leaves no draft."""
    c, said = altering.Checkpoint("of"), []
    for words in (*ALONE, *TOGETHER):
        job = Job(c, *words)
        job.child.send_signal(signal.SIGTERM)
        lines = job.goes_on()
        newest = max(int(name[5:]) for name in os.listdir("ck") if name.startswith("step-") and name != altering.name_of(LAST))
        said += told(" ".join((*words, "is told to end")), [*(line for line in lines if "ends with" not in line), f"ends with {job.child.returncode}",
                                                             "it is saved" if newest == job.reached else f"{newest} is saved and not {job.reached}",
                                                             *("a draft is left" for line in lying() if not line.startswith("step-"))])
    for words in ALONE:
        job = Job(c, *words)
        job.child.kill()
        job.goes_on()
        lines = ["killed: " + line for line in lying()]
        again, status = altering.asked([*altering.TRAIN, "--checkpoint-dir=ck", "--steps=4", *words])
        lines += [line for line in again if line.startswith(("ranktrain", "resumed"))] + [f"ends with {status}"] + ["again: " + line for line in lying()]
        said += told(" ".join((*words, "is killed")), lines)
    return said


def together():
    c, said = altering.Checkpoint("of"), []
    for words in TOGETHER:
        for what, change in meanwhile(c)[:2]:
            job = Job(c, *words)
            drafts = lying()
            change()
            lines = ([] if what != "nothing" else ["held: " + line for line in drafts]) + job.goes_on() + lying()
            said += told(" ".join((*words, what)), lines)
    return said


PARTS = {"alone": alone, "together": together, "ended": ended}

if __name__ == "__main__":
    altering.settle()
    altering.computes = "\0"
    altering.make_data()
    signal.alarm(2 * following.LONG)
    altering.run(PARTS, TABLE)
