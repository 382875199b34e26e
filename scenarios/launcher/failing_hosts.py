"""A job whose last rank lets each system call of one command for many hosts fail once, of what stands at their other end, and of those that ask how a
job is, or tell how it ended. What each says then, whole, and how it ends is compared with a table. Usage: failing_hosts.py STEPS failing; without a job, of the
rankrun in the PATH: failing_hosts.py alone failing; WRITE=N lets each fail N times and writes the table anew.

A call is named by its way, its arguments without numbers, its place among those that are alike, and its errno. What was said otherwise now and then has a line for each, with
"? " before it. What is otherwise is tried again, three times in all. The table is of one C library and one strace on x86-64."""
import concurrent.futures
import os
import re
import shutil
import sys

import failing
import playing
import trying
from failing import FAILS, Run
from trying import holds

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "failing-hosts.txt")
TIMES, MOST = 3, 3
UNTIL_EXEC = "-f", "--detach-on=execve"
CHANCE_OFTEN = "epoll_wait", "poll", "ppoll", "waitid", "rt_sigtimedwait"  # as often as others come: of these the first alone
HOST = "--hosts=192.0.2.1"
HOSTS = "--hosts=192.0.2.1,192.0.2.2", "--ssh=./far", "--everywhere", "sh", "-c"
JOB = ('cur={"inc":"1","min":1,"max":3,"max_restarts":5,"hb_ns":500000000}', '1/m/a={"node":"na","addr":"1.1.1.1","slots":2,"role":"ro"}', '1/s/a={"seq":1}',
       'watch', '+1/s/a={"seq":2}')
CHANCE = [(re.compile(pattern), word) for pattern, word in (
    (r"\b(pid|process) \d+", r"\1 N"), (r'("time":)"[^"]*"', r"\1T"), (r"(?<=: )host (?!192)\S+:|(?<=\")host (?!192)\S+:", "host HOST:"), (r"\.rankrun-outcome\.\w{6}", ".rankrun-outcome.X"), (r"\b(port|fd) \d+", r"\1 N"), (r"\bafter \d+ ms", "after N ms"), (r"127\.0\.0\.1:\d+", "PLACE"),
    (r"\brankrun_\w{8}\b", "rankrun_X"), (r"\btried-\w+", "tried-X"))]


# ---- the ways ----


def far(run, text="shift; exec RANKRUN ${1##*rankrun\\' }"):
    """What stands for ssh."""
    run.place.program("#!/bin/sh\n" + text.replace("RANKRUN", trying.rankrun()) + "\n", name="far")


def fleet(run):
    far(run)
    return run.ended(run.begin(HOST, *HOSTS[1:], "echo out", before=run.traced(*UNTIL_EXEC)))


def fleet_fails(run):
    far(run)
    return run.ended(run.begin(*HOSTS, "exit 3", before=run.traced(*UNTIL_EXEC)))


def fleet_told(run):
    far(run)
    by = ["sh", "-c", 'export AGENT=$$; exec "$@"', "told", *run.traced("-D", *UNTIL_EXEC)]
    return run.ended(run.begin(HOST, *HOSTS[1:], "kill -TERM $AGENT; exec sleep 30", before=by))


def fleet_here(run):
    return run.ended(run.begin("--hosts=127.0.0.1", "--rdzv-id=r", "sh", "-c", "echo $RANK", before=run.traced(*UNTIL_EXEC)))


def fleet_by_file(run):
    with open(run.place.inside("hosts"), "w") as f:
        f.write("192.0.2.1 slots=2\n")
    far(run, "head -c 160 >/dev/null")
    return run.ended(run.begin("--hostfile=hosts", "--ssh=./far", "--rdzv-id=r", "true", before=run.traced(*UNTIL_EXEC)))


def traced_far(run, text):
    words = " ".join(f"'{word}'" for word in run.traced(*UNTIL_EXEC))
    far(run, text.replace("TRACED", words))


def other_end(run):
    traced_far(run, "exec TRACED RANKRUN remote")
    return run.ended(run.begin(HOST, *HOSTS[1:], "echo out; exit 3"))


def other_end_of_agent(run):
    traced_far(run, "exec TRACED RANKRUN remote --log-format=json")
    return run.ended(run.begin(HOST, "--ssh=./far", "--rdzv-id=r", "--rdzv-endpoint=127.0.0.1:0", "sh", "-c", "echo out; exit 3"))


def outcome(run):
    return run.ended(run.begin("outcome", "sh", "-c", 'echo 3 >"$RANKRUN_OUTCOME"; exit 5', before=run.traced(*UNTIL_EXEC)))


def status(run, who=playing.Keys(JOB), backend="embedded"):
    player = playing.Player()
    player.who = who
    code = run.ended(run.begin("status", "--rdzv-id=r", f"--rdzv-backend={backend}", f"--rdzv-endpoint={player.place}", before=run.traced()))
    player.shutdown()
    player.server_close()
    return code


def status_of_tree(run):
    return status(run, playing.Tree(['active_version={"status":"setup"}']), "etcd")


WAYS = {way.__name__: way for way in (fleet, fleet_fails, fleet_told, fleet_here, fleet_by_file, other_end, other_end_of_agent, outcome, status, status_of_tree)}


# ---- their calls ----


def kind(name, rest):
    """Arguments without what is another each time, or is filled in by the system, which may stand there later."""
    if name in ("read", "recvfrom", "clone", *CHANCE_OFTEN):
        return "" if name == "clone" else "N"
    words = re.split(r" = | <(?:unfinished|detached)| /\*", rest)[0].rstrip(" )")
    words = re.sub(r'"(?:[^"]*(/proc/\w+/|\.rankrun-outcome|/hosts$|/dev/null)[^"]*|(?:[^"\\]|\\.)*)"(\.\.\.)?', r'"\1"', words)
    return re.sub(r"\{.*\}|\[\"\".*|\b(0x[0-9a-f]+|\d+)\b", "N", words)


def calls_of(way):
    """Each call to let fail, by its name in the table: (name, errno, which of them in its process)."""
    run, count, found, seen = Run(None), {}, {}, {}
    code = WAYS[way](run)
    holds(f"{way}, of which nothing fails", code is not None, run.said)
    calls = run.calls()
    loaded = next((i for i, call in enumerate(calls) if call[1] == "munmap"), 0)
    for i, (process, name, rest) in enumerate(calls):
        count[process, name] = count.get((process, name), 0) + 1
        if i <= loaded or (name == "write" and rest[:2] in ("1,", "2,")) or "EPOLL_CTL_DEL" in rest:
            continue
        of = f"{'' if process == calls[0][0] else 'child '}{name}({kind(name, rest)})"
        seen[of] = seen.get(of, 0) + 1
        if seen[of] <= (1 if name in CHANCE_OFTEN else MOST):
            found.update({f"{of} {seen[of]} {error}": (name, error, count[process, name]) for error in FAILS.get(name, ())})
    run.place.nothing_left(run.said)
    run.place.fini()
    return found


def anyhow(said, place):
    text = said.replace(place.folder, "PLACE").replace(place.tmp, "TMP").replace(trying.rankrun(), "RANKRUN")
    for pattern, word in CHANCE:
        text = pattern.sub(word, text)
    return " | ".join(sorted(line.rstrip() for line in text.splitlines()))


def outcome_of(way, failing_call):
    """What came of it, in a line."""
    run = Run(failing_call)
    try:
        code = WAYS[way](run)
        holds(f"{way}, of which {failing_call} fails, does not end, or dies", code is not None and not run.died(), (run.died(), run.said))
        if "[err] evsig" not in run.said:  # a library that ends the process at once: the others end when they notice
            run.place.nothing_left(run.said)
        return f"{code}: {anyhow(run.said, run.place)}"
    except SystemExit as e:
        return f"wrong: {e}"
    finally:
        run.end_all()
        run.place.fini()


# ---- the table ----


def read_table():
    known = {}
    with open(TABLE) as f:
        for line in f.read().splitlines():
            if not line.startswith("#"):
                of, _, came = line.removeprefix("? ").partition(" => ")
                known.setdefault(of, set()).add(came)
    return known


def differs(way, of, call, known):
    """What came of it otherwise each time, in words."""
    for _ in range(TIMES):
        came = outcome_of(way, call)
        if came in known.get(of, ()):
            return None
    return f"otherwise: {of} => {came}\n  and not: " + " or ".join(known.get(of, ["that it is made"]))


def all_calls(pool):
    """Of each way those that no way of the same program before it has made."""
    ret = {}
    for way, calls in zip(WAYS, pool.map(calls_of, WAYS)):
        for of, call in calls.items():
            ret.setdefault((way.split("_")[0], of), (way, f"{way}: {of}", call))
    return list(ret.values())


def write(pool, times):
    with open(TABLE) as f:
        head = [line for line in f.read().splitlines() if line.startswith("#")]
    calls = all_calls(pool)
    came = list(pool.map(lambda one: (one[1], outcome_of(one[0], one[2])), calls * times))
    lines = []
    for _, of, _ in calls:
        all_ = {what for which, what in came if which == of}
        lines += [f"{'? ' if len(all_) > 1 else ''}{of} => {what}" for what in sorted(all_)]
    with open(TABLE, "w") as f:
        f.write("\n".join([*head, *lines]) + "\n")


def try_failing(place):
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0)) + 1) as pool:
        if os.environ.get("WRITE"):
            return write(pool, int(os.environ["WRITE"]))
        known, calls = read_table(), all_calls(pool)
        wrong = list(filter(None, pool.map(lambda one: differs(*one, known), calls)))
    wrong += [f"otherwise: {of}: is not made any more" for of in known if of not in {of for _, of, _ in calls}]
    print("\n".join(wrong[:20] + [f"{len(calls) - len(wrong)} of {len(calls)} calls that failed are told as they were written down"]), flush=True)
    holds("of the system calls", not wrong, len(wrong))
    return None


if __name__ == "__main__":
    why = failing.refused()
    if why:
        print(f"nothing can be traced here, so no call fails: {why}")
    trying.main({"try_failing": lambda place: None} if why else globals())
