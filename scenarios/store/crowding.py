"""A job whose last rank comes to a small store of its own by many connections, from several addresses, and knows by a model which of them
the store ends to let others in, and which it never does; and whose requests that do not come whole it ends, for what they hold.
Usage: crowding.py STEPS CHAPTER...; the chapters are the functions below whose name begins with try_. Without a job, of the rankrun in the
PATH: crowding.py alone CHAPTER... Of the standard library alone."""
import atexit
import json
import os
import random
import re
import select
import socket

import trying
from model import coded
from trying import holds, same

PLACES, OUTSIDERS = 16, 8
QUESTION = {"guest": {"key": coded(b"k")}, "agent": {"key": coded(b"/rankrun/one/cur")}, "watch": {"create_request": {"key": coded(b"/rankrun/one/cur")}}}
HELD, ASKING = (16 << 20) // 32 * 5, 30000


class Member:
    """A connection, and how the store knows it."""

    def __init__(self, crowd, address):
        self.crowd, self.address, self.rank, self.busy = crowd, address, "stranger", False
        self.socket = socket.create_connection(("127.0.0.1", crowd.store.port), timeout=60, source_address=(address, 0))

    def send(self, what):
        body = json.dumps(QUESTION[what]).encode()
        path = "/v3/watch" if what == "watch" else "/v3/kv/range"
        self.socket.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)

    def heard(self):
        """An answer of one piece, or the first line of a watch."""
        text = b""
        while not re.search(rb"\r\n\r\n.*}\r?\n?", text, re.S):
            piece = self.socket.recv(trying.PIECE)
            holds(f"an answer to a connection from {self.address}, {self.rank}", piece, text)
            text += piece
        same("what is answered", text.split(b"\r\n")[0], b"HTTP/1.1 200 OK")

    def is_over(self):
        return bool(select.select([self.socket], [], [], 0)[0])

    def ends(self):
        holds(f"the end of a connection from {self.address}, {self.rank}", select.select([self.socket], [], [], 60)[0], "none")
        same("what comes before its end", self.socket.recv(trying.PIECE), b"")
        self.socket.close()


def says(store, *lines):
    """It ends, and has said this and no more: of each bound once, within a minute."""
    said = [re.sub(r"port \d+ ", "", line) for line in store.ends(0).splitlines() if "store: port" in line]
    same("what the store says", said, [f"rankrun: store: {line}" for line in lines])


class Crowd:
    """Whose connections there are: of each address the outsiders, who was silent longest first, and all agents."""

    def __init__(self, place):
        self.store = trying.Store(place, "--quarantine=never", f"--connections={PLACES}", "--memory=16")
        atexit.register(self.store.child.kill)
        self.store.ask("/v3/kv/put", {"key": coded(b"/rankrun/one/cur"), "value": coded(b"1")})
        self.store.connection.close()
        self.outsiders, self.agents, self.ended, self.came, self.told = {}, [], 0, 0, []
        self.monitor = self.enter("127.0.0.1")
        self.ask(self.monitor, "agent")

    def all(self):
        return [m for list_ in (*self.outsiders.values(), self.agents) for m in list_]

    def place(self, m):
        (self.agents if m.rank == "agent" else self.outsiders.setdefault(m.address, [])).append(m)

    def displace(self, m):
        """An address of which nobody is left is forgotten."""
        for list_ in (self.agents, self.outsiders.get(m.address, [])):
            if m in list_:
                list_.remove(m)
        if not any(o.address == m.address for o in self.all()):
            self.outsiders.pop(m.address, None)

    def enter(self, address):
        m = Member(self, address)
        self.came += 1
        self.outsiders.setdefault(address, [])
        self.place(m)
        return m

    def over(self):
        outsiders = sum(map(len, self.outsiders.values()))
        return outsiders > OUTSIDERS or outsiders + len(self.agents) > PLACES

    def victim(self):
        most = max(self.outsiders.values(), key=len, default=[])
        return most[0] if most else next(m for m in self.agents if not m.busy)

    def settle(self):
        """Who has to go goes, and nobody else."""
        while self.over():
            m = self.victim()
            self.displace(m)
            self.ended += 1
            self.told += [f"ended a connection of nobody's agent to let others in: {m.address}"] if self.ended == 1 else []
            m.ends()
        for m in self.all():
            holds(f"a connection from {m.address}, {m.rank}, is over", not m.is_over(), self.ended)

    def come(self, address):
        m = self.enter(address)
        self.settle()
        self.watch()
        return m

    def ask(self, m, what):
        m.send(what)
        m.heard()
        rank = "agent" if what in ("agent", "watch") or m.rank == "agent" else "guest"
        where = m.address
        if where not in self.outsiders:
            self.outsiders[where] = []
        for list_ in (self.agents, self.outsiders[where]):
            if m in list_:
                list_.remove(m)
        m.rank, m.busy = rank, m.busy or what == "watch"
        self.place(m)

    def leave(self, m):
        self.displace(m)
        m.socket.shutdown(socket.SHUT_WR)
        m.ends()

    def watch(self):
        """Whoever has come is in by the second answer: what could be read before the first was asked is read by then."""
        for _ in range(2):
            self.ask(self.monitor, "agent")

    def page(self, name):
        self.monitor.socket.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        text = b""
        while b"\r\n\r\n" not in text or len(text) < int(re.search(rb"Content-Length: (\d+)", text)[1]) + text.index(b"\r\n\r\n") + 4:
            text += self.monitor.socket.recv(trying.PIECE)
        return int(re.search(rb"^" + re.escape(name.encode()) + rb" (\d+)$", text, re.M)[1])

    def counts(self):
        same("how many were ended", self.page('rankrun_store_bounded_total{bound="connections"}'), self.ended)
        same("how many agents' there are", self.page("rankrun_store_agent_connections"), len(self.agents))
        same("how many there are", self.page("rankrun_store_connections"), len(self.all()))
        same("how many came", self.page("rankrun_store_connections_total"), self.came + 1)

    def fini(self):
        for m in self.all():
            if not m.busy:
                self.ask(m, "guest")
        for m in self.all():
            m.socket.close()
        says(self.store, *self.told)


def try_drawn(place):
    """They come from three addresses, ask as guests and as agents, watch and go, as a seed draws."""
    c, r = Crowd(place), random.Random(int(os.environ.get("SEED", "1")))
    for step in range(160):
        wish = r.choices(["come", "guest", "agent", "watch", "leave"], [9, 5, 2 if len(c.agents) < 11 else 0, 1 if len(c.agents) < 11 else 0, 2])[0]
        others = [m for m in c.all() if m is not c.monitor and not m.busy]
        if wish == "come":
            c.come(r.choice(["127.0.0.1", "127.0.0.1", "127.0.0.2", "127.0.0.3"]))
        elif others and wish == "leave":
            c.leave(r.choice(others))
            c.watch()
        elif others:
            c.ask(r.choice(others), wish)
        if step % 8 == 0:
            c.counts()
    holds("how many had to go", c.ended > 10, c.ended)
    c.fini()


def try_agents_alone(place):
    """All places are agents'. Who comes and is none goes at once; for who is one goes the one that was silent longest, but none that watches."""
    c = Crowd(place)
    first = [c.come("127.0.0.2") for _ in range(3)]
    for m, what in zip(first, ("watch", "agent", "watch")):
        c.ask(m, what)
    while len(c.agents) < PLACES:
        c.ask(c.come("127.0.0.1"), "agent")
    c.counts()
    stranger = c.come("127.0.0.3")
    holds("a stranger that comes to agents", stranger not in c.all(), c.ended)
    for _ in range(2):
        m = c.enter("127.0.0.3")
        c.ask(m, "agent")
        c.settle()
    c.counts()
    c.fini()


# ---- what requests hold ----


class Half:
    """A request of which so many bytes have come."""

    def __init__(self, crowd, agent):
        self.crowd, self.agent, self.n = crowd, agent, 0
        self.member = crowd.come("127.0.0.1")
        crowd.ask(self.member, "agent" if agent else "guest")

    def send(self, n):
        head = b"" if self.n else b"POST /v3/kv/put HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000000\r\n\r\n"
        self.n += n
        self.member.socket.sendall(head + b" " * (n - len(head)))


class Halves:
    """Several of them, and what a store does when they hold more than they may."""

    def __init__(self, crowd):
        self.crowd, self.all, self.ended = crowd, [], 0

    def held(self, *kinds):
        return sum(h.n for h in self.all if h.agent in kinds)

    def others(self, h):
        """How much more it may send as nobody's agent."""
        return HELD // 2 - self.held(False) if not h.agent else HELD

    def together(self):
        """How much more all may, but for what it takes to ask."""
        return HELD - ASKING - self.held(True, False)

    def largest(self):
        """Who would have to go; agents last."""
        return max((h for h in self.all if h.n), key=lambda h: (not h.agent, h.n))

    def settle(self):
        """Who holds most goes, agents last; then the store is asked until it has read all."""
        while self.held(True, False) > HELD or self.held(False) > HELD // 2:
            largest = self.largest()
            self.all.remove(largest)
            self.ended += 1
            self.crowd.told += ["ended the connection that held most of the memory for requests"] if self.ended == 1 else []
            largest.member.ends()
            self.crowd.displace(largest.member)
        for _ in range(10000):
            now = self.crowd.page("rankrun_store_held_bytes")
            if now == self.held(True, False):
                break
        same("bytes that are held", now, self.held(True, False))
        for h in self.all:
            holds("one that may stay has ended", not h.member.is_over(), h.n)
        same("how many were ended", self.crowd.page('rankrun_store_bounded_total{bound="held"}'), self.ended)

    def send(self, h, n):
        """As much as there is room for, and then more: of others one byte, of all together as much as nobody takes for asking. Not where who sends
        could be the one that holds most, or not."""
        n = min(n, self.others(h), self.together())
        if n > 100:
            h.send(n)
            self.settle()
        if not self.others(h):
            h.send(1 if h.n else 100)
            self.settle()
        elif self.together() < 100 and (self.largest() is h or self.largest().n > h.n + 3 * ASKING) and h.n and h.agent == self.largest().agent:
            h.send(2 * ASKING)
            self.settle()


def try_held(place):
    """Requests come by and by. Who is nobody's agent may hold half of the memory for them, all together all of it, to the byte."""
    c, r = Crowd(place), random.Random(int(os.environ.get("SEED", "1")))
    halves = Halves(c)
    for _ in range(100):
        while len(halves.all) < 6:
            halves.all.append(Half(c, sum(h.agent for h in halves.all) < 3))
        h = r.choice(halves.all)
        halves.send(h, min(r.choice([100, 1000, 200001, 400003, 800007]), 1900000 - h.n))
    holds("how many had to go", halves.ended > 5, halves.ended)
    for h in halves.all:
        c.displace(h.member)
        h.member.socket.close()
    c.fini()


# ---- what answers show that nobody reads ----


KEYS, SHOWN = 20000, 1 << 20  # of a kilobyte each: more than the kernel takes
ALL = json.dumps({"key": coded(b"n/"), "range_end": coded(b"n0")}).encode()


def ask_for_all(store, agent=False):
    """A connection on which nobody reads what is answered, but for its first line."""
    c = socket.socket()
    c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    c.settimeout(60)
    c.connect(("127.0.0.1", store.port))
    if agent:
        body = json.dumps(QUESTION["agent"]).encode()
        c.sendall(f"POST /v3/kv/range HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        holds("what an agent is answered", b"200 OK" in c.recv(trying.PIECE), "")
    c.sendall(f"POST /v3/kv/range HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(ALL)}\r\n\r\n".encode() + ALL)
    text = b""
    while b"\r\n" not in text:
        text += c.recv(100)
    return c, text.split(b"\r\n")[0].decode()


def is_as_ever(store, watches):
    """It answers whole, and holds nothing for those who have gone."""
    status, text = store.ask("/v3/kv/range", {"key": coded(b"n/"), "range_end": coded(b"n0")})
    same("an answer to who reads", (status, len(json.loads(text)["kvs"])), (200, KEYS))
    _, page = store.ask("/metrics", method="GET")
    told = dict(re.findall(r"^rankrun_store_(connections|watches|held_bytes|agent_connections) (\d+)$", page, re.M))
    same("what is left", told, {"connections": "1", "watches": str(watches), "held_bytes": "0", "agent_connections": "1"})
    return int(re.search(r'bounded_total{bound="answers"} (\d+)', page)[1])


def hang_up(connections):
    """Abruptly, or in order; with an answer that is not read both are the same to the kernel. The store has seen it when it has ended its half."""
    for c in connections:
        c.shutdown(socket.SHUT_WR)
    for c in connections:
        try:
            while c.recv(trying.PIECE):
                pass
        except ConnectionResetError:
            pass
        c.close()


def try_unread(place):
    """Long answers that nobody reads show so many keys, to others than agents, and one more is refused. Who has gone holds nothing."""
    store = trying.Store(place, "--quarantine=never", "--memory=1024")
    atexit.register(store.child.kill)
    store.ask("/v3/kv/put", {"key": coded(b"/rankrun/one/cur"), "value": coded(b"1")})
    for i in range(0, KEYS, 125):
        puts = [{"request_put": {"key": coded(b"n/%06d" % k), "value": coded(b"v" * 300)}} for k in range(i, i + 125)]
        store.ask("/v3/kv/txn", {"success": puts})
    for times in range(2):
        some = [ask_for_all(store) for _ in range(SHOWN // KEYS)]
        same("how many were answered", {line for _, line in some}, {"HTTP/1.1 200 OK"})
        more = ask_for_all(store)
        same("one more", more[1], "HTTP/1.1 429 Client Error")
        agent = ask_for_all(store, agent=True)
        same("an agent", agent[1], "HTTP/1.1 200 OK")
        hang_up([c for c, _ in (*some, more, agent)])
        same("how many were refused", is_as_ever(store, 0), times + 1)
    says(store, "refused a request for much, as too much is being answered: 127.0.0.1")


if __name__ == "__main__":
    trying.main(globals())
