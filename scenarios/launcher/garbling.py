"""A proxy before a store that does to its answers what proxies, etcds of other versions and busy stores do: it cuts them into pieces,
loses some, refuses some, ends watches, says what is no answer at all. Of the standard library alone."""
import http.client
import random
import socket
import threading

PIECE = 64 << 10


class Garbling:
    """Serves at a free port of 127.0.0.1; `port` is the store's. How, of answers and of watches, is a method's name below; one in
    `every` is served so."""

    def __init__(self, port, how, every=1):
        self.store, self.how, self.every, self.lock, self.random = port, how, every, threading.Lock(), random.Random(7)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                c, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(c,), daemon=True).start()

    def fini(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def serve(self, c):
        c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            with c, c.makefile("rb") as f:
                while self.serve_one(c, f):
                    pass
        except (OSError, http.client.HTTPException, ValueError):
            pass  # whoever has asked has gone

    def serve_one(self, c, f):
        """Whether the connection stays."""
        first = f.readline().split()
        if len(first) < 2:
            return False
        headers = http.client.parse_headers(f)
        body, path = f.read(int(headers.get("Content-Length", "0"))), first[1].decode()
        with self.lock:
            mine = self.random.randrange(self.every) == 0
        if path.endswith("/lifeline"):
            return False  # a proxy has none
        way = getattr(self, ("watch_" if path.endswith("/watch") else "answer_") + self.how, None) if mine else None
        return (way or (self.watch if path.endswith("/watch") else self.answer))(c, path, body)

    def ask(self, path, body):
        store = http.client.HTTPConnection("127.0.0.1", self.store, timeout=60)
        store.request("POST", path, body)
        return store, store.getresponse()

    @staticmethod
    def say(c, status, text, kind="application/json"):
        c.sendall(f"HTTP/1.1 {status} Said\r\nContent-Type: {kind}\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text)
        return True

    def answer(self, c, path, body):
        store, answer = self.ask(path, body)
        text = answer.read()
        store.close()
        return self.say(c, answer.status, text)

    def watch(self, c, path, body, say=None):
        """Line by line, for as long as both sides want it. `say` tells what becomes of a line, None: the watch ends."""
        store, answer = self.ask(path, body)
        if answer.status != 200:
            return self.say(c, answer.status, answer.read())
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        while line := answer.readline():
            pieces = say(line) if say else [line]
            for piece in pieces or []:
                c.sendall(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            if pieces is None:
                break
        c.sendall(b"0\r\n\r\n")
        store.close()
        return True

    # ---- what can be lived with ----

    def answer_pieces(self, c, path, body):
        store, answer = self.ask(path, body)
        text = answer.read()
        store.close()
        c.sendall(f"HTTP/1.1 {answer.status} Said\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        for i in range(0, len(text), 7):
            piece = text[i:i + 7]
            c.sendall(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        c.sendall(b"0\r\n\r\n")
        return True

    def watch_pieces(self, c, path, body):
        return self.watch(c, path, body, lambda line: [b"\n"] + [line[i:i + 9] for i in range(0, len(line), 9)])

    def answer_lost(self, c, path, body):
        """It is done, and nobody hears of it."""
        store, answer = self.ask(path, body)
        answer.read()
        store.close()
        return False

    def answer_busy(self, c, path, body):
        return self.say(c, 503, b"no server is available", "text/plain")

    def answer_half(self, c, path, body):
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"header\": {")
        return False

    def watch_ended(self, c, path, body):
        return self.watch(c, path, body, lambda line: [line] if b'"created"' in line else None)

    def watch_canceled(self, c, path, body):
        return self.watch(c, path, body, lambda line: [b'{"result": {"canceled": true, "compact_revision": "1"}}\n'])

    def watch_nonsense(self, c, path, body):
        return self.watch(c, path, body, lambda line: [b"{]\n"])

    def answer_beta(self, c, path, body):
        """An etcd 3.3: it has no /v3 yet."""
        if not path.startswith("/v3beta"):
            return self.say(c, 404, b"404 page not found\n", "text/plain")
        return self.answer(c, path.replace("/v3beta", "/v3"), body)

    def watch_beta(self, c, path, body):
        if not path.startswith("/v3beta"):
            return self.say(c, 404, b"404 page not found\n", "text/plain")
        return self.watch(c, path.replace("/v3beta", "/v3"), body)

    # ---- what cannot ----

    def answer_page(self, c, path, body):
        return self.say(c, 200, b"<html><body>It works!</body></html>", "text/html")

    def answer_nothing(self, c, path, body):
        return self.say(c, 404, b"404 page not found\n", "text/plain")

    def answer_closed(self, c, path, body):
        return self.say(c, 403, b'{"error": "etcdserver: permission denied", "code": 7, "message": "etcdserver: permission denied"}')

    def answer_full(self, c, path, body):
        return self.say(c, 429, b'{"error": "etcdserver: mvcc: database space exceeded", "code": 8, "message": "etcdserver: mvcc: database space exceeded"}')
