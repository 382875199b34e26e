#!/usr/bin/env python3
"""Is the v2 API of an etcd, with a tree of its own making: rankrun status is asked for jobs of torchelastic's legacy rendezvous in each state that a tree can be in, and
agents begin where the etcd answers each of their first requests in each way. What was asked for, and what they say and end with, is compared with a record.
Usage: accounting.py RECORD; WRITE=1 writes it anew, to be read before it is believed.

Nothing waits for time but agents that are to give up at once. Of the standard library alone."""
import base64
import concurrent.futures
import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import urllib.parse

import noted

RUN, RDZV = "/torchelastic/p2p/run_r", "/torchelastic/p2p/run_r/rdzv"


def note(text):
    for line in text.splitlines() or [""]:
        noted.note(line.rstrip())


# ---- the etcd ----


class Etcd(http.server.ThreadingHTTPServer):
    """answers: a function of verb, path and query; its answer is a status, a body, and an index."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers, self.asked, self.lock = None, [], threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def answer(self):
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode()
        q = dict(urllib.parse.parse_qsl(query, keep_blank_values=True) + urllib.parse.parse_qsl(body, keep_blank_values=True))
        path = urllib.parse.unquote(path)
        with self.server.lock:
            self.server.asked.append(f"{self.command} {path}" + "".join(f" {k}={v}" for k, v in sorted(q.items())))
            got = self.server.answers(self.command, path, q)
        if got is None:
            self.close_connection = True
            return
        status, text, index = got
        data = text if isinstance(text, bytes) else (text if isinstance(text, str) else json.dumps(text)).encode()
        self.send_response(status)
        if index is not None:
            self.send_header("X-Etcd-Index", str(index))
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_PUT = do_DELETE = do_POST = answer


VERSION = (200, {"etcdserver": "3.4.23", "etcdcluster": "3.4.0"}, None)


def code(number, message="why", status=404):
    return status, {"errorCode": number, "message": message, "cause": "/cause", "index": 7}, 7


def leaf(key, value, modified=5):
    return {"key": key, "value": value, "modifiedIndex": modified, "createdIndex": 4}


def tree(leaves, root=RDZV):
    """Of paths and values, as etcd nests them."""
    node = {"key": root, "dir": True, "nodes": [], "modifiedIndex": 3, "createdIndex": 3}
    folders = {root: node}
    for path, value in leaves:
        above = root
        parts = path.strip("/").split("/")
        for i in range(1, len(parts)):
            name = root + "/" + "/".join(parts[:i])
            if name not in folders:
                folders[name] = {"key": name, "dir": True, "nodes": [], "modifiedIndex": 4, "createdIndex": 4}
                folders[above]["nodes"].append(folders[name])
            above = name
        folders[above]["nodes"].append(leaf(f"{root}/{'/'.join(parts)}", value))
    return {"action": "get", "node": node}


def coded(text):
    return base64.b64encode(text.encode()).decode()


def kv(version, **told):
    return [(f"/v_{version}/kv/{coded(name)}", coded(value)) for name, value in told.items()]


# ---- status of a job ----


def state(**parts):
    return [("/active_version", json.dumps(parts))]


def info(role="default", slots=2, **more):
    return json.dumps({"role": role, "rank": 0, "local_world_size": slots, **more})


def ranks(version, n, newer=False):
    slash = "/" if newer else ""
    return {f"torchelastic/role_info{slash}{i}": info(slots=i + 1, role=f"role{i}") for i in range(n)}


def keys(version, *some):
    return [f"{RDZV}/v_{version}/rank_{i}" for i in some]


def alive(version, *some):
    return [(f"/v_{version}/rank_{i}", "") for i in some]


def states():
    """Names, and leaves of a tree."""
    yield "nothing", []
    yield "a counter alone", [("/version_counter", "3")]
    for text in ("", "what?", "{}", "[]", "null", '"final"', '{"status": 3}', '{"status": "odd"}', '{"status": "setup"}', '{"status": "setup", "version": "2"}', '{"status": "closed"}'):
        yield f"a state of {text}", [("/active_version", text)]
    three = {"version": "3", "participants": [0, 1]}
    for status in ("joinable", "frozen", "final", "closed"):
        alive_too = {"keep_alives": keys(3, 0), "num_workers_waiting": 4}
        yield f"{status}", state(status=status, **three, **alive_too)
        yield f"{status}, with keys", state(status=status, **three, **alive_too) + alive(3, 0, 1, 2)
        yield f"{status}, of rankruns", state(status=status, **three, **alive_too, rankrun={"1": "uid", "2": "none"}) + alive(3, 1)
        for version in ("0", "1", "-1", "x", "", "9223372036854775807", "9223372036854775808", 3):
            yield f"{status}, version {version!r}", state(status=status, version=version, participants=[0], keep_alives=[], num_workers_waiting=0)
        for people in ([], [7, 8, 9], {}, "x", None):
            yield f"{status}, people {people!r}", state(status=status, version="3", participants=people, keep_alives=[])
        for beats in (None, [], "x", {}, ["a", "b", "c"], keys(3, 1), keys(2, 0), keys(3, 0, 1)):
            yield f"{status}, keys {beats!r}", state(status=status, **three, keep_alives=beats) + alive(3, 0)
        for waiting in (None, -1, 1, 2147483647, 2147483648, "1", 1.5):
            yield f"{status}, waiting {waiting!r}", state(status=status, **three, keep_alives=[], num_workers_waiting=waiting)
        for end in (None, "", "why it failed", 3, "two\nlines\u001b"):
            yield f"{status}, end {end!r}", state(status=status, **three, keep_alives=[], rankrun_end=end)
    final = state(status="final", version="3", participants=[0, 1, 2], keep_alives=keys(3, 0, 1, 2), num_workers_waiting=0)
    for newer in (False, True):
        told = ranks(3, 3, newer)
        for left in ((), (0,), (1,), (2,), (0, 1, 2)):
            yield f"told {'of a newer torch' if newer else ''} but {left}", final + kv(3, **{k: v for i, (k, v) in enumerate(told.items()) if i not in left}, MASTER_ADDR="10.0.0.1", MASTER_PORT="29500")
    yield "told in both ways", final + kv(3, **ranks(3, 3), **{"torchelastic/role_info/0": info("late", 9)})
    yield "told of another round", final + kv(2, **ranks(2, 3), MASTER_ADDR="10.0.0.1", MASTER_PORT="1")
    for text in ("", "{", "[]", "3", "{}", info(slots=0), info(slots=-1), info(slots=1), info(slots=100000), info(slots=100001), info(slots="2"), info(slots=None), info(role=None), info(role=""), info(role="r" * 30)):
        yield f"one tells {text}", final + kv(3, **{**ranks(3, 3), "torchelastic/role_info1": text})
    for addr, port in (("a", None), (None, "1"), ("a", "1"), ("a", "0"), ("a", "65535"), ("a", "65536"), ("a", "x"), ("a", ""), ("", "1"), ("a\nb", "1\u001b"), ("a" * 70, "1")):
        yield f"master {addr} {port}", final + kv(3, **{k: v for k, v in (("MASTER_ADDR", addr), ("MASTER_PORT", port)) if v is not None})
    yield "told without code", final + [(f"/v_3/kv/{coded('MASTER_ADDR')}", "not base64!"), (f"/v_3/kv/{coded('MASTER_PORT')}", coded("1"))]
    for status in ("joinable", "frozen", "final", "closed"):
        base = state(status=status, version="3", participants=[0, 1, 2], keep_alives=keys(3, 0, 1), num_workers_waiting=0) + alive(3, 0, 2)
        yield f"{status}, done by turns", base + kv(3, **{"torchelastic/agent/terminal_state0": "0", "torchelastic/agent/terminal_state1": "1"})
        yield f"{status}, done, of a newer torch", base + kv(3, **{"torchelastic/agent/terminal_state/0": "0", "torchelastic/agent/terminal_state/2": "1"})


def run(etcd, *words):
    place = tempfile.mkdtemp()
    known = ("RANK", "LOCAL_", "GROUP_", "ROLE_", "WORLD_SIZE", "MASTER_", "TORCHELASTIC", "PET_")
    env = {k: v for k, v in os.environ.items() if not k.startswith(known)}
    done = subprocess.run(["rankrun", *words], env={**env, "LC_ALL": "C", "TMPDIR": place, "XDG_RUNTIME_DIR": place}, cwd=place, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace")
    os.rmdir(place)
    text = done.stdout.replace(f"127.0.0.1:{etcd.server_port}", "ENDPOINT").replace(f"port {etcd.server_port}", "port N").replace(os.uname().nodename, "HOST")
    return re.sub(r"\b[0-9a-f]{32}\b", "UID", text) + (f"exit {done.returncode}" if done.returncode else "")


def status(etcd, *more):
    return run(etcd, "status", "--rdzv-backend=etcd", f"--rdzv-endpoint=127.0.0.1:{etcd.server_port}", "--rdzv-id=r", *more)


def play_states(etcd):
    said = {}
    for name, leaves in states():
        etcd.answers = lambda verb, path, q: VERSION if path == "/version" else (200, tree(leaves), 17)
        answer = status(etcd) + "\n" + status(etcd, "--format=json")
        said.setdefault(answer, []).append(name)
    for answer, names in said.items():
        for name in names:
            note(f"<{name}>")
        note(answer)


def ways():
    """In which a request may be answered."""
    for number, http_status in ((100, 404), (101, 412), (102, 403), (103, 403), (104, 403), (105, 412), (106, 403), (107, 403), (108, 403), (110, 401), (209, 400), (300, 500), (301, 500), (401, 400), (0, 404), (100, 200), (105, 200)):
        yield f"code {number} by {http_status}", code(number, status=http_status)
    for http_status in (200, 201, 204, 301, 400, 401, 403, 404, 405, 500, 503):
        yield f"{http_status} and nothing", (http_status, "", None)
        yield f"{http_status} and a page", (http_status, "<html>404 page not found</html>", None)
        yield f"{http_status} and an object", (http_status, {}, 3)
    whole = tree([("/active_version", '{"status": "setup"}')])
    for name, text in (("no node", {"action": "get"}), ("a node that is none", {"action": "get", "node": 3}), ("half an object", '{"action": "get", "node": {'), ("a list", "[]"), ("blanks", "  "),
                       ("no key", {"node": {"value": "x", "modifiedIndex": 3}}), ("no index", {"node": {"key": RDZV, "dir": True}}), ("nodes that are none", {"node": {"key": RDZV, "dir": True, "nodes": 3}}),
                       ("a node below that is none", {"node": {"key": RDZV, "dir": True, "nodes": [3, leaf(RDZV + "/active_version", '{"status": "setup"}')]}}), ("no folder", {"node": leaf(RDZV, "x")}), ("whole", whole)):
        for index in (None, "x", 0, 5):
            yield f"{name}, index {index}", (200, text, index)
    yield "no answer", None


def play_answers(etcd):
    """To the one question of status, and to what it is asked first."""
    for asked in ("/v2", "/version"):
        said = {}
        for name, got in ways():
            etcd.asked = []
            etcd.answers = lambda verb, path, q: got if path.startswith(asked) else VERSION if path == "/version" else (200, tree([]), 17)
            answer = status(etcd) + "\n" + "\n".join(dict.fromkeys(f"asked {a}" for a in etcd.asked))
            said.setdefault(answer, []).append(name)
        for answer, names in said.items():
            note(f"<{asked}: {'; '.join(names)}>")
            note(answer)


# ---- agents that begin ----

FIRST = (("the version", "GET", "/version"), ("the prefix", "PUT", "/v2/keys/torchelastic/p2p"), ("the run", "PUT", f"/v2/keys{RUN}"), ("the folder", "PUT", f"/v2/keys{RDZV}"),
         ("the counter", "PUT", f"/v2/keys{RDZV}/version_counter"))


def made(path, q):
    node = {"key": path[len("/v2/keys"):], "modifiedIndex": 5, "createdIndex": 5}
    node.update({"dir": True} if q.get("dir") == "true" else {"value": q.get("value", "")})
    return 201, {"action": "create", "node": node}, 5


def few_ways():
    """One of each that is read otherwise."""
    chosen = re.compile(r"code|(200|204|403) and|(404|500) and nothing|(half an object|whole), index 5|no answer")
    return [(name, got) for name, got in ways() if chosen.match(name) and "301" not in name]


def begin(step):
    """What was answered, and what came of it, for each way in which an agent's request of that step is answered, twice where it is made again. All others are answered well, until a run
    that is closed ends it."""
    closed, etcd, said = (200, tree([("/active_version", '{"status": "closed"}')]), 17), Etcd(), {}
    what, verb, path = step
    for name, got in few_ways():
        done, etcd.asked = [], []

        def answers(v, p, q):
            if (v, p) == (verb, path) and len(done) < 2:
                done.append(1)
                return got
            return VERSION if p == "/version" else closed if v == "GET" else made(p, q)

        etcd.answers = answers
        answer = run(etcd, "--rdzv-backend=etcd", f"--rdzv-endpoint=127.0.0.1:{etcd.server_port}", "--rdzv-id=r", "--rdzv-conf=timeout=60", "true")
        asked = [a for a in etcd.asked if "refresh" not in a and "wait" not in a and not a.startswith("GET /v2")]
        said.setdefault(answer + "\n" + "\n".join(f"asked {a}" for a in asked), []).append(name)
    return [(f"<{what}: {'; '.join(names)}>", answer) for answer, names in said.items()]


def play_begins(etcd):
    with concurrent.futures.ThreadPoolExecutor(len(FIRST)) as pool:
        for answers in pool.map(begin, FIRST):
            for names, answer in answers:
                note(names)
                note(answer)


def main():
    record, etcd = os.path.abspath(sys.argv[1]), Etcd()
    for name, play in [(n, f) for n, f in globals().items() if n.startswith("play_")]:
        note(f"# {name[5:]}")
        play(etcd)
    noted.settle(record)


main()
