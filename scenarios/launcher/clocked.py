"""A job whose last rank has a launcher come into runs whose members are played, on a host whose clock stands still until it is set (played_host.c): when
nothing is left to be done by anybody, time goes on at once to the moment for which the launcher wants to be woken. So what it does of its own
accord - beats, gives members up, waits for others, tries again, ends - comes at a millisecond that is the same each time; all that
it asks and says is compared with a table, clocked.txt, in its order and with its times. Usage: clocked.py STEPS CHAPTER...; as recorded.py.

The store is played by one thread, from the model of store/model.py. Of the standard library alone."""
import atexit
import concurrent.futures
import json
import os
import re
import select
import signal
import subprocess
import time

import recorded_peers
import trying
from played_host import Clock
from played_store import Store
from recorded import WORK, play
from recorded_peers import CONF, SECOND, STATES, UID, Run
from trying import holds, same

BEAT = Run.beat
MS, EVER = 10 ** 6, 2 ** 63 - 1


def tasks_of(pid):
    """Of it and all below it: what each is doing, and how often it has been put to sleep."""
    told = {}
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/status") as f:
            text = f.read()
        with open(f"/proc/{pid}/task/{task}/children") as f:
            below = f.read().split()
        told[task] = (re.search(r"State:\s+(\S)", text)[1], re.findall(r"ctxt_switches:\s+(\d+)", text))
        for child in below:
            told |= tasks_of(child)
    return told


class Agent:
    """A launcher that is woken when it wants to be."""

    def __init__(self, world, name, words, conf):
        self.world, self.name, self.due, self.text, self.over = world, name, EVER, "", False
        self.folder = world.place.inside(name)
        os.makedirs(os.path.join(self.folder, "ways"))
        turns = [os.path.join(self.folder, way) for way in ("tells", "wakes")]
        for way in turns:
            os.mkfifo(way)
        with open(os.path.join(self.folder, "work.sh"), "w") as f:
            f.write(WORK)
        self.tells = os.open(turns[0], os.O_RDONLY | os.O_NONBLOCK)
        self.wakes = os.open(turns[1], os.O_RDWR | os.O_NONBLOCK)
        mark = dict([world.place.mark.split("=")])
        self.child = subprocess.Popen(
            [trying.rankrun(), "--rdzv-backend=etcd-v3", f"--rdzv-endpoint=127.0.0.1:{world.store.port}", "--rdzv-id=told", f"--rdzv-conf={conf}", f"--local-addr=127.0.0.{len(world.agents) + 1}",
             *words, "--no-python", "sh", "work.sh"], cwd=self.folder,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C", "TMPDIR": world.place.tmp, "XDG_RUNTIME_DIR": world.place.tmp, **world.clock.env,
                 "PLAYED_TURNS": ":".join(turns), "PLAYED_NUMBER": str(len(world.agents) + 1), **mark},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        world.agents.append(self)

    def read(self):
        piece = os.read(self.child.stdout.fileno(), trying.PIECE).decode(errors="replace")
        self.over = not piece
        *lines, self.text = (self.text + piece).split("\n")
        for line in lines:
            self.world.heard(line)
            found = re.match(r"worker (\d+\.\d+): .*WORLD_SIZE", line)
            if found and self.world.work:
                self.tell(found[1], self.world.work)

    def turn(self):
        told = os.read(self.tells, 65536)
        if told:
            self.due = int.from_bytes(told[-8:], "little")

    def tell(self, worker, what):
        """Worker "ROUND.LOCAL_RANK" does that."""
        path = os.path.join(self.folder, "ways", worker)
        if not os.path.exists(path):
            os.mkfifo(path)
        fd = os.open(path, os.O_RDWR)  # held until it is read
        os.write(fd, what.encode() + b"\n")
        self.world.held.append(fd)

    def fini(self):
        os.close(self.tells)
        os.close(self.wakes)


class World(Run):
    """A run in a store that is played, and time."""
    table = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clocked.txt")

    def begin(self):
        atexit.register(self.place.end_all)  # where it stands still nobody notices that we have ended
        self.clock, self.lines, self.held = Clock(self.place, MS), [], []
        self.events, self.work = [], None  # (when, how often, what is done); what each worker does at once
        self.began = self.clock.now
        self.store = Store(self)

    def heard(self, line):
        self.lines.append(f"{(self.clock.now - self.began) / SECOND:.3f} {line}")

    def agent(self, name, *words, conf=CONF):
        return Agent(self, name, words, conf)

    # ---- time ----

    def serve(self, ms):
        """Whatever has come within that time; whether something has."""
        ready = {**({self.store.listener: self.store.accept} if self.store.listener.fileno() >= 0 else {}), **{c: lambda c=c: self.store.serve(c) for c in self.store.connections}}
        for a in self.agents:
            ready |= {a.tells: a.turn, **({} if a.over else {a.child.stdout: a.read})}
        some = [r for r in select.select([*ready], [], [], ms / 1000)[0]]
        some = [r for r in some if r not in {a.tells for a in self.agents if a.over}]
        for r in some:
            ready[r]()
        return bool(some)

    def stands_still(self):
        """Nobody has run between two looks, nor has anything to do. That they do not can only be looked at: nobody says so."""
        looks = []
        for _ in range(2):
            try:
                looks.append([tasks_of(a.child.pid) for a in self.agents if not a.over])
            except OSError:
                return False  # one ends
        return looks[0] == looks[1] and all(state == "S" for look in looks[0] for state, _ in look.values())

    def passes(self, ns, words=None, times=1):
        """So long, or until that is asked or said so often."""
        until, patience = self.clock.now + ns, time.monotonic() + 120
        while True:
            count = sum(bool(re.search(words, line)) for line in self.lines) if words else 0
            if words and count >= times or all(a.over for a in self.agents):
                return
            holds(f"{self.name}: time stands still", time.monotonic() < patience, self.lines[-30:])
            if self.serve(0) or not self.stands_still():
                self.serve(1)
                continue
            if self.serve(0) or self.store.acts():
                continue
            due = min([a.due for a in self.agents if not a.over] + [at for at, _, _ in self.events])
            if due > until:
                holds(f"{self.name} comes to {words} within {ns / SECOND} s", not words, self.lines[-30:])
                return self.clock.set(until)
            self.clock.set(max(due, self.clock.now))
            if self.happens():
                continue
            for a in self.agents:
                if a.due <= self.clock.now and not a.over:
                    a.due = EVER
                    os.write(a.wakes, b"x")

    def at(self, ns, what, every=None):
        """What is done by those who are played, that much later, and again and again."""
        event = (self.clock.now + ns, every, what)
        self.events.append(event)

    def happens(self):
        for event in [e for e in self.events if e[0] <= self.clock.now]:
            self.events.remove(event)
            event[2]()
            if event[1]:
                self.events.append((event[0] + event[1], event[1], event[2]))
            return True
        return False

    def beats(self, *names):
        """As agents do, from now on: not where the session has ended."""
        for name in names:
            def beat(name=name):
                if UID[name] in self.get("s/"):
                    self.txn({f"s/{UID[name]}": {"seq": self.clock.now}})
            self.at(0, beat, 400 * MS)

    def acks(self, *names):
        """As agents do whose workers are dead at once, or were never there."""
        def ack():
            head = json.loads(self.get("head").get("", "{}"))
            last = head.get("last_round", 0) if head.get("phase") == "form" else head.get("round", 0)
            for name in names:
                if head.get("phase") in ("form", "end") and UID[name] in self.get("s/") and UID[name] not in self.get(f"ack/{last:010d}/"):
                    self.ack(last, name)
        self.at(50 * MS, ack, 100 * MS)

    def silence(self):
        self.events = []

    def ends(self, agent, code, ns=600 * SECOND):
        """By itself."""
        self.passes(ns)
        holds(f"{self.name}: it ends", agent.over, self.lines[-30:])
        same(f"{self.name}: exit code, after {self.lines[-10:]}", agent.child.wait(60), code)

    def newest(self):
        """Its worker that began last."""
        return re.findall(r" worker (\d+\.0): .*WORLD_SIZE", "\n".join(self.lines))[-1]

    # ---- what is compared ----

    def said(self):
        text = "\n".join(self.lines)
        incs = dict.fromkeys(m[0] for line in self.lines for m in re.finditer(r"(?<=/rankrun/told/)[0-9a-f]{16}", line))
        known = {**{inc: "INC" + (str(i + 1) if i else "") for i, inc in enumerate(incs)}, **{uid: "a" + (str(i + 1) if i else "") for i, uid in enumerate(dict.fromkeys(re.findall(r"put /rankrun/[^ ]*/m/([0-9a-f]{32}) =", text)))},
                 **{uid: name for name, uid in UID.items()}}
        moments = []
        for line in self.lines:
            at, words = line.split(" ", 1)
            beat = "beats" + (", in vain" if BEAT.match(words)[2] != "done" else "") if BEAT.match(words) else ""
            words = beat or self.plainly(words, known)
            if not moments or moments[-1][0] != at:
                moments.append((at, []))
            moments[-1][1].append(words)
        return [f"{self.name}: {line}" for line in in_short(moments)]

    def plainly(self, line, known):
        """What no two runs share stands for itself: names that members have drawn, ports, processes, dates. Numbers that a launcher draws are the
        same each time, and how long something takes is as well."""
        line = re.sub(r"\b[0-9a-f]{32}\b|\b[0-9a-f]{16}(?=0?\b)", lambda m: known.get(m[0], m[0]), line).replace(self.place.folder, "PLACE").replace(os.uname().nodename, "HOST")
        line = re.sub(r"20\d\d-\d\d-\d\d[ T][0-9:.]+( UTC|Z)", "TIME", line)
        line = re.sub(r'("(?:port|master_port|failure_pid|failure_realtime_ns)":)\d+', r"\1N", line)
        line = re.sub(r"\b(pid|process) \d+|(MASTER_PORT=)\d+", lambda m: (m[2] or m[1] + " ") + "N", line)
        line = re.sub(r"\brankrun_\w+/", "rankrun_N/", line).replace("/rankrun/told/", "/")
        return recorded_peers.in_order(": " + re.sub(rf"\b{self.store.port}\b", "PORT", line)).removeprefix(": ")

    def end(self):
        for a in self.agents:
            a.fini()
        for fd in self.held:
            os.close(fd)
        self.place.nothing_left("")

    def fini(self):
        self.end()


def in_short(moments):
    """What comes at one time in any order; beats alone, one as long after another as the one before, in one line."""
    lines, first, last, gap = [], None, None, None
    for at, words in [*moments, (None, [])]:
        alone = words == ["beats"]
        now = round(float(at) * 1000) if alone else None
        if alone and first is not None and gap in (None, now - last):
            gap, last = now - last, now
            continue
        if first is not None:
            lines.append(f"{first / 1000:.3f} beats" + (f", and each {gap / 1000:.3f} until {last / 1000:.3f}" if gap else ""))
        first, last, gap = now, now, None
        if not alone:
            lines += [f"{at} {line}" for line in sorted(words)]
    return lines


def stands(table, name):
    with open(table) as f:
        return [line for line in f.read().splitlines() if line.startswith(name + ": ")]


def write(table, name, said):
    lines = []
    if os.path.exists(table):
        with open(table) as f:
            lines = [line for line in f.read().splitlines() if not line.startswith(name + ": ")]
        print(f"{name}: {len(said)} lines", "as before" if said == stands(table, name) else "anew")
    with open(table, "w") as f:
        f.write("\n".join([*lines, *said]) + "\n")


def compare(one, told):
    """In their order. What is otherwise is played again, three times in all: a host may be too busy to be seen to stand still. With WRITE=1 the table is
    written anew, to be read before it is believed."""
    for again in (1, 2, 0):
        table, name, said = told
        if os.environ.get("WRITE"):
            return write(table, name, said)
        mine = stands(table, name)
        holds(f"lines of {name} in the table", mine, table)
        if said == mine:
            return None
        told = play(one) if again else told
    at = next((i for i, (a, b) in enumerate(zip(said, mine)) if a != b), min(len(said), len(mine)))
    return holds(f"{name}: line {at} is another one than in the table", False, "\n- " + "\n- ".join(mine[at:at + 3]) + "\n+ " + "\n+ ".join(said[at:at + 3]))


# ---- chapters ----


def state_of(name):
    """It comes into a state that others have left, who are never heard again."""
    write, cur, code = STATES[name]

    def one(c):
        c.begin_run(**cur)
        write(c)
        a = c.agent_comes(nnodes=f"{cur.get('min', 1)}:{cur.get('max', 4)}")
        c.passes(30 * SECOND)
        told_to_end(c, a)
    one.__name__ = name
    return one


def told_to_end(c, a):
    if not a.over:
        a.child.send_signal(signal.SIGTERM)
    c.passes(600 * SECOND)
    c.ends(a, a.child.wait(60))


LASTS = "profile=fast,hb=400ms,fence=4s,hard=4.1s,suspect=5s,admit=50ms,last_call_timeout=100ms,join_timeout=9s,stop_timeout=5s,lifeline=off"


def away_of(kind, at, lasts, conf=LASTS):
    """The store is away from then on, for so long."""
    def one(c):
        if at:
            a = c.agent("a", "--nnodes=1", "--max-restarts=3", conf=conf)
            c.passes(at)
        if kind == "closed":
            c.store.closes()
        else:
            setattr(c.store, *{"refuses": ("away", "."), "writes": ("away", "put|delete"), "reads": ("away", "range "), "mute": ("mute", "."),
                               "half": ("mute", "put"), "leases": ("away", "lease")}[kind])
            if kind == "refuses" and at:
                c.store.end_watches()
        if not at:
            a = c.agent("a", "--nnodes=1", "--max-restarts=3", conf=conf)
        c.passes(lasts)
        if kind == "closed":
            c.store.opens()
        c.store.away = c.store.mute = None
        c.passes(15 * SECOND)
        told_to_end(c, a)
    one.__name__ = f"away_{kind}_{at // MS}_{lasts // MS}{'_gives_up' if 'give_up' in conf else ''}"
    return one


AWAY = [away_of(kind, at, lasts * MS) for kind in ("closed", "refuses", "writes", "reads", "mute", "half", "leases") for at in (0, 10 * SECOND) for lasts in (700, 3000, 12000)]
AWAY += [away_of(kind, at, 60 * SECOND, LASTS + ",give_up=8s") for kind in ("closed", "refuses", "writes", "mute") for at in (0, 10 * SECOND)]


# ---- failures, and when a round begins again ----


def fails_of(name, work, *words, ns=120 * SECOND, conf=CONF):
    """What each worker does at once, until nothing is left or time is over."""
    def one(c):
        c.work = work
        a = c.agent("a", "--nnodes=1", *words, conf=conf)
        c.passes(ns)
        told_to_end(c, a)
    one.__name__ = "work_" + name
    return one


WORK_OF = [
    fails_of("fails", "exit 3", "--max-restarts=14"), fails_of("is_done", "exit 0"),
    fails_of("fails_of_one_node", "exit 3", "--max-restarts=3", "--restart-count=node"), fails_of("dies", "kill -KILL $$", "--max-restarts=2", "--role=trainer"),
    fails_of("loses_its_guard", "kill -KILL $PPID; exec sleep 60", "--max-restarts=2"),
    fails_of("fails_freely", "kill -KILL $PPID; exec sleep 60", "--max-restarts=2", conf=CONF + ",max_free_rounds=3"),
]


def long_rounds(lasts):
    """Rounds that last so long before their worker fails are brief, or are not."""
    def one(c):
        a = c.agent("a", "--nnodes=1", "--max-restarts=12", conf=LASTS)
        for round_ in range(1, 13):
            c.passes(60 * SECOND, rf"^[0-9.]+ worker {round_}.0: .*WORLD_SIZE")
            c.passes(lasts)
            a.tell(f"{round_}.0", "exit 3")
        c.passes(60 * SECOND, "worker 13.0: .*WORLD_SIZE")
        told_to_end(c, a)
    one.__name__ = f"rounds_of_{lasts // MS}"
    return one


# ---- others, who beat ----


def with_others(name, begin, then=lambda c, a: None, lasts=30, words=(), conf=CONF, **cur):
    """What others have written before it comes, and what they do while it is there."""
    def one(c):
        c.begin_run(**cur)
        begin(c)
        a = c.agent("a", f"--nnodes={cur.get('min', 1)}:{cur.get('max', 4)}", "--max-restarts=2", *words, conf=conf)
        c.passes(3 * SECOND)
        then(c, a)
        c.passes(lasts * SECOND)
        told_to_end(c, a)
    one.__name__ = "others_" + name
    return one


# ---- what cannot be written, and when it leaves ----


def denied_of(word, kind):
    """One kind of request is refused, or not answered, for a while: when it comes, when another one does, when its worker fails, when it is done."""
    def one(c):
        def denied():
            setattr(c.store, kind, word)
            c.passes(2500 * MS)
            c.store.away = c.store.mute = None
            c.passes(4 * SECOND)
        c.begin_run(**{**SHORT, "max": 2})
        a = c.agent("a", "--nnodes=1:2", "--max-restarts=2", conf=LASTS)
        denied()
        c.come("p")
        c.beats("p")
        c.acks("p")
        denied()
        a.tell(c.newest(), "exit 3")
        denied()
        c.gone("p")
        denied()
        a.tell(c.newest(), "exit 0")
        denied()
        c.silence()
        told_to_end(c, a)
    one.__name__ = f"denied_{re.sub('[^a-z]+', '_', word)}_{kind}"
    return one


DENIED = [denied_of(word, kind) for kind in ("away", "mute") for word in ("put [^ ]*/m/", "put [^ ]*/lead", "put [^ ]*/plan/", "put [^ ]*/head", "put [^ ]*/ack/", "put [^ ]*/done/",
                                                                          "delete_range", "range [^ ]*/plan/")]
DENIED.append(denied_of("watch", "away"))


def leaves_of(who, kind, lasts):
    """It is told to end while the store is away, leads or not."""
    def one(c):
        c.begin_run(**SHORT)
        if who != "alone":
            c.running("p")
            c.beats("p")
            c.acks("p")
        if who == "follower":
            c.txn({"lead": {"uid": UID["p"]}})
        a = c.agent("a", "--nnodes=1:4", "--max-restarts=2", conf=LASTS)
        c.passes(5 * SECOND)
        setattr(c.store, kind, "delete_range")
        a.child.send_signal(signal.SIGTERM)
        c.passes(lasts * SECOND)
        c.store.away = c.store.mute = None
        c.passes(9 * SECOND)
        c.silence()
        told_to_end(c, a)
    one.__name__ = f"leaves_{who}_{kind}_{lasts}"
    return one


LEAVES = [leaves_of(who, kind, lasts) for who in ("alone", "leader", "follower") for kind in ("away", "mute") for lasts in (2, 20)]

SHORT = recorded_peers.SHORT
OTHERS = [
    with_others("lead", lambda c: (c.running("pq"), c.txn({"lead": {"uid": UID["p"]}}), c.beats("p", "q")), lambda c, a: c.silence(), **SHORT),
    with_others("lead_on", lambda c: (c.running("pq"), c.txn({"lead": {"uid": UID["p"]}}), c.beats("p", "q")), **SHORT),
    with_others("lead_comes_back", lambda c: (c.running("pq"), c.txn({"lead": {"uid": UID["p"]}}), c.beats("p", "q")),
                lambda c, a: (c.silence(), c.passes(4 * SECOND), c.beats("p", "q")), **SHORT),
    with_others("are_silent", lambda c: (c.running("pq"), c.beats("p", "q")), lambda c, a: c.silence(), **SHORT),
    with_others("one_is_silent", lambda c: (c.running("pq"), c.beats("p", "q")), lambda c, a: (c.silence(), c.beats("p")), **SHORT),
    with_others("come_back", lambda c: (c.running("pq"), c.beats("p", "q")), lambda c, a: (c.silence(), c.passes(4 * SECOND), c.beats("p", "q")), **SHORT),
    with_others("leave", lambda c: (c.running("pq"), c.beats("p", "q")), lambda c, a: (c.gone("p"), c.passes(2 * SECOND), c.gone("q")), **SHORT),
    with_others("do_not_ack", lambda c: (c.running("pq", cause="membership"), c.beats("p", "q")), lambda c, a: c.gone("q"), **SHORT),
    with_others("ack", lambda c: (c.running("pq"), c.beats("p", "q")), lambda c, a: (c.ack(2, "p"), c.passes(SECOND), c.ack(2, "q"), c.passes(9 * SECOND), c.done(3, "p"), c.done(3, "q")), **SHORT),
    with_others("come", lambda c: None, lambda c, a: (c.come("p"), c.beats("p"), c.passes(4 * SECOND), c.come("q"), c.beats("q")), **SHORT),
    with_others("come_late", lambda c: None, lambda c, a: (c.passes(20 * SECOND), c.come("p"), c.beats("p")), min=2),
    with_others("never_come", lambda c: None, min=2), with_others("are_too_few", lambda c: (c.running("pq"), c.beats("p", "q")), lambda c, a: c.gone("q"), min=3, **SHORT),
    with_others("need_a_spare", lambda c: (c.running("pq"), c.beats("p", "q")), lambda c, a: (c.gone("q"), c.passes(SECOND), c.ack(2, "p")), words=("--standby",), max=2, **SHORT),
    with_others("need_no_spare", lambda c: (c.running("pq"), c.beats("p", "q")), words=("--standby",), max=2, **SHORT),
    with_others("were_another_attempt", lambda c: c.running("pq"), conf=CONF + ",attempt=second", attempt="first", **SHORT),
    with_others("are_another_attempt", lambda c: (c.running("pq"), c.beats("p")), conf=CONF + ",attempt=second", attempt="first", **SHORT),
    with_others("were_done", lambda c: (c.running("p"), c.done(2, "p"), c.head(2, "closed", "p", outcome="succeeded")), conf=CONF + ",attempt=second", attempt="first", **SHORT),
    with_others("take_its_session", lambda c: (c.come("p"), c.txn({"lead": {"uid": UID["p"]}}), c.beats("p")),
                lambda c, a: c.txn((), [f"s/{uid}" for uid in c.get("s/").keys() - {UID["p"]}]), **SHORT),
    with_others("take_the_lead", lambda c: (c.come("p", want="standby"), c.beats("p")), lambda c, a: (c.txn({"lead": {"uid": UID["p"]}}), c.passes(9 * SECOND), c.txn((), ["lead"])), **SHORT),
    with_others("end_watches", lambda c: (c.running("pq"), c.beats("p", "q")), lambda c, a: [(c.store.end_watches(), c.passes(ns * MS)) for ns in (1, 500, 3000)], **SHORT),
    with_others("compact", lambda c: (c.running("pq"), c.beats("p", "q")), lambda c, a: (c.store.end_watches(), c.store.model.compact(c.store.model.revision)), **SHORT),
]


CHAPTERS = [state_of(name) for name in STATES]
TIMES = [*WORK_OF, *(long_rounds(lasts * MS) for lasts in (1999, 2000, 5001)), *OTHERS]


def tries(**groups):
    """Each group, four at a time, and each chapter alone."""
    def group(chapters):
        def try_all(place):
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                for one, told in zip(chapters, pool.map(lambda one: play(one, World), chapters)):
                    compare(one, told)
        return try_all
    alone = {f"try_{one.__name__}": lambda place, one=one: compare(one, play(one, World)) for chapters in groups.values() for one in chapters}
    return {**alone, **{f"try_{name}": group(chapters) for name, chapters in groups.items()}}


if __name__ == "__main__":
    trying.main_once(tries(states=CHAPTERS, away=AWAY, others=TIMES, denied=[*DENIED, *LEAVES]))
