"""A job whose last rank has stores of its own on a host whose clock stands still until it is set and whose sockets take little (played_host.c), and
knows what has to be over at which microsecond: leases, requests that do not come whole, connections that are idle, answers that nobody reads, who
may be ended to let others in, and when the same is said again. Usage: timed.py STEPS CHAPTER...; the chapters are the functions below
whose name begins with try_. Without a job, of the rankrun in the PATH: timed.py alone CHAPTER... Of the standard library alone."""
import json
import os
import select
import socket

import trying
from model import coded
from modelled import Client, Connection
from played_host import Clock
from trying import holds, same

MICRO, MS, SECOND = 1000, 10 ** 6, 10 ** 9
HALF = b"POST /v3/kv/put HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
WHOLE, IDLE, AGAIN, SLOW, CROWDED, SILENT, IDLE_AGENT = 30 * SECOND, 300 * SECOND, 60 * SECOND, 10 * SECOND, SECOND, 100 * MS, SECOND


class Timed(Client):
    """A store, the model, and the time of both."""

    def __init__(self, place, *words, **more):
        self.clock = Clock(place, MICRO)
        super().__init__(place, *words, env={**self.clock.env, "PLAYED_ROOM": "20000"}, **more)

    def set(self, ns):
        """By the second answer it has done what is due: what asks wakes it up."""
        self.clock.set(ns)
        self.wake()

    def wake(self):
        for _ in range(3):
            self.connection.send("/metrics", b"", "GET")
            self.note("/metrics", 200)
            self.connection.answer()

    def after(self, ns):
        self.set(self.clock.now + ns)

    def number_of(self, name):
        return int(self.page()[2]["rankrun_store_" + name])

    def hits(self, bound):
        return self.number_of(f'bounded_total{{bound="{bound}"}}')

    def ends(self, *lines):
        """It has said this of its bounds, and no more."""
        for c in [*self.open]:
            c.close()
        said = [line.split(f"store: port {self.store.port} ", 1)[1] for line in self.store.ends(0).splitlines() if "store: port" in line]
        same("what the store says", said, list(lines))


def is_open(c):
    """Nothing has come, its end neither."""
    return not select.select([c.socket], [], [], 0)[0]


def has_ended(c):
    """All that came before the end, which has come, in order or not."""
    holds("the end of a connection", select.select([c.socket], [], [], 60)[0], "none")
    c.socket.settimeout(60)
    text = b""
    try:
        for piece in iter(lambda: c.socket.recv(trying.PIECE), b""):
            text += piece
    except ConnectionResetError:
        pass
    c.socket.close()
    c.client.open.discard(c)
    return text


# ---- leases ----


class Leased(Timed):
    """The model knows when each of its leases ends. No two end at once."""

    def __init__(self, place, **more):
        super().__init__(place, **more)
        self.ends_at = {}

    def next(self):
        return min(self.ends_at.values(), default=None)

    def renewed(self, lease):
        if lease in self.model.leases:
            self.ends_at[lease] = self.clock.now + self.model.leases[lease]["ttl"] * SECOND

    def lease(self):
        lease = self.random.choice([1, 2, 3, 4, 2 ** 63 - 1, -4])
        known = lease in self.model.leases
        self.grant(lease, self.random.choice([0, 1, 1, 2, 3, 5, 60]))
        if not known:
            self.renewed(lease)

    def keep(self):
        before = self.model.renewals
        super().keep()
        if self.model.renewals > before:
            self.renewed(max(self.model.leases, key=lambda i: self.model.leases[i]["renewed"]))

    def revoke(self):
        super().revoke()
        self.ends_at = {i: at for i, at in self.ends_at.items() if i in self.model.leases}

    def reach(self, ns):
        """One after the other ends, at its time and not a microsecond before."""
        while self.ends_at and self.next() <= ns:
            lease = min(self.ends_at, key=self.ends_at.get)
            self.set(self.ends_at[lease] - MICRO)
            self.look()
            for w in self.watches:
                w.silent()
            self.clock.set(self.ends_at.pop(lease))
            self.wake()
            self.model.end_lease(lease)
            self.tell()
            self.look()
        self.set(ns)


WISHES = [("put", 10), ("range", 2), ("txn", 3), ("delete", 2), ("lease", 8), ("keep", 4), ("revoke", 1), ("watch", 3), ("unwatch", 2), ("reach", 6)]


def try_leases(place):
    """What a seed draws of leases and their keys, while time goes on."""
    c = Leased(place, seed=int(os.environ.get("SEED", "1")))
    ended = 0
    for wish in c.random.choices([w for w, _ in WISHES], [n for _, n in WISHES], k=int(os.environ.get("ASK", "500"))):
        c.reach(c.clock.now + c.random.randrange(3, 50000) * MICRO)  # no two end at once
        if wish == "reach":
            before = len(c.ends_at)
            c.reach(c.random.choice([c.next() or c.clock.now, c.clock.now + c.random.randrange(2 * SECOND) // MICRO * MICRO]))
            ended += before - len(c.ends_at)
        elif wish in ("put", "range", "delete"):
            c.lone(wish)
        elif wish != "watch" or len(c.watches) < 6:
            getattr(c, wish)()
    holds("how many leases have ended", ended > 20, ended)
    c.look()
    c.ends()


def try_many_leases(place):
    """More than are ended in one go end at once, with their keys; those of a second more do not."""
    c, n = Timed(place, memory=64), 2100
    for lease in range(1, n + 1):
        c.grant(lease, 7 if lease % 3 else 8)
    for lease in range(1, n + 1, 7):
        c.put(b"l/%05d" % lease, b"1", lease)
        c.put(b"m/%05d" % lease, b"1", lease)
    c.after(7 * SECOND - MICRO)
    same("how many keys there are", c.number_of("keys"), len(c.model.keys))
    c.after(MICRO)
    for lease in range(1, n + 1):
        if lease % 3:
            c.model.end_lease(lease)
    c.look()
    for lease in range(1, n + 1):
        c.compare("/v3/lease/keepalive", {"ID": lease}, lambda _, lease=lease: c.model.keep(lease))
    c.after(8 * SECOND - MICRO)
    c.look()
    c.after(MICRO)
    same("how many keys are left", c.number_of("keys"), 0)
    c.ends()


# ---- what comes whole, and when ----


def half(c, text=HALF):
    w = Connection(c)
    w.socket.sendall(text)
    c.wake()
    return w


def try_whole(place):
    """A request has so long to come whole, from its first byte, whatever comes meanwhile; the next one has as long again."""
    c = Timed(place)
    began = {}
    for n, text in enumerate((b"P", HALF[:30], HALF, HALF + b'"key":')):
        w = half(c, text)
        began[w] = c.clock.now
        c.after((n + 1) * SECOND)
    whole = half(c, HALF[:-1] + b" " * 40)
    c.after(29 * SECOND - (c.clock.now - min(began.values())))
    whole.socket.sendall(b" " * 60)
    same("what came whole", whole.until(b"\r\n"), b"HTTP/1.1 400 Bad Request\r\n")
    whole.answer()
    whole.socket.sendall(HALF)
    c.wake()
    began[whole] = c.clock.now
    for w in began:
        if w is not whole:
            w.socket.sendall(b"O")
    ended = 0
    for w, at in sorted(began.items(), key=lambda item: item[1]):
        c.set(at + WHOLE - MICRO)
        holds("a request that has its time", is_open(w), ended)
        same("how many were ended", c.hits("time"), ended)
        c.after(MICRO)
        same("what comes before the end", has_ended(w), b"")
        ended += 1
        same("how many were ended", c.hits("time"), ended)
        same("what is held", c.number_of("held_bytes"), 0 if ended == len(began) else c.number_of("held_bytes"))
    lifeline, watch = Connection(c), Connection(c)
    lifeline.socket.sendall(trying.lifeline_of(lifeline.socket))
    watch.send("/v3/watch", json.dumps({"create_request": {"key": coded(b"k")}}).encode())
    watch.head(), watch.chunk()
    c.after(WHOLE)
    holds("who watches, and a lifeline", is_open(watch) and is_open(lifeline), "ended")
    c.ends("ended a connection whose request did not come whole in time")


def try_idle(place):
    """Who has asked may be idle for so long, as may who has not asked yet. Who watches and whose lifeline it is may be for ever."""
    c = Timed(place)
    fresh, asked, again, lifeline, watch = [Connection(c) for _ in range(5)]
    lifeline.socket.sendall(trying.lifeline_of(lifeline.socket))
    watch.send("/v3/watch", json.dumps({"create_request": {"key": coded(b"k")}}).encode())
    watch.head(), watch.chunk()
    for w in (asked, again):
        w.send("/v3/kv/range", b'{"key":"aw=="}')
        w.answer()
    c.wake()
    c.after(IDLE - SECOND)
    again.send("/v3/kv/range", b'{"key":"aw=="}')
    again.answer()
    c.after(SECOND - MS)
    holds("who has its time", all(map(is_open, (fresh, asked, again, lifeline, watch))), "ended")
    c.after(MS)
    same("the end of who is idle", (has_ended(fresh), has_ended(asked)), (b"", b""))
    holds("who has asked meanwhile", is_open(again), "ended")
    c.after(IDLE - SECOND - MS)
    holds("who has asked meanwhile", is_open(again), "ended")
    c.after(MS)
    same("its end", has_ended(again), b"")
    for _ in range(20):
        c.after(IDLE - SECOND)
    holds("who watches, and a lifeline", is_open(watch) and is_open(lifeline), "ended")
    same("how many there are", (c.number_of("watches"), c.number_of("lifelines"), c.number_of("connections")), (1, 1, 3))
    c.ends()


# ---- what is said again ----


def try_told(place):
    """Of each bound once, and again when a minute is over, with how often it was meanwhile."""
    c = Timed(place)
    began, wanted, unsaid, told_at = c.clock.now, [], 0, None
    text = "refused a request that a web page made, or for another host: 127.0.0.1"
    for at in (0, 0, 1, AGAIN - MICRO, AGAIN, AGAIN + MICRO, 2 * AGAIN - MICRO, 2 * AGAIN, 3 * AGAIN, 4 * AGAIN + 5 * SECOND, 5 * AGAIN, 5 * AGAIN + 5 * SECOND):
        c.set(began + at // MICRO * MICRO)
        w = Connection(c)
        w.socket.sendall(b"GET /metrics HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 0\r\n\r\n")
        same("what is answered", w.answer()[0].split("\r\n")[0], "HTTP/1.1 403 Forbidden")
        w.close()
        if told_at is None or at - told_at >= AGAIN:
            wanted.append(text + (f", and {unsaid} times before that" if unsaid else ""))
            unsaid, told_at = 0, at
        else:
            unsaid += 1
    same("how often that was", (c.hits("pages"), len(wanted)), (12, 6))
    for n in (3, 1):
        for w in [half(c) for _ in range(n)]:
            c.after(WHOLE)
            has_ended(w) if is_open(w) is False else None
        c.after(AGAIN)
    same("how many had not come whole", c.hits("time"), 4)
    time_out = "ended a connection whose request did not come whole in time"
    c.ends(*wanted, time_out, time_out + ", and 2 times before that")


# ---- who has to go ----


class Places(Timed):
    """A store of sixteen places, of which others than agents may have eight; who asks it of itself is an agent."""

    def __init__(self, place):
        super().__init__(place, "--connections=16")
        self.put(b"/rankrun/one/cur", b"1")
        self.agent(self.connection)

    def agent(self, w):
        w.send("/v3/kv/range", json.dumps({"key": coded(b"/rankrun/one/cur")}).encode())
        w.answer()

    def are(self, ended, going, staying):
        """As many as that have ended until now, these among them for the first time."""
        same("how many were ended", self.hits("connections"), ended)
        same("who has ended", [has_ended(w) for w in going], [b""] * len(going))
        same("who may stay", [is_open(w) for w in staying], [True] * len(staying))


def try_silent(place):
    """Others than agents may be silent for so long before one goes to let others in, who wait meanwhile."""
    c = Places(place)
    began, some = c.clock.now, []
    for i in range(9):
        some.append(Connection(c))
        c.wake()
        c.after(MS if i < 8 else 0)
    late = [Connection(c) for _ in range(2)]
    c.set(began + SILENT - MICRO)
    c.are(0, [], some)
    same("how many are in", c.number_of("connections_total"), 1 + 9)
    c.after(MICRO)
    c.are(1, some[:1], some[1:])
    same("how many are in", c.number_of("connections_total"), 1 + 11)
    c.set(began + SILENT + MS - MICRO)
    c.are(1, [], some[1:] + late)
    c.after(MICRO)
    c.are(2, some[1:2], some[2:] + late)
    some[2].send("/v3/kv/range", b'{"key":"aw=="}')
    some[2].answer()
    c.after(MS - MICRO)
    c.are(2, [], some[2:] + late)
    c.after(SECOND)
    c.are(3, some[3:4], [some[2], *some[4:], *late])
    for w in some[4:8]:
        w.close()
    c.after(SECOND)
    more = [Connection(c) for _ in range(4)]
    c.after(SECOND)
    c.are(3, [], [some[2], some[8], *late, *more])
    c.ends("ended a connection of nobody's agent to let others in: 127.0.0.1")


def try_idle_agents(place):
    """Where all places are agents', the one goes that was silent longest, not within a second, and none that watches."""
    c = Places(place)
    began, some = c.clock.now, []
    for i in range(15):
        c.set(began + i * MS)
        some.append(Connection(c))
        c.agent(some[-1])
    some[0].send("/v3/watch", json.dumps({"create_request": {"key": coded(b"/rankrun/one/cur")}}).encode())
    some[0].head(), some[0].chunk()
    c.set(began + 500 * MS)
    stranger = Connection(c)
    c.after(SILENT - MICRO)
    c.are(0, [], [*some, stranger])
    c.after(MICRO)
    c.are(1, [stranger], some)
    last = Connection(c)
    c.wake()
    c.agent(last)
    c.agent(c.connection)
    for _ in range(3):
        c.after(SILENT)
    c.set(began + IDLE_AGENT + MS - MICRO)
    c.are(1, [], [*some, last])
    c.after(MICRO)
    c.are(2, some[1:2], [some[0], *some[2:], last])
    c.after(10 * SECOND)
    c.are(2, [], [some[0], *some[2:], last])
    c.ends("ended a connection of nobody's agent to let others in: 127.0.0.1")


# ---- who takes nothing ----


MANY = 1000  # of a kilobyte each: far more than the kernel takes
LONG = json.dumps({"key": coded(b"n/"), "range_end": coded(b"n0")}).encode()


class Unread(Connection):
    """One whose answer nobody reads yet, and for which the kernel keeps little."""

    def __init__(self, client, agent):
        super().__init__(client)
        self.socket.close()
        client.accepted += 1
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.settimeout(60)
        self.socket.connect(("127.0.0.1", client.store.port))
        if agent:
            client.agent(self)

    def waits(self):
        """Its head has come, and none of what is behind it."""
        text = b""
        while b"\r\n\r\n" not in text:
            text = self.socket.recv(trying.PIECE, socket.MSG_PEEK)
        return text.endswith(b"\r\n\r\n")


class Slow(Places):
    def __init__(self, place):
        Timed.__init__(self, place)
        self.put(b"/rankrun/one/cur", b"1")
        self.agent(self.connection)
        for first in range(0, MANY, 100):
            puts = [{"request_put": {"key": coded(b"n/%04d" % i), "value": coded(b"x" * 900)}} for i in range(first, first + 100)]
            self.connection.send("/v3/kv/txn", json.dumps({"success": puts}).encode())
            self.connection.answer()

    def unread(self, agent):
        w = Unread(self, agent)
        w.send("/v3/kv/range", LONG)
        while b"\r\n\r\n" not in w.socket.recv(trying.PIECE, socket.MSG_PEEK):
            pass
        self.wake()
        return w


def try_slow(place):
    """An answer of which nothing is taken for so long is over; one that is read meanwhile comes whole."""
    c = Slow(place)
    began = c.clock.now
    some = [c.unread(agent) for agent in (False, True, False, True)]
    c.set(began + SLOW - MICRO)
    same("how many were too slow", c.hits("slow"), 0)
    for w in some[2:]:
        head, text = w.answer()
        holds("a long answer", text.endswith("}") and len(json.loads(text)["kvs"]) == MANY, (head, text[-100:]))
        w.send("/v3/kv/range", b'{"key":"aw=="}')
        w.answer()
    same("how many were too slow", c.hits("slow"), 0)
    c.after(MICRO)
    same("how many were too slow", c.hits("slow"), 2)
    for w in some[:2]:
        text = has_ended(w)
        holds("an answer that was cut", text.startswith(b"HTTP/1.1 200 OK") and not text.endswith(b"]}\n0\r\n\r\n"), text[-100:])
    c.after(AGAIN)
    holds("who had read all", all(map(is_open, some[2:])), "ended")
    same("how many there are", c.number_of("connections"), 3)
    c.ends("ended an answer that was read too slowly: 127.0.0.1")


def try_crowded(place):
    """Where others wait for what it holds, an answer has a second; they come in its place, and nobody else goes."""
    for agent, n in ((False, 16), (True, 30)):
        c = Slow(place)
        began = c.clock.now
        some = [c.unread(agent) for _ in range(n)]
        waiting = [w for w in some if w.waits()]
        holds("how many wait", 0 < len(waiting) < n // 2 and waiting == some[-len(waiting):], (len(waiting), n))
        c.set(began + CROWDED - MICRO)
        same("how many were too slow", c.hits("slow"), 0)
        same("who waits", [w for w in some if w.waits()], waiting)
        c.after(MICRO)
        for _ in range(10000):
            if c.hits("slow") >= len(waiting):
                break
        c.wake()
        same("how many were too slow", c.hits("slow"), len(waiting))
        same("who waits", [w for w in waiting if w.waits()], [])
        for w in some[:len(waiting)]:
            has_ended(w)
        c.set(began + SLOW - MICRO)
        same("how many were too slow", c.hits("slow"), len(waiting))
        c.after(MICRO)
        same("how many were too slow", c.hits("slow"), n - len(waiting))
        c.set(began + CROWDED + SLOW - MICRO)
        same("how many were too slow", c.hits("slow"), n - len(waiting))
        c.after(MICRO)
        same("how many were too slow", c.hits("slow"), n)
        same("how many there are", c.number_of("connections"), 1)
        for w in some[len(waiting):]:
            has_ended(w)
        c.ends("ended an answer that was read too slowly: 127.0.0.1")


def watcher(c, agent, reads=False):
    """Of keys, or of a run's, by who reads what it is told or does not."""
    w = Connection(c) if reads else Unread(c, False)
    key = b"/rankrun/one/" if agent else b"w/"
    w.send("/v3/watch", json.dumps({"create_request": {"key": coded(key), "range_end": coded(key[:-1] + b"0")}}).encode())
    w.head(), w.chunk()
    return w


def write(c, times):
    """Each of which a watcher is told 20 kB."""
    for key in (b"w/k", b"/rankrun/one/cur") * times:
        c.connection.send("/v3/kv/put", json.dumps({"key": coded(key), "value": coded(b"x" * 15000)}).encode())
        c.connection.answer()


def try_slow_watches(place):
    """Who takes nothing of what it is told for so long is cut off, as is at once who misses what the store has forgotten; who reads is told all."""
    for times, at_once in ((10, False), (80, True)):
        c = Slow(place)
        began, some = c.clock.now, []
        for agent in (False, True):
            some += [watcher(c, agent), watcher(c, agent, reads=True), watcher(c, agent)]
        told = [0] * 6
        for _ in range(times):
            write(c, 1)
            for i in (1, 4):
                told[i] += some[i].chunk().count('"mod_revision"')
        c.wake()
        same("what was told to who reads", told, [0, times, 0, 0, times, 0])
        if not at_once:
            same("how many were too slow", (c.hits("slow"), c.number_of("watches")), (0, 6))
            c.set(began + SLOW - MICRO)
            for i in (2, 5):
                n = 0
                while n < times:
                    n += some[i].chunk().count('"mod_revision"')
                same("what a watcher is told that reads late", n, times)
            same("how many were too slow", (c.hits("slow"), c.number_of("watches")), (0, 6))
            c.after(MICRO)
        gone = (0, 3) if not at_once else (0, 2, 3, 5)
        for i in gone:
            text = has_ended(some[i])
            holds("what comes before the end is a part", 0 < text.count(b'"mod_revision"') < times, text[-100:])
        same("how many were too slow", (c.hits("slow"), c.number_of("watches"), c.number_of("connections")), (len(gone), 6 - len(gone), 7 - len(gone)))
        write(c, 1)
        for i in {*range(6)} - {*gone}:
            same("what those are told that are left", some[i].chunk().count('"mod_revision"'), 1)
        c.after(AGAIN)
        same("how many were too slow", (c.hits("slow"), c.number_of("watches")), (len(gone), 6 - len(gone)))
        c.ends("ended an answer that was read too slowly: 127.0.0.1")


if __name__ == "__main__":
    trying.main(globals())
