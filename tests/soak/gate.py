"""What `rankquake history gate` says of recorded runs of which nothing was changed (false alarms), and of the same
with the times of those that are judged made longer by a fifth (caught). Arguments: the trend file, rankquake, a scratch file, and
`all` where the machine was quiet: then nearly all that are slower must be caught, and not only of those that are judged.

in a row:    each ten runs that follow one another, against all before them
drawn:       ten drawn at random, against a hundred others
alternately: each other run of twenty in a row, against those between them
"""
import collections
import json
import random
import subprocess
import sys

RUNS, DRAWS = 10, 500
CAUGHT = 0.95  # of what was judged: the limit that `no slower` stands for
OF_ALL = 0.95  # on a quiet machine, where runs of both kinds lie side by side in time


def entries_of(path):
    with open(path) as f:
        return sorted((json.loads(line) for line in f), key=lambda e: e["time_ns"])


def as_judged(entry, factor):
    times = {name: value if name == "goodput" else value * factor for name, value in entry["measures"].items()}
    return {**entry, "commit": "new", "branch": "change", "measures": times}


def ask(rankquake, scratch, base, judged, factor):
    with open(scratch, "w") as f:
        for entry in base:
            f.write(json.dumps({**entry, "commit": "old", "branch": "main"}) + "\n")
        for entry in judged:
            f.write(json.dumps(as_judged(entry, factor)) + "\n")
    said = subprocess.run([rankquake, "history", "gate", "--commit", "new", "--file", scratch], capture_output=True, text=True)
    if said.returncode not in (0, 1, 2):
        sys.exit(f"gate ended with {said.returncode}: {said.stderr}{said.stdout}")
    return said.returncode, said.stdout


def in_a_row(v):
    for at in range(RUNS, len(v) - RUNS + 1):
        yield v[:at], v[at:at + RUNS]


def drawn(v):
    chance = random.Random(1)
    for _ in range(DRAWS):
        some = chance.sample(v, min(len(v), 11 * RUNS))
        yield some[RUNS:], some[:RUNS]


def alternately(v):
    for at in range(0, len(v) - 2 * RUNS + 1):
        yield v[at:at + 2 * RUNS:2], v[at + 1:at + 2 * RUNS:2]


def main(path, rankquake, scratch, quiet=None):
    v, wrong = entries_of(path), False
    calibrations = [e["calibration_ms"] for e in v]
    print(f"{len(v)} runs; the calibration took {min(calibrations):.2f} to {max(calibrations):.2f} ms")
    for name, design in (("in a row", in_a_row), ("drawn", drawn), ("alternately", alternately)):
        codes = {}
        for factor in (1.0, 1.2):
            codes[factor] = [ask(rankquake, scratch, base, judged, factor)[0] for base, judged in design(v)]
        n = len(codes[1.0])
        same, longer = collections.Counter(codes[1.0]), collections.Counter(codes[1.2])
        judged, told = n - same[2], n - longer[2]
        print(f"{name:12} of {n}: judged {100 * judged / n:.1f} %, false alarms {same[1]} ({100 * same[1] / max(judged, 1):.1f} % "
              f"of those); slower by 20 %: judged {100 * told / n:.1f} %, caught {longer[1]} ({100 * longer[1] / max(told, 1):.1f} % "
              f"of those, {100 * longer[1] / n:.1f} % of all), cleared {longer[0]}")
        if same[1] > judged / 100:
            print(f"{name}: more than 1 % of what was judged are false alarms")
            wrong = True
        if not told or longer[1] < told * CAUGHT:
            print(f"{name}: of what was judged less than {100 * CAUGHT:.0f} % of those that are slower by 20 % were caught")
            wrong = True
        if quiet and design is not in_a_row and longer[1] < n * OF_ALL:
            print(f"{name}: of all that are slower by 20 % less than {100 * OF_ALL:.0f} % were caught, on a machine that was quiet")
            wrong = True
    return wrong


sys.exit(main(*sys.argv[1:]))
