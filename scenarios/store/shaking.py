"""A job whose last rank shakes hands with stores of its own that speak TLS, in every way that fails and in those that do not: cut off at each byte,
with each byte altered, in plain HTTP, with no certificate and with each that is none, by whole and by single bytes; and compares how each ends, what is
counted, what the store says and that it answers the next one. Usage: shaking.py STEPS CHAPTER...; the chapters are the functions below
whose name begins with try_. Without a job, of the rankrun in the PATH: shaking.py alone CHAPTER... Of the standard library alone."""
import json
import os
import re
import socket
import ssl
import subprocess

import trying
from model import coded
from timed import WHOLE, MICRO, Clock
from trying import holds, same

HERE = os.path.dirname(os.path.abspath(__file__))
REASONS = 8  # that are said
PLAIN = "this store speaks TLS: https, --rdzv-conf protocol=https,cacert=FILE"
GET = b"GET /metrics HTTP/1.1\r\nHost: store\r\n\r\n"


def certify(place):
    """What certificates.sh makes, and an agent's that is over, one that is not yet, one of a server, and one that its own key has signed."""
    folder = place.inside("certificates")
    run = lambda *words: subprocess.run(words, check=True, cwd=folder, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    subprocess.run([os.path.join(HERE, "certificates.sh"), folder], check=True, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    for name, more in (("over", ["-days", "-1"]), ("stranger", ["-days", "9"])):
        authority = "other" if name == "stranger" else "ca"
        run("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/O={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        run("openssl", "x509", "-req", "-in", f"{name}.csr", "-CA", f"{authority}.pem", "-CAkey", f"{authority}.key", "-CAcreateserial", *more, "-out", f"{name}.pem")
    return folder


class Shaken:
    """A store that speaks TLS, and what is known of it."""

    def __init__(self, place, certified=True, env=None):
        self.folder, self.failed, self.reasons = certify(place), 0, []
        name = lambda n: os.path.join(self.folder, n)
        words = [f"--cert={name('store.pem')}", f"--key={name('store.key')}", *([f"--client-ca={name('ca.pem')}"] if certified else [])]
        self.store = trying.Store(place, "--quarantine=never", "--allow-host=store", *words, env=env)
        self.accepted = 0
        self.good = self.secret(self.connect())

    def connect(self):
        self.accepted += 1
        return socket.create_connection(("127.0.0.1", self.store.port), timeout=60)

    def context(self, mine="agent", **more):
        context = ssl.create_default_context(cafile=os.path.join(self.folder, more.get("authority", "ca") + ".pem"))
        for version in ("minimum_version", "maximum_version"):
            if version in more:
                setattr(context, version, more[version])
        if mine:
            context.load_cert_chain(os.path.join(self.folder, mine + ".pem"), os.path.join(self.folder, mine + ".key"))
        return context

    def secret(self, connection, **more):
        return self.context(**more).wrap_socket(connection, server_hostname="store")

    def ask(self, c, text=GET):
        """One answer, whole."""
        c.sendall(text)
        told = b""
        while b"\r\n\r\n" not in told:
            piece = c.recv(trying.PIECE)
            holds("an answer by TLS", piece, told)
            told += piece
        head, body = told.split(b"\r\n\r\n", 1)
        n = int(re.search(rb"Content-Length: (\d+)", head)[1])
        while len(body) < n:
            body += c.recv(trying.PIECE)
        return head.split(b"\r\n")[0].decode(), body.decode()

    def number_of(self, name):
        return int(re.search(rf"^rankrun_store_{name} (\d+)$", self.ask(self.good)[1], re.M)[1])

    def fails(self, *reasons):
        """So many more have failed since, each for a reason of its own or for one that was said."""
        self.failed += len(reasons)
        self.reasons += [r for r in reasons if r not in self.reasons]
        self.stands()

    def stands(self):
        """All that it counts; and the next one is answered."""
        with self.secret(self.connect()) as c:
            same("what the next one is answered", self.ask(c)[0], "HTTP/1.1 200 OK")
            same("how many handshakes have failed", self.number_of("handshakes_failed_total"), self.failed)
            same("how many came", self.number_of("connections_total"), self.accepted)
        same("what is held for those who have gone", self.number_of("held_bytes"), 0)

    def ends(self):
        """Each reason was said once, with who and where."""
        self.good.close()
        said = [line for line in self.store.ends(0).splitlines() if "not let in" in line]
        head = re.escape(f"rankrun: store: 127.0.0.1:N is not let in at port {self.store.port}, which speaks TLS: ").replace("N", r"\d+")
        wrong = [line for line in said if not re.match(head, line)]
        same("how the store says it", wrong, [])
        same("the reasons that the store says", [re.sub(head, "", line) for line in said], self.reasons[:REASONS])


def end_of(c):
    """What comes before its end, in order or not."""
    text = b""
    try:
        for piece in iter(lambda: c.recv(trying.PIECE), b""):
            text += piece
    except (ConnectionResetError, ssl.SSLError):
        pass
    c.close()
    return text


def hello(shaken, **more):
    """The first message of a client."""
    out = ssl.MemoryBIO()
    try:
        shaken.context(**more).wrap_bio(ssl.MemoryBIO(), out, server_hostname="store").do_handshake()
    except ssl.SSLWantReadError:
        pass
    return out.read()


# ---- what is no handshake ----


def try_plain(place):
    """Who speaks plain HTTP is told what is missing, by each method; what else is no TLS is ended without a word."""
    s = Shaken(place)
    for method, reason in (("GET ", "http request"), ("POST", "http request"), ("HEAD", "http request"), ("PUT ", "http request"), ("CONN", "https proxy request")):
        c = s.connect()
        c.sendall(method.encode() + b" /metrics HTTP/1.1\r\nHost: store\r\n\r\n" + b" " * 100)
        told = end_of(c).decode()
        if reason == "http request":
            body = f'{{"error":"{PLAIN}","code":9,"message":"{PLAIN}"}}'
            same(f"what plain {method} is answered", told, "HTTP/1.1 426 Upgrade Required\r\nUpgrade: TLS/1.2\r\nConnection: close\r\nContent-Type: application/json\r\n"
                 f"Content-Length: {len(body)}\r\n\r\n{body}")
        else:
            same(f"what {method} is answered", "HTTP/" in told, False)
        s.fails(reason)
    for text in (b"\x00" * 20, b"\xff" * 20, b"\x16\x03\x01\x00\x05nope!", b"SSH-2.0-OpenSSH_9.2\r\n", b"\x80\x2e\x01\x00\x02" + b"\0" * 60):
        c = s.connect()
        c.sendall(text)
        same(f"what {text[:5]!r} is answered in HTTP", b"HTTP/" in end_of(c), False)
        s.failed = s.number_of("handshakes_failed_total")
    told = s.failed
    holds("how many were no TLS", 8 <= told <= 10, told)
    s.good.close()
    said = [line for line in s.store.ends(0).splitlines() if "not let in" in line]
    same("how many reasons are said, each once", (len(said) > 3, len(set(line.rsplit(": ", 1)[1] for line in said))), (True, len(said)))


def try_cut(place):
    """A first message that ends at each byte is no failure, if its end comes behind it; nor is one that is followed by nothing for a while."""
    s = Shaken(place)
    whole = hello(s)
    for n in range(0, len(whole), 1 if len(whole) < 260 else 2):
        c = s.connect()
        c.sendall(whole[:n])
        c.shutdown(socket.SHUT_WR)
        same(f"what is answered to {n} bytes of it", end_of(c), b"")
        if n % 32 == 0:
            s.fails()
    s.fails()
    for n in (1, 6, 40, len(whole) - 1, len(whole)):  # those have ended abruptly
        c = s.connect()
        c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        c.sendall(whole[:n])
        c.close()
        s.fails()
    s.ends()


def try_altered(place):
    """A first message with any byte of it altered ends nobody but who has sent it. So many reasons are said, and no more, of all that there are."""
    s = Shaken(place)
    whole = hello(s)
    for at in range(0, len(whole)):
        c = s.connect()
        c.sendall(whole[:at] + bytes([whole[at] ^ 0xFF if at % 2 else (whole[at] + 1) & 0xFF]) + whole[at + 1:])
        try:
            c.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it has ended already
        end_of(c)
    some = s.number_of("handshakes_failed_total")
    holds("how many have failed", REASONS < some < len(whole), some)
    s.failed = some
    same("who shows no certificate", shakes(s, mine=None), "ended")
    s.failed += 1
    s.stands()
    s.good.close()
    said = [line.rsplit(": ", 1)[1] for line in s.store.ends(0).splitlines() if "not let in" in line]
    same("how many reasons are said, each once", (len(said), len(set(said))), (REASONS, REASONS))


class Slowly:
    """TLS over a connection by so many bytes at a time."""

    def __init__(self, shaken, context, n):
        self.n, self.into, self.out = n, ssl.MemoryBIO(), ssl.MemoryBIO()
        self.socket, self.tls = shaken.connect(), context.wrap_bio(self.into, self.out, server_hostname="store")
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def step(self, what):
        while True:
            try:
                done = what()
                self.flush()
                return done
            except ssl.SSLWantReadError:
                self.flush()
                piece = self.socket.recv(self.n)
                holds("what comes", piece, "its end")
                self.into.write(piece)

    def flush(self):
        text = self.out.read()
        for i in range(0, len(text), self.n):
            self.socket.sendall(text[i:i + self.n])

    def sendall(self, text):
        self.step(lambda: self.tls.write(text))

    def recv(self, n):
        return self.step(lambda: self.tls.read(n))


def try_pieces(place):
    """Handshakes, requests and answers that come by a byte, by two, by all that TLS allows, in each version."""
    s = Shaken(place)
    body = json.dumps({"key": coded(b"k"), "value": coded(b"v" * 3000)}).encode()
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        for n in (1, 2, 700, 40000):
            c = Slowly(s, s.context(minimum_version=version, maximum_version=version), n)
            c.step(c.tls.do_handshake)
            for _ in range(2):
                same("what is answered", s.ask(c)[0], "HTTP/1.1 200 OK")
                head, text = s.ask(c, f"POST /v3/kv/put HTTP/1.1\r\nHost: store\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
                same("how a write is answered", (head, '"revision"' in text), ("HTTP/1.1 200 OK", True))
            c.socket.close()
            s.fails()
    s.ends()


# ---- who is not let in ----


def shakes(s, **more):
    """Whether it was answered."""
    try:
        with s.secret(s.connect(), **more) as c:
            return s.ask(c)[0]
    except ssl.SSLCertVerificationError:
        return "it was not believed"
    except (ssl.SSLError, ConnectionError, SystemExit):
        return "ended"


def try_certificates(place):
    """Only who shows a certificate that the authority has signed, for now, is let in; each reason is said once, however often."""
    s = Shaken(place)
    verify = "certificate verify failed"
    for _ in range(2):
        same("who shows none", shakes(s, mine=None), "ended")
        s.fails("peer did not return a certificate")
        for name in ("other", "over", "stranger", "store"):
            same(f"who shows that of {name}", shakes(s, mine=name), "ended")
            s.fails(verify)
        same("who does not believe the store's", shakes(s, authority="other"), "it was not believed")
        s.fails("tlsv1 alert unknown ca")
        same("an agent", shakes(s), "HTTP/1.1 200 OK")
        s.fails()
        with s.connect() as c:
            c.sendall(GET)
            holds("what plain HTTP is answered", end_of(c).startswith(b"HTTP/1.1 426 "), "")
        s.fails("http request")
    s.ends()


def try_anybody(place):
    """Where no authority is named anybody is let in, with any certificate and with none; and a page is asked for by its name alone."""
    s = Shaken(place, certified=False)
    for name in (None, "other", "over", "agent"):
        same(f"who shows that of {name}", shakes(s, mine=name), "HTTP/1.1 200 OK")
        s.fails()
    for host, wanted in ((b"store", "HTTP/1.1 200 OK"), (b"evil.example", "HTTP/1.1 403 Forbidden")):
        same(f"who asks by the name {host}", s.ask(s.good, GET.replace(b"store", host))[0], wanted)
    s.ends()


def try_late(place):
    """A handshake has as long as a request; whoever is in may be silent for longer."""
    clock = Clock(place)
    s = Shaken(place, env=clock.env)
    whole = hello(s)
    parts = []
    for n in (0, 1, 40, len(whole)):
        c = s.connect()
        c.sendall(whole[:n])
        parts.append(c)
    with s.secret(s.connect()) as inside:
        for _ in range(2):
            same("one that is in", s.ask(inside)[0], "HTTP/1.1 200 OK")
        s.number_of("keys")
        clock.set(clock.now + WHOLE - MICRO)
        for _ in range(3):
            same("how many were late", s.number_of(r'bounded_total\{bound="time"\}'), 0)
        clock.set(clock.now + MICRO)
        for _ in range(3):
            s.number_of("keys")
        same("how many were late", s.number_of(r'bounded_total\{bound="time"\}'), 4)
        for c in parts[:3]:
            same("what comes before its end", end_of(c), b"")
        holds("what comes behind a whole message", end_of(parts[3])[:1] == b"\x16", "")
        same("one that is in", s.ask(inside)[0], "HTTP/1.1 200 OK")
    s.fails()
    s.good.close()
    said = [line for line in s.store.ends(0).splitlines() if "store: port" in line]
    same("what the store says", said, [f"rankrun: store: port {s.store.port} ended a connection whose request did not come whole in time"])


if __name__ == "__main__":
    trying.main(globals())
