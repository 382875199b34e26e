"""The other end of a node helper, for carrier.sh: says what a harness would, and what none would, to the helper that a
command reaches, and tells what is wrong with its answers. Usage: carrier.py RUN LIBRARY COMMAND...,
where LIBRARY is a folder of the helper's host with rankprobe, rankquake_clock.so and rankquake.py."""
import base64, json, os, shutil, signal, subprocess, sys, time

import other_end
from other_end import DEADLINE_S, check, wrong

run, library, command = sys.argv[1], sys.argv[2], sys.argv[3:]


class Helper(other_end.Helper):
    def __init__(self, more=(), hello=True):
        super().__init__(command + list(more), run, hello)

    def start(self, *argv):
        return super().start(*argv, env=("GREETING=hello", "PYTHONPATH=" + library))


def refusals():
    for text, says in ((b"Last login: today\n", "Last login: today"), (b"\0\0\0\x03[1]", "no object"),
                       (b"\0\0\0\x02{]", "cannot be read"), (b"\xff\xff\xff\xff", "no message"), (b"\0\0\0\0", "no message")):
        h = Helper()
        h.raw(text)
        check(says in h.wait("broken").get("error", ""), f"{text!r}: {h.heard}")
        check(h.process.wait(DEADLINE_S) == 0, f"{text!r}: it did not end")
    for message, says in (({"op": "fly"}, '"fly" which nobody understands'), ({"op": "run"}, '"run" before setup'),
                          ({"op": "hello", "version": 7}, "version 7"),
                          ({"op": "setup", "isolation": "processes"}, "does not say which run")):
        h = Helper()
        h.say(**message)
        check(says in h.wait("broken").get("error", ""), f"{message}: {h.heard}")
    h = Helper(hello=False)
    h.say(op="inventory")
    check("before it said hello" in h.wait("broken").get("error", ""), f"before hello: {h.heard}")


def a_program():
    h = Helper()
    check(h.hello.get("version") == 2 and len(h.hello.get("boot_id", "")) == 36 and h.hello.get("host"), f"{h.hello}")
    check({"adoption", "pidfds"} <= set(h.hello.get("can", [])), f"{h.hello}")
    check("descriptors" not in h.hello.get("can", []), "it takes descriptors, on another host")
    h.setup()
    h.wait("ready")
    started = h.start("sh", "-c", 'printf "$GREETING \\377\\n"; sed s/^/x/ /proc/self/cmdline; echo last >&2; exit 7')
    check(started.get("pid", 0) > 1 and started.get("start", 0) > 0, f"{started}")
    exited = h.wait("exited")
    check(os.waitstatus_to_exitcode(exited.get("status", 0)) == 7, f"{exited}")
    said = b"".join(base64.b64decode(m["bytes"]) for m in h.heard if m["op"] == "output")
    check(said.startswith(b"hello \xff\n") and said.endswith(b"last\n"), f"it printed {said!r}")
    stamps = [m["t"] for m in h.heard]
    check(stamps == sorted(stamps), f"stamps go back: {stamps}")
    found = h.wait("leftovers").get("found", {})
    check(found.get("processes") == [], f"{found}")

    started = h.start("sleep", "1000")
    h.say(op="signal", token=5, pid=started["pid"], start=started["start"] + 1, signo=15)
    answer = h.wait("signalled")
    check("has ended" in (answer.get("error") or "") and answer.get("token") == 5, f"another process was struck: {answer}")
    h.say(op="signal", token=6, pid=started["pid"], start=started["start"], signo=15)
    check(h.wait("signalled").get("error") is None, f"{h.heard[-1]}")
    check(h.wait("exited").get("status") == signal.SIGTERM, f"{h.heard[-1]}")

    h.say(op="run", argv=["no-such-program"], env=["PATH=/bin"], cwd="/")
    check("no-such-program" in h.wait("failed").get("why", ""), f"{h.heard[-1]}")
    started = h.start("sh", "-c", "head -c 30000000 /dev/zero; exit 0")
    check(h.wait("exited").get("status") == 0, "a program that prints much did not end")
    zeros = sum(len(base64.b64decode(m["bytes"])) for m in h.heard[h.heard.index(started):] if m["op"] == "output")
    check(zeros == 30000000, f"{zeros} of 30000000 bytes came")
    check(h.end().get("left") == [], f"{h.heard[-1]}")


def files():
    h = Helper()
    h.say(op="file", token=1, do="read", path="/proc/self/status")
    check(b"rankquake-node" in base64.b64decode(h.wait("file").get("bytes", "")), "/proc is not read")
    h.say(op="file", token=2, do="tail", path="/etc/passwd", max=10)
    tail = h.wait("file")
    with open("/etc/passwd", "rb") as passwd:
        check(base64.b64decode(tail.get("bytes", "")) == passwd.read()[-10:], f"{tail}")
    check(tail.get("at") == tail.get("size", 0) - 10, f"{tail}")
    h.say(op="file", token=3, do="list", path="/proc/self/task")
    entries = h.wait("file").get("entries", [])
    check([e["kind"] for e in entries] == ["directory"], f"{entries}")
    for path, do, says in (("etc/passwd", "read", "whole path"), ("/nowhere/at/all", "read", "/nowhere/at/all"),
                           ("/dev/zero", "read", "/dev/zero"), ("/etc/passwd", "eat", '"eat"'), ("/etc/passwd", "list", "/etc/passwd")):
        h.say(op="file", token=4, do=do, path=path)
        check(says in h.wait("file").get("error", ""), f"{path}: {h.heard[-1]}")
    h.say(op="inventory")
    i = h.wait("inventory")
    check(i.get("cpus", 0) >= 1 and i.get("memory", 0) > 1 << 20 and i.get("free", 0) > 0 and i.get("kernel"), f"{i}")
    h.say(op="clock", t1=17)
    c = h.wait("clock")
    check(c.get("t1") == 17 and 0 < c.get("t2", 0) <= c.get("t3", 0), f"{c}")
    h.end()


JOB = """import os, sys, rankquake
with rankquake.Client() as q:
    for step in range(1, 7):
        q.step(step, loss=0.5)
        print(step, flush=True)
os.kill(os.getpid(), 9)
"""


def events():
    """What a job says, held at a step until the harness lets it go on; and a worker seen to its end."""
    h = Helper()
    h.setup(probe=library + "/rankprobe")
    h.wait("ready")
    h.say(op="arm", kinds=1 << 2, next_step=3)
    started = h.start(library + "/rankprobe", "python3", "-c", JOB)
    client = h.wait("client")
    check(client.get("probe") is True and client.get("pid") == started.get("pid") and client.get("start") == started["start"],
          f"{client} of {started}")
    said = json.loads(h.wait("record").get("text", "{}"))
    check(said.get("kind") == "worker-start" and said.get("pid") == client["pid"], f"{said}")
    gone = h.wait("gone")
    check(gone.get("id") == client["id"] and gone.get("image") == "other", f"{gone}")
    job = h.wait("client")
    check(job.get("probe") is False and job.get("pid") == client["pid"], f"{job}")
    steps = []
    while not steps or "armed" not in steps[-1]:
        steps.append(json.loads(h.wait("record").get("text", "{\"armed\": 0}")))
    check([s.get("step") for s in steps] == [1, 2, 3], f"held at {steps}")
    h.say(op="release", id=job["id"] + 1000)  # somebody else
    h.say(op="clock", t1=1)
    h.wait("clock")
    check(h.read(0.3) is None or h.heard[-1]["op"] == "output", f"it went on by itself: {h.heard[-1]}")
    h.say(op="arm", kinds=1 << 2, next_step=5)
    h.say(op="release", id=job["id"])
    while not steps or steps[-1].get("step") != 5:
        steps.append(json.loads(h.wait("record").get("text", "{\"step\": 5}")))
    check("armed" not in steps[3] and "armed" in steps[4], f"held at {steps}")
    h.say(op="arm", kinds=0, next_step=0)
    h.say(op="release", id=job["id"])
    ended = h.wait("ended")
    last = [json.loads(m["text"]) for m in h.heard if m["op"] == "record"][-1]
    check(last.get("step") == 6, f"its last words came after its end, or never: {last}")
    check(ended.get("pid") == client["pid"] and ended.get("start") == client["start"] and ended.get("status") == 9, f"{ended}")
    h.wait("exited")
    h.end()

    h = Helper(["--dead-man", "1s"])  # silence lets go on who waits
    h.setup(probe=library + "/rankprobe")
    h.wait("ready")
    h.say(op="arm", kinds=1 << 2, next_step=1)
    h.start("python3", "-c", JOB.replace("os.kill", "print"))
    while h.wait("record") and "armed" not in json.loads(h.heard[-1]["text"]):
        pass
    h.wait("healed")
    h.wait("bye")
    check("step" in h.heard[-1].get("text", "step"), f"{h.heard[-1]}")


CALLS = "cd /tmp; d=$(mktemp -d); cd $d; echo 12345 >a; mv a b; mv b save.bin; sync save.bin; mv save.bin c; rm c; cd /; rmdir $d"


def calls():
    """System calls that wait: those that the harness wants and no others, until it lets them go on, or is silent."""
    rename, fsync = 8, 74 if os.uname().machine == "x86_64" else 82
    wants = [{"number": -1, "kind": rename, "like": "save.*"}, {"number": fsync}]
    h = Helper()
    h.setup(watch=rename, calls=[fsync])
    h.wait("ready")
    h.say(op="arm", kinds=0, next_step=0, calls=wants)
    started = h.start("sh", "-c", CALLS)
    seen = []
    for _ in range(3):
        seen.append(h.wait("called"))
        h.say(op="pass", call=seen[-1].get("call", 0) + 1)  # another one
        h.say(op="clock", t1=1)
        h.wait("clock")
        check(h.read(0.3) is None, f"it went on by itself: {h.heard[-1]}")
        h.say(op="pass", call=seen[-1].get("call", 0))
    names = [tuple(os.path.basename(m.get(k, "")) for k in ("from", "to")) for m in seen]
    check(names == [("b", "save.bin"), ("", ""), ("save.bin", "c")], f"{names}")
    check([m.get("bytes") for m in seen] == [6, -1, 6] and seen[1].get("number") == fsync, f"{seen}")
    check(all(started["pid"] in [p["pid"] for p in m["above"]] for m in seen), f"{started}: {seen}")
    check(h.wait("exited").get("status") == 0, f"{h.heard[-1]}")
    h.say(op="arm", kinds=0, next_step=0)  # nothing any more
    h.start("sh", "-c", CALLS)
    check(h.wait("exited").get("status") == 0 and h.heard[-1]["t"] > 0, f"{h.heard[-1]}")
    check([m["op"] for m in h.heard].count("called") == 3, "what nobody waits for was told")
    h.end()

    h = Helper(["--dead-man", "1s"])  # silence lets go on who waits
    h.setup(watch=rename)
    h.wait("ready")
    h.say(op="arm", kinds=0, next_step=0, calls=wants)
    h.start("sh", "-c", CALLS)
    h.wait("called")
    h.wait("healed")
    h.wait("bye")


SYNCS = "mkdir -p /tmp/{0}; cd /tmp/{0}; echo >a; for i in 1 2 3; do sync a 2>/dev/null && echo $i; done; rm a; cd /; rmdir /tmp/{0}"


def disks():
    """What the program does to a disk fails from the n-th time on, hangs, and goes on when that is undone, or the harness is silent."""
    fsync = 74 if os.uname().machine == "x86_64" else 82
    name = f"carrier-disk-{os.getpid()}-{os.urandom(4).hex()}"
    args = {"op": "fsync", "path": "{shared}/" + name + "/*"}

    def order(h, fault, recover=False, **more):
        h.say(op="fault", token=5, fault=fault, kind=1, name="n0", recover=recover, args={**args, **more})
        check(h.wait("injected").get("error") is None, f"{fault}: {h.heard[-1]}")

    def synced(h):
        started = h.start("sh", "-c", SYNCS.format(name))
        h.wait("exited")
        return b"".join(base64.b64decode(m["bytes"]) for m in h.heard[h.heard.index(started):] if m["op"] == "output").split()

    h = Helper()
    h.setup(calls=[fsync], shared="/tmp", disk="/nowhere")
    h.wait("ready")
    order(h, "disk-error", nth="2", times="1")
    order(h, "disk-error", path="{disk}/*")
    check(synced(h) == [b"1", b"3"], f"{h.heard}")
    struck = [m for m in h.heard if m["op"] == "struck"]
    check([(m["verdict"], m["does"], m["path"], m["errno"]) for m in struck] == [("failed", "fsync", f"/tmp/{name}/a", 5)], f"{struck}")
    check(struck and struck[0]["pid"] > 1 and struck[0]["t"] > 0, f"{struck}")
    order(h, "disk-error", recover=True, nth="2", times="1")
    check(synced(h) == [b"1", b"2", b"3"], f"{h.heard}")
    check([m["op"] for m in h.heard].count("struck") == 1, "what was undone strikes")
    left = h.end().get("rules", [])
    check([r.get("root") for r in left] == ["/nowhere"], f"{left}")

    h = Helper(["--dead-man", "1s"])
    h.setup(calls=[fsync], shared="/tmp", disk="/nowhere")
    h.wait("ready")
    order(h, "disk-stuck")
    h.start("sh", "-c", SYNCS.format(name))
    check(h.wait("struck").get("verdict") == "stuck", f"{h.heard[-1]}")
    undone = h.wait("healed").get("undone", [])
    check({"fault": "disk-stuck", "name": "n0", "error": None} in undone, f"{undone}")
    check(h.wait("bye").get("rules") == [], f"{h.heard[-1]}")
    h.process.wait(DEADLINE_S)
    shutil.rmtree(f"/tmp/{name}", ignore_errors=True)


def given_and_dumps():
    """What a worker was given, by marks that a key makes alike; what all processes are doing."""
    marks = []
    for key in ("0" * 32, "0" * 32, "1" * 32, "nonsense"):
        h = Helper()
        h.setup(probe=library + "/rankprobe", given=key)
        h.wait("ready")
        started = h.start(library + "/rankprobe", "sh", "-c", "exec sleep 1000")
        h.wait("gone")
        found = [m for m in h.heard if m["op"] == "given"]
        check(len(found) == (0 if key == "nonsense" else 2), f"{key}: {found}")
        if found:
            planned, own = found[0], found[1]
            check(h.heard.index(planned) < h.heard.index(started), "what a program is given was told after its start")
            check("pid" not in planned and own.get("pid") == started["pid"] and own.get("start") == started["start"], f"{own}")
            a, b = planned["given"], own["given"]
            check(a["env"]["GREETING"] == b["env"]["GREETING"] and a["cwd"] == b["cwd"] == "/", f"{a} {b}")
            check(a["limits"] == b["limits"] and a["umask"] == b["umask"] and [f[0] for f in b["fds"]] == [0, 1, 2], f"{a} {b}")
            marks.append(b["env"]["GREETING"])
        comm, until = b"", time.monotonic() + DEADLINE_S
        while comm != b"sleep\n" and time.monotonic() < until:
            h.say(op="file", token=1, do="read", path=f"/proc/{started['pid']}/comm")
            comm = base64.b64decode(h.wait("file").get("bytes", ""))
        h.say(op="dump", budget=60000000000)
        h.say(op="dump", budget=60000000000)  # one at a time
        over = h.wait("dumped")
        while over and not over.get("done"):
            over = h.wait("dumped")
        texts = {m["pid"]: (m["name"], base64.b64decode(m["bytes"])) for m in h.heard if m["op"] == "dumped" and not m.get("done")}
        check(over.get("error") is None and set(texts) == {h.hello["pid"], started["pid"]}, f"{over} {texts}")
        check(texts[h.hello["pid"]][0] == "node" and texts[started["pid"]][0] == "sleep", f"{texts}")
        check(b"nanosleep" in texts[started["pid"]][1] and b"  0    /dev/null" in texts[started["pid"]][1], f"{texts}")
        h.end()
    check(len(marks) == 3 and marks[0] == marks[1] != marks[2], f"{marks}")


def pages(helper, of):
    """Of the clock of that helper, on the host of this one."""
    helper.say(op="file", token=1, do="list", path=f"/var/tmp/rankquake-{helper.hello['uid']}")
    return [e["name"] for e in helper.wait("file").get("entries", []) if ".clock." in e["name"] and f".{of.hello['pid']}." in e["name"]]


def shift(helper, fault, recover=False, **args):
    helper.say(op="fault", token=8, fault=fault, recover=recover, kind=1, name="n0", args=args)
    return helper.wait("injected")


TELLS = "while :; do date +%s; read x <gate; done"


def clocks():
    """A wall clock that is wrong for the program of a host, until it is right again; who was told is told."""
    h = Helper()
    h.say(op="preload", programs="/nowhere")
    check("/nowhere/rankquake_clock.so" in (h.wait("preload").get("error") or ""), f"{h.heard[-1]}")
    h.say(op="preload", programs=library)
    check(h.wait("preload").get("error", "none") is None and not pages(h, h), f"{h.heard[-1]}")
    h.setup(clock=library)
    h.wait("ready")
    check(len(pages(h, h)) == 1, "it has made no page")
    where = f"/tmp/carrier-clock-{os.getpid()}-{time.monotonic_ns()}"
    h.start("sh", "-c", f"mkdir {where} && cd {where} && mkfifo gate && trap 'rm -r {where}; exit 0' TERM && {TELLS}")

    def told():  # by how much what it prints is ahead
        return round(int(base64.b64decode(h.wait("output").get("bytes", "MA=="))) - time.time())

    def again():
        helper = Helper()
        helper.setup()
        helper.wait("ready")
        helper.start("sh", "-c", f"echo >{where}/gate")
        helper.wait("exited")
        helper.end()
        return told()

    check(abs(told()) < 60, "it is wrong from the beginning")
    answer = shift(h, "clock-jump", by="-1h")
    clock = answer.get("clock", {})
    check(answer.get("error", "none") is None and clock.get("by") == -3600000000000 and "program" not in clock, f"{answer}")
    check("by an earlier fault" in (shift(h, "clock-drift", rate="2").get("error") or ""), f"{h.heard[-1]}")
    check(abs(again() + 3600) < 60, "an hour back: it has not been told so")
    h.say(op="look", pid=0, start=0)
    clock = h.wait("look").get("clock", {})
    first = clock.get("first", [0, 0])
    check(clock.get("program") == "date" and first[1] - first[0] == -3600000000000 and first[0] >= clock["since"], f"{clock}")
    answer = shift(h, "clock-jump", recover=True, by="-1h")
    check(answer.get("error", "none") is None and answer.get("clock", {}).get("first") == first, f"what was told until then: {answer}")
    check(abs(again()) < 60, "it is not right again")
    h.say(op="look", pid=0, start=0)
    check("clock" not in h.wait("look"), f"{h.heard[-1]}")
    check(h.end().get("left") == [], f"{h.heard[-1]}")

    h = Helper()  # where nothing moves clocks
    h.setup()
    h.wait("ready")
    check(not pages(h, h) and "no clock of their own" in (shift(h, "clock-jump").get("error") or ""), f"{h.heard[-1]}")
    h.end()


def uptimes():
    """What a program takes its host for being on, where the helper is root; the helper keeps the host's clocks."""
    hour = 3600 * 10**9
    for asked, least, most in (({}, 0, 0), ({"boottime": 8 * hour}, 8 * hour, 8 * hour), ({"uptime": 10 * 10**9}, -10**18, -1)):
        h = Helper()
        if "uptimes" not in h.hello["can"]:
            check("CAP_SYS_TIME" in h.hello["cannot"].get("uptimes", ""), f"{h.hello}")
            h.end()
            return
        h.setup(**asked)
        h.wait("ready")
        started = h.start("sh", "-c", "cat /proc/uptime; exec sleep 1000")
        check(least <= started.get("boottime", most + 1) <= most, f"{asked}: {started}")
        check((started["monotonic"] != 0) == ("uptime" in asked), f"{asked}: {started}")
        says = float(base64.b64decode(h.wait("output").get("bytes", "")).split()[0])
        real = time.clock_gettime(time.CLOCK_BOOTTIME)
        check(abs(says - (10 if "uptime" in asked else real + asked.get("boottime", 0) / 10**9)) < 60, f"{asked}: {says}, really {real}")
        h.say(op="clock", t1=1)
        check(abs(h.wait("clock").get("t2", 0) - time.monotonic_ns()) < 60 * 10**9, f"{asked}: the helper stamps by {h.heard[-1]}")
        h.end()


ESCAPES = "setsid sh -c 'sleep 2001 & sleep 2002' & (sleep 2003 &) ; exec sleep 2004"


def below(helper):
    """Pids on the helper's host of what ESCAPES starts."""
    helper.say(op="file", token=1, do="list", path="/proc")
    found = []
    for name in [e["name"] for e in helper.wait("file").get("entries", []) if e["name"].isdigit()]:
        helper.say(op="file", token=2, do="read", path=f"/proc/{name}/cmdline")
        if base64.b64decode(helper.wait("file").get("bytes", "")).startswith(b"sleep\x00200"):
            found.append(name)
    return found


def stat_of(pid, helper):
    helper.say(op="file", token=3, do="read", path=f"/proc/{pid}/stat")
    return base64.b64decode(helper.wait("file").get("bytes", "")).rsplit(b")", 1)[1].split()


def parent_of(pid, helper):
    return int(stat_of(pid, helper)[1])


def started_of(pid, helper):
    return int(stat_of(pid, helper)[19])


def ends():
    """All ways in which the harness may go: nothing is left on the host."""
    witness = Helper()
    witness.setup()
    witness.wait("ready")
    for way in ("closed", "silent", "helper", "keeper", "way"):
        h = Helper(["--dead-man", "1s"] if way == "silent" else [])
        h.setup(clock=library)
        h.wait("ready")
        h.start("sh", "-c", ESCAPES)
        shift(h, "clock-jump", by="1h")
        check(len(pages(witness, h)) == 1, f"{way}: it has made no page")
        while len(below(witness)) < 4:
            h.say(op="beat")
        if way == "closed":
            check(h.end() == h.heard[-1] and h.heard[-1]["left"] == [], f"{way}: {h.heard[-1]}")
        elif way == "way":  # ssh, or the keeper itself
            h.process.kill()
            h.process.wait()
        elif way in ("helper", "keeper"):
            pid, start = h.hello["pid"], started_of(h.hello["pid"], witness)
            if way == "keeper":
                pid = parent_of(pid, witness)
                start = started_of(pid, witness)
            witness.say(op="signal", token=7, pid=pid, start=start, signo=9)
            check(witness.wait("signalled").get("error") is None, f"{way}: {witness.heard[-1]}")
            h.process.wait(DEADLINE_S)
        else:
            healed = h.wait("healed")
            check(800000000 < healed.get("silent_ns", 0) < 30000000000, f"{healed}")
            check([u["fault"] for u in healed.get("undone", [])] == ["clock-jump"], f"{healed}")
            check(h.wait("bye").get("left") == [], f"{way}: {h.heard[-1]}")
            h.process.wait(DEADLINE_S)
        until = time.monotonic() + DEADLINE_S  # a helper that is told of nothing ends within its dead man
        while (below(witness) or pages(witness, h)) and time.monotonic() < until:
            pass
        check(not below(witness) and not pages(witness, h), f"{way}: left {below(witness)}, {pages(witness, h)}")
    witness.end()


def both_killed():
    """Nobody undoes what a helper has done whose keeper is killed with it; whoever cleans finds it."""
    witness = Helper()
    witness.setup()
    witness.wait("ready")
    h = Helper()
    h.setup(clock=library)
    h.wait("ready")
    h.start("sh", "-c", ESCAPES)
    while len(below(witness)) < 4:
        h.say(op="beat")
    limited = "cpu-limits" in h.hello["can"]
    if limited:
        h.say(op="fault", token=5, fault="node-cpu", kind=1, name="n0", args={"percent": "90"})
        check(h.wait("injected").get("error") is None, f"{h.heard[-1]}")
    pid = h.hello["pid"]
    keeper = parent_of(pid, witness)
    for whom, signo in ((pid, signal.SIGSTOP), (keeper, signal.SIGKILL), (pid, signal.SIGKILL)):
        witness.say(op="signal", token=7, pid=whom, start=started_of(whom, witness), signo=signo)
        witness.wait("signalled")
    h.process.kill()
    h.process.wait(DEADLINE_S)

    def left(do, what="pages"):
        witness.say(op="left", do=do)
        return [p for p in witness.wait("left").get(what, []) if p["pid"] == pid]

    until = time.monotonic() + DEADLINE_S  # who is killed may take a while
    while not left("look") and time.monotonic() < until:
        pass
    check(len(pages(witness, h)) == 1 and len(below(witness)) == 4, f"who looks changes: {pages(witness, h)}, {below(witness)}")
    groups = left("look", "groups")
    check(len(groups) == limited and all("/rankquake-node-" in g["path"] for g in groups), f"{groups}")
    found = left("clean")
    check(found == [{"pid": pid, "error": None}], f"{found}")
    check([m for m in witness.heard if m["op"] == "left"][-1].get("groups") == groups, "a control group is not removed")
    check(left("look", "groups") == [], "a control group stays")
    check(not pages(witness, h) and not below(witness), f"{pages(witness, h)}, {below(witness)}")
    witness.end()


def one_run_a_host():
    first = Helper()
    first.setup()
    first.wait("ready")
    other = Helper()
    other.setup("another-run")
    check(f"taken by the run {run}" in other.wait("broken").get("error", ""), f"{other.heard[-1]}")
    same = Helper()
    same.setup()
    same.wait("ready")
    first.end()
    same.end()
    other = Helper()
    other.setup("another-run")
    other.wait("ready")
    name = f"/var/tmp/rankquake-{other.hello['uid']}/{other.hello['host']}.acts.jsonl"
    other.start("true")
    other.say(op="file", token=1, do="tail", path=name, max=100000)
    acts = [json.loads(l) for l in base64.b64decode(other.wait("file").get("bytes", "")).splitlines()[1:]]
    mine = [a["act"] for a in acts if a["run"] == run]
    check("bye" in mine and "run" in mine and mine.count("signal") >= 1, f"{name}: {mine}")
    check(acts and acts[-1]["run"] == "another-run" and acts[-1]["act"] == "run", f"{acts[-1:]}")
    other.end()


parts = (refusals, a_program, files, events, calls, disks, given_and_dumps, clocks, uptimes, ends, both_killed, one_run_a_host)
if "ENDS" in os.environ:  # tests/soak/carrier_ends.sh
    parts = (ends,) * int(os.environ["ENDS"])
for part in parts:
    before = len(wrong)
    try:
        part()
    except (OSError, KeyError, IndexError, ValueError, subprocess.TimeoutExpired) as e:
        check(False, f"{type(e).__name__}: {e}")
    wrong[before:] = [f"{part.__name__}: {w}" for w in wrong[before:]]
print(*wrong, sep="\n", end="\n" if wrong else "")
sys.exit(1 if wrong else 0)
