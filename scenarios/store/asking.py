"""A job whose last rank asks the store that its launcher meets at, as a stranger would, and looks at every answer, while the
others train. Usage: asking.py STEPS CHAPTER...; the chapters are the functions below whose name begins with ask_.

Who asks a store with a token is told it by STORE_KEY; without that it is refused. What is not as it should be ends the job with a
sentence. Of the standard library alone."""
import base64
import http.client
import json
import os
import select
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time

import rankquake

FULL, PIECE, LOST_ETCD = 429, 64 << 10, 69
ROUND = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
FOREIGN, LEASE = f"/stranger-{ROUND}/", str(4711 + ROUND)  # who was ended has left some


def agent():
    """The process id of the agent above us, and the HOST and PORT of its store."""
    pid = os.getppid()
    while pid > 1:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            words = f.read().decode().split("\0")
        for word, after in zip(words, words[1:]):
            if word == "--rdzv_endpoint":
                host, port = after.split(",")[0].rsplit(":", 1)
                return pid, host, int(port)
        with open(f"/proc/{pid}/status") as f:
            pid = int(next(line for line in f if line.startswith("PPid:")).split()[1])
    sys.exit("no agent above this worker names its store")


def b64(text):
    return base64.b64encode(text.encode() if isinstance(text, str) else text).decode()


def same(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what[:2000]}: {got!r:.2000}, not {wanted!r:.2000}")


def holds(what, good, got):
    if not good:
        sys.exit(f"{what}: {got!r:.2000}")


def connect(host, port, authority="ca", mine="agent"):
    """By TLS where there are certificates."""
    folder = os.environ.get("STORE_CERTIFICATES")
    if not folder:
        return http.client.HTTPConnection(host, port, timeout=30)
    context = ssl.create_default_context(cafile=f"{folder}/{authority}.pem")
    if mine:
        context.load_cert_chain(f"{folder}/{mine}.pem", f"{folder}/{mine}.key")
    return http.client.HTTPSConnection(host, port, timeout=30, context=context)


class Store:
    """One connection, as long as the store leaves it open. What is asked is counted, by path and status."""

    def __init__(self, host, port, key=None):
        self.host, self.port, self.key, self.asked = host, port, key, {}
        self.connection = connect(host, port)

    def ask(self, path, body=None, method="POST", **headers):
        """The status, and the answer: JSON where it is, else text."""
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        if self.key:
            headers["Authorization"] = "Bearer " + self.key
        self.connection.request(method, path, body=data, headers=headers)
        answer = self.connection.getresponse()
        text = answer.read().decode()
        place = (path.removeprefix("/v3/").removeprefix("/"), answer.status)
        self.asked[place] = self.asked.get(place, 0) + 1
        return answer.status, json.loads(text) if answer.headers["Content-Type"] == "application/json" else text

    def good(self, path, body):
        status, answer = self.ask(path, body)
        same(f"status of {path} {body}", status, 200)
        return answer

    def refused(self, what, path, body, status, words, **more):
        got, answer = self.ask(path, body, **more)
        same(f"status of {what} ({answer})", got, status)
        holds(f"what is said of {what}", words in json.dumps(answer), answer)

    def put(self, key, value, **more):
        return self.good("/v3/kv/put", {"key": b64(key), "value": b64(value), **more})

    def get(self, key, **more):
        return self.good("/v3/kv/range", {"key": b64(key), **more})

    def delete(self, key, **more):
        return self.good("/v3/kv/deleterange", {"key": b64(key), **more})

    def revision(self):
        return int(self.get("/")["header"]["revision"])

    def metrics(self):
        """Each series with its value, after each name was looked at: it is explained, once, and has a type."""
        status, page = self.ask("/metrics", method="GET")
        same("status of /metrics", status, 200)
        told, helps, types = {}, {}, {}
        for line in page.splitlines():
            if line.startswith("# HELP "):
                name, text = line[7:].split(" ", 1)
                holds("a metric is explained once, in a sentence", name not in helps and text.endswith("."), line)
                helps[name] = text
            elif line.startswith("# TYPE "):
                name, types[name] = line[7:].split(" ")
            else:
                series, value = line.rsplit(" ", 1)
                name = series.split("{")[0]
                holds("a metric is explained before it is told", name in helps and name in types, line)
                holds("a counter is called a total", name.endswith("_total") == (types[name] == "counter"), line)
                holds("a series comes once", series not in told, line)
                told[series] = int(value)
        return told


def end_of(prefix):
    """The first key behind all that begin with this."""
    return b64(prefix[:-1] + chr(ord(prefix[-1]) + 1))


# ---- what etcd's words mean ----


def ask_keys(store):
    """Keys, transactions, leases and history, as etcd answers."""
    first = int(store.put(FOREIGN + "a", "one")["header"]["revision"])
    holds("a revision grows", int(store.put(FOREIGN + "a", "two")["header"]["revision"]) > first, first)
    store.put(FOREIGN + "b", "")
    old = store.good("/v3/kv/put", {"key": b64(FOREIGN + "b"), "value": b64("x"), "prev_kv": True})["prev_kv"]
    same("the version of what was replaced", old["version"], "1")
    a = store.get(FOREIGN + "a")["kvs"][0]
    same("a key", (a["value"], a["version"], a["create_revision"]), (b64("two"), "2", str(first)))
    both = {"range_end": end_of(FOREIGN)}
    same("a range", [k["key"] for k in store.get(FOREIGN, **both)["kvs"]], [b64(FOREIGN + "a"), b64(FOREIGN + "b")])
    part = store.get(FOREIGN, limit="1", **both)
    same("a part of it", (len(part["kvs"]), part["more"], part["count"]), (1, True, "2"))
    same("their number", store.get(FOREIGN, count_only=True, **both).get("count"), "2")
    same("keys alone", ["value" in k for k in store.get(FOREIGN, keys_only=True, **both)["kvs"]], [False, False])
    same("nothing", "kvs" in store.get(FOREIGN + "none"), False)
    ask_transactions(store, a)
    gone = store.delete(FOREIGN, prev_kv=True, **both)
    same("what was deleted", (gone["deleted"], len(gone["prev_kvs"])), ("2", 2))
    same("what is deleted again", "deleted" in store.delete(FOREIGN, **both), False)


def ask_transactions(store, a):
    """Every target and every relation, of a key that is there and of one that is not."""
    held = {"version": 2, "create_revision": int(a["create_revision"]), "mod_revision": int(a["mod_revision"]), "lease": 0}
    names = {"version": "VERSION", "create_revision": "CREATE", "mod_revision": "MOD", "lease": "LEASE"}
    good = {-1: {"EQUAL": False, "GREATER": True, "LESS": False, "NOT_EQUAL": True},
            0: {"EQUAL": True, "GREATER": False, "LESS": False, "NOT_EQUAL": False},
            1: {"EQUAL": False, "GREATER": False, "LESS": True, "NOT_EQUAL": True}}

    def succeeds(compare, key="a"):
        one = [{"request_range": {"key": b64(FOREIGN + "a")}}]
        two = one + [{"request_range": {"key": b64(FOREIGN + "b"), "count_only": True}}]
        r = store.good("/v3/kv/txn", {"compare": [{"key": b64(FOREIGN + key), **compare}], "success": one, "failure": two})
        same("the branch of a transaction", len(r["responses"]), 1 if r.get("succeeded") else 2)
        return r.get("succeeded", False)

    for field, value in held.items():
        for off, relations in good.items():
            for relation, wanted in relations.items():
                compare = {"target": names[field], "result": relation, field: str(value + off)}
                same(f"{compare}", succeeds(compare), wanted)
                absent = dict(compare, **{field: str(off)})
                same(f"{absent} of a key that is not there", succeeds(absent, "none"), wanted)
    for text, wanted in (("two", True), ("twp", False)):
        same(f"the value {text}", succeeds({"target": "VALUE", "result": "EQUAL", "value": b64(text)}), wanted)
        same(f"the value {text}, of no key", succeeds({"target": "VALUE", "result": "EQUAL", "value": b64(text)}, "none"), False)
    twice = [{"request_put": {"key": b64(FOREIGN + "c"), "value": b64("1")}}] * 2
    store.refused("a key that is put twice", "/v3/kv/txn", {"success": twice}, 400, "duplicate key given in txn request")
    many = [{"request_range": {"key": b64(f"{FOREIGN}{i}")}} for i in range(129)]
    same("a full transaction", len(store.good("/v3/kv/txn", {"success": many[:128]})["responses"]), 128)
    store.refused("one more", "/v3/kv/txn", {"success": many}, 400, "too many operations in txn request")


def ask_leases(store):
    grant = "/v3/lease/grant"
    lease = store.good(grant, {"TTL": "60", "ID": "0"})
    same("a lease's time", (lease["TTL"], int(lease["ID"]) > 0), ("60", True))
    mine = store.good(grant, {"TTL": "60", "ID": LEASE})["ID"]
    same("a lease by its number", mine, LEASE)
    store.refused("a lease that is there", grant, {"TTL": "60", "ID": mine}, 412, "lease already exists")
    store.refused("a lease of centuries", grant, {"TTL": "9000000001", "ID": "0"}, 400, "too large lease TTL")
    same("a lease that is kept", store.good("/v3/lease/keepalive", {"ID": mine})["result"]["TTL"], "60")
    same("one that is not there", "TTL" in store.good("/v3/lease/keepalive", {"ID": "99"})["result"], False)
    store.put(FOREIGN + "leased", "1", lease=mine)
    store.put(FOREIGN + "other", "1", lease=lease["ID"])
    same("whose a key is", store.get(FOREIGN + "leased")["kvs"][0]["lease"], mine)
    store.refused("a key of a lease that is not there", "/v3/kv/put", {"key": b64(FOREIGN), "value": b64("1"), "lease": "99"},
                  404, "requested lease not found")
    store.good("/v3/lease/revoke", {"ID": mine})
    same("a key whose lease was revoked", "kvs" in store.get(FOREIGN + "leased"), False)
    same("a key whose lease was not", "kvs" in store.get(FOREIGN + "other"), True)
    store.refused("a lease that was revoked", "/v3/kv/lease/revoke", {"ID": mine}, 404, "requested lease not found")
    ask_expiry(store)
    store.good("/v3/kv/lease/revoke", {"ID": lease["ID"]})
    same("a key whose lease was revoked, too", "kvs" in store.get(FOREIGN + "other"), False)


def watch(store, key, **more):
    """An open stream of what happens to keys; the first line is in."""
    c = connect(store.host, store.port)
    headers = {"Authorization": "Bearer " + store.key} if store.key else {}
    c.request("POST", "/v3/watch", json.dumps({"create_request": {"key": b64(key), **more}}).encode(), headers)
    stream = c.getresponse()
    same("status of a watch", stream.status, 200)
    same("the first line of a watch", json.loads(stream.readline())["result"].get("created"), True)
    return c, stream


def next_event(stream):
    return json.loads(stream.readline())["result"]


def ask_expiry(store):
    """Nobody looks again and again: a watch tells when the key has gone. It lives a second, and no other goes with it."""
    short = store.good("/v3/lease/grant", {"TTL": "1", "ID": "0"})
    began = time.monotonic()
    store.put(FOREIGN + "short", "1", lease=short["ID"])
    c, stream = watch(store, FOREIGN + "short")
    event = next_event(stream)["events"][0]
    took = time.monotonic() - began
    same("what happened to it", event["type"], "DELETE")
    holds("how many seconds a lease of one lived", took > 0.9, took)
    c.close()
    same("a key whose lease has ended", "kvs" in store.get(FOREIGN + "short"), False)
    same("a key whose lease has not", "kvs" in store.get(FOREIGN + "other"), True)


def ask_history(store):
    """What was, from where it is still known, and what is said when it is not."""
    first = int(store.put(FOREIGN + "h", "1")["header"]["revision"])
    store.put(FOREIGN + "h", "2")
    last = int(store.delete(FOREIGN + "h")["header"]["revision"])
    c, stream = watch(store, FOREIGN, range_end=end_of(FOREIGN), start_revision=str(first))
    events = []
    while len(events) < 3:
        events += next_event(stream)["events"]
    same("what has happened", [e.get("type", "PUT") for e in events], ["PUT", "PUT", "DELETE"])
    same("by which revisions", [int(e["kv"]["mod_revision"]) for e in events][::2], [first, last])
    store.put(FOREIGN + "h", "3")
    same("what happens", next_event(stream)["events"][0]["kv"]["value"], b64("3"))
    c.close()
    store.refused("what is yet to come", "/v3/kv/range", {"key": b64(FOREIGN), "revision": str(last + 100000)}, 400,
                  "required revision is a future revision")
    store.good("/v3/kv/compaction", {"revision": str(last)})
    store.refused("what is forgotten", "/v3/kv/compaction", {"revision": str(last)}, 400, "required revision has been compacted")
    store.refused("the future forgotten", "/v3/kv/compaction", {"revision": str(last + 100000)}, 400, "future revision")
    c, stream = watch(store, FOREIGN, range_end=end_of(FOREIGN), start_revision=str(first))
    over = next_event(stream)
    same("a watch from what is forgotten", (over.get("canceled"), int(over["compact_revision"])), (True, last))
    c.close()
    same("the oldest that can be watched", store.metrics()["rankrun_store_compact_revision"], last)
    store.delete(FOREIGN + "h")


def ask_nonsense(store):
    store.refused("what is no JSON", "/v3/kv/put", b"{", 400, "")
    store.refused("a key that is no base64", "/v3/kv/put", {"key": "*"}, 400, "not base64")
    store.refused("no key", "/v3/kv/put", {"value": b64("1")}, 400, "key is not provided")
    store.refused("a watch of nothing", "/v3/watch", {}, 400, "create_request")
    store.refused("an unknown compare", "/v3/kv/txn", {"compare": [{"target": "AGE", "key": b64("a")}]}, 400, "compare")
    store.refused("an unknown operation", "/v3/kv/txn", {"success": [{"request_move": {}}]}, 400, "neither range, put")
    store.refused("half a number", "/v3/lease/grant", {"TTL": 1.5}, 400, "not an integer")
    store.refused("a path of nothing", "/v3/kv/move", {}, 404, "Not Found")
    store.refused("a page of nothing", "/", None, 405, "Method Not Allowed", method="GET")
    store.refused("metrics that are posted", "/metrics", {}, 405, "Method Not Allowed")
    store.refused("a lifeline of nobody", "/v3/rankrun/lifeline", {}, 400, "")


# ---- what the store says of itself ----


def ask_metrics(store):
    """What it counts grows by what was asked, and by no more where nobody else asks it. The job is told of as it is."""
    before, asked = store.metrics(), dict(store.asked)
    same("the version", [k for k in before if k.startswith("rankrun_build_info")][0].count("version="), 1)
    store.put(FOREIGN + "m", "x" * 1000)
    ask_nonsense(store)
    store.get(FOREIGN + "m")
    now = store.metrics()
    grown = {p: n - asked.get(p, 0) for p, n in store.asked.items()}
    grown[("metrics", 200)] = 1  # the page that we look at was not counted before it was written
    grown = {p: n for p, n in grown.items() if n}
    known = {k.split('"')[1] for k in before if k.startswith("rankrun_store_requests_total")}
    others = {}
    for (kind, status), n in grown.items():
        place = (kind if kind in known else "other", status)
        others[place] = others.get(place, 0) + n
    for (kind, status), n in others.items():
        name = 'rankrun_store_requests_total{kind="%s",code="%s"}' % (kind, status)
        got = now.get(name, 0) - before.get(name, 0)
        shared = (kind, status) in (("kv/range", 200), ("kv/txn", 200))
        holds(f"{kind} that were answered {status}: {n} of us", got >= n if shared else got == n, got)
    same("keys", now["rankrun_store_keys"] >= before["rankrun_store_keys"], True)
    holds("bytes received", now["rankrun_store_received_bytes_total"] - before["rankrun_store_received_bytes_total"] > 1000, now)
    holds("bytes sent", now["rankrun_store_sent_bytes_total"] - before["rankrun_store_sent_bytes_total"] > 4000, now)
    same("the revision", now["rankrun_store_revision"] <= store.revision(), True)
    same("what is full", (now["rankrun_store_full"], now["rankrun_store_others_full"]), (0, 0))
    store.delete(FOREIGN + "m")
    ask_connections(store, now)


def ask_connections(store, now):
    nodes = int(os.environ["GROUP_WORLD_SIZE"])
    holds("watches, one of each agent at least", now["rankrun_store_watches"] >= nodes, now)
    holds("lifelines, one of each agent", now["rankrun_store_lifelines"] == nodes, now)
    holds("connections of agents", now["rankrun_store_agent_connections"] >= nodes, now)
    more = [socket.create_connection((store.host, store.port)) for _ in range(5)]
    then = store.metrics()
    holds("five connections more", then["rankrun_store_connections"] >= now["rankrun_store_connections"] + 5
          and then["rankrun_store_connections_total"] >= now["rankrun_store_connections_total"] + 5, then)
    for s in more:
        s.close()
    c, _ = watch(store, FOREIGN)
    same("one watch more", store.metrics()["rankrun_store_watches"], now["rankrun_store_watches"] + 1)
    c.close()


def claim_lifeline(store, behind=b"", **wrong):
    """The connection, and what is answered: nothing where it is taken."""
    c = socket.create_connection((store.host, store.port))
    own, peer = ("%s:%d" % c.getsockname()[:2]), ("%s:%d" % c.getpeername()[:2])
    claim = {"run_id": "nobody", "inc": "0" * 16, "uid": "0" * 32, "revision": "1", "from": own, "to": peer, **wrong}
    body = json.dumps(claim).encode()
    head = (f"POST /v3/rankrun/lifeline HTTP/1.1\r\nHost: store\r\nAuthorization: Bearer {store.key}\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n")
    c.sendall(head.encode() + body + behind)
    return c


def ask_lifelines(store):
    """A connection whose end is an agent's: only one that says truly whose it is and where from, with nothing behind it."""
    before = store.metrics()["rankrun_store_lifelines"]
    for words, behind, wrong in (("run_id is missing", b"", {"run_id": ""}), ("16 and 32 hex digits", b"", {"inc": "0" * 15}),
                                 ("16 and 32 hex digits", b"", {"uid": "x" * 32}), ("of the session's creation", b"", {"revision": "0"}),
                                 ("something in between could end it", b"", {"from": "198.51.100.1:9"}),
                                 ("something in between could end it", b"", {"to": "198.51.100.1:9"})):
        c = claim_lifeline(store, behind, **wrong)
        c.settimeout(30)
        said = b"".join(iter(lambda c=c: c.recv(PIECE), b"")).decode()
        holds(f"a lifeline with {wrong}", said.startswith("HTTP/1.1 400") and words in said, said)
        c.close()
    same("lifelines", store.metrics()["rankrun_store_lifelines"], before)
    mine = claim_lifeline(store)
    same("one lifeline more", store.metrics()["rankrun_store_lifelines"], before + 1)
    mine.shutdown(socket.SHUT_WR)
    holds("a lifeline that was ended is still there", is_over(mine), "open")
    same("lifelines, as before", store.metrics()["rankrun_store_lifelines"], before)


def ask_job(store):
    """The run as the page shows it is the one that this worker is of."""
    env, told = os.environ, store.metrics()
    job = '{run_id="%s"}' % env["TORCHELASTIC_RUN_ID"]
    nodes = int(env["GROUP_WORLD_SIZE"])
    wanted = {"round": ROUND + 1, "world_size": int(env["WORLD_SIZE"]), "nodes": nodes,
              "nodes_min": nodes, "nodes_max": nodes, "agents": nodes, "restarts": ROUND,
              "restarts_max": int(env["TORCHELASTIC_MAX_RESTARTS"])}
    same("the job", {k: told["rankrun_job_" + k + job] for k in wanted}, wanted)
    phases = {k.split('phase="')[1][:-2]: v for k, v in told.items() if k.startswith("rankrun_job_phase" + job[:-1] + ",")}
    same("its phase", phases, {"joining": 0, "forming": 0, "running": 1, "stopping": 0, "succeeded": 0, "failed": 0})


# ---- who is kept out ----


def ask_refused(store):
    """Who has no token, or another one, is told so and shown nothing; a run's keys are not for everybody."""
    for key, words in ((None, "this store wants a token"), ("0" * 32, "the token is not the one"),
                       (store.key + "0", "the token is not the one"), (store.key[:-1], "the token is not the one")):
        other = Store(store.host, store.port, key)
        for path in ("/v3/kv/range", "/v3/kv/put", "/v3/lease/grant", "/v3/watch", "/v3/rankrun/lifeline", "/none"):
            other.refused(f"{path} with {'another' if key else 'no'} token", path, {"key": b64("/"), "TTL": "9"}, 401, words)
        other.refused("metrics", "/metrics", None, 401, words, method="GET")
    page = {"Origin": "http://evil.example"}
    store.refused("a web page with the token", "/v3/kv/range", {"key": b64("/")}, 403, "answers no web page", **page)


def ask_pages(store):
    """A store without a token answers by its own names alone, so that no web page can ask it under another."""
    own = socket.gethostname()
    hosts = ["localhost", "LOCALHOST:29400", "127.0.0.1", "[::1]:1", "x.local", "y.z.internal", "a.svc.cluster.local", "n",
             "store", "store.example.org", "STORE.example.org.", "allowed.example", "other.example", "localhost."]
    for host in hosts:
        status, _ = store.ask("/v3/kv/range", {"key": b64("/")}, Host=host)
        same(f"asked by the name {host}", status, 200)
    before = store.metrics()['rankrun_store_bounded_total{bound="pages"}']
    others = ["evil.example", "allowed.example.org", "notallowed.example", "local", "storex.example.org", "1.2.3.4.5", ".example"]
    others.remove("local")
    for host in others:
        store.refused(f"asked by the name {host}", "/v3/kv/range", {"key": b64("/")}, 403, "does not know the name", Host=host)
    store.refused("a host of nonsense", "/v3/kv/range", {"key": b64("/")}, 403, "does not understand the Host", Host="a:b:c")
    for origin in ("http://evil.example", "null", f"http://{own}"):
        store.refused("a page's", "/v3/kv/range", {"key": b64("/")}, 403, "answers no web page", Origin=origin)
    now = store.metrics()['rankrun_store_bounded_total{bound="pages"}']
    same("how often pages were refused", now - before, len(others) + 4)


def ask_handshakes(store):
    """Plain HTTP is answered with what is missing; without a certificate, or with another's, nobody is answered."""
    before = store.metrics()["rankrun_store_handshakes_failed_total"]
    plain = http.client.HTTPConnection(store.host, store.port, timeout=30)
    plain.request("GET", "/metrics")
    answer = plain.getresponse()
    said = json.loads(answer.read())
    same("what plain HTTP is answered", (answer.status, answer.headers["Upgrade"]), (426, "TLS/1.2"))
    holds("what it is told", "this store speaks TLS: https" in said["message"], said)
    for mine in (None, "other"):
        stranger = connect(store.host, store.port, mine=mine)
        try:
            stranger.request("GET", "/metrics")
            sys.exit(f"somebody with the certificate {mine} was answered {stranger.getresponse().status}")
        except (ssl.SSLError, ConnectionError, http.client.RemoteDisconnected):
            pass
    try:
        connect(store.host, store.port, authority="other").request("GET", "/metrics")
        sys.exit("the store's certificate is of an authority that has not signed it")
    except ssl.SSLCertVerificationError:
        pass
    now = store.metrics()["rankrun_store_handshakes_failed_total"]
    holds("handshakes that failed: four", 3 <= now - before <= 4, (before, now))
    store.refused("a lifeline over TLS", "/v3/rankrun/lifeline", {}, 400, "none over TLS")


def ask_lock(etcd):
    """Turns on the authentication of an etcd; the user of the job may write what is below its prefix."""
    if ROUND:
        return
    for path, body in (("user/add", {"name": "root", "password": "of-nobody"}), ("role/add", {"name": "root"}),
                       ("user/grant", {"user": "root", "role": "root"}),
                       ("user/add", {"name": "job", "password": "of-the-job-alone"}), ("role/add", {"name": "job"}),
                       ("role/grant", {"name": "job", "perm": {"permType": "READWRITE", "key": b64("/rankrun"),
                                                               "range_end": end_of("/rankrun")}}),
                       ("user/grant", {"user": "job", "role": "job"}), ("enable", {})):
        etcd.good("/v3/auth/" + path, body)
    status, answer = etcd.ask("/v3/kv/range", {"key": b64("/rankrun")})
    holds("an etcd that is locked answers nobody", status != 200 and "user name is empty" in json.dumps(answer), answer)


# ---- who wants too much ----


def bounded(store, which):
    return store.metrics()['rankrun_store_bounded_total{bound="%s"}' % which]


def is_over(connection):
    """Waits until the other side has ended it."""
    connection.settimeout(30)
    try:
        while connection.recv(PIECE):
            pass
    except ConnectionResetError:
        pass
    except TimeoutError:
        return False
    return True


def ask_crowd(store):
    """More connections than there are places, of --connections=64: who was silent longest goes, and the next comes in. Who asks
    is not silent, nor are agents."""
    before = bounded(store, "connections")
    crowd = [socket.create_connection((store.host, store.port)) for _ in range(100)]
    fresh = Store(store.host, store.port, store.key)
    fresh.get(FOREIGN)  # is answered once there is room
    store.connection.close()  # it was silent longest of all, and is ended: the next question is asked on another
    holds("the first of the crowd is still there", is_over(crowd[0]), "open")
    holds("how many were ended to let others in", bounded(store, "connections") - before >= 100 - 32, before)
    told = store.metrics()
    holds("how many are there", told["rankrun_store_connections"] <= 64 + 8, told)
    crowd[-1].sendall(b"GET /metrics HTTP/1.1\r\nHost: store\r\nConnection: close\r\n\r\n")
    crowd[-1].settimeout(30)
    holds("the last of the crowd is not answered", crowd[-1].recv(PIECE).startswith(b"HTTP/1.1 401"), "")
    for c in crowd:
        c.close()


def ask_half(store):
    """Requests that do not come whole take memory, of which there is little: --memory=16. Who takes most of it goes."""
    before, head = bounded(store, "held"), f"POST /v3/kv/put HTTP/1.1\r\nHost: store\r\nContent-Length: {2 << 20}\r\n\r\n".encode()
    small, large = (socket.create_connection((store.host, store.port)) for _ in range(2))
    small.sendall(head + b" " * (256 << 10))
    try:
        large.sendall(head + b" " * ((2 << 20) - 1))
    except (BrokenPipeError, ConnectionResetError):
        pass
    holds("who holds most is still there", is_over(large), "open")
    same("how often somebody was ended for what he holds", bounded(store, "held") - before, 1)
    told = store.metrics()  # what the ended one held may be on its way to be given back, and its last piece is not counted
    holds("bytes that are held, as far as they have been read", 0 < told["rankrun_store_held_bytes"] < 2 << 20, told)
    small.close()
    large.close()


def ask_watches(store):
    """There are so many watches of ranges that nobody's agent has, and no more; of single keys there are more."""
    before, open_ones = bounded(store, "watches"), []
    for _ in range(20):
        open_ones.append(watch(store, FOREIGN, range_end=end_of(FOREIGN)))
    same("watches that were refused", bounded(store, "watches"), before)
    store.put(FOREIGN + "w", "1")
    for _, stream in open_ones:
        same("what each is told", next_event(stream)["events"][0]["kv"]["key"], b64(FOREIGN + "w"))
    for c, _ in open_ones:
        c.close()
    store.delete(FOREIGN + "w")


def ask_many_watches(store):
    """Of ranges as many as the store takes, and of single keys more. When some have ended there is room again."""
    if not ROUND:
        return
    before, ranges = bounded(store, "watches"), {"range_end": end_of(FOREIGN)}
    many = [watch(store, FOREIGN, **ranges)[0] for _ in range(128)]
    body = {"create_request": {"key": b64(FOREIGN), **ranges}}
    store.refused("one watch more", "/v3/watch", body, FULL, "as many watches of ranges as it takes")
    many.append(watch(store, FOREIGN + "single")[0])
    same("watches that were refused", bounded(store, "watches") - before, 1)
    holds("watches that are open", store.metrics()["rankrun_store_watches"] >= 129 + 2, store.metrics())
    for c in many:
        c.close()
    holds("watches that are still open", store.metrics()["rankrun_store_watches"] < 129, store.metrics())
    watch(store, FOREIGN, **ranges)[0].close()


def ask_slow(store):
    """Some ask for a long answer and read none of it. Whoever comes behind them waits for their part of the memory, --memory=16, and
    gets all when the slowest of them is ended."""
    if not ROUND:
        return
    before = bounded(store, "slow")
    for i in range(60):
        store.put(f"{FOREIGN}slow-{i:03d}", "z" * 20000)
    question = json.dumps({"key": b64(FOREIGN), "range_end": end_of(FOREIGN)}).encode()
    head = f"POST /v3/kv/range HTTP/1.1\r\nHost: store\r\nAuthorization: Bearer {store.key}\r\nContent-Length: {len(question)}\r\n\r\n"
    slow = []
    for _ in range(16):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.connect((store.host, store.port))
        s.sendall(head.encode() + question)
        slow.append(s)
    same("what who reads is answered", len(store.get(FOREIGN, range_end=end_of(FOREIGN))["kvs"]), 60)
    holds("how many were ended that read nothing", 1 <= bounded(store, "slow") - before <= 16, before)
    for s in slow:
        s.close()
    store.delete(FOREIGN, range_end=end_of(FOREIGN))


def ask_leases_of_many(store):
    """More leases than the store takes: an eighth of them goes, the oldest first, of those that have no run's key. Once is enough,
    of those who were started again."""
    if not ROUND:
        return
    ids = [str(1000000 + i) for i in range(8192)]
    for i in ids:
        store.good("/v3/lease/grant", {"TTL": "600", "ID": i})
    alive = ["TTL" in store.good("/v3/lease/keepalive", {"ID": i})["result"] for i in ids[:1100]]
    holds("leases that went, of the oldest", 1020 <= alive.count(False) <= 1024, alive.count(False))
    same("whether one stayed that is older than one that went", alive, sorted(alive))


def fill(store, name, size, most):
    """Writes keys until the store takes no more; returns how many it took, and what it said."""
    for i in range(most):
        status, answer = store.ask("/v3/kv/put", {"key": b64(name % i), "value": b64("x" * size)})
        if status != 200:
            same(f"status of what there is no room for ({answer})", status, FULL)
            return i, json.dumps(answer)
    sys.exit(f"{most} keys of {size} bytes, and the store is not full")


def ask_full(store):
    """Others' keys have an eighth of the memory, --memory=16, and runs' keys have five times as much: who fills the one is refused,
    and runs go on; who fills the other is refused, and runs that are there go on. What is deleted makes room at once."""
    before = bounded(store, "kept")
    n, said = fill(store, FOREIGN + "%06d", 32 << 10, 100)
    holds("keys of nobody's run, of 2 MiB", 40 <= n <= 64 and "keys that are no run's" in said, (n, said))
    full = store.metrics()
    same("what is full", (full["rankrun_store_full"], full["rankrun_store_others_full"]), (0, 1))
    status, _ = store.ask("/v3/kv/put", {"key": b64(FOREIGN + "000000"), "value": b64("")})
    same("even a small one", status, FULL)
    n, said = fill(store, "/rankrun/flood-%05d/cur", 15 << 10, 600)
    holds("keys of runs, of 5 MiB", 230 <= n <= 345 and "full of runs" in said, (n, said))
    same("what is full", store.metrics()["rankrun_store_full"], 1)
    store.put("/rankrun/flood-00000/cur", "smaller")
    holds("how often somebody was refused", bounded(store, "kept") - before == 3, before)
    return n


def ask_room(store):
    """Also after ask_full of the round before, and all that a job has done meanwhile."""
    for prefix in ("/rankrun/flood-", "/stranger-"):
        store.delete(prefix, range_end=end_of(prefix))
    store.put(FOREIGN + "again", "x" * (32 << 10))
    store.put("/rankrun/flood-1/cur", "x" * (15 << 10))
    told = store.metrics()
    same("what is full", (told["rankrun_store_full"], told["rankrun_store_others_full"]), (0, 0))
    store.delete("/rankrun/flood-1/cur")
    store.delete(FOREIGN + "again")


def ask_much(store):
    """An answer longer than a piece comes in pieces, whole; a request that looks at too much is refused."""
    wanted = [b64(f"{FOREIGN}long-{i:03d}") for i in range(60)]
    for key in wanted:
        store.good("/v3/kv/put", {"key": key, "value": b64("y" * 10000)})
    long = store.get(FOREIGN, range_end=end_of(FOREIGN))
    same("the keys of a long answer", [k["key"] for k in long["kvs"]], wanted)
    same("its values", {k["value"] for k in long["kvs"]}, {b64("y" * 10000)})
    same("its number", long["count"], "60")
    txn = [{"request_range": {"key": b64(FOREIGN), "range_end": end_of(FOREIGN)}}] * 2
    two = store.good("/v3/kv/txn", {"success": txn})
    same("a long transaction", [len(r["response_range"]["kvs"]) for r in two["responses"]], [60, 60])
    store.delete(FOREIGN, range_end=end_of(FOREIGN))
    ask_cost(store)


def ask_cost(store):
    """One request may look at 131,072 keys, however many it could look at by its length."""
    for i in range(0, 1280, 128):
        puts = [{"request_put": {"key": b64(f"{FOREIGN}{i + k}"), "value": b64("1")}} for k in range(128)]
        store.good("/v3/kv/txn", {"success": puts})
    many = {"request_range": {"key": b64(FOREIGN), "range_end": end_of(FOREIGN), "limit": "5"}}
    one = {"request_range": {"key": b64(FOREIGN + "7")}}
    every = {"key": b64(FOREIGN), "range_end": end_of(FOREIGN), "target": "VERSION", "result": "EQUAL", "version": "1"}
    large = {"compare": [every] * 102, "success": [many, one], "failure": [one]}
    answer = store.good("/v3/kv/txn", large)
    same("a large request", (answer["succeeded"], [r["response_range"]["count"] for r in answer["responses"]]), (True, ["1280", "1"]))
    large["compare"].append(every)
    store.refused("one that is too large", "/v3/kv/txn", large, 400, "this request looks at 131950 keys, and at most 131072")
    store.delete(FOREIGN, range_end=end_of(FOREIGN))


# ---- other jobs in the store ----


class Neighbour:
    """Another job of one node and one worker, begun by this worker with the rankrun that it is started by itself."""

    def __init__(self, store, run_id, *command, **conf):
        pid, host, port = agent()
        conf = ",".join(["profile=fast"] + [f"{k}={v}" for k, v in conf.items()])
        words = [f"--rdzv-endpoint={host}:{port}", "--rdzv-backend=embedded", f"--rdzv-id={run_id}"]
        env = {k: v for k, v in os.environ.items() if not k.startswith(("RANKQUAKE", "TORCHELASTIC"))}
        env["RANKRUN_STORE_TOKEN"] = store.key
        self.run_id, self.program = run_id, os.readlink(f"/proc/{pid}/exe")
        self.child = subprocess.Popen([self.program, "--nnodes=1", "--max-restarts=1", *words, f"--rdzv-conf={conf}", "--no-python", *command],
                                      env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.said, self.words, self.env = "", words, env

    def until(self, words):
        """Reads until it has said this."""
        while words not in self.said:
            line = self.child.stdout.readline()
            holds(f"{self.run_id} says {words}", line, self.said)
            self.said += line

    def ends(self, code):
        self.said += self.child.stdout.read()
        same(f"how {self.run_id} ends, after {self.said!r}", self.child.wait(), code)
        return self.said

    def killed(self):
        self.child.kill()
        self.child.wait()

    def status(self):
        """What `rankrun status` says of it."""
        r = subprocess.run([self.program, "status", *self.words, "--format=json"], env=self.env, capture_output=True, text=True)
        same(f"status of {self.run_id}, after {r.stderr!r}", r.returncode, 0)
        return json.loads(r.stdout)


def round_of(store, run_id):
    told = store.metrics()
    of = '{run_id="%s"' % run_id
    phase = [k.split('phase="')[1][:-2] for k, v in told.items() if k.startswith("rankrun_job_phase" + of) and v]
    return told["rankrun_job_round" + of + "}"], phase[0], told["rankrun_job_agents" + of + "}"]


def ask_neighbours(store):
    """Each has a store for itself, as far as it knows. A name that is in use, or was, is said to be."""
    here, now = "neighbour" + str(ROUND), os.environ["TORCHELASTIC_RUN_ID"]
    before = round_of(store, now)
    first = Neighbour(store, here, "sh", "-c", "echo at work; exec sleep 600", attempt="one")
    first.until("at work")
    same("a neighbour's round, phase and agents", round_of(store, here), (1, "running", 1))
    said = Neighbour(store, here, "true", attempt="two").ends(64)
    holds("what is said of a name in use", f'run id "{here}" is in use by attempt "one"; end that run' in said, said)
    first.killed()  # nobody says that it has ended
    second = Neighbour(store, here, "sh", "-c", "echo at work $TORCHELASTIC_RESTART_COUNT", attempt="two")
    said = second.ends(0)
    holds("who is waited for", f'run id "{here}" is held by attempt "one": it is replaced unless an agent of it is heard within' in said
          and "at work 0" in said, said)
    same("the round behind that of the dead", round_of(store, here), (2, "succeeded", 0))
    third = Neighbour(store, here, "sh", "-c", "exit 3", attempt="three", max_free_rounds_per_hour=7)
    said = third.ends(1)
    holds("nobody is waited for where all have ended", "is held by" not in said and "failed: rank 0" in said, said)
    same("the round that is not begun behind its two", round_of(store, here), (5, "failed", 0))
    said = Neighbour(store, here, "true", attempt="three").ends(1)
    holds("what is said of a run that has ended", f'run "{here}" has already ended here: it failed: rank 0' in said
          and "no worker was started" in said, said)
    ask_done(store)
    same("our own round, phase and agents", round_of(store, now), before)


def ask_done(store):
    """A name with signs in it; and one that has succeeded is not started again."""
    name = 'a b"%\\' + str(ROUND)
    done = Neighbour(store, name, "true")
    done.ends(0)
    label = [k for k in store.metrics() if k.startswith("rankrun_job_round") and k.endswith(str(ROUND) + '"}') and "%2" in k]
    same("how many jobs have such a name", len(label), 1)
    said = Neighbour(store, name, "false").ends(0)
    holds("what is said of a run that has succeeded", "has already ended here: it succeeded; no worker was started" in said, said)
    told = done.status()
    holds("the status of one that has succeeded", told["run_id"] == name and "succeeded" in json.dumps(told), told)


# ---- an etcd of a job's own ----


class Alone:
    """A job of one worker with an etcd of its own, whose files are below a folder of ours."""

    def __init__(self, folder, *command, **env):
        pid, _, _ = agent()
        env = {**{k: v for k, v in os.environ.items() if not k.startswith(("RANKQUAKE", "TORCHELASTIC", "RANKRUN"))}, **env}
        words = [os.readlink(f"/proc/{pid}/exe"), "--standalone", "--rdzv-backend=etcd-v3", "--no-python", *command]
        self.child = subprocess.Popen(words, env={**env, "TMPDIR": folder}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      text=True)
        self.folder, self.said = folder, ""

    def works(self):
        """Reads until its worker is at work; the etcd's port, and who keeps it."""
        while "at work" not in self.said:
            line = self.child.stdout.readline()
            holds("a job with an etcd of its own begins", line, self.said)
            self.said += line
        port = int(self.said.split("started an etcd at 127.0.0.1:")[1].split(" for this job")[0])
        with open(f"/proc/{self.child.pid}/task/{self.child.pid}/children") as f:
            keeper = [p for p in f.read().split() if name_of(p) == "rankrun-etcd"]
        same("how many keep the etcd", len(keeper), 1)
        same("folders of the etcd", len(folders_of_etcds(self.folder)), 1)
        return port, int(keeper[0])

    def ends(self, code):
        self.said += self.child.stdout.read()
        same(f"how a job with an etcd of its own ends, after {self.said!r}", self.child.wait(), code)
        nothing_left(self.folder)
        return self.said


def name_of(pid):
    with open(f"/proc/{pid}/comm") as f:
        return f.read().strip()


def folders_of_etcds(folder):
    return [name for name in os.listdir(folder) if name.startswith("rankrun_etcd_")]


def nothing_left(folder):
    same("folders of the etcd that are left", folders_of_etcds(folder), [])
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline") as f:
                holds("a process of the etcd that is left", folder not in f.read(), pid)
        except OSError:
            pass  # it has ended


def answers(port):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    c.request("GET", "/version")
    return c.getresponse().status


def etcd_of(keeper):
    with open(f"/proc/{keeper}/task/{keeper}/children") as f:
        return int(f.read().split()[0])


def ask_own_etcd(store):
    if not ROUND:
        return
    at_work = ["sh", "-c", "echo at work; exec sleep 600"]
    with tempfile.TemporaryDirectory() as folder:
        ask_good_etcd(folder)
        told = Alone(folder, *at_work)
        port, keeper = told.works()
        os.kill(keeper, signal.SIGTERM)  # as a batch system does, that tells all of a job
        same("an etcd whose keeper was told to end", answers(port), 200)
        told.child.terminate()
        told.ends(143)
        killed = Alone(folder, *at_work)
        _, keeper = killed.works()
        gone = os.pidfd_open(keeper)
        killed.child.kill()
        holds("the etcd of a job that was killed has ended", select.select([gone], [], [], 30)[0], "it runs")
        killed.child.wait()
        nothing_left(folder)
        lost = Alone(folder, *at_work)
        os.kill(etcd_of(lost.works()[1]), signal.SIGKILL)
        said = lost.ends(LOST_ETCD)
        holds("what is said of an etcd that was killed", "this job's own, has ended: " in said, said)
        ask_bad_etcds(folder)


def ask_good_etcd(folder):
    """Variables of another etcd are not this one's."""
    other = {"ETCD_DATA_DIR": os.path.join(folder, "elsewhere"), "ETCD_LISTEN_PEER_URLS": "nonsense"}
    said = Alone(folder, "sh", "-c", "echo at work", **other).ends(0)
    holds("what a job says that ends well", "started an etcd at 127.0.0.1:" in said and "at work" in said, said)


def ask_bad_etcds(folder):
    for script, words in (("echo '{\"msg\":\"no luck\",\"error\":\"the port is taken\"}'", "did not start: no luck: the port is taken"),
                          ("echo '2020-01-01 | E | etcdmain: no disk'", "did not start: E | etcdmain: no disk"),
                          ("echo first; echo last", "did not start: last"),
                          ("echo 'flag provided but not defined: -enable-v2'; echo usage", "did not start: flag provided but not defined: -enable-v2; an etcd from 3.6 on")):
        with tempfile.NamedTemporaryFile("w", suffix=".sh", delete=False) as f:
            f.write("#!/bin/sh\n" + script + "\nexit 1\n")
        os.chmod(f.name, 0o755)
        said = Alone(folder, "true", TORCHELASTIC_ETCD_BINARY_PATH=f.name).ends(69)
        holds("what is said of an etcd that does not start", f"the etcd of this job ({f.name}) " + words in said, said)
        os.unlink(f.name)
    said = Alone(folder, "true", TORCHELASTIC_ETCD_BINARY_PATH="/none").ends(64)
    holds("what is said of no etcd", "TORCHELASTIC_ETCD_BINARY_PATH=/none in the environment: No such file" in said, said)
    said = Alone(folder, "true", PATH="/none").ends(69)
    holds("what is said where none is installed", "No such file or directory; install it" in said, said)


# ---- the job ----


def main():
    steps, chapters = int(sys.argv[1]), sys.argv[2:]
    asks = os.environ["RANK"] == str(int(os.environ["WORLD_SIZE"]) - 1)
    rq = rankquake.Client()
    rq.ready()
    _, host, port = agent()
    store = Store(host, port, os.environ.get("STORE_KEY"))
    for step in range(1, steps + 1):
        if asks and step > 1 and chapters:
            globals()["ask_" + chapters.pop(0)](store)
        else:
            time.sleep(0.02)
        rq.step(step, loss=1 / step, samples=1)
    holds("chapters that were not asked", not (asks and chapters), chapters)
    rq.done("0" * 64)


if __name__ == "__main__":
    main()
