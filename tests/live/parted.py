"""Hosts that are cut off from each other by their helpers, for parted.sh. A job on three hosts tells what it hears of the
others; the cut must be felt there, counted by the helpers, and gone with whatever ends it. Usage: parted.py RUN SSH_CONFIG USER
FOLDER PART...: parted_hosts.py."""
from parted_hosts import *

has_tables = user == "root"


def whole_cut(way, port):
    """Two hosts do not hear each other, the third hears both; then all is as before."""
    n0, n1, n2 = hosts = up(port)
    n2.seen = 0
    since = max(n0.part("cut", {"n1": {}}, way=way)[0], n1.part("cut", {"n0": {}}, way=way)[0])
    for h in (n0, n1):
        check(h.heard[-1]["way"] == way and (way == "table" or h.heard[-1]["caught"] >= 2), f"{h.heard[-1]}")
        check(not h.heard[-1]["missed"], f"{h.heard[-1]}")
    before = [passed(n0, "cut", "n1"), passed(n1, "cut", "n0")]  # what had begun before the other end knew of the cut
    since = time.monotonic()
    failed = max(n0.until("none", "n1", since), n1.until("none", "n0", since))
    more = max(n0.until("none", "n1", failed), n1.until("none", "n0", failed))
    for a, b, already in ((n0, "n1", before[0]), (n1, "n0", before[1])):
        c = counted(a, "cut", b)
        check(c.get("dropped", 0) > 0 and c.get("passed") == already, f"{way}: {a.name}: {c}, {already} before")
        heard = a.heard_of(b, failed, more)  # before, the job may have told late what it had heard in time
        check(not heard, f"{way}: {a.name} heard {b}: {heard[:3]}")
        check(len(a.heard_of("n2", since, more)) > 3, f"{way}: {a.name} did not hear n2")
    check(n2.until("new", "n0", since) and n2.until("new", "n1", since), "")
    mended = max(h.ask("mend", "mended", name="cut")["t"] / 1e9 for h in (n0, n1))
    check(n0.heard[-1]["op"] != "mended" or n0.heard[-1]["peers"][0]["dropped"] > 0, f"{n0.heard[-1]}")
    is_over(n0, n1, mended)
    check(n0.ask("count", "counted")["cuts"] == [], f"{n0.heard[-1]}")
    check("peers" not in n0.ask("mend", "mended", name="cut"), f"{n0.heard[-1]}")
    for h in hosts:
        check(h.end().get("left") == [], f"{h.heard[-1]}")


def sockets():
    whole_cut("sockets", 7000)


def table():
    if has_tables:
        whole_cut("table", 7001)


def one_way():
    """n1 hears nothing from n0, which hears what n1 still says; what is connected stays so."""
    for way, port in (("sockets", 7002), ("table", 7003)):
        if way == "table" and not has_tables:
            continue
        n0, n1 = hosts = up(port, ("n0", "n1"))
        n1.part("deaf", {"n0": {"mute": False}}, way=way)
        since = n0.part("mute", {"n1": {"deaf": False}}, way=way)[0]
        ends = (n1, "deaf", "n0"), (n0, "mute", "n1")
        before = [passed(*e) for e in ends]
        for h, o in ((n0, "n1"), (n1, "n0")):
            h.until("none", o, since)
        c = [counted(n1, "deaf", "n0"), counted(n0, "mute", "n1")]  # a table drops it where it is said
        check(sum(p.get("dropped", 0) for p in c) > 0 and [p.get("passed") for p in c] == before, f"{way}: {c}, {before} before")
        for h in hosts:
            h.ask("mend", "mended", name="deaf")
        mended = n0.ask("mend", "mended", name="mute")["t"] / 1e9
        is_over(n0, n1, mended)
        [h.end() for h in hosts]


def planes():
    """Only the store's port is cut; a cut of the others leaves it alone, and one of the same name takes the other's place."""
    for way, port in (("sockets", 7004), ("table", 7005)):
        if way == "table" and not has_tables:
            continue
        n0, n1 = hosts = up(port, ("n0", "n1"))
        ports = {"store": port, "bootstrap": [29500]}
        for h, o in ((n0, "n1"), (n1, "n0")):
            h.part("p", {o: {}}, way=way, planes=["data", "bootstrap", "ssh"], ports=ports)
            check(way == "table" or h.heard[-1]["caught"] == 0, f"{h.heard[-1]}")
        t = max(n0.until("new", "n1", time.monotonic()), n1.until("old", "n0", time.monotonic()))
        since = max(h.part("p", {o: {}}, way=way, planes=["store"], ports=ports)[0] for h, o in ((n0, "n1"), (n1, "n0")))
        before = passed(n0, "p", "n1")
        n0.until("none", "n1", since), n1.until("none", "n0", since)
        c = counted(n0, "p", "n1")
        check(c.get("dropped", 0) > 0 and c.get("passed") == before, f"{c}, {before} before")
        mended = max(h.ask("mend", "mended", name="p")["t"] / 1e9 for h in hosts)
        is_over(n0, n1, mended)
        [h.end() for h in hosts]


def late():
    """Without a watch of the job's calls new connections are not caught in time; that is said, and they are counted as passed."""
    n0, n1 = hosts = up(7006, ("n0", "n1"), watch=0)
    since, m = n0.part("cut", {"n1": {}})
    check(any("not watched" in t for t in m["missed"]), f"{m}")
    n0.until("new", "n1", since)
    end = time.monotonic() + DEADLINE_S
    while counted(n0, "cut", "n1").get("passed", 0) == 0 and time.monotonic() < end:
        Host.keep()
    check(n0.ask("count", "counted")["cuts"][0]["late"] > 0, f"{n0.heard[-1]}")
    [h.end() for h in hosts]


def everybody():
    """A host is cut off from all others, and its helper still speaks with us."""
    if not has_tables:
        return
    n0, n1 = hosts = up(7007, ("n0", "n1"))
    m = n0.part("off", {"*": {}}, way="table")[1]
    since = m["t"] / 1e9
    n1.until("none", "n0", since)
    # To a port where nobody listens: the answer, an ICMP, would be felt as a refusal.
    said = subprocess.run(ssh("n1") + [f"exec 3<>/dev/udp/{address['n0']}/9; echo >&3; ! read -rt 1 <&3 || echo heard; echo >&3"],
                          capture_output=True, text=True)
    check("refused" not in said.stderr and "heard" not in said.stdout, f"it answers what is no TCP: {said}")
    again = subprocess.run(["ssh", "-o", "ConnectTimeout=1", *ssh("n0")[1:], "true"], stderr=subprocess.DEVNULL).returncode
    check(again != 0, "it takes new connections of ssh")
    c = counted(n0, "off", "*")  # over the connection that is left out
    check(c.get("dropped", 0) > 0 and c.get("passed") == 0, f"{c}")
    mended = n0.ask("mend", "mended", name="off")["t"] / 1e9
    is_over(n0, n1, mended)
    [h.end() for h in hosts]


def refusals():
    h = Host("n0")
    h.setup()
    h.wait("ready")
    good = {"name": "n1", "addresses": ["10.77.0.2"]}
    for more, says in (({"peers": []}, "peers"), ({"peers": [{"name": "n1", "addresses": ["n1"]}]}, '"n1" is no address'),
                       ({"peers": [{"name": "n1"}]}, "no address"), ({"peers": [{"addresses": ["::1"]}]}, "without a name"),
                       ({"peers": [{**good, "deaf": False, "mute": False}]}, "neither deaf nor mute"),
                       ({"peers": [good], "way": "road"}, '"road"'), ({"peers": [good], "planes": ["sky"]}, '"sky"'),
                       ({"peers": [good], "planes": []}, "none is named"), ({"peers": [good], "name": ""}, "no name"),
                       ({"peers": [good], "ports": {"store": 70000}}, "70000"),
                       ({"peers": [good], "keep": [{"address": "here"}]}, '"here"')):
        h.say(op="part", token=1, **{"name": "bad", **more})
        m = h.wait("parted")
        check(says in (m.get("error") or ""), f"{more}: {m}")
    if user != "root":
        check("silent-sockets" in h.hello["can"] and "owned-tables" not in h.hello["can"], f"{h.hello}")
        check("CAP_NET_ADMIN" in h.hello["cannot"].get("owned-tables", ""), f"{h.hello}")
        h.say(op="part", token=1, name="t", way="table", peers=[good])
        check("CAP_NET_ADMIN" in (h.wait("parted").get("error") or ""), f"{h.heard[-1]}")
    h.end()
    global has_tables
    has_tables = "owned-tables" in h.hello["can"]
    if user == "root" and not has_tables:
        print("skipped: tables:", h.hello["cannot"].get("owned-tables"))


def quake(*words):
    p = subprocess.run([folder + "/rankquake", *words, "--hosts", ",".join(f"{user}@n{i}" for i in (0, 1)), "--ssh", f"ssh -F {config}"],
                       capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return p.returncode, p.stdout + p.stderr


def left():
    """Helper and keeper are killed in the same moment: what is left on the host is found and ended; and who is at work is halted."""
    n0, n1 = Host("n0"), Host("n1")
    for h in (n0, n1):
        h.setup(dead_man=int(120e9))
        h.wait("ready")
        h.start("sh", "-c", "setsid sh -c 'kill -STOP $$; exec sleep 3001' & exec sleep 3002")
    processes = all_of(n0)
    Host.kept.remove(n0)
    for signo in (signal.SIGSTOP, signal.SIGKILL):
        strike(processes["keeper"], processes["helper"], signo=signo)
    n0.process.wait(DEADLINE_S)
    code, said = quake("clean", "--dry-run")
    check(code == 0 and said.count(f"{user}@n0: would end process") == 2 and f"left by {run}" in said, f"dry: {code} {said}")
    check(f"{user}@n1: left alone, helper" in said, f"dry: {said}")
    code, said = quake("clean")
    check(code == 0 and said.count(f"{user}@n0: ended process") == 2, f"clean: {code} {said}")
    code, said = quake("clean")
    check(code == 0 and "ended" not in said and "left alone" in said, f"clean again: {code} {said}")
    code, said = quake("halt", "/no/such/run")
    check(code == 0 and "no run is at work there" in said, f"halt of another: {code} {said}")
    Host.kept.remove(n1)
    code, said = quake("halt")
    check(code == 0 and f"{user}@n1: ended, helper" in said, f"halt: {code} {said}")
    check(n1.wait("bye").get("left") == [] and n1.process.wait(DEADLINE_S) == 0, f"{n1.heard[-1]}")
    code, said = quake("clean")
    check(code == 0 and "nothing to clean" in said, f"clean at last: {code} {said}")


known = {f.__name__: f for f in (refusals, sockets, one_way, planes, late, table, everybody, left)}
for part in parts:
    before = len(wrong)
    try:
        known[part]()
    except (OSError, KeyError, IndexError, ValueError, StopIteration, subprocess.TimeoutExpired) as e:
        check(False, f"{type(e).__name__}: {e}")
    wrong[before:] = [f"{part} as {user}: {w}" for w in wrong[before:]]
print(*wrong, sep="\n", end="\n" if wrong else "")
sys.exit(1 if wrong else 0)
