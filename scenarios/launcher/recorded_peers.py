"""A job whose last rank has a launcher come into runs that are under way, with members that are played: what others have written in the store
before it comes, and write while it leads or follows. What the launcher makes of each state - all that it asks, says, tells its workers and the
harness - is compared with what stands in a table, recorded_peers.txt. Usage: recorded_peers.py STEPS CHAPTER...; as recorded.py.

When the launcher has decided what there is to decide - it beats, and asks for nothing else -, all members go at once. Of the standard
library alone."""
import concurrent.futures
import json
import os
import re
import threading

import recorded
import trying
from recording import BEAT
from recorded import Chapter, compare, play
from trying import holds

INC, SECOND = "00000000000000ab", 10 ** 9
CONF = "profile=fast,hb=400ms,fence=20s,hard=20.1s,suspect=21s,admit=50ms,last_call_timeout=100ms,join_timeout=4s,stop_timeout=5s,lifeline=off"
CUR = {"inc": INC, "min": 1, "max": 4, "max_restarts": 2, "max_free_rounds": 500, "hb_ns": 4 * SECOND // 10, "fence_ns": 20 * SECOND, "hard_ns": 201 * SECOND // 10,
       "suspect_ns": 21 * SECOND}
SHORT = {"fence_ns": 4 * SECOND, "hard_ns": 41 * SECOND // 10, "suspect_ns": 5 * SECOND}  # where silence is waited for
TIDIES = re.compile(r": if mod of /INC/lead equal N then delete_range ")
LATE = re.compile("the store at [^ ]*(: [^ ]* port | answers (now|again)| does not answer| has not answered)")  # as on a busy host
UID = {name: "%031x" % 0 + str(i) for i, name in enumerate("pqrs", 1)}
FAILURE = {"cause": "failure", "failure_uid": UID["q"], "failure_node": "node-q", "failure_rank": 1, "failure_pid": 77, "failure_wait_status": 3 << 8,
           "failure_error": "ValueError: none", "failure_realtime_ns": 1700000000 * SECOND}


def coded(text):
    return trying.base64.b64encode(text.encode()).decode()


def text_of(value):
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def in_order(line):
    """What is tidied up in one request; the order follows from drawn names."""
    if not TIDIES.search(line):
        return line
    begin, ops = line.removesuffix(": done").split(" then ", 1)
    return f"{begin} then {'; '.join(sorted(ops.split('; ')))}: done"


class Run(Chapter):
    """A run in a store of its own, whose keys a chapter writes."""
    beat = re.compile(BEAT.pattern.removesuffix("done$") + "(done|refused)$")  # one may be on its way when a session ends
    table = os.path.join(os.path.dirname(os.path.abspath(__file__)), "recorded_peers.txt")

    def names(self):
        return {**super().names(), **{uid: name for name, uid in UID.items()}}

    def said(self):
        """Who leaves at once may do so before it has tidied up."""
        hurry = {a.name for a in self.agents if a.child.returncode or self.name.startswith("all_done")}
        lines = {re.sub(r"\b\d+( rounds in a row| after \d+ of the same run)", lambda m: "N" + re.sub(r"\d+", "N", m[1]), line) for line in map(in_order, super().said())}
        return {line for line in lines if not LATE.search(line) and not (TIDIES.search(line) and line.split("/")[1].split(":")[0] in hurry)}

    def txn(self, puts=(), deletes=()):
        """At once. Keys are those of the incarnation, but for those that begin with a slash."""
        where = lambda key: coded("/rankrun/told" + (key if key.startswith("/") else f"/{INC}/{key}") if key != "/quarantine" else "/rankrun/quarantine")
        ops = [{"request_put": {"key": where(k), "value": coded(text_of(v))}} for k, v in dict(puts).items()]
        ops += [{"request_delete_range": {"key": where(k)}} for k in deletes]
        status, said = self.store.ask("/v3/kv/txn", {"success": ops})
        holds("what a played member writes", status == 200, said)

    def get(self, prefix):
        """Keys below it, with their values."""
        start = f"/rankrun/told/{INC}/{prefix}"
        _, said = self.store.ask("/v3/kv/range", {"key": coded(start), "range_end": coded(start[:-1] + chr(ord(start[-1]) + 1))})
        plain = lambda text: trying.base64.b64decode(text).decode()
        return {plain(kv["key"])[len(start):]: plain(kv["value"]) for kv in json.loads(said).get("kvs", [])}

    def begin_run(self, **cur):
        status, said = self.store.ask("/v3/lease/grant", {"ID": str(int(INC, 16)), "TTL": "600"})
        holds("a lease", status == 200, said)
        where = coded("/rankrun/told/cur")
        status, said = self.store.ask("/v3/kv/put", {"key": where, "value": coded(text_of({k: v for k, v in {**CUR, **cur}.items() if v})), "lease": str(int(INC, 16))})
        holds("a run", status == 200, said)

    def forget(self):
        """The run is another one, of a later time."""
        self.store.ask("/v3/lease/grant", {"ID": str(int(INC, 16) + 1), "TTL": "600"})
        value = {**CUR, **SHORT, "inc": f"{int(INC, 16) + 1:016x}"}
        self.store.ask("/v3/kv/put", {"key": coded("/rankrun/told/cur"), "value": coded(text_of(value)), "lease": str(int(INC, 16) + 1)})

    def come(self, name, **more):
        """A member with a session."""
        value = {"node": f"node-{name}", "addr": "127.0.0.9", "slots": 1, "role": "default", "stop_ns": SECOND, **more}
        self.txn({f"s/{UID[name]}": {}, f"m/{UID[name]}": {k: v for k, v in value.items() if v is not None}})

    def plan(self, pid, names, world=None, **more):
        for i, name in enumerate(names):
            place = {"group_rank": i, "rank_base": i, "world": world or len(names), "role_rank_base": i, "role_world": world or len(names), **more}
            self.txn({f"plan/{pid}/{UID.get(name, name)}": {k: v for k, v in place.items() if v}})

    def head(self, round_, phase, names, last=None, **more):
        """Of this round, after the last that ran; its plan is written before."""
        last = last if last is not None else round_ - (phase == "form")
        pid = lambda r: f"{r}-5-1"
        value = {"round": round_, "phase": phase, "pid": pid(round_), "n": len(names)}
        if last:
            value |= {"last_round": last, "last_pid": pid(last), "last_n": len(names), "world": len(names), "master_addr": "127.0.0.9", "master_port": 7, "token": "0" * 32}
        self.txn({"head": {k: v for k, v in {**value, **more}.items() if v is not None}})

    def ack(self, round_, name, **value):
        self.txn({f"ack/{round_:010d}/{UID[name]}": {"addr": "127.0.0.9", "port": 7, **value}})

    def done(self, round_, name):
        self.txn({f"done/{round_:010d}/{UID[name]}": {"round": round_}})

    def gone(self, name, why="left"):
        self.txn({f"gone/{UID[name]}": {"why": why} if why != "left" else {}}, [f"s/{UID[name]}"])

    def failed_round(self, names="pq", **head):
        """Round 2 has failed, the first of restarts is used, and all are there."""
        for name in names:
            self.come(name)
        self.plan("2-5-1", names)
        self.head(2, "end", names, **{**FAILURE, "restarts": 1, "charged_round": 1, **head})

    def running(self, names="pq", **head):
        for name in names:
            self.come(name)
        self.plan("2-5-1", names)
        self.head(2, "run", names, **head)

    def agent_comes(self, *words, conf=CONF, nnodes="1:4"):
        return self.agent("a", f"--nnodes={nnodes}", "--max-restarts=2", *words, conf=conf)

    def settles(self, agent, since=0):
        """It has beaten three times and done nothing else in between, or has ended."""
        def quiet():
            busy = [line for line in agent.lines[since:] if "/lease/keepalive" not in line][-3:]
            return agent.proxy.ended or len(busy) == 3 and all(map(BEAT.match, busy))
        with self.some:
            good = self.some.wait_for(quiet, recorded.PATIENCE)
        holds(f"{self.name} settles", good, agent.lines[-40:])

    def all_go(self):
        """Each that has a session, or is in a plan, and is not gone."""
        mine = {uid for agent in self.agents for line in agent.lines for uid in re.findall(r"put /rankrun/[^ ]*/m/([0-9a-f]{32}) =", line)}
        plans = {key.split("/")[1] for key in self.get("plan/")}
        there = (self.get("s/").keys() | plans) - mine - self.get("gone/").keys()
        if there:
            self.txn({f"gone/{uid}": {} for uid in there}, [f"s/{uid}" for uid in there])

    def works(self, agent):
        """The round in which it has a worker, as soon as that was told."""
        agent.until(r"^worker \d+.0: .*WORLD_SIZE")
        rounds = [int(m[1]) for line in agent.lines for m in re.finditer(r"^worker (\d+)\.0: .*WORLD_SIZE", line)]
        return max(rounds)

    def finishes(self, agent, code=0):
        """Alone at last: its worker is done."""
        agent.until(r'"phase":"run".*"last_n":1[,}].*: done')
        agent.until(r"^worker (\d+).0: .* WORLD_SIZE=1$")
        round_ = next(m[1] for line in agent.lines if (m := re.match(r"worker (\d+).0: .* WORLD_SIZE=1$", line)))
        agent.tell(f"{round_}.0", "exit 0")
        agent.ends(code)


# ---- states, and what is made of them: (name, what was written, the words of who comes, how it ends) ----


def settled(c, p="ok", q="ok", **head):
    """Round 2 has failed, and both have said how they ended: an ack, done, gone, or one behind the other."""
    c.failed_round(**head)
    for name, said in (("p", p), ("q", q)):
        for word in said.split():
            if word == "done":
                c.done(2, name)
            elif word in ("left", "silent"):
                c.gone(name, word)
            else:
                c.ack(2, name, **({"why": word, "error": "told"} if word != "ok" else {}))


def forming(c, acked, names="pq", **head):
    for name in names:
        c.come(name)
    c.plan("1-5-1", names)
    c.head(1, "form", names, last=0, **head)
    for name in acked:
        c.ack(0, name)


def forming_after(c, q="failed", **head):
    """Round 3 is being formed; both have said how round 2 has ended, or the second has gone."""
    head = {**FAILURE, "restarts": 2, **head}
    c.failed_round(**head)
    c.plan("3-5-1", "pq")
    c.head(3, "form", "pq", **head)
    c.ack(2, "p")
    if q == "gone":
        c.gone("q")
    else:
        c.ack(2, "q", why=q)


def joined(c, *members, **cur):
    """Nobody has decided yet."""
    for name, more in members:
        c.come(name, **more)


def many(c, n):
    """More members than one transaction has plans for."""
    ops = {}
    for i in range(n):
        ops |= {f"s/{i:032x}": {}, f"m/{i:032x}": {"node": f"node-{i}", "addr": "127.0.0.9", "slots": 1 + i % 3, "role": f"role-{i % 4}"}}
    items = list(ops.items())
    for i in range(0, len(items), 100):
        c.txn(dict(items[i:i + 100]))


STATES = {
    "nothing": (lambda c: None, {}, 0),
    "hold": (lambda c: None, {"hold": 1, **SHORT}, 0),
    "others_wait": (lambda c: joined(c, ("p", {}), ("q", {"role": "reader", "slots": 3}), ("r", {})), {}, 0),
    "spares": (lambda c: joined(c, ("p", {"want": "standby"}), ("q", {"want": "standby"})), {"min": 2, "max": 3}, 1),
    "seats": (lambda c: joined(c, ("p", {"seat": 2}), ("q", {"seat": 1}), ("r", {"seat": 2})), {"min": 4}, 1),
    "too_many": (lambda c: joined(c, ("p", {}), ("q", {}), ("r", {})), {"max": 2}, 0),
    "remember": (lambda c: joined(c, ("p", {"past_inc": "00000000000000cd", "past_round": 5, "past_n": 2, "past_restarts": 1, "past_member": 1}),
                                  ("q", {"past_inc": "00000000000000cd", "past_round": 4, "past_n": 2, "past_restarts": 2, "past_member": 1})), SHORT, 0),
    "remember_more": (lambda c: joined(c, ("p", {"past_inc": "00000000000000cd", "past_round": 5, "past_n": 3, "past_restarts": 1, "past_member": 1}),
                                       ("q", {"past_inc": "00000000000000cd", "past_round": 5, "past_n": 3, "past_restarts": 1})), {"rounds_before": 9, **SHORT}, 0),
    "forming": (lambda c: forming(c, ""), {}, 0),
    "forming_acked": (lambda c: forming(c, "pq"), {"max": 2}, 0),
    "forming_half": (lambda c: forming(c, "q"), {}, 0),
    "forming_again": (lambda c: (c.failed_round(), c.plan("3-5-1", "pq"), c.head(3, "form", "pq", restarts=1, **FAILURE), c.ack(2, "p"), c.ack(2, "q", why="failed")), {}, 0),
    "forming_spent": (lambda c: forming_after(c), {}, 1),
    "forming_unspent": (lambda c: forming_after(c, restarts=1), {}, 0),
    "forming_fenced": (lambda c: forming_after(c, q="fenced"), {}, 0),
    "forming_free_spent": (lambda c: forming_after(c, cause="membership", free_rounds=3, free_age_ms=1000), {"max_free_rounds": 3}, 1),
    "forming_lost": (lambda c: forming_after(c, q="gone"), {}, 0),
    "forming_too_few": (lambda c: forming_after(c, q="gone"), {"min": 3}, 1),
    "forming_gang": (lambda c: forming_after(c, q="gone"), {"on_node_loss": "gang"}, 1),
    "running": (lambda c: c.running(), {}, 0),
    "running_full": (lambda c: c.running(), {"max": 2}, 0),
    "running_left": (lambda c: (c.running(), c.gone("q")), {}, 0),
    "running_too_few": (lambda c: (c.running(), c.gone("q")), {"min": 3}, 1),
    "all_done": (lambda c: (c.running(), c.done(2, "p"), c.done(2, "q")), {}, 0),
    "running_half_done": (lambda c: (c.running(), c.done(2, "p")), {}, 0),
    "all_done_left": (lambda c: (c.running(), c.done(2, "q"), c.gone("q"), c.done(2, "p"), c.gone("p", "silent")), {}, 0),
    "running_no_session": (lambda c: (c.running(), c.txn((), [f"s/{UID['q']}"])), {}, 0),
    "running_gang": (lambda c: c.running(), {"on_node_loss": "gang"}, 1),
    "left_gang": (lambda c: (c.running(), c.gone("q")), {"on_node_loss": "gang"}, 1),
    "plan_lost": (lambda c: (c.running(), c.txn((), [f"plan/2-5-1/{UID['q']}"])), {}, 143),
    "failed": (lambda c: settled(c), {}, 0),
    "failed_last": (lambda c: settled(c, restarts=2), {}, 1),
    "failed_none_allowed": (lambda c: settled(c, restarts=None, charged_round=None), {"max_restarts": 0}, 1),
    "fenced": (lambda c: settled(c, q="fenced", restarts=2), {}, 0),
    "silent_first": (lambda c: settled(c, q="silent", restarts=2), {}, 0),
    "left_behind": (lambda c: settled(c, q="failed left", restarts=2), {}, 1),
    "done_behind": (lambda c: settled(c, p="done ok", q="failed", restarts=2), {}, 1),
    "done_before_gone": (lambda c: settled(c, p="done silent", q="failed", restarts=2), {}, 1),
    "membership": (lambda c: settled(c, p="ok", q="failed", restarts=2, cause="membership"), {}, 0),
    "unsettled": (lambda c: settled(c, q="", restarts=2), {}, 0),
    "free_spent": (lambda c: settled(c, cause="membership", free_rounds=3, free_age_ms=1000), {"max_free_rounds": 3}, 1),
    "free_left": (lambda c: settled(c, cause="membership", free_rounds=2, free_age_ms=1000), {"max_free_rounds": 3}, 1),
    "free_old": (lambda c: settled(c, cause="membership", free_rounds=3, free_age_ms=3600001), {"max_free_rounds": 3}, 0),
    "free_unbounded": (lambda c: settled(c, cause="membership", free_rounds=3), {"max_free_rounds": None}, 0),
    "brief": (lambda c: settled(c, cause="membership", free_rounds=3, brief_rounds=11), {}, 0),
    "modes": (lambda c: settled(c), {"restart_mode": "node", "on_node_loss": "replace"}, 0),
    "absent_lead": (lambda c: (c.running(), c.txn({"lead": {"uid": "f" * 32}})), {}, 0),
    "gone_lead": (lambda c: (c.running(), c.txn({"lead": {"uid": UID["p"]}}), c.gone("p")), {}, 0),
    "unknown_member": (lambda c: (c.running(), c.txn((), [f"m/{UID['q']}"])), {}, 0),
    "unreadable": (lambda c: (c.running(), c.txn({f"m/{UID['q']}": "{", f"s/{UID['p']}": "{", f"ack/0000000002/{UID['p']}": "[]", "m/none": {}, "other": "x",
                                                  "ack/2/x": {}, f"gone/{UID['r']}": {"why": "else"}})), {}, 0),
    "later_version": (lambda c: (c.running(more=1, later="x"), c.txn({f"m/{UID['q']}": {"node": "node-q", "slots": 2, "new": [1, {"a": 2}]}})), {"new": {"x": 1}}, 0),
    "roles": (lambda c: (c.running("pqrs"), c.come("q", role="reader", slots=3), c.come("s", role="reader", slots=2), c.come("r", slots=4), c.gone("p")), {"max": 5}, 0),
    "batch": (lambda c: many(c, 59), {"max": 60}, 0),
    "batches": (lambda c: many(c, 62), {"max": 63}, 0),
    "lead_of_itself": (lambda c: (c.running(), c.txn({"lead": {}})), {}, 0),
    "later_rounds": (lambda c: (forming(c, "pq"), c.come("r", past_inc="00000000000000cd", past_round=7, past_n=1, past_restarts=2, past_member=1)), {"rounds_before": 3, **SHORT}, 0),
    "acks_of_before": (lambda c: (c.failed_round(), c.ack(1, "p"), c.ack(1, "q"), c.done(1, "q"), c.ack(3, "p")), {}, 0),
    "a_plan_too_many": (lambda c: (c.running(), c.plan("2-5-1", "pqr"), c.plan("2-5-2", "rs")), {}, 143),
    "same_ranks": (lambda c: (c.running(), c.plan("2-5-1", "q")), {}, 143),
    "returned": (lambda c: (c.running("pqr"), c.gone("p"), c.gone("q", "silent"), c.come("s", node="node-q", last_round=2)), {}, 0),
}


def chapter_of(name):
    write, cur, code = STATES[name]

    def one(c):
        c.begin_run(**cur)
        write(c)
        a = c.agent_comes(nnodes=f"{cur.get('min', 1)}:{cur.get('max', 4)}")
        c.settles(a)
        before = len(a.lines)
        c.all_go()
        if code == 0 and not name.startswith("all_done"):
            return c.finishes(a)
        if code > 128:  # nobody can know any more how a round ended
            c.settles(a, before)
            a.child.send_signal(code - 128)
        return a.ends(code)
    one.__name__ = name
    return one


# ---- outcomes, as they are told to who comes, and to who was there ----


def follow(c, **head):
    """A member leads that is played: what it says of a round is what the launcher does."""
    c.begin_run()
    c.come("p")
    c.txn({"lead": {"uid": UID["p"]}})
    stop = beats(c, "p")
    a = c.agent_comes(conf=CONF)
    a.until("put /rankrun/told/[^ ]*/m/.*: done")
    uid = next(iter(c.get("s/").keys() - {UID["p"]}))
    c.plan("1-5-1", ["p", uid], world=5, role_world=4)
    c.head(1, "form", "pq", last=0)
    a.until("put /rankrun/told/[^ ]*/ack/0000000000/.*: done")
    c.head(1, "run", "pq", world=5, restarts=1, master_addr="127.0.0.8", master_port=4711, token="0" * 31 + "7", **head)
    a.works("1.0")
    return a, uid, stop


def beats(c, name):
    """A played member goes on beating until it is told to stop."""
    over = threading.Event()

    def beat():
        seq = 0
        connection = c.store.connect()
        while not over.wait(0.3):
            seq += 1
            c.store.ask("/v3/kv/put", {"key": coded(f"/rankrun/told/{INC}/s/{UID[name]}"), "value": coded('{"seq":%d}' % seq)}, connection=connection)
        connection.close()
    thread = threading.Thread(target=beat, daemon=True)
    thread.start()

    def stop():
        over.set()
        thread.join()
    return stop


def outcome(name, code, **head):
    """All there is to say of it, to a launcher whose worker runs and to one that comes when it is over."""
    def one(c):
        a, _, stop = follow(c)
        c.head(1, "closed", "pq", **head)
        a.ends(code)
        stop()
        c.agent("b", "--nnodes=1:4", "--max-restarts=2", conf=CONF).ends(code)
    one.__name__ = "outcome_" + name
    return one


OUTCOMES = [
    outcome("succeeded", 0, outcome="succeeded"), outcome("none", 0),
    outcome("failed", 1, outcome="failed", **FAILURE),
    outcome("signal", 1, outcome="failed", restarts=2, **{**FAILURE, "failure_wait_status": 11, "failure_error": ""}),
    outcome("core", 1, outcome="failed", **{**FAILURE, "failure_wait_status": 139, "failure_error": "x" * 2000}),
    outcome("guard", 1, outcome="failed", **{**FAILURE, "failure_rank": -1, "failure_local_rank": -1, "failure_wait_status": 9}),
    outcome("node", 1, outcome="failed", failure_node="node-q", failure_rank=-1, failure_local_rank=-1, failure_error="node node-q was lost"),
    outcome("words", 1, outcome="failed", failure_rank=-1, failure_local_rank=-1, failure_error="two\nlines\x1b"),
    outcome("nobody", 1, outcome="failed"),
]


def led_on(c):
    """The one that leads ends a round for a failure, one for a node, leaves the launcher out of one, takes it in again, and forgets the run."""
    a, uid, stop = follow(c)
    c.head(1, "end", "pq", **FAILURE)
    a.until("put /rankrun/told/[^ ]*/ack/0000000001/.*: done")
    c.plan("2-5-1", [uid, "p"], world=2)
    c.head(2, "form", "pq", last=1, restarts=1, **FAILURE)
    c.head(2, "run", "pq", restarts=1, charged_round=1)
    a.works("2.0")
    c.plan("3-5-1", ["p"])
    c.head(3, "form", "p", last=2, restarts=1, last_n=2, cause="membership")
    a.until("put /rankrun/told/[^ ]*/ack/0000000002/.*: done")
    c.head(3, "run", "p", restarts=1)
    c.plan("4-5-1", ["p", "q", uid], world=3)
    c.head(4, "form", "pqr", last=3, last_n=1, restarts=1, cause="membership")
    a.until("put /rankrun/told/[^ ]*/ack/0000000003/.*: done")
    c.head(4, "run", "pqr", restarts=1)
    a.works("4.0")
    a.tell("4.0", "exit 0")
    a.until("put /rankrun/told/[^ ]*/done/0000000004/.*: done")
    c.head(4, "closed", "pqr", outcome="succeeded")
    a.ends(0)
    stop()


def hands_in(c):
    """The launcher's worker fails while a member leads that is played, and then that member says that all have failed."""
    a, uid, stop = follow(c)
    a.tell("1.0", """printf '{"message": "of mine"}' >"$TORCHELASTIC_ERROR_FILE"; exit 5""")
    a.until('put /rankrun/told/[^ ]*/head = .*"phase":"end".*: done')
    a.until("put /rankrun/told/[^ ]*/ack/0000000001/.*: done")
    c.plan("2-5-1", ["p", uid])
    c.head(2, "form", "pq", last=1, restarts=1)
    c.head(2, "run", "pq", restarts=2, charged_round=1)
    a.works("2.0")
    c.head(2, "closed", "pq", restarts=3, outcome="failed", **FAILURE)
    a.ends(1)
    stop()


def taken_away(c):
    """Its session is deleted, as of one that does not say that its workers are dead; it comes again as another. Then it is told to leave."""
    a, uid, stop = follow(c)
    c.txn((), [f"s/{uid}"])
    a.until("the session was revoked")
    a.until("put /rankrun/told/[^ ]*/m/.*: done", times=2)
    c.settles(a)
    a.child.send_signal(15)
    a.ends(143)
    stop()


def evicted(c):
    """It leads, and a member beats that never says that its workers are dead."""
    c.begin_run(**SHORT)
    c.come("p", stop_ns=1)
    c.plan("2-5-1", "p")
    c.head(2, "end", "p", restarts=1, cause="membership")
    stop = beats_while_there(c, "p")
    a = c.agent_comes()
    a.until("evicted")
    c.finishes(a)
    stop()


def beats_while_there(c, name):
    """As an agent does: no beat where the session has ended."""
    over = threading.Event()

    def beat():
        key, seq = coded(f"/rankrun/told/{INC}/s/{UID[name]}"), 0
        connection = c.store.connect()
        while not over.wait(0.3):
            seq += 1
            c.store.ask("/v3/kv/txn", {"compare": [{"key": key, "target": "CREATE", "result": "GREATER", "create_revision": "0"}],
                                       "success": [{"request_put": {"key": key, "value": coded('{"seq":%d}' % seq)}}]}, connection=connection)
        connection.close()
    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    return lambda: (over.set(), thread.join())


def admits(c):
    """It leads and works; then members come that are played, ack, are done, fail and go while their time lasts."""
    c.begin_run()
    a = c.agent_comes()
    a.works("1.0")
    c.come("p", role="reader", slots=2)
    stop = beats_while_there(c, "p")
    a.until('put /rankrun/told/[^ ]*/head = ."round":2,"phase":"form".*: done')
    c.ack(1, "p", port=4712)
    a.works("2.0")
    c.come("q", want="standby")
    c.gone("p", "silent")
    a.until('put /rankrun/told/[^ ]*/head = ."round":3,"phase":"form".*: done')
    c.ack(2, "q")
    a.works("3.0")
    c.done(3, "q")
    a.tell("3.0", "exit 0")
    a.ends(0)
    stop()


def takes_over(c):
    """The one that leads goes, and the launcher, which was next in line, decides."""
    a, _, stop = follow(c)
    stop()
    c.txn({f"gone/{UID['p']}": {}}, [f"s/{UID['p']}", "lead"])
    c.finishes(a)


def resigns(c):
    """The one that leads gives it up and stays; later it goes."""
    a, _, stop = follow(c)
    c.txn((), ["lead"])
    a.until("put /rankrun/told/[^ ]*/lead = .*: done")
    c.settles(a, len(a.lines))
    stop()
    c.all_go()
    c.finishes(a)


def deposed(c):
    """It leads, and another one takes the lead and ends the run."""
    c.begin_run()
    a = c.agent_comes()
    a.works("1.0")
    c.come("p", want="standby")
    c.txn({"lead": {"uid": UID["p"]}})
    stop = beats_while_there(c, "p")
    c.settles(a, len(a.lines))
    c.gone("q")
    c.head(1, "end", "p", **FAILURE)
    a.until("put /rankrun/told/[^ ]*/ack/0000000001/.*: done|told to end")
    c.head(1, "closed", "p", outcome="succeeded")
    a.ends(0)
    stop()


def certified(c):
    """Somebody says that it is dead, while its worker runs."""
    a, uid, stop = follow(c)
    c.txn({f"gone/{uid}": {"why": "silent"}}, [f"s/{uid}"])
    a.until("the session was revoked")
    a.until("put /rankrun/told/[^ ]*/m/.*: done", times=2)
    c.head(1, "closed", "pq", outcome="failed", failure_node="node-p", failure_rank=-1, failure_local_rank=-1, failure_error="it was ended")
    a.ends(1)
    stop()


def another_run(c):
    """Its session has ended, and the run is another one: it brings along what it knows of the former."""
    a, uid, stop = follow(c)
    stop()
    c.forget()
    c.txn((), [f"s/{uid}"])
    a.until("put /rankrun/told/[^ ]*/lead = .*: done")
    c.finishes(a)


def set_back(c):
    """The store is another one, which knows the run and less of it."""
    a, _, stop = follow(c)
    stop()
    former, c.store = c.store, trying.Store(c.place, "--quarantine=never")
    c.begin_run()
    c.come("p")
    a.proxy.store = c.store.port
    a.proxy.end_watches()
    a.ends(69)
    c.place.spared.update((c.store.child.pid,))
    former.ends(0)


def attempt(name, code, write, beating=False, **cur):
    """Another attempt comes into what one has left."""
    def one(c):
        c.begin_run(**{**SHORT, "attempt": "first", **cur})
        write(c)
        stop = beats_while_there(c, "p") if beating else lambda: None
        a = c.agent("a", "--nnodes=1:4", "--max-restarts=2", conf=CONF + ",attempt=second")
        if code:
            a.ends(code)
        else:
            c.finishes(a)
        stop()
    one.__name__ = "attempt_" + name
    return one


ATTEMPTS = [
    attempt("open", 0, lambda c: c.running("p")), attempt("in_use", 64, lambda c: c.running("p"), True),
    attempt("left", 0, lambda c: (c.running("p"), c.gone("p")), rounds_before=8), attempt("empty", 0, lambda c: None),
    attempt("closed", 0, lambda c: (c.running("p"), c.done(2, "p"), c.head(2, "closed", "p", outcome="succeeded"))),
    attempt("closed_not_settled", 0, lambda c: (c.running("p"), c.head(2, "closed", "p", outcome="failed"))),
    attempt("ending", 64, lambda c: (c.running("p"), c.head(2, "closed", "p", outcome="failed")), True),
]


def silent(c, lead=False):
    """A member is never heard again: the one that leads, or another one."""
    c.begin_run(**SHORT)
    c.running("p")
    if lead:
        c.txn({"lead": {"uid": UID["p"]}})
    c.finishes(c.agent_comes())


def silent_lead(c):
    silent(c, lead=True)


LONG = ["brief", "hold", "remember", "remember_more", "later_rounds", "running_too_few", "forming_too_few", "spares", "seats"]
COMES = [chapter_of(name) for name in [*LONG, *(name for name in STATES if name not in LONG)]]
PLAYS = [evicted, another_run, *ATTEMPTS, silent, silent_lead, taken_away, admits, takes_over, resigns, deposed, certified, set_back, led_on, hands_in, *OUTCOMES]


def tries(**groups):
    """Each group at once, as most of the time all of them wait; and each chapter alone."""
    def group(chapters):
        def try_all(place):
            with concurrent.futures.ThreadPoolExecutor(len(chapters)) as pool:
                for told in pool.map(lambda one: play(one, Run), chapters):
                    compare(*told)
        return try_all
    alone = {f"try_{one.__name__}": lambda place, one=one: compare(*play(one, Run)) for chapters in groups.values() for one in chapters}
    return {**alone, **{f"try_{name}": group(chapters) for name, chapters in groups.items()}}


if __name__ == "__main__":
    trying.main(tries(states=COMES, plays=PLAYS))
