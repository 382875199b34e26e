"""Hosts that are cut off from each other by their helpers, for parted.sh. A job on three hosts tells what it hears of the
others; the cut must be felt there, counted by the helpers, and gone with whatever ends it. Usage: parted.py RUN SSH_CONFIG USER
FOLDER PART..., where FOLDER has the
helper and parted_job.py; all hosts of the bed have one kernel, and so one clock."""
import base64, os, signal, subprocess, sys, time

from other_end import DEADLINE_S, Helper, check, wrong

run, config, user, folder, parts = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:]
address = {"n0": "10.77.0.1", "n1": "10.77.0.2", "n2": "10.77.0.3"}
CONNECT = 1
has_tables = user == "root"


def ssh(host):
    return ["ssh", "-F", config, f"{user}@{host}"]


class Host(Helper):
    kept = []

    def __init__(self, name, *more):
        super().__init__(ssh(name) + [folder + "/rankquake-node", *more], run)
        self.name = name
        self.partly, self.lines, self.seen, self.spoken = b"", [], 0, time.monotonic()
        Host.kept.append(self)

    def say(self, **message):
        self.spoken = time.monotonic()
        super().say(**message)

    def end(self):
        Host.kept.remove(self)
        return super().end()

    @staticmethod
    def keep():
        """Everybody is spoken to again and again, as a harness does."""
        for h in Host.kept:
            if time.monotonic() - h.spoken > 0.2:
                h.say(op="beat")

    def begin(self, port, watch=CONNECT, own=None):
        self.setup(watch=watch, dead_man=self.dead_man_ns)
        self.wait("ready")
        self.start("/usr/bin/python3", folder + "/parted_job.py", own or address[self.name], str(port),
                   *[f"{n}={a}" for n, a in address.items() if n != self.name])

    def take(self):
        """The job's lines by now, as (word, peer, seconds)."""
        for m in self.heard[self.seen:]:
            if m["op"] == "output":
                self.partly += base64.b64decode(m["bytes"])
        self.seen = len(self.heard)
        *whole, self.partly = self.partly.split(b"\n")
        for line in whole:
            words = line.decode().split()
            check(len(words) == 3, f"{self.name}: the job says {line!r}")
            if len(words) == 3:
                self.lines.append((words[0], words[1], float(words[2])))
        return self.lines

    def until(self, word, peer, after=0.0):
        """When the job says that of that peer for the first time after then."""
        until = time.monotonic() + DEADLINE_S
        while time.monotonic() < until:
            for w, p, t in self.take():
                if (w, p) == (word, peer) and t > after:
                    return t
            self.read(0.1)
            self.keep()
        check(False, f"{self.name}: no \"{word} {peer}\" after {after}; last {self.lines[-4:]}")
        return float("inf")

    def ask(self, op, answer, **more):
        self.say(op=op, token=7, **more)
        m = self.wait(answer)
        check(m.get("token") == 7 and m.get("error") is None, f"{self.name}: {op}: {m}")
        return m

    def part(self, name, peers, **more):
        m = self.ask("part", "parted", name=name, **more,
                     peers=[{"name": p, "addresses": [address.get(p, p)], **how} for p, how in peers.items()])
        return m["t"] / 1e9, m

    def heard_of(self, peer, since, until):
        return [(w, p, t) for w, p, t in self.take() if w != "none" and p == peer and since < t < until]


def up(port, names=("n0", "n1", "n2"), dead_man_s=120, **how):
    hosts = [Host(n) for n in names]
    for h in hosts:
        h.dead_man_ns = int(dead_man_s * 1e9)
        h.begin(port, **how)
    for h in hosts:
        for other in names:
            if other != h.name:
                h.until("old", other)
                h.until("new", other)
    return hosts


def passed(host, cut, peer):
    return counted(host, cut, peer).get("passed")


def counted(host, cut, peer):
    for c in host.ask("count", "counted")["cuts"]:
        if c["name"] == cut:
            return next(p for p in c["peers"] if p["name"] == peer)
    return {}


def is_over(a, b, mended):
    for x, y in ((a, b.name), (b, a.name)):
        x.until("old", y, mended)
        x.until("new", y, mended)


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


WAYS = ("harness", "ssh", "helper", "keeper", "silent", "card")
BYSTANDERS, DEAD_MAN_S = 7009, 3
bed = os.path.dirname(config)


def read_of(witness, path):
    witness.say(op="file", token=1, do="read", path=path)
    return base64.b64decode(witness.wait("file").get("bytes", ""))


def lives(witness, pid, start):
    stat = read_of(witness, f"/proc/{pid}/stat")
    return bool(stat) and int(stat.rsplit(b")", 1)[1].split()[19]) == start


def all_of(h, witness):
    """The processes of a helper's host that are its: itself, its keeper, its program."""
    helper = h.hello["pid"]
    stat = read_of(witness, f"/proc/{helper}/stat").rsplit(b")", 1)[1].split()
    keeper = int(stat[1])
    start = int(read_of(witness, f"/proc/{keeper}/stat").rsplit(b")", 1)[1].split()[19])
    program = next(m for m in h.heard if m["op"] == "started")
    return {"helper": (helper, int(stat[19])), "keeper": (keeper, start), "program": (program["pid"], program["start"])}


def kill(witness, process):
    witness.say(op="signal", token=1, pid=process[0], start=process[1], signo=9)
    check(witness.wait("signalled").get("error") is None, f"{witness.heard[-1]}")


def card(on):
    subprocess.run(["ip", "link", "set", "vn0", *(["master", "br0"] if on else ["nomaster"])], check=True)


def lose(way, hosts, witnesses, processes):
    """Both hosts lose their harness in this way; returns when."""
    began = time.monotonic()
    for h, w, p in zip(hosts, witnesses, processes):
        if way == "harness":
            h.process.stdin.close()
            h.process.stdout.close()
        elif way == "ssh":
            h.process.kill()
        elif way in ("helper", "keeper"):
            kill(w, p[way])
    return began


def end_once(way, how, witnesses):
    """Two hosts are parted, and lose their harness in the middle of that. Returns after how many seconds nothing was left, and others
    on these hosts spoke with each other again."""
    n0, n1 = hosts = up(7010, ("n0", "n1"), DEAD_MAN_S)
    processes = [all_of(h, w) for h, w in zip(hosts, witnesses)]
    since = max(h.part("cut", {o: {}}, way=how)[0] for h, o in ((n0, "n1"), (n1, "n0")))
    n0.until("none", "n1", since)
    others = [(w, o) for w, o in zip(witnesses, ("n1", "n0"))]
    if how == "table":
        [w.until("none", o, since) for w, o in others]
    if way == "card":
        card(False)
    for h in hosts:
        Host.kept.remove(h)
    began = lose(way, hosts, witnesses, processes)
    if way == "card":  # nobody on n0 can be asked before it is back; it heals by itself meanwhile, and so does n1
        while lives(witnesses[1], *processes[1]["helper"]):
            pass
        card(True)
    end = time.monotonic() + DEADLINE_S
    for w, p in zip(witnesses, processes):
        for who, process in p.items():
            while lives(w, *process) and time.monotonic() < end:
                pass
            check(time.monotonic() < end, f"{way}, {how}: the {who} is left")
    back = max(w.until("new", o, began) for w, o in others)
    for h in hosts:
        h.process.kill()
        h.process.wait()
    return max(time.monotonic() if how == "sockets" else back, back) - began


def ends():
    """N times in each way; the figures are printed, and a bound is for who asks for one."""
    times = int(os.environ.get("ENDS", "1"))
    bound = float(os.environ.get("ENDS_WITHIN", "inf"))
    for how in ("sockets", "table") if has_tables else ("sockets",):
        witnesses = up(BYSTANDERS, ("n0", "n1"), 0)
        for way in os.environ.get("ENDS_WAYS", " ".join(WAYS)).split():
            took = []
            for _ in range(times):
                took.append(end_once(way, how, witnesses))
                check(took[-1] <= bound, f"{way}, {how}: after {took[-1]:.2f} s, wanted {bound:.2f}")
            took.sort()
            print(f"{user}, {how}, {way}: {times} times, back after {took[len(took) // 2]:.2f} s, at most {took[-1]:.2f} s", flush=True)
        [w.end() for w in witnesses]


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
    processes = all_of(n0, n0)
    Host.kept.remove(n0)
    subprocess.run(ssh("n0") + ["for s in STOP KILL; do kill -$s %d %d; done" % (processes["keeper"][0], processes["helper"][0])], check=True)
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


known = {f.__name__: f for f in (refusals, sockets, one_way, planes, late, table, everybody, ends, left)}
for part in parts:
    before = len(wrong)
    try:
        known[part]()
    except (OSError, KeyError, IndexError, ValueError, StopIteration, subprocess.TimeoutExpired) as e:
        check(False, f"{type(e).__name__}: {e}")
    wrong[before:] = [f"{part} as {user}: {w}" for w in wrong[before:]]
print(*wrong, sep="\n", end="\n" if wrong else "")
sys.exit(1 if wrong else 0)
