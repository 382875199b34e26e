"""Stands between two ranks that train, in each mode, and changes one bit of the head of one message on its way: of each message once, in a training of its own. Who
gets it says so and ends, in whichever exchange it was, and so does the other; what each says and ends with is compared with changed.txt.

Usage: changed.py, in an empty directory; WRITE=1 writes it down. What is otherwise is a line that begins with "otherwise: "."""
import os
import re
import shutil
import struct

import strangers

TABLE = os.path.join(strangers.HERE, "changed.txt")
HEAD, PHASE_BITS = 16, 24
RINGS, PAIRS = ("ring of 0 next out", "ring of 1 next out"), ("ring of 1 pair out", "ring of 1 pair back")
SPARSE = 40000  # bytes: no message of a pair is shorter
SAVES = "--checkpoint-dir=ck", "--checkpoint-every=1"
# Each computes a step, saves it where there is a directory, and classifies. Of those that share one nothing passes when they save.
MODES = ((), ("--overlap",), ("--mode=manual",), ("--mode=zero", "--optimizer=adam"), ("--mode=fsdp",), ("--mode=ps",), ("--mode=ps", "--ps-async"), SAVES, ("--mode=zero", *SAVES),
         ("--mode=fsdp", "--checkpoint-sharded", *SAVES), ("--mode=ps", *SAVES), ("--mode=ps", "--ps-async", *SAVES))


class Between(strangers.Between):
    """Keeps what has passed."""

    def __init__(self, *more, **how):
        self.came = {}
        for place in "host-0", "host-1":
            shutil.rmtree(place, ignore_errors=True)
            os.mkdir(place)
        super().__init__("--steps=1", *more, cwd=("host-0", "host-1"), **how)

    def first(self, name, data):
        with self.lock:
            self.came[name] = self.came.get(name, b"") + data
        return super().first(name, data)


def heads(name, stream):
    """Where messages begin, by their numbers: that of a collective, and a phase of it."""
    if name in PAIRS:
        return list(range(0, len(stream), SPARSE))
    ret, at = [], 0
    while at >= 0 and len(stream) >= HEAD:
        ret.append(at)
        number = struct.unpack_from("<Q", stream, at)[0]
        call = number >> PHASE_BITS
        next_numbers = [number + 1] + [(call + i) << PHASE_BITS | phase for i in range(1, 9) for phase in (0, 1)]
        found = [stream.find(struct.pack("<Q", each), at + HEAD) for each in next_numbers]
        at = min((i for i in found if i >= 0), default=-1)
    return ret


def said_of(between):
    """How each rank ended, without the step at which the other was missed: that depends on which of its messages were under way."""
    del strangers.lines[:]
    between.end("")
    said = [line.strip() for line in strangers.lines[1:]]
    return [re.sub(r"step \d+: (?=.* is gone: )", "", line) for line in said]


def change_each(more):
    """Undisturbed, and with each message changed."""
    between = Between(*more)
    ret = [f"undisturbed, {' '.join(more)}", *said_of(between)]
    for name in RINGS + PAIRS:
        for i, at in enumerate(heads(name, between.came.get(name, b""))):
            ret += [f"{' '.join(more)}: {name}, message {i + 1}", *(f"  {line}" for line in said_of(Between(*more, where=name, at=at, how="changed")))]
    return ret


def main():
    strangers.alone()
    now = [line for more in MODES for line in change_each(more)]
    strangers.lines[:] = now
    if strangers.compare(TABLE):
        print("each message is looked at", flush=True)


if __name__ == "__main__":
    main()
