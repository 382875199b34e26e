"""A job whose last rank asks a store of its own what a seed draws, and compares every answer, to the letter, with what a model says
(model.py); and what watches are told, who counts as an agent, and every number that the store tells of itself.
Usage: modelled.py STEPS CHAPTER...; the chapters are the functions below whose name begins with try_. Without a job, of the rankrun in the
PATH: modelled.py alone CHAPTER... Of the standard library alone."""
import atexit
import json
import os
import random
import re
import select
import socket

import model
import trying
from model import Model, Refused, coded
from trying import holds, same

MEMORY = 16
KEYS = [b"a", b"a\0", b"ab", b"b", b"\xff", b"\xff\xff", b"/rankrun/one/cur", b"/rankrun/one/x", b"/rankrun/two/cur", b"/rankrun/two/",
        b"/rankrun/quarantine", b"/rankrun/", b"/rankrun//cur", b"c" * 90]
ENDS = [b"", b"", b"", b"\0", b"b", b"\xff", b"a", b"/rankrun/one0", b"/rankrun/one/y", b"/rankrun0"]
KINDS = ("other", "kv/range", "kv/put", "kv/deleterange", "kv/txn", "kv/compaction", "lease/grant", "lease/keepalive", "lease/revoke", "watch",
         "rankrun/lifeline", "metrics")
DATE = re.compile(rb"\r\nDate: [^\r]*")


class Connection:
    """One that counts its bytes. Answers are kept as they came."""

    def __init__(self, client):
        self.client, self.bytes, self.agent = client, b"", False
        self.socket = socket.create_connection(("127.0.0.1", client.store.port), timeout=60)
        client.accepted += 1
        client.open.add(self)

    def send(self, path, body, method="POST", announced=None):
        """announced: how long the body is said to be, where it does not come whole."""
        text = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {announced or len(body)}\r\n\r\n".encode() + body
        self.client.sent += len(text)
        self.socket.sendall(text)

    def more(self):
        piece = self.socket.recv(trying.PIECE)
        holds("a connection that has ended", piece, self.bytes)
        self.client.received += len(piece)
        self.bytes += piece

    def until(self, end):
        while end not in self.bytes:
            self.more()
        told, self.bytes = self.bytes.split(end, 1)
        return told + end

    def count(self, n):
        while len(self.bytes) < n:
            self.more()
        told, self.bytes = self.bytes[:n], self.bytes[n:]
        return told

    def chunk(self):
        told = self.count(int(self.until(b"\r\n"), 16))
        same("what is behind a piece", self.count(2), b"\r\n")
        return told.decode()

    def head(self):
        return DATE.sub(b"", self.until(b"\r\n\r\n")).decode()

    def answer(self):
        """The head, and the body."""
        head = self.head()
        if "Transfer-Encoding: chunked" in head:
            return head, "".join(iter(self.chunk, ""))
        return head, self.count(int(re.search(r"Content-Length: (\d+)", head)[1])).decode()

    def silent(self):
        """Nothing more has come."""
        if self in self.client.open and select.select([self.socket], [], [], 0)[0]:
            self.bytes += self.socket.recv(trying.PIECE)
        same("what comes unasked", self.bytes, b"")

    def close(self):
        """The store has seen it when it ends, too."""
        self.socket.shutdown(socket.SHUT_WR)
        same("what comes behind the end", self.socket.recv(trying.PIECE), b"")
        self.socket.close()
        self.client.open.discard(self)


class Client:
    """Asks the store, and the model, and compares."""

    def __init__(self, place, *words, seed=0, memory=MEMORY, **more):
        self.store = trying.Store(place, "--quarantine=never", f"--memory={memory}", *words, **more)
        atexit.register(self.store.child.kill)
        self.store.connection.close()
        self.model, self.random = Model(memory), random.Random(seed)
        self.open, self.watches, self.asked, self.bounded, self.due = set(), {}, {}, {}, False
        self.accepted = self.sent = self.received = 0
        self.connection = Connection(self)

    def fini(self):
        for c in [*self.open]:
            c.close()
        self.store.ends(0)

    def anew(self):
        self.connection.close()
        self.connection = Connection(self)

    def note(self, path, status):
        kind = path.removeprefix("/v3/").removeprefix("/")
        place = (kind if kind in KINDS else "other", status)
        self.asked[place] = self.asked.get(place, 0) + 1

    def ask(self, path, body):
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.connection.send(path, text)
        return (len(text), *self.connection.answer())

    def compare(self, path, body, answers, adds=False, takes=False, of_keys=False):
        """answers() is what the model says, or raises what it refuses."""
        m = self.model
        if of_keys and self.due and (m.runs_full or m.others_full):
            m.look()
            self.due = False
        n, head, text = self.ask(path, body)
        try:
            status, wanted = 200, answers(text)
        except Refused as refused:
            status, wanted = refused.args[0], refused.text()
        if status == 429:
            self.bounded["kept"] = self.bounded.get("kept", 0) + 1
        same(f"the answer to {path} {str(body):.1500} at {m.revision}", (head.split()[1], text), (str(status), wanted))
        if len(text) <= 64 << 10:
            same("its headers", sorted(head.split("\r\n")[1:-2]), [f"Content-Length: {len(text)}", "Content-Type: application/json"])
        self.note(path, status)
        if status == 200 and adds:
            m.wrote(n)
        self.due |= status == 200 and takes
        self.tell()

    # ---- requests ----

    def number(self, n):
        return self.random.choice([n, str(n)])

    def op(self, kind):
        """An operation as the model has it, and as it is sent."""
        r, m = self.random, self.model
        op = {"key": r.choice(KEYS) if r.random() < 0.98 else b"", "range_end": b"", "value": b"", "lease": 0, "limit": 0, "revision": 0,
              "keys_only": False, "count_only": False, "prev_kv": False}
        if kind == "put":
            op["value"] = r.choice([b"", b"1", b"two", bytes(r.randrange(256) for _ in range(r.randrange(60))), b"x" * r.choice([300, 3000, 17000])])
            op["lease"] = r.choice([0, 0, 0, 99, *list(m.leases)[:6]])
        else:
            op["range_end"] = r.choice(ENDS)
        if kind == "range":
            op["limit"] = r.choice([0, 0, 1, 2, 3, 100, -1])
            op["revision"] = r.choice([0] * 12 + [m.revision, m.revision, m.revision + 1, m.revision - 1])
            op["keys_only"], op["count_only"] = r.random() < 0.2, r.random() < 0.2
        op["prev_kv"] = r.random() < 0.4
        return op, {k: coded(v) if isinstance(v, bytes) else self.number(v) if not isinstance(v, bool) else v for k, v in op.items()
                    if v or r.random() < 0.2}

    def compare_of(self):
        r, m = self.random, self.model
        target = r.randrange(5)
        field, relation = model.FIELDS[target], r.randrange(4)
        key = r.choice(KEYS)
        have = m.keys.get(key, {"version": 0, "create": 0, "mod": 0, "value": b"", "lease": 0})
        name = {"create_revision": "create", "mod_revision": "mod"}.get(field, field)
        wanted = r.choice([have[name], b"1", b""]) if field == "value" else min(have[name] + r.choice([-1, 0, 0, 0, 1]), 2 ** 63 - 1)
        c = {"key": key, "range_end": r.choice(ENDS), "result": model.RELATIONS[relation], "field": field, "wanted": wanted}
        sent = {"key": coded(key), "target": r.choice([model.TARGETS[target], target]), "result": r.choice([model.RELATIONS[relation], relation]),
                field: coded(wanted) if field == "value" else self.number(wanted)}
        if c["range_end"]:
            sent["range_end"] = coded(c["range_end"])
        for k in ("target", "result"):
            if not sent[k] or sent[k] in ("VERSION", "EQUAL"):
                sent = {n: v for n, v in sent.items() if n != k or r.random() < 0.5}
        return c, sent

    def txn(self):
        r = self.random
        names = {"range": "request_range", "put": "request_put", "delete": "request_delete_range"}
        t, sent = {}, {"more": "than is known"}
        compares = [self.compare_of() for _ in range(r.choice([0, 1, 1, 2]))]
        t["compare"] = [c for c, _ in compares]
        sent["compare"] = [s for _, s in compares]
        for branch in ("success", "failure"):
            kinds = [r.choice(["range", "put", "delete"]) for _ in range(r.choice([0, 1, 1, 2, 3]))]
            ops = [(kind, *self.op(kind)) for kind in kinds]
            t[branch] = [(kind, op) for kind, op, _ in ops]
            sent[branch] = [{names[kind]: s} for kind, _, s in ops]
        self.ask_txn(t, {k: v for k, v in sent.items() if v or r.random() < 0.5})

    def ask_txn(self, t, sent):
        responses = {"range": "response_range", "put": "response_put", "delete": "response_delete_range"}

        def answers(_):
            succeeded, kinds, texts = self.model.txn(t)
            self.connection.agent |= self.model.is_of_run(t)
            told = ",".join(f'{{"{responses[kind]}":{text}}}' for kind, text in zip(kinds, texts))
            return (f"{{{model.header(self.model.revision)}" + (',"succeeded":true' if succeeded else "") +
                    (f',"responses":[{told}]' if texts else "") + "}")
        kinds = {kind for branch in ("success", "failure") for kind, _ in t[branch]}
        self.compare("/v3/kv/txn", sent, answers, "put" in kinds, "delete" in kinds, True)

    def lone(self, kind):
        op, sent = self.op(kind)
        self.ask_op(kind, op, sent)

    def ask_op(self, kind, op, sent):
        t = {"compare": [], "success": [(kind, op)], "failure": []}

        def answers(_):
            text = self.model.txn(t)[2][0]
            self.connection.agent |= self.model.is_of_run(t)
            return text
        path = {"range": "range", "put": "put", "delete": "deleterange"}[kind]
        self.compare("/v3/kv/" + path, sent, answers, kind == "put", kind == "delete", True)

    def put(self, key, value, lease=0):
        op = {"key": key, "range_end": b"", "value": value, "lease": lease, "prev_kv": False}
        self.ask_op("put", op, {"key": coded(key), "value": coded(value), "lease": lease})

    def grant(self, lease, ttl):
        sent = {k: self.number(v) for k, v in (("ID", lease), ("TTL", ttl)) if v or self.random.random() < 0.5}

        def answers(text):
            drawn = re.search(r'"ID":"(-?\d+)"', text)
            return self.model.grant(lease, ttl, int(drawn[1]) if drawn else 0)
        self.compare("/v3/lease/grant", sent, answers, True)

    def some_lease(self):
        return self.random.choice([0, 5, *self.model.leases])

    def lease(self):
        r = self.random
        self.grant(r.choice([0, 1, 2, 3, 2 ** 63 - 1, -4]), r.choice([600, 600, 9000000, 9000001, 3600]))

    def keep(self):
        lease = self.some_lease()
        self.compare("/v3/lease/keepalive", {"ID": self.number(lease)}, lambda _: self.model.keep(lease))

    def revoke(self):
        lease = self.some_lease()
        path = self.random.choice(["/v3/lease/revoke", "/v3/kv/lease/revoke"])
        self.compare(path, {"ID": self.number(lease)}, lambda _: self.model.revoke(lease))

    def forget(self):
        m = self.model
        revision = self.random.choice([m.revision, m.revision + 1, m.compacted, m.compacted + 1, m.revision - 3, 0])
        self.compare("/v3/kv/compaction", {"revision": self.number(revision)}, lambda _: m.forget(revision))

    # ---- watches ----

    def watch(self):
        r, m = self.random, self.model
        key, end = r.choice([*KEYS, b""]), r.choice(ENDS)
        start = r.choice([0, 0, m.revision, m.revision + 1, m.revision + 4, m.compacted, m.compacted - 1, m.compacted + 1, -1, 1])
        sent = {k: v for k, v in (("key", coded(key)), ("range_end", coded(end)), ("start_revision", self.number(start))) if v or r.random() < 0.5}
        c = Connection(self)
        c.send("/v3/watch", json.dumps({"create_request": sent}).encode())
        head = c.head()
        same("the head of a watch", sorted(head.split("\r\n")[:-2]),
             sorted(["HTTP/1.1 200 OK", "Content-Type: application/json", "Transfer-Encoding: chunked"]))
        same("its first line", c.chunk(), f'{{"result":{{{model.header(m.revision)},"created":true}}}}\n')
        self.note("/v3/watch", 200)
        run = model.run_of(key)
        c.agent = bool(run) and (not end or end.startswith(run)) and run + b"cur" in m.keys
        self.watches[c] = model.Watch(m, key or b"\0", end, start)
        self.tell()

    def unwatch(self):
        if self.watches:
            c = self.random.choice([*self.watches])
            c.silent()
            del self.watches[c]
            c.close()

    def tell(self):
        """Each watch is told what has happened, and no more."""
        for c, w in [*self.watches.items()]:
            for line in w.lines():
                same(f"what a watch of {w.key} to {w.end} is told", c.chunk(), line)
            if w.over:
                same("the end of a watch", c.chunk(), "")
                c.silent()
                del self.watches[c]
                c.close()

    # ---- what it tells of itself ----

    def page(self):
        for c in self.watches:
            c.silent()
        sent = self.sent
        self.connection.send("/metrics", b"", "GET")
        self.note("/metrics", 200)
        told = self.received
        head, text = self.connection.answer()
        same("the page's type", "Content-Type: text/plain; version=0.0.4" in head, True)
        return sent, told, dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")

    def look(self):
        m, told = self.model, lambda name, value: {f"rankrun_store_{name}": str(value)}
        sent, received, page = self.page()
        now = self.sent - sent
        wanted = {**told("revision", m.revision), **told("compact_revision", m.compacted), **told("keys", len(m.keys)),
                  **told("watches", len(self.watches)), **told("lifelines", 0), **told("connections", len(self.open)), **told("held_bytes", 0),
                  **told("agent_connections", sum(c.agent for c in self.open)), **told("full", int(m.runs_full)),
                  **told("others_full", int(m.others_full)), **told("connections_total", self.accepted), **told("handshakes_failed_total", 0),
                  **told("received_bytes_total", sent + now), **told("sent_bytes_total", received)}
        for kind in KINDS:
            wanted[f'rankrun_store_requests_total{{kind="{kind}",code="200"}}'] = "0"
        for (kind, status), n in self.asked.items():
            wanted[f'rankrun_store_requests_total{{kind="{kind}",code="{status}"}}'] = str(n)
        for bound in ("connections", "time", "held", "slow", "kept", "watches", "answers", "pages"):
            wanted[f'rankrun_store_bounded_total{{bound="{bound}"}}'] = str(self.bounded.get(bound, 0))
        del page[next(k for k in page if k.startswith("rankrun_build_info"))]
        page = {k: v for k, v in page.items() if not k.startswith("rankrun_job_")}
        same("what the store tells of itself", {k: v for k, v in page.items() if wanted.get(k) != v},
             {k: v for k, v in wanted.items() if page.get(k) != v})


# ---- chapters ----


WISHES = [("put", 20), ("range", 12), ("delete", 5), ("txn", 30), ("lease", 6), ("keep", 4), ("revoke", 3), ("forget", 2), ("watch", 6),
          ("unwatch", 5), ("look", 6), ("anew", 1)]


def try_drawn(place):
    """Whatever a seed draws."""
    c = Client(place, seed=int(os.environ.get("SEED", "1")))
    for wish in c.random.choices([w for w, _ in WISHES], [n for _, n in WISHES], k=int(os.environ.get("ASK", "5000"))):
        if wish in ("put", "range", "delete"):
            c.lone(wish)
        elif wish != "watch" or len(c.watches) < 12:
            getattr(c, wish)()
    holds("what was drawn forgets, and fills", c.model.compacted > 100 and len(c.asked) > 12, c.asked)
    c.look()
    c.fini()


def op_of(kind, key, **more):
    """Of a transaction: as the model has it, and as it is sent."""
    op = {"key": key, "range_end": b"", "value": b"", "lease": 0, "limit": 0, "revision": 0, "keys_only": False, "count_only": False, "prev_kv": False, **more}
    sent = {k: coded(v) if isinstance(v, bytes) else v for k, v in op.items() if v}
    return (kind, op), {{"range": "request_range", "put": "request_put", "delete": "request_delete_range"}[kind]: sent}


def ask_all(c, success, failure=(), compares=()):
    """A transaction of operations as op_of has them, and of compares of versions with 0."""
    t = {"compare": [{"key": k, "range_end": b"", "result": "EQUAL", "field": "version", "wanted": 0} for k in compares],
         "success": [op for op, _ in success], "failure": [op for op, _ in failure]}
    sent = {"compare": [{"key": coded(k), "version": 0} for k in compares], "success": [s for _, s in success], "failure": [s for _, s in failure]}
    c.ask_txn(t, {k: v for k, v in sent.items() if v})


def numbered(n, value=b"1", **more):
    return [op_of("put", b"n/%04d" % i, value=value, **more) for i in range(n)]


def watch_from(c, start, key=b"n/", end=b"n0"):
    """One that is told of the past, as the model says."""
    w = Connection(c)
    w.send("/v3/watch", json.dumps({"create_request": {"key": coded(key), "range_end": coded(end), "start_revision": start}}).encode())
    w.head()
    same("its first line", w.chunk(), f'{{"result":{{{model.header(c.model.revision)},"created":true}}}}\n')
    c.note("/v3/watch", 200)
    c.watches[w] = model.Watch(c.model, key, end, start)
    c.tell()
    w.silent()


def try_bounds(place):
    """At what is the most of a request, and one above; what is kept of the past, by number and by bytes; what one line of a watch holds."""
    c = Client(place)
    for n in (127, 128, 129):
        ask_all(c, numbered(n))
        ask_all(c, [], numbered(n), [b"n/0001"])
        ask_all(c, [], [], [b"m/%d" % i for i in range(n)])
    for first, second in ((b"n/a", b"n/b"), (b"n/a", b"n/a")):
        ask_all(c, [op_of("put", first), op_of("put", second)])
        ask_all(c, [op_of("put", first), op_of("delete", second)])
        ask_all(c, [op_of("delete", first), op_of("put", second), op_of("range", second), op_of("delete", first)])
        ask_all(c, [op_of("delete", first, range_end=second), op_of("put", first), op_of("put", second)])
    c.look()
    ask_delete(c, b"n/", b"n0")
    bounds_of_history(c)
    bounds_of_leases(c)
    c.look()
    c.fini()


def ask_delete(c, key, end):
    (_, op), sent = op_of("delete", key, range_end=end, prev_kv=True)
    c.ask_op("delete", op, sent["request_delete_range"])


def try_long(place):
    """As long as a request may be, and one byte longer."""
    c = Client(place, memory=64)
    (_, op), sent = op_of("put", b"n/long", value=b"x" * 1500000)
    text = json.dumps(sent["request_put"]).encode()
    t = {"compare": [], "success": [("put", op)], "failure": []}
    c.compare("/v3/kv/put", text + b" " * ((2 << 20) - len(text)), lambda _: c.model.txn(t)[2][0], True, of_keys=True)
    c.look()
    c.connection.send("/v3/kv/put", b"", announced=(2 << 20) + 1)  # it is refused before it has come
    same("one that is longer", c.connection.answer()[0].split("\r\n")[0], "HTTP/1.1 413 Request Entity Too Large")
    c.open.discard(c.connection)  # the store has ended it
    c.fini()


def bounds_of_history(c):
    """More than there is room for, and the past as it is known then; in revisions of a few and of many changes."""
    for n in [128] * 70 + [1] * 40 + [100] * 50:
        ask_all(c, numbered(n))
    c.look()
    for start in (c.model.compacted - 1, c.model.compacted, c.model.compacted + 1, c.model.revision - 20, c.model.revision - 6, c.model.revision - 5, c.model.revision):
        watch_from(c, start)
    for n, size in ((100, 700), (128, 1900), (128, 2100), (3, 90000)):
        ask_all(c, numbered(n, b"v" * size))
        watch_from(c, c.model.revision - 1)
    watch_from(c, c.model.revision - 3)
    for _ in range(20):
        c.put(b"n/0", b"w" * 60000)
    for i in range(40):
        c.put(b"n/%d" % i, b"w" * (6000 + 100 * i))
        if i % 8 == 0:
            watch_from(c, c.model.compacted)
    c.look()
    for w in [*c.watches]:
        del c.watches[w]
        w.close()


def bounds_of_leases(c):
    """As many as there may be; then those go that were renewed longest ago, but none of a run's."""
    c.put(b"/rankrun/one/cur", b"1")
    for lease in range(1, model.LEASES + 1):
        c.grant(lease, 600)
    for lease in (2, 900, 901):
        c.put(b"n/of-%d" % lease, b"1", lease)
    c.put(b"/rankrun/one/cur", b"1", 3)
    c.put(b"n/too", b"1", 3)
    for lease in (5, 900, 4):
        c.compare("/v3/lease/keepalive", {"ID": lease}, lambda _, lease=lease: c.model.keep(lease))
    c.grant(7, 600)
    same("how many there are", len(c.model.leases), model.LEASES)
    c.grant(0, 600)
    same("how many are left", len(c.model.leases), model.LEASES - model.LEASES // 8 + 1)
    for lease in [*range(1, 1040), model.LEASES]:
        c.compare("/v3/lease/keepalive", {"ID": lease}, lambda _, lease=lease: c.model.keep(lease))


def try_full_of_others(place):
    """Keys that are no run's, until there is room for none; then runs alone may write, and who deletes makes room at once."""
    c = Client(place)
    ask_until_full(c, lambda i: (b"k%04d" % i, b"x" * 20000), model.OTHERS_FULL)
    c.put(b"/rankrun/one/cur", b"y" * model.RUNS_VALUE)
    c.put(b"/rankrun/one/cur", b"y" * (model.RUNS_VALUE + 1))
    c.put(b"/rankrun/one/none", b"y")
    c.put(b"k0000", b"")
    ask_all(c, [op_of("put", b"/rankrun/one/cur", value=b"z")], [op_of("put", b"k")])
    ask_all(c, [op_of("range", b"k0000", keys_only=True), op_of("delete", b"k0001", range_end=b"k0011")])
    c.look()
    ask_until_full(c, lambda i: (b"l%04d" % i, b"x" * 3000), model.OTHERS_FULL)
    c.fini()


def try_full_of_runs(place):
    """Runs until there is room for no more: then they may grow that are small and are there, and any may become smaller."""
    c = Client(place)
    c.put(b"/rankrun/large/cur", b"y" * 16000)
    ask_until_full(c, lambda i: (b"/rankrun/r%05d/cur" % i, b"x" * 700), model.RUNS_FULL)
    for key, size in ((b"/rankrun/r00000/cur", 2000), (b"/rankrun/r00000/cur", model.RUNS_VALUE), (b"/rankrun/new/cur", 1), (b"/rankrun/large/cur", 15999), (b"/rankrun/large/cur", 0),
                      (b"/rankrun/quarantine", 1), (b"k", 100)):
        c.put(key, b"z" * size)
    c.look()
    ask_delete(c, b"/rankrun/r001", b"/rankrun/r009")
    c.put(b"/rankrun/new/cur", b"z")
    c.look()
    c.fini()


def ask_until_full(c, what, words):
    before = c.bounded.get("kept", 0)
    for i in range(8000):
        c.put(*what(i))
        if c.bounded.get("kept", 0) > before:
            return same("how many were taken", i > 3, True)
    return holds("it is full", False, words)


if __name__ == "__main__":
    trying.main(globals())
