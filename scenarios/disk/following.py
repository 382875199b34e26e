"""Has an evaluator follow a directory that comes late, in pieces or whole, grows, is moved, replaced or taken away, and looks at it at moments that no speed of a host
decides: a checkpoint's manifest is a pipe, at which it waits until it is given the text. What it says, its lease and what a job keeps for it are compared with what
stands in each case.

Usage: following.py, in an empty directory. What is otherwise is a line that begins with "otherwise: "."""
import fcntl
import json
import os
import shutil
import signal
import struct
import subprocess
import sys

sys.path.insert(1, os.path.dirname(os.path.abspath(__file__)))
import altering  # noqa: E402

LONG = 90  # seconds; each case ends within one
LOCKED, FREE = fcntl.F_WRLCK, fcntl.F_UNLCK
OFD_GETLK = 36
TAKEN = "ranktrain evaluate: ck has been taken away"
cases = 0


class Evaluator:
    def __init__(self, *words, top="ck"):
        self.child = subprocess.Popen([*altering.EVALUATE, f"--model-dir={top}", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.said = []

    def hears(self):
        self.said.append(self.child.stdout.readline().rstrip("\n"))

    def told(self, signal_number):
        self.child.send_signal(signal_number)

    def ends(self):
        self.said += self.child.stdout.read().splitlines()
        self.child.stdout.close()
        return [*(" ".join(line.split()[:2]) if line.startswith("step") else line for line in self.said), self.child.wait()]


def same(what, have, want):
    global cases
    cases += 1
    if have != want:
        altering.otherwise(f"{what}: {have}", f"and not {want}")


def lands(c, step, top="ck"):
    """A checkpoint appears whole, as one that is saved does."""
    c.put("made", step, c.text(step))
    os.rename(os.path.join("made", altering.name_of(step)), os.path.join(top, altering.name_of(step)))


def waits_at(c, step, top="ck"):
    """One at whose manifest its reader waits."""
    c.put("made", step)
    os.mkfifo(os.path.join("made", altering.name_of(step), "manifest.json"))
    os.rename(os.path.join("made", altering.name_of(step)), os.path.join(top, altering.name_of(step)))


class Pipe:
    """Opened when the evaluator is there; what it reads next of that name, with the files, is a plain file."""

    def __init__(self, step, top="ck"):
        self.path = os.path.join(top, altering.name_of(step), "manifest.json")
        self.f = open(self.path, "w")

    def give(self, text, path=None):
        if path != "":
            altering.written(path or self.path, text.encode())
        self.f.write(text)
        self.f.close()


def lease_path(top="ck"):
    name, = [name for name in os.listdir(top) if name.startswith("evaluator-") and name.endswith(".lease")]
    return os.path.join(top, name)


def lease(top="ck"):
    """Of the only one: what it says, how long it is, and whether it is held."""
    with open(lease_path(top), "r+b") as f:
        text = f.read()
        got = fcntl.fcntl(f, OFD_GETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
    fields = json.loads(text)
    return fields["format"], fields["read"], fields["every"], len(text), text[-1:], struct.unpack_from("h", got)[0]


# ---- the cases ----

def comes_late(c):
    for what, top, make in (("at once", "ck", lambda: os.mkdir("ck")), ("below others", "a/b/ck", lambda: [os.mkdir(path) for path in ("a", "a/b", "a/b/ck")]),
                            ("with all above it", "a/b/ck", lambda: (os.makedirs("x/b/ck"), os.rename("x", "a"))), ("by a whole path", os.path.abspath("a/ck"), lambda: os.makedirs("a/ck")),
                            ("with a slash behind it", "a/ck/", lambda: os.makedirs("a/ck"))):
        e = Evaluator("--max-steps=2", top=top)
        make()
        for step in (1, 2):
            lands(c, step, top)
            e.hears()
        same(f"it comes {what}", e.ends(), ["step 1", "step 2", 0])
        same(f"it comes {what}, and what is left there", sorted(os.listdir(top)), ["step-00000001", "step-00000002"])
        for name in ("ck", "a"):
            shutil.rmtree(name, ignore_errors=True)
    os.mkdir("ck")
    lands(c, 2)
    e = Evaluator("--max-steps=4")
    e.hears()
    for name in ("other", ".step-00000003.round-0.pid-1", "step-3"):
        os.mkdir(os.path.join("ck", name))
    lands(c, 1)  # older than what was read
    lands(c, 4)
    e.hears()
    same("what is no checkpoint, and what is older, is passed over", e.ends(), ["step 2", "step 4", 0])
    shutil.rmtree("ck")


def goes_away(c):
    def replaced():
        os.rename("ck", "gone")
        os.mkdir("ck")
    def put_back():
        os.rename("ck", "gone")
        os.rename("gone", "ck")
    for what, make in (("moved and put back", put_back), ("moved", lambda: os.rename("ck", "gone")), ("removed", lambda: shutil.rmtree("ck")), ("replaced", replaced)):
        for words in ((), ("--interval=1",)):
            os.mkdir("ck")
            lands(c, 1)
            e = Evaluator(*words)
            e.hears()
            make()
            same(f"it is {what} {words}", e.ends(), ["step 1", TAKEN, 1])
            for name in ("ck", "gone"):
                shutil.rmtree(name, ignore_errors=True)
    os.makedirs("a/ck")
    lands(c, 1, "a/ck")
    e = Evaluator("--interval=1", top="a/ck")
    e.hears()
    os.rename("a", "b")
    same("what it lies in is moved", e.ends(), ["step 1", "ranktrain evaluate: a/ck has been taken away", 1])
    same("what it lies in is moved, and no lease is left there", os.listdir("b/ck"), ["step-00000001"])
    shutil.rmtree("b")


def holds(c):
    """Its lease, at each moment."""
    for every in (1, 2):
        os.mkdir("ck")
        first, second = every, 2 * every
        waits_at(c, first)
        e = Evaluator(f"--eval-freq={every}", f"--max-steps={3 * every}")
        pipe = Pipe(first)
        same("nothing is read", lease(), ("ranktrain-lease", -1, every, 256, b"\n", LOCKED))
        waits_at(c, second)
        pipe.give(c.text(first))
        pipe = Pipe(second)
        same("one is read", lease(), ("ranktrain-lease", first, every, 256, b"\n", LOCKED))
        os.utime(lease_path(), (1e9, 1e9))
        waits_at(c, 3 * every)
        pipe.give("no manifest")
        pipe = Pipe(3 * every)
        same("one cannot be read", lease(), ("ranktrain-lease", second, every, 256, b"\n", LOCKED))
        same("it was renewed", os.stat(lease_path()).st_mtime > 1.5e9, True)
        pipe.give(c.text(3 * every))
        same("it ends", e.ends(), [f"step {first}", f"ranktrain evaluate: ignored step {second} of ck: manifest.json: JSON: expected a value at byte 0", f"step {3 * every}", 0])
        same("it has left nothing", sorted(os.listdir("ck")), [altering.name_of(i * every) for i in (1, 2, 3)])
        shutil.rmtree("ck")


def is_told(c):
    """What happens while it is at one checkpoint."""
    for what, number, status in (("told to end", signal.SIGTERM, 0), ("killed", signal.SIGKILL, -signal.SIGKILL)):
        os.mkdir("ck")
        lands(c, 1)
        waits_at(c, 2)
        e = Evaluator()
        pipe = Pipe(2)
        e.told(number)
        if number == signal.SIGTERM:
            pipe.give(c.text(2))
        same(f"{what} at one", e.ends(), ["step 1", status])
        if number != signal.SIGTERM:
            pipe.f.close()
            same(f"{what}: its lease stays, and nobody holds it", lease(), ("ranktrain-lease", 1, 1, 256, b"\n", FREE))
        else:
            same(f"{what}: its lease is gone", sorted(os.listdir("ck")), ["step-00000001", "step-00000002"])
        shutil.rmtree("ck")
    os.mkdir("ck")
    lands(c, 1)
    e = Evaluator()
    e.hears()
    e.told(signal.SIGTERM)
    same("told to end where it waits", e.ends(), ["step 1", 0])
    same("told to end where it waits: its lease is gone", os.listdir("ck"), ["step-00000001"])
    shutil.rmtree("ck")


def meanwhile(c):
    os.mkdir("ck")
    waits_at(c, 2)
    e = Evaluator("--max-steps=5")
    pipe = Pipe(2)
    for step in (1, 4, 5, 3):
        lands(c, step)
    pipe.give(c.text(2))
    same("others have come meanwhile", e.ends(), ["step 2", "step 3", "step 4", "step 5", 0])
    shutil.rmtree("ck")
    for moved in (False, True):
        os.mkdir("ck")
        waits_at(c, 1)
        e = Evaluator("--max-steps=2")
        pipe = Pipe(1)
        for i in range(300):
            os.mkdir(os.path.join("ck", f"other-{i:0{i % 90 + 4}}"))
        if moved:
            os.rename("ck", "gone")
            os.rename("gone", "ck")
        for i in range(300):
            os.mkdir(os.path.join("ck", f"another-{i}"))
        if not moved:
            lands(c, 2)
        pipe.give(c.text(1))
        same("more has come meanwhile than is told at once", e.ends(), ["step 1", TAKEN, 1] if moved else ["step 1", "step 2", 0])
        shutil.rmtree("ck")
    os.mkdir("ck")
    waits_at(c, 1)
    e = Evaluator()
    pipe = Pipe(1)
    os.rename("ck", "gone")
    pipe.give(c.text(1), path="gone/step-00000001/manifest.json")
    same("it was moved meanwhile", e.ends(), ["step 1", TAKEN, 1])
    same("it was moved meanwhile, and no lease is left there", os.listdir("gone"), ["step-00000001"])
    shutil.rmtree("gone")
    os.mkdir("ck")
    waits_at(c, 1)
    e = Evaluator()
    pipe = Pipe(1)
    shutil.rmtree("ck")
    pipe.give(c.text(1), "")
    same("it was removed meanwhile", e.ends(), ["ranktrain evaluate: ignored step 1 of ck: manifest.json: No such file or directory", TAKEN, 1])


def saved(last, keep):
    """A job saves each step up to this one, and is done."""
    lines, status = altering.asked([*altering.TRAIN, "--checkpoint-dir=ck", f"--steps={last}", f"--checkpoint-keep={keep}"])
    if status:
        altering.otherwise(*lines)
    return sorted(int(name[5:]) for name in os.listdir("ck") if name.startswith("step-")), [name[:10] for name in os.listdir("ck") if not name.startswith("step-")]


def is_kept_for(c):
    """What a job keeps for one that reads, that has been killed, and when none is left."""
    for every, keep in ((1, 1), (2, 1), (3, 2), (1, 9)):
        at = 2 * every
        os.mkdir("ck")
        for step in range(1, at):
            lands(c, step)
        waits_at(c, at)
        e = Evaluator(f"--eval-freq={every}", f"--max-steps={(at + 2) // every * every}")
        pipe = Pipe(at)
        altering.written(pipe.path, c.text(at).encode())
        kept = [step for step in range(1, at + 3) if step > at + 2 - keep or (step > every and step % every == 0)]
        same(f"it has read {every}, wants each {every}th, and {keep} are to be kept", saved(at + 2, keep), (kept, ["evaluator-"]))
        pipe.give(c.text(at))
        same("it reads what was kept", e.ends(), [f"step {every}", *(f"step {step}" for step in kept if step >= at and step % every == 0), 0])
        same("it has ended", saved(at + 3, 1), ([at + 3], []))
        shutil.rmtree("ck")
    os.mkdir("ck")
    lands(c, 1)
    waits_at(c, 2)
    e = Evaluator()
    pipe = Pipe(2)
    altering.written(pipe.path, c.text(2).encode())
    e.told(signal.SIGKILL)
    e.ends()
    pipe.f.close()
    same("it was killed just now", saved(4, 1), ([2, 3, 4], ["evaluator-"]))
    os.utime(lease_path(), (1e9, 1e9))
    same("it was killed long ago", saved(5, 1), ([5], []))
    shutil.rmtree("ck")


def is_renewed(c):
    """While nothing comes it says that it lives, as often as it looks."""
    os.mkdir("ck")
    lands(c, 1)
    e = Evaluator("--interval=1", "--max-steps=2")
    e.hears()
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGIO])
    folder = os.open("ck", os.O_RDONLY)
    for _ in range(2):
        os.utime(lease_path(), (1e9, 1e9))
        fcntl.fcntl(folder, fcntl.F_NOTIFY, fcntl.DN_ATTRIB)
        same("its lease is touched", signal.sigtimedwait([signal.SIGIO], LONG) is not None, True)
    os.close(folder)
    lands(c, 2)
    same("it goes on", e.ends(), ["step 1", "step 2", 0])
    shutil.rmtree("ck")


def main():
    altering.settle()
    altering.computes = "\0"
    altering.make_data()
    c = altering.Checkpoint("of")
    signal.alarm(LONG * 2)
    for case in (comes_late, goes_away, holds, is_told, meanwhile, is_kept_for, is_renewed):
        case(c)
        if altering.others:
            break
    print(f"{cases} moments are as they must be" if not altering.others else f"{altering.others} were otherwise", flush=True)


if __name__ == "__main__":
    main()
