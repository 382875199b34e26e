"""Lines that a program has noted, against those of its record: says what differs, and ends with 1 where anything does. With WRITE=1 in the environment the
record is written anew first, to be read before it is believed; with SHOW=1 each line is shown as it comes. Of the standard library alone."""
import difflib
import os
import sys

lines = []


def note(*words):
    lines.append(" ".join(str(w) for w in words))
    if os.environ.get("SHOW"):
        print(lines[-1], flush=True)


def settle(record):
    if os.environ.get("WRITE"):
        with open(record, "w") as f:
            f.write("\n".join(lines) + "\n")
    with open(record) as f:
        wanted = f.read().splitlines()
    for line in difflib.unified_diff(wanted, lines, "as it must be", "as it is", lineterm=""):
        print("answered otherwise:", line)
    if wanted == lines:
        print(f"{len(lines)} lines were answered as they must be")
    sys.exit(wanted != lines)
