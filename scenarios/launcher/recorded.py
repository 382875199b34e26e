"""A job whose last rank has launchers do in small what they do in large, and compares the whole of what each agent says to its store,
to its workers and to people with what stands in a table, recorded.txt. Usage: recorded.py STEPS CHAPTER...; the chapters are the functions below
whose name begins with try_. Without a job: recorded.py alone CHAPTER...; with WRITE=1 the table is written anew, to be read before it is believed.

Each agent has a proxy of its own before the store, so that what is asked is known to be its. Agents come, fail and go one after the other: each
waits for what another one has asked. A line stands for all that are the same but for names, numbers and times that no two runs share; how often
and in which order it is said is not compared, since beats and questions cross each other, nor whether one that is done was refused before. Of the standard library alone."""
import concurrent.futures
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading

import trying
from recording import BEAT, Recorded
from trying import holds, same

HERE = os.path.dirname(os.path.abspath(__file__))
CONF = "profile=fast,hb=2s,fence=20s,hard=20.1s,suspect=21s,admit=50ms,last_call_timeout=100ms,stop_timeout=20s,lifeline=off"
PATIENCE = 60

# A worker says what it was told and does what its agent's test wants of it: its way is a FIFO for each round and local rank.
WORK = """
trap 'echo "worker $RANKRUN_ROUND.$LOCAL_RANK: told to end"; exit 9' TERM
trap 'echo "worker $RANKRUN_ROUND.$LOCAL_RANK: asked by USR1"' USR1
say() { printf '%s' "$1" >"$TORCHELASTIC_ERROR_FILE"; }
way=ways/$RANKRUN_ROUND.$LOCAL_RANK
mkfifo $way 2>/dev/null
echo "worker $RANKRUN_ROUND.$LOCAL_RANK:" $(env | grep -E '^(RANK=|LOCAL_|GROUP_|ROLE_|WORLD_|MASTER_|TORCH|RANKRUN|NCCL_|OMP_)' | sort)
{ while :; do read -r what <$way && break; done; } 2>/dev/null
eval "$what"
"""


# Who leaves may see yet that its round ends.
LEFT = re.compile(r'tells .*"what":"(end|closed)"')


class Events:
    """Where an agent tells a harness what it does: all of that is heard."""

    def __init__(self, agent):
        self.agent, self.ended = agent, False
        self.name = f"{agent.chapter.place.mark}-{agent.name}"
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind("\0" + self.name)
        self.listener.listen(16)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        page = os.memfd_create("page")
        os.write(page, struct.pack("=IIQQ", 1, 0, 0, 0))
        try:
            c, _ = self.listener.accept()
            with c:
                socket.send_fds(c, [b"P"], [page])
                while told := c.recv(65536):
                    self.agent.heard("tells " + re.sub(r'"(seq|pid|t|time|at)": ?"?[0-9.]+"?,?', "", told.decode(errors="replace")).strip())
        except OSError:
            pass  # nobody has come, or it was killed
        os.close(page)
        with self.agent.chapter.some:
            self.ended = True
            self.agent.chapter.some.notify_all()

    def fini(self):
        self.listener.close()


class Agent:
    """One launcher, its proxy, and all that was heard of it."""

    def __init__(self, chapter, name, *words, conf=CONF, away=None):
        self.chapter, self.name, self.lines, self.slots = chapter, name, [], 1
        self.proxy = chapter.proxy(self.heard)
        self.proxy.away = away
        self.folder = chapter.place.inside(name)
        os.makedirs(os.path.join(self.folder, "ways"), exist_ok=True)
        with open(os.path.join(self.folder, "work.sh"), "w") as f:
            f.write(WORK)
        self.events = Events(self)
        mark = dict([chapter.place.mark.split("=")])
        self.child = subprocess.Popen(
            [trying.rankrun(), f"--rdzv-backend={chapter.backend}", f"--rdzv-endpoint=127.0.0.1:{self.proxy.port}", f"--rdzv-id={chapter.run_id}", f"--rdzv-conf={conf}", f"--local-addr=127.0.0.{len(chapter.agents) + 1}",
             *words, "--no-python", "sh", "work.sh"], cwd=self.folder, text=True, errors="replace",
            env={"PATH": os.environ["PATH"], "LC_ALL": "C", "TMPDIR": chapter.place.tmp, "XDG_RUNTIME_DIR": chapter.place.tmp,
                 "RANKQUAKE_EVENTS": "@" + self.events.name, **mark},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        chapter.agents.append(self)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.child.stdout:
            self.heard(line.rstrip("\n"))
        with self.chapter.some:
            self.proxy.ended = True
            self.chapter.some.notify_all()

    def heard(self, line):
        with self.chapter.some:
            self.lines.append(line)
            self.chapter.some.notify_all()

    def until(self, words, times=1):
        """What it asks or says has that in it so often."""
        count = lambda: sum(bool(re.search(words, line)) for line in self.lines)
        with self.chapter.some:
            good = self.chapter.some.wait_for(lambda: count() >= times, PATIENCE)
        holds(f"{self.chapter.name}/{self.name} comes to {words}, {times} times", good, [line for line in self.lines if '{"seq":' not in line][-40:])

    def tell(self, worker, what):
        """Worker "ROUND.LOCAL_RANK" does that."""
        path = os.path.join(self.folder, "ways", worker)
        try:
            os.mkfifo(path)
        except FileExistsError:
            pass
        timer = threading.Timer(PATIENCE, self.child.kill)
        timer.start()
        with open(path, "w") as f:
            f.write(what + "\n")
        timer.cancel()

    def works(self, *workers):
        """They have said what they were told."""
        for worker in workers:
            self.until(rf"^worker {worker}: .*WORLD_SIZE")

    def ends(self, code):
        try:
            self.child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.child.kill()
            holds(f"{self.name} ends", False, self.lines[-40:])
        with self.chapter.some:
            self.chapter.some.wait_for(lambda: self.proxy.ended and self.events.ended, PATIENCE)
        self.events.fini()
        same(f"exit code of {self.chapter.name}/{self.name}, which said {self.lines[-20:]}", self.child.returncode, code)


class Chapter:
    """Agents that meet in a store of our own."""
    backend, run_id, beat, table = "etcd-v3", "told", BEAT, os.path.join(HERE, "recorded.txt")

    def __init__(self, place, name):
        self.place, self.name, self.agents, self.some = place, name, [], threading.Condition()
        self.begin()

    def begin(self):
        self.store = trying.Store(self.place, "--quarantine=never")

    def proxy(self, heard):
        return Recorded(self.store.port, heard)

    def agent(self, name, *words, **more):
        return Agent(self, name, *words, **more)

    def names(self):
        """Who each session is: the agent's name, with a number behind it for those after the first."""
        known = {}
        for agent in self.agents:
            mine = [m[1] for line in agent.lines for m in re.finditer(r"put /rankrun/[^ ]*/m/([0-9a-f]{32}) =", line)]
            for i, uid in enumerate(dict.fromkeys(mine)):
                known[uid] = agent.name + (str(i + 1) if i else "")
        return known

    def said(self):
        """All lines of all, as they are compared."""
        known, ports = self.names(), {str(a.proxy.port): "PORT" for a in self.agents}
        lines = set()
        for agent in self.agents:
            for line in agent.lines:
                if self.beat.match(line) or agent.child.returncode > 128 and LEFT.match(line):
                    continue
                lines.add(f"{self.name}/{agent.name}: {without_chance(line, known, ports, self.place.folder)}")
        return lines

    def fini(self):
        for agent in self.agents:
            agent.proxy.fini()
        self.end()

    def end(self):
        self.place.spared.add(self.store.child.pid)
        self.place.nothing_left("")
        self.place.spared.clear()
        self.store.ends(0)


def without_chance(line, known, ports, folder):
    line = re.sub(r"\b[0-9a-f]{32}\b", lambda m: known.get(m[0], "TOKEN"), line)
    line = line.replace(folder, "PLACE").replace(os.uname().nodename, "HOST")
    line = re.sub(r"20\d\d-\d\d-\d\d[ T][0-9:.]+( UTC|Z)", "TIME", line)
    line = re.sub(r"\b(\d+)-(\d{1,6})-(\d+)\b", r"\1-L-\3", line)
    line = re.sub(r'("(?:port|master_port|failure_pid|failure_realtime_ns|seq|timestamp|pid|total_run_time|stop_ms|rendezvous_ms|start_ms)":)-?\d+', r"\1N", line)
    line = re.sub(r',"(free_age_ms|brief_rounds)":\d+', "", line)  # how long rounds are is up to the host
    line = re.sub(r'"worker_id":"\d+"', '"worker_id":"N"', line).replace("/rankrun/told/", "/")
    # Watches and what is written are refused beside each other: either may be the last.
    line = re.sub(r"HTTP status 503, \{\}: this is no answer of an etcd v3|the store ended the watch", "it is refused", line)
    line = re.sub(r"\b(pid|process) \d+|(MASTER_PORT=)\d+|(ROUND_TOKEN=)\w+", lambda m: (m[2] or m[3] or m[1] + " ") + "N", line)
    line = re.sub(r"(lease:? |lease |ID )-?\d{5,}", r"\1LEASE", line)
    line = re.sub(r"\b[0-9a-f]{15}[0-9a-f]0?(?![0-9a-f])", "INC", line)
    line = re.sub(r"\b(stop|rendezvous|start|waits|for) [0-9.]+ (ms|s)\b", r"\1 N \2", line)
    line = re.sub(r"\brankrun_\w+/", "rankrun_N/", line)
    line = re.sub(r'("what":"join","round":)\d+', r"\1N", line)  # it may have begun by the time that one is in
    if re.match("range |watch ", line):
        line = re.sub(r"\b\d+-L-\d+\b", "ROUND", line)
    for port in ports:
        line = re.sub(rf"\b{port}\b", "PORT", line)
    return line


# ---- the table ----


def read_table(table, name=""):
    """The lines of a chapter, and which of them need not be said: "? " stands before what depends on who comes first. That are reads, for what is
    not read is not known, and shows in what comes of it."""
    lines = {}
    if os.path.exists(table):
        with open(table) as f:
            for line in filter(lambda line: line.strip() and line[0] != "#", f):
                text = line.rstrip("\n").removeprefix("? ")
                if text.startswith(name):
                    lines[text] = line.startswith("? ")
    return lines


def write_table(table, lines):
    with open(table, "w") as f:
        f.write("# What agents say to their store, their workers and people. Played by recorded*.py, and written by it (WRITE=1).\n")
        f.writelines(("? " if lines[line] else "") + line + "\n" for line in sorted(lines))


def read_of(line):
    """What is read, by whomever in whichever chapter; None: it is no read."""
    text = line.split(": ", 1)[1]
    return re.sub(r"/[a-z]\d?(?=[;:,]|$)", "/NAME", text) if re.match("range |watch |GET ", text) else None


def compare(table, name, said):
    known = read_table(table, name + "/")
    reads = {read_of(line) for line in read_table(table)} - {None}
    new = sorted(line for line in said if line not in known and line.replace(": refused", ": done") not in known and read_of(line) not in reads and
                 not re.search(r"prevExist 'false' .*: refused$", line))  # who has just come in between
    old = sorted(line for line in known if line not in said and not known[line])
    if os.environ.get("WRITE"): # once more, where something depends on who comes first
        first = not known or os.environ["WRITE"] == "anew"
        mine = {line: not first and (line in new or line in old or known.get(line, False)) for line in {*(said if first else new), *(() if first else known)}}
        mine = {line: may or bool(re.search(": (range|watch|GET) |: (refused|none|asked)$", line)) for line, may in mine.items()}
        write_table(table, {**{line: may for line, may in read_table(table).items() if not line.startswith(name + "/")}, **mine})
        return print("\n".join([f"+ {line}" for line in new] + [f"- {line}" for line in old]))
    holds(f"{name}: {len(new)} lines are said that the table has not, and {len(old)} are not that it has", not new and not old,
          "".join([*(f"\n+ {line}" for line in new), *(f"\n- {line}" for line in old)]))


# ---- chapters ----


LONG_CALL = CONF.replace("last_call_timeout=100ms", "last_call_timeout=60")
BRISK = "profile=fast,lifeline=off"
SILENT = LONG_CALL.replace("hb=2s,fence=20s,hard=20.1s,suspect=21s", "hb=1s,fence=3s,hard=3.1s,suspect=3.5s")


def two(c, *words, after=(), **more):
    """Two agents, the first of which leads, and has said that it is alone."""
    a = c.agent("a", *words, **more)
    a.until("node is here|nodes is here|nodes are here")
    return a, c.agent("b", *words, *after, **more)


def joined(agent):
    agent.until("put /rankrun/told/[^ ]*/m/.*: done")


def work(*agents, round):
    for agent in agents:
        agent.works(f"{round}.0")


def leave(agent):
    agent.child.send_signal(signal.SIGTERM)
    agent.ends(143)


def end(*agents, round):
    """All are done, the last one first."""
    for agent in reversed(agents):
        agent.tell(f"{round}.0", "exit 0")
        agent.until("put /rankrun/told/[^ ]*/done/.*: done")
    for agent in agents:
        agent.ends(0)


def alone(c):
    """One node, whose second worker fails, and whose first does then; both are done in the end."""
    a = c.agent("a", "--nnodes=1", "--nproc-per-node=2", "--max-restarts=3", "--role=trainer")
    a.works("1.0", "1.1")
    a.tell("1.1", """say '{"message": "it is tried"}'; exit 7""")
    a.works("2.0", "2.1")
    a.tell("2.0", "kill -SEGV $$")
    a.works("3.0", "3.1")
    a.tell("3.0", "exit 0")
    a.tell("3.1", "exit 0")
    a.ends(0)


def fails(c):
    """Two nodes of two roles. A worker of the second fails, then the guard of the first is killed, and no restart is left."""
    a, b = two(c, "--nnodes=2", "--nproc-per-node=2", "--max-restarts=1", "--event-log-handler=console", "--log-format=json", after=("--role=reader",))
    for agent in (a, b):
        agent.works("1.0", "1.1")
    b.tell("1.1", """say '{"message": {"message": "ValueError: none", "errorCode": 3, "extraInfo": {"timestamp": "17"}}}'; exit 3""")
    for agent in (a, b):
        agent.works("2.0", "2.1")
    a.tell("2.0", "kill -KILL $PPID; exec sleep 60")
    a.ends(1)
    b.ends(1)


def leaves(c):
    """Of three nodes one is told to leave, and then the one that leads; the last one is done alone."""
    a, b = two(c, "--nnodes=1:3", "--max-restarts=1", conf=LONG_CALL)
    joined(b)
    d = c.agent("d", "--nnodes=1:3", "--max-restarts=1", conf=LONG_CALL)
    for agent in (a, b, d):
        agent.works("1.0")
    b.child.send_signal(signal.SIGTERM)
    b.ends(143)
    for agent in (a, d):
        agent.works("2.0")
    a.child.send_signal(signal.SIGINT)
    a.ends(130)
    d.works("3.0")
    d.tell("3.0", "exit 0")
    d.ends(0)


def joins(c):
    """A node comes while another one works, with more workers. The third waits, and takes the place of the second when that leaves."""
    a = c.agent("a", "--nnodes=1:2", "--max-restarts=1")
    work(a, round=1)
    b = c.agent("b", "--nnodes=1:2", "--max-restarts=2", "--nproc-per-node=2")
    work(a, b, round=2)
    b.works("2.1")
    d = c.agent("d", "--nnodes=1:2", "--max-restarts=1")
    joined(d)
    leave(b)
    work(a, d, round=3)
    end(a, d, round=3)


def spares(c):
    """A spare waits while there are enough, and takes a place that is free; another one is told of the outcome."""
    a, b = two(c, "--nnodes=2", "--max-restarts=1")
    work(a, b, round=1)
    d = c.agent("d", "--nnodes=2", "--max-restarts=1", "--standby")
    joined(d)
    e = c.agent("e", "--nnodes=2", "--max-restarts=1", "--standby")
    joined(e)
    leave(a)
    work(b, d, round=2)
    end(b, d, round=2)
    e.ends(0)


def reserve(c):
    """A spare makes up the least that is needed."""
    a, b = two(c, "--nnodes=2:3", "--max-restarts=1", after=("--standby",))
    work(a, b, round=1)
    end(a, b, round=1)


def gang(c):
    """A node leaves, and all end with it."""
    a, b = two(c, "--nnodes=1:2", "--max-restarts=1", "--on-node-loss=gang", conf=LONG_CALL)
    work(a, b, round=1)
    leave(b)
    a.ends(1)


def too_few(c):
    """A node leaves, and no other comes in time."""
    a, b = two(c, "--nnodes=2", "--max-restarts=1", conf=CONF + ",join_timeout=1s")
    work(a, b, round=1)
    leave(b)
    a.ends(1)


def free(c):
    """Nodes leave more often than may be for nothing."""
    conf = LONG_CALL + ",max_free_rounds_per_hour=1"
    a, b = two(c, "--nnodes=1:3", "--max-restarts=1", conf=conf)
    joined(b)
    d = c.agent("d", "--nnodes=1:3", "--max-restarts=1", conf=conf)
    work(a, b, d, round=1)
    leave(b)
    work(a, d, round=2)
    leave(d)
    a.ends(1)


def attempts(c):
    """A run that is over is told to who comes late; another attempt begins anew, while it runs no other may."""
    a = c.agent("a", "--nnodes=1", conf=SILENT + ",attempt=first")
    work(a, round=1)
    end(a, round=1)
    c.agent("b", "--nnodes=1").ends(0)
    d = c.agent("d", "--nnodes=1", "--max-restarts=1", conf=SILENT + ",attempt=second")
    work(d, round=2)
    c.agent("e", "--nnodes=1", conf=SILENT + ",attempt=third,join_timeout=1s").ends(64)
    d.tell("2.0", "kill -USR1 $$; exit 200")
    work(d, round=3)
    d.tell("3.0", "exit 100")
    d.ends(1)
    c.agent("f", "--nnodes=1", conf=SILENT + ",attempt=second").ends(1)


def counts(c):
    """Each node has a count of its own. One is done when the other fails."""
    a, b = two(c, "--nnodes=2", "--max-restarts=3", "--restart-count=node")
    work(a, b, round=1)
    b.tell("1.0", "exit 0")
    b.until("put /rankrun/told/[^ ]*/done/.*: done")
    a.tell("1.0", "exit 5")
    work(a, b, round=2)
    b.tell("2.0", "kill -KILL $$")
    work(a, b, round=3)
    end(a, b, round=3)


def held(c):
    """The first round waits for workers of which the store may not know."""
    a = c.agent("a", "--nnodes=1", conf=BRISK + ",quarantine=always")
    work(a, round=1)
    end(a, round=1)


def silent(c):
    """An agent stands still, and comes back when the other has gone on without it."""
    a, b = two(c, "--nnodes=1:2", "--max-restarts=1", conf=SILENT)
    work(a, b, round=1)
    b.child.send_signal(signal.SIGSTOP)
    work(a, round=2)
    b.child.send_signal(signal.SIGCONT)
    work(a, b, round=3)
    end(a, b, round=3)


def lost(c):
    """The agent that leads is killed, and a third one comes."""
    a, b = two(c, "--nnodes=1:2", "--max-restarts=1", conf=SILENT)
    work(a, b, round=1)
    a.child.kill()
    a.ends(-9)
    work(b, round=2)
    d = c.agent("d", "--nnodes=1:2", "--max-restarts=1", conf=SILENT)
    work(b, d, round=3)
    end(b, d, round=3)


def cut(c):
    """An agent has no answers for so long that its workers end; then it has."""
    a, b = two(c, "--nnodes=1:2", "--max-restarts=1", conf=SILENT)
    work(a, b, round=1)
    b.proxy.away = "."
    b.proxy.end_watches()
    work(a, round=2)
    b.proxy.away = None
    work(a, b, round=3)
    end(a, b, round=3)


def gone(c):
    """A store that does not answer, or takes no writes: later on, and from the beginning."""
    for name, away, conf in (("a", ".", ",give_up=1s"), ("b", "put", ",give_up=1s")):
        agent = c.agent(name, "--nnodes=1", f"--rdzv-id=told-{name}", conf=BRISK + conf)
        work(agent, round=1)
        agent.proxy.away = away
        agent.proxy.end_watches()
        agent.ends(69)
    for name, away in (("d", "."), ("e", "put")):
        agent = c.agent(name, "--nnodes=1", f"--rdzv-id=told-{name}", conf=BRISK + ",join_timeout=1s", away=away)
        agent.ends(69)


def forgotten(c):
    """The store is another one at once, and empty."""
    a, b = two(c, "--nnodes=2", "--max-restarts=3", conf=SILENT)
    work(a, b, round=1)
    b.tell("1.0", "exit 1")
    work(a, b, round=2)
    other = trying.Store(c.place, "--quarantine=never")
    for agent in (a, b):
        agent.proxy.store = other.port
        agent.proxy.end_watches()
    work(a, b, round=3)
    end(a, b, round=3)
    c.place.spared.update((c.store.child.pid,))
    other.ends(0)


def watched_anew(c):
    """Watches end, of each agent, before a failure, behind it, and when a node leaves."""
    a, b = two(c, "--nnodes=1:2", "--max-restarts=1", conf=LONG_CALL)
    work(a, b, round=1)
    for agent in (a, b):
        agent.proxy.end_watches()
    b.tell("1.0", "exit 1")
    work(a, b, round=2)
    for agent in (a, b):
        agent.proxy.end_watches()
    leave(a)
    work(b, round=3)
    end(b, round=3)


CHAPTERS = (silent, lost, cut, forgotten, gone, too_few, alone, fails, leaves, joins, spares, reserve, gang, free, attempts, counts, held, watched_anew)


def play(one, kind):
    """A chapter, and what was said in it."""
    c = kind(trying.Place(), one.__name__)
    one(c)
    said = c.said()
    c.fini()
    c.place.fini()
    return c.table, c.name, said


def tries(kind, chapters):
    """All at once: most of the time each waits; or one."""
    def try_agents(place):
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for told in pool.map(lambda one: play(one, kind), chapters):
                compare(*told)
    return {"try_agents": try_agents, **{f"try_{one.__name__}": lambda place, one=one: compare(*play(one, kind)) for one in chapters}}


if __name__ == "__main__":
    trying.main(tries(Chapter, CHAPTERS))
