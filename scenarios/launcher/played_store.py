"""A store that is played by whoever calls it, in one thread, from the model of store/model.py: it answers one request, or tells one watch, when it is
told to. For clocked.py. Of the standard library alone."""
import json
import os
import re
import socket
import sys

import trying
from recording import asked

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "store"))
import model  # noqa: E402

OPS = {"request_range": "range", "request_put": "put", "request_delete_range": "delete"}
ANSWERS = {"range": "response_range", "put": "response_put", "delete": "response_delete_range"}


def plain(text):
    return trying.base64.b64decode(text)


def operation(sent):
    """As the model has it."""
    (name, q), = sent.items()
    op = {"key": b"", "range_end": b"", "value": b"", "lease": 0, "limit": 0, "revision": 0, "keys_only": False, "count_only": False, "prev_kv": False}
    return OPS[name], {k: plain(q[k]) if isinstance(v, bytes) and k in q else type(v)(q.get(k, v)) if not isinstance(v, bytes) else v for k, v in op.items()}


def compared(sent):
    target = model.TARGETS.index(sent.get("target", "VERSION"))
    field = model.FIELDS[target]
    wanted = plain(sent.get("value", "")) if field == "value" else int(sent.get(field, 0))
    return {"key": plain(sent["key"]), "range_end": plain(sent.get("range_end", "")), "result": sent.get("result", "EQUAL"), "field": field, "wanted": wanted}


class Connection:
    def __init__(self, store, sock):
        self.store, self.socket, self.bytes, self.watch = store, sock, b"", None

    def fileno(self):
        return self.socket.fileno()

    def read(self):
        """Whether it goes on."""
        piece = self.socket.recv(trying.PIECE)
        self.bytes += piece
        while b"\r\n\r\n" in self.bytes:
            head, rest = self.bytes.split(b"\r\n\r\n", 1)
            found = re.search(rb"(?i)content-length: (\d+)", head)
            n = int(found[1]) if found else 0
            if len(rest) < n:
                break
            self.bytes = rest[n:]
            self.store.asked.append((self, head.split(b" ")[1].decode(), rest[:n]))
        return bool(piece)

    def say(self, status, text):
        body = text.encode()
        self.send(f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)

    def piece(self, text):
        self.send(f"{len(text):x}\r\n{text}\r\n".encode())

    def send(self, text):
        """Who has gone is seen to have when it is read from."""
        try:
            self.socket.sendall(text)
        except (BrokenPipeError, ConnectionResetError):
            pass


class Store:
    """A store in this thread, which knows who asks."""

    def __init__(self, world):
        self.world, self.model, self.away, self.connections, self.asked, self.mute = world, model.Model(64), None, [], [], None
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def closes(self):
        """Nobody is there to be asked."""
        self.listener.close()
        self.end_all(lambda c: True)

    def opens(self):
        self.listener = socket.create_server(("127.0.0.1", self.port))

    def accept(self):
        c, _ = self.listener.accept()
        c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connections.append(Connection(self, c))

    def serve(self, c):
        try:
            good = c.read()
        except ConnectionResetError:
            good = False
        if not good:
            self.end(c)

    def end(self, c):
        c.socket.close()
        self.connections.remove(c)
        self.asked = [q for q in self.asked if q[0] is not c]

    def acts(self):
        """Answers one request, or tells one watch what has happened: nobody is told two things at once. Whether there was any."""
        if self.asked:
            first = min(self.asked, key=lambda q: q[1:])
            self.asked.remove(first)
            self.answer(*first)
            return True
        for c in self.connections:
            lines = c.watch.lines() if c.watch else []
            for line in lines:
                c.piece(line)
            if lines:
                return True
        return False

    def end_watches(self):
        self.end_all(lambda c: c.watch)

    def end_all(self, which):
        """One by one: each is seen before the next."""
        for c in [c for c in self.connections if which(c)]:
            if c in self.connections:
                self.end(c)
                self.world.passes(0)

    def result(self, path, q):
        m = self.model
        if path.endswith("/kv/txn"):
            t = {"compare": [compared(c) for c in q.get("compare", [])], **{k: [operation(o) for o in q.get(k, [])] for k in ("success", "failure")}}
            succeeded, kinds, texts = m.txn(t)
            told = ",".join(f'{{"{ANSWERS[kind]}":{text}}}' for kind, text in zip(kinds, texts))
            return f"{{{model.header(m.revision)}" + (',"succeeded":true' if succeeded else "") + (f',"responses":[{told}]' if texts else "") + "}"
        if path.endswith(("/kv/range", "/kv/put", "/kv/deleterange")):
            kind = {"range": "request_range", "put": "request_put", "deleterange": "request_delete_range"}[path.rsplit("/", 1)[1]]
            return m.txn({"compare": [], "success": [operation({kind: q})], "failure": []})[2][0]
        lease = int(q.get("ID", 0))
        if path.endswith("/lease/grant"):
            return m.grant(lease, int(q.get("TTL", 0)), 1)
        return m.keep(lease) if path.endswith("/lease/keepalive") else m.revoke(lease)

    def done(self, path, q):
        try:
            return 200, self.result(path, q)
        except model.Refused as refused:
            return refused.args[0], refused.text()

    def answer(self, c, path, body):
        q, words = json.loads(body or b"{}"), asked(path, body, 0, b"{}")
        status = 503
        if self.mute and re.search(self.mute, words):
            return self.world.heard(words + " and is not answered")
        if self.away and re.search(self.away, words):
            text = "{}"
        elif path.endswith("/watch"):
            return self.watch(c, q["create_request"])
        else:
            status, text = self.done(path, q)
        self.world.heard(asked(path, body, status, text))
        c.say(status, text)

    def watch(self, c, w):
        self.world.heard(f"watch {plain(w['key']).decode()} to {plain(w.get('range_end', '')).decode()}")
        c.watch = model.Watch(self.model, plain(w["key"]), plain(w.get("range_end", "")), int(w.get("start_revision", 0)))
        c.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        c.piece(f'{{"result":{{{model.header(self.model.revision)},"created":true}}}}\n')

    # ---- as recorded_peers.py asks a store ----

    def ask(self, path, body, **_):
        return self.done(path, body)
