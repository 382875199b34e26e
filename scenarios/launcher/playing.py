"""Plays what a launcher asks: a store, or an etcd, that holds what it is told and answers what it is told; and compares what is asked, and
what the launcher makes of it, with a transcript. Of the standard library alone.

    playing.py TRANSCRIPT           "N lines were answered as they must be", or each that was not; exit 0 or 1
    playing.py --write TRANSCRIPT   puts behind each line what is answered now; to be read before it is believed

A line "$ WHO WORD... -- COMMAND" has behind it the requests that the command made - method, path, headers that count, and the body with keys and
values in plain -, what it printed, and "exit N" where it ended so. WHO is

    keys KEY=VALUE... [watch EVENT...]   a store of rankrun's protocol; keys are those of the run r. EVENT is +KEY=VALUE, -KEY, "ends" or a line
    tree KEY=VALUE...                    an etcd with torchelastic's rendezvous of the run r; a KEY that begins with ":" is one of version 3
    says ANSWER...                       who gives the k-th request the k-th ANSWER, a status and a body, "none" or "half" of one; the last all others
    store                                a store of rankrun, before which it only stands: each kind of request but beats is there once
    etcd                                 the same of an etcd with its older API

"each" before it plays every word on its own, "both" plays it once more with --format=json. ". NAME=TEXT" names what $NAME stands for, the
words of TEXT where it stands alone. The command runs with PLAYED for HOST:PORT, in an empty folder, with rankrun in its PATH and no
variable of the caller's. What chance gives stands there as N, UID and so on, and a line with nothing on it as ~."""
import base64
import difflib
import http.client
import http.server
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import urllib.parse

FOLDER = "/torchelastic/p2p/run_r/rdzv"
REVISION, ROOT, PATIENCE = 1000, "/rankrun/r/", 30
BEAT = re.compile(r'\\"seq\\":|/rank_0 .*refresh=true')


def coded(text):
    return base64.b64encode(text.encode()).decode()


def plain(value):
    """JSON with what is base64 in it in plain."""
    if isinstance(value, list):
        return [plain(v) for v in value]
    if not isinstance(value, dict):
        return value
    bytes_ = ("key", "range_end", "value")
    return {k: base64.b64decode(v, validate=True).decode("latin-1") if k in bytes_ and isinstance(v, str) else plain(v) for k, v in value.items()}


def plain_form(path, text, shown):
    """The parts of a request; of etcd's older API values, and what members tell each other, in plain."""
    if not path.startswith("/v2/"):
        return [path, *shown, text]
    path, text = urllib.parse.unquote(path) if "prevValue" in path else path, urllib.parse.unquote(text)
    folder, told, name = path.partition("/kv/")
    if told:
        name, value = (base64.b64decode(coded).decode() for coded in (urllib.parse.unquote(name), text.partition("value=")[2].partition("&")[0]))
        text = "value=" + ("N" if name == "MASTER_PORT" else value)
    return [folder + told + name, text]


CHANCE = [(re.compile(pattern), word) for pattern, word in (
    (r" at 20\d\d-\S+ \S+ UTC", " at TIME"), (r"\b[0-9a-f]{32}\b", "UID"), (r"\b[0-9a-f]{16}\b", "INC"), (r"\b[0-9a-f]{16}0\b", "INC0"), (r"\d+-\d+-(\d+)", r"N-N-\1"),
    (r'("(?:ID|lease|\w*revision)": )"[1-9]\d*"', r"\1N"), (r'(\\"(?:port|\w+_port|\w+_pid|\w+time_ns|free_age_ms|seq)\\":)\d+', r"\1N"),
    (r"\b(stop|rendezvous|start|after) \d{1,5} ms", r"\1 N ms"), (r'("next_beat_ms":)\d{1,5}\b', r"\1N"), (r"^(rankrun: .*), pid \d+", r"\1, pid N"),
    (r"waitIndex=\d+", "waitIndex=N"), (re.escape(socket.gethostname()), "HOST"))]


def without_chance(text):
    for pattern, word in CHANCE:
        text = pattern.sub(word, text)
    return text


class Asked(http.server.BaseHTTPRequestHandler):
    """One connection: requests are noted, and answered by who plays."""
    protocol_version = "HTTP/1.1"

    def handle_one(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.server.note(self, body)
        self.server.who.play(self, body)

    do_GET = do_POST = do_PUT = do_DELETE = handle_one

    def log_message(self, *args):
        pass

    def say(self, status, body, **headers):
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body.encode())

    def begin_lines(self):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def line(self, text):
        piece = text.encode() + b"\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))


class Player(http.server.ThreadingHTTPServer):
    """Answers as `who` does, who is changed from line to line."""
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Asked)
        self.lock, self.who, self.asked = threading.Lock(), None, []
        self.place = "127.0.0.1:%d" % self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, address):
        pass  # whoever has asked has gone

    def note(self, asks, body):
        shown = [f"{name}: {asks.headers[name]}" for name in ("Authorization", "Content-Type") if name in asks.headers]
        try:
            text = json.dumps(plain(json.loads(body)))
        except ValueError:
            text = body.decode("latin-1")
        line = without_chance(" ".join(["asked:", asks.command, *plain_form(asks.path, text, shown)]).strip())
        with self.lock:
            if not self.who.long or not (line in self.asked or BEAT.search(line)):
                self.asked.append(line)

    def lines(self, who, command):
        """What is asked, said and left."""
        self.who, self.asked = who, []
        folder = tempfile.mkdtemp(prefix="played-")
        env = {"PATH": os.environ["PATH"], "HOME": "/tmp", "TMPDIR": folder, "XDG_RUNTIME_DIR": folder, "LC_ALL": "C"}
        child = subprocess.Popen([word.replace("PLAYED", self.place) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, errors="replace", cwd=folder, env=env, start_new_session=True)
        try:
            said = child.communicate(timeout=PATIENCE)[0]
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            who.fini()
            sys.exit(f"answered otherwise: {command} does not end within {PATIENCE} s")
        shutil.rmtree(folder)
        who.fini()
        said = said.replace(self.place, "PLAYED").replace(f"port {self.server_address[1]}", "port N").splitlines()
        return [*self.asked, *(without_chance(line) or "~" for line in said), *([f"exit {child.returncode}"] if child.returncode else [])]


class Who:
    long = False  # of one that is asked again and again each kind of request is noted once

    def __init__(self, words):
        self.words, self.n, self.lock = words, 0, threading.Lock()

    def fini(self):
        pass


# ---- a store of rankrun's protocol ----


def pair(word, **more):
    key, _, value = word.partition("=")
    return {"key": coded(ROOT + key), "create_revision": "7", "mod_revision": "9", "version": "2", "value": coded(value), **more}


class Keys(Who):
    def play(self, asks, body):
        at = self.words.index("watch") if "watch" in self.words else len(self.words)
        keys = [pair(word) for word in self.words[:at]]
        if not asks.path.endswith("/watch"):
            answer = {"header": {"revision": str(REVISION)}, "succeeded": True, "responses": [{"response_range": {"kvs": keys, "count": str(len(keys))}}]}
            return asks.say(200, json.dumps(answer))
        asks.begin_lines()
        asks.line('{"result": {"header": {"revision": "%d"}, "created": true}}' % REVISION)
        for word in self.words[at + 1:]:
            if word == "ends":
                asks.wfile.write(b"0\r\n\r\n")
                return None
            event = {"+": {"kv": pair(word[1:])}, "-": {"type": "DELETE", "kv": {"key": coded(ROOT + word[1:])}}}.get(word[0])
            asks.line(json.dumps({"result": {"header": {"revision": str(REVISION + 1)}, "events": [event]}}) if event else word)
        asks.rfile.read(1)  # until it has gone
        return None


# ---- torchelastic's ----


class Tree(Who):
    def play(self, asks, body):
        top = {"key": FOLDER, "dir": True, "nodes": []}
        for i, word in enumerate(self.words):
            key, _, value = word.partition("=")
            if key.startswith(":"):
                key, value = "v_3/kv/" + coded(key[1:]), coded(value)
            self.put(top, key.split("/"), value, 20 + i)
        asks.say(200, json.dumps({"action": "get", "node": top}), X_Etcd_Index="77")

    def put(self, folder, names, value, index):
        path = f"{folder['key']}/{names[0]}"
        node = next((n for n in folder["nodes"] if n["key"] == path), None)
        if not node:
            node = {"key": path, "modifiedIndex": index, "createdIndex": index, **({"dir": True, "nodes": []} if names[1:] else {"value": value})}
            folder["nodes"].append(node)
        if names[1:]:
            self.put(node, names[1:], value, index)


# ---- anything ----


class Says(Who):
    def play(self, asks, body):
        with self.lock:
            word = self.words[min(self.n, len(self.words) - 1)]
            self.n += 1
        if word in ("none", "half"):
            asks.close_connection = True
            asks.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{" if word == "half" else b"")
            return
        status, _, body = word.partition(" ")
        asks.say(int(status), body)


# ---- a real one ----


class Store(Who):
    long = True

    def __init__(self, words):
        self.begin(["rankrun", "store", "--host=127.0.0.1", "--port=0"], "listening on")
        super().__init__(words)

    def begin(self, command, ready):
        self.child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        line = next(line for line in self.child.stdout if ready in line)
        self.store = int(re.findall(r":(\d+)", line)[-1])
        threading.Thread(target=self.child.stdout.read, daemon=True).start()

    def play(self, asks, body):
        store = http.client.HTTPConnection("127.0.0.1", self.store)
        store.request(asks.command, asks.path, body, {"Content-Type": asks.headers["Content-Type"]} if body else {})
        answer = store.getresponse()
        if answer.getheader("Transfer-Encoding") != "chunked" or not asks.path.endswith("/watch"):
            index, text = answer.getheader("X-Etcd-Index"), answer.read().decode()
            store.close()
            return asks.say(answer.status, text, **({"X_Etcd_Index": index} if index else {}))
        asks.begin_lines()
        while line := answer.readline():
            asks.line(line.decode().rstrip("\n"))
        asks.wfile.write(b"0\r\n\r\n")
        return None

    def fini(self):
        self.child.terminate()
        self.child.wait()


class Etcd(Store):
    """With its older API, and peers that nobody is."""

    def __init__(self, words):
        self.folder = tempfile.mkdtemp(prefix="played-etcd-")
        ports = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
        client, peer = (f"http://127.0.0.1:{s.getsockname()[1]}" for s in ports)
        for s in ports:
            s.close()
        self.begin(["etcd", "--enable-v2", f"--data-dir={self.folder}", f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
                    f"--listen-peer-urls={peer}", "--unsafe-no-fsync"], "ready to serve client requests")
        self.store = int(client.rsplit(":", 1)[1])
        Who.__init__(self, words)

    def fini(self):
        super().fini()
        shutil.rmtree(self.folder)


# ---- a transcript ----


KINDS = {"keys": Keys, "tree": Tree, "says": Says, "store": Store, "etcd": Etcd}


def words_of(line, names):
    """A word that is a name alone stands for the words of it."""
    def full(text):
        return re.sub(r"\$([A-Z]+)", lambda m: names.get(m[1], m[0]), text)
    return [word for given in shlex.split(line) for word in (full(given).split() if re.fullmatch(r"\$[A-Z]+", given) else [full(given)])]


def answer(player, words):
    at = len(words) - 1 - words[::-1].index("--")
    how = words[0] if words[0] in ("each", "both") else None
    kind, given, command = KINDS[words[how is not None]], words[1 + (how is not None):at], words[at + 1:]
    if how == "each":
        return [text for word in given for text in [f"of {word}", *player.lines(kind([word]), command)]]
    said = player.lines(kind(given), command)
    return said if not how else said + [text for text in player.lines(kind(given), [*command, "--format=json"]) if not text.startswith("asked: ")]


def play(path):
    """Of each line of the transcript: it, what stands behind it, and what is answered; None for one that is a remark or a name."""
    player, names, line, stands = Player(), {}, None, []
    with open(path) as f:
        texts = f.read().splitlines()
    for text in [*texts, ""]:
        if text[:2] not in ("$ ", ". ", "# ") and text:
            stands.append(text)
            continue
        if line:
            yield line, stands, answer(player, words_of(line[2:], names))
        line, stands = text if text.startswith("$ ") else None, []
        if text.startswith(". "):
            name, value = text[2:].split("=", 1)
            names[name] = value
        if not line:
            yield text, [], None
    player.server_close()


def write(path):
    out = []
    for line, _, have in play(path):
        out += [line, *(have or [])]
    with open(path, "w") as f:
        f.write("\n".join(out).rstrip("\n") + "\n")


def main():
    if sys.argv[1] == "--write":
        return write(sys.argv[2])
    n = wrong = 0
    for line, stands, have in play(sys.argv[1]):
        n += have is not None
        if have is None or sorted(have) == sorted(stands):  # workers and launcher write beside each other
            continue
        wrong += 1
        print(f"answered otherwise: {line}", *difflib.unified_diff(stands, have, "as it must be", "as it is", n=0, lineterm=""), sep="\n  ")
    print(f"{wrong} of {n} lines were answered otherwise" if wrong or not n else f"{n} lines were answered as they must be")
    sys.exit(bool(wrong) or not n)


if __name__ == "__main__":
    main()
