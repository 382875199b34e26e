"""Ways to start a launcher, of each of which every system call fails once; what it says then, whole, and how it ends is compared with a table.

A call is named by its way, its arguments without numbers, its place among those that are alike, and its errno. What was said otherwise now and then has a line for each, with
"? " before it. What is otherwise is tried again, three times in all. The table is of one C library and one strace on x86-64; WRITE=N lets each fail N times and writes it anew."""
import concurrent.futures
import os
import re
import socket

import failing
import trying
from failing import FAILS, Run
from trying import holds

TIMES = 3
CHANCE_OFTEN = "epoll_wait", "poll", "ppoll", "waitid", "rt_sigtimedwait"  # as often as others come: of these the first alone
CHANCE = [(re.compile(pattern), word) for pattern, word in (
    (r"\b(pid|process) \d+", r"\1 N"), (r'("time":)"[^"]*"', r"\1T"), (r"(?<=: )host (?!192)\S+:|(?<=\")host (?!192)\S+:", "host HOST:"), (r"\.rankrun-outcome\.\w{6}", ".rankrun-outcome.X"), (r"\b(port|fd) \d+", r"\1 N"), (r"\b\d+ ms\b", "N ms"), (r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "TIME"), (r"(?<![0-9a-f])[0-9a-f]{32}\b", "ID"), (r"store-127\.0\.0\.1-\d+", "store-PLACE"), (rf"\b{re.escape(socket.gethostname())}\b", "HOST"), (r"127\.0\.0\.1:\d+", "PLACE"),
    (r"\b(r|rankrun)_\w{8}\b", r"\1_X"), (r"\btried-\w+", "tried-X"))]


# How many arguments stand there before the system has filled in one: where others run beside it, strace shows the rest later.
ASKED = {"newfstatat": 2, "fstat": 1, "statfs": 1, "getsockname": 1, "prlimit64": 2, "uname": 0, "pipe2": 0, "socketpair": 3, "recvmsg": 1, "getdents64": 1, "statx": 4, "readlink": 1, "epoll_create1": 1,
         "accept4": 1}


def kind(name, rest):
    """Arguments without what is another each time, or is filled in by the system."""
    if name in ("read", "recvfrom", "clone", "clone3", *CHANCE_OFTEN):
        return "" if name.startswith("clone") else "N"
    words = re.split(r" = | <(?:unfinished|detached)| /\*", rest)[0].rstrip(" ,)")
    words = re.sub(r'"(?:[^"]*(/proc/\w+/|\.rankrun-outcome|/hosts$|/dev/null)[^"]*|(?:[^"\\]|\\.)*)"(\.\.\.)?', r'"\1"', words)
    words = ", ".join(words.split(", ")[:ASKED.get(name)])
    return re.sub(r"\{.*\}|\[\"\".*|\b(0x[0-9a-f]+|\d+)\b", "N", words)


def anyhow(said, place):
    text = said.replace(place.folder, "PLACE").replace(place.tmp, "TMP").replace(trying.rankrun(), "RANKRUN")
    for pattern, word in CHANCE:
        text = pattern.sub(word, text)
    return " | ".join(sorted(line.rstrip() for line in text.splitlines()))


class Table:
    """A file beside this one, and functions that let a Run begin and end: each returns the exit code, or None where it had to be ended. Of calls that
    are alike the first ones fail."""

    def __init__(self, name, most, *ways):
        self.path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
        self.most = most
        self.ways = {way.__name__: way for way in ways}

    def calls_of(self, way):
        """Each call to let fail, by its name in the table: (name, errno, which of them in its process)."""
        run, count, early, found, seen = Run(None), {}, {}, {}, {}
        code = self.ways[way](run)
        holds(f"{way}, of which nothing fails", code is not None, run.said)
        calls = run.calls()
        loaded = next((i for i, call in enumerate(calls) if call[1] == "munmap"), 0)
        first = calls[0][0]
        calls.sort(key=lambda call: (call[0] != first, int(call[0] or 0)))  # what runs beside each other comes in the order in which it began
        for i, (process, name, rest) in enumerate(calls):
            count[process, name] = count.get((process, name), 0) + 1
            if i <= loaded:
                early[name] = count[process, name]
            # Each process counts its own: as many as the loader has made are no other's alone.
            if i <= loaded or (count[process, name] <= early.get(name, 0) and name != "execve") or (name == "write" and rest[:2] in ("1,", "2,")) or "EPOLL_CTL_DEL" in rest:
                continue
            of = f"{'' if process == first else 'child '}{name}({kind(name, rest)})"
            seen[of] = seen.get(of, 0) + 1
            if seen[of] <= (1 if name in CHANCE_OFTEN else self.most):
                found.update({f"{of} {seen[of]} {error}": (name, error, count[process, name]) for error in FAILS.get(name, ())})
        run.place.nothing_left(run.said)
        run.place.fini()
        return found

    def outcome_of(self, way, failing_call):
        """What came of it, in a line."""
        run = Run(failing_call)
        try:
            code = self.ways[way](run)
            holds(f"{way}, of which {failing_call} fails, does not end, or dies", code is not None and not run.died(), (run.died(), run.said))
            if "[err] evsig" not in run.said:  # a library that ends the process at once: the others end when they notice
                run.place.nothing_left(run.said)
            return f"{code}: {anyhow(run.said, run.place)}"
        except SystemExit as e:
            return f"wrong: {anyhow(str(e), run.place)}"
        finally:
            run.place.end_all()
            run.place.fini()

    def read(self):
        known = {}
        with open(self.path) as f:
            for line in f.read().splitlines():
                if not line.startswith("#"):
                    of, _, came = line.removeprefix("? ").partition(" => ")
                    known.setdefault(of, set()).add(came)
        return known

    def differs(self, way, of, call, known):
        """What came of it otherwise each time, in words."""
        for _ in range(TIMES):
            came = self.outcome_of(way, call)
            if came in known.get(of, ()):
                return None
        return f"otherwise: {of} => {came}\n  and not: " + " or ".join(known.get(of, ["that it is made"]))

    def all_calls(self, pool):
        """Of each way those that no way of the same program before it has made."""
        ret = {}
        for way, calls in zip(self.ways, pool.map(self.calls_of, self.ways)):
            for of, call in calls.items():
                ret.setdefault((way.split("_")[0], of), (way, f"{way}: {of}", call))
        return list(ret.values())

    def write(self, pool, times):
        with open(self.path) as f:
            head = [line for line in f.read().splitlines() if line.startswith("#")]
        calls = self.all_calls(pool)
        came = list(pool.map(lambda one: (one[1], self.outcome_of(one[0], one[2])), calls * times))
        lines = []
        for _, of, _ in calls:
            all_ = {what for which, what in came if which == of}
            lines += [f"{'? ' if len(all_) > 1 else ''}{of} => {what}" for what in sorted(all_)]
        with open(self.path, "w") as f:
            f.write("\n".join([*head, *lines]) + "\n")

    def compare(self):
        with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0)) + 1) as pool:
            if os.environ.get("WRITE"):
                self.write(pool, int(os.environ["WRITE"]))
                return
            known, calls = self.read(), self.all_calls(pool)
            wrong = list(filter(None, pool.map(lambda one: self.differs(*one, known), calls)))
        made = {of for _, of, _ in calls}
        wrong += [f"otherwise: {of}: is not made any more" for of in known if of not in made]
        print("\n".join(wrong[:20] + [f"{len(calls) - len(wrong)} of {len(calls)} calls that failed are told as they were written down"]), flush=True)
        holds("of the system calls", not wrong, len(wrong))


def main(**chapters):
    """As a job: trying.main_once()."""
    why = failing.refused()
    if why:
        print(f"nothing can be traced here, so no call fails: {why}")
    trying.main_once({f"try_{name}": lambda place, table=table: why or table.compare() for name, table in chapters.items()})
