"""A job whose last rank asks a store of its own with every wrong word, name, token and path there is, and compares what it is answered, and what the
page of metrics says of runs in every state, with what stands in a table, answered.txt. Usage: answered.py STEPS CHAPTER...; the chapters
are the functions below whose name begins with try_. Without a job, of the rankrun in the PATH: answered.py alone CHAPTER...; with
WRITE=1 the table is written anew, to be read before it is believed. Of the standard library alone."""
import atexit
import contextlib
import json
import os
import re
import select
import socket

import trying
from model import coded
from trying import holds

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "answered.txt")
VALUES = (0, 1, -1, 1.5, 1e3, "1", " 1", "1 ", "-1", "+1", "0x1", "x", "", None, True, False, [], {}, 2 ** 63 - 1, 2 ** 63, -2 ** 63, str(2 ** 63), str(2 ** 63 - 1),
          "YQ==", "YQ=", "YQ", "Y===", "YQ==YQ==", "YWI=", "YWJj", "*w==", "Y\0==", "EQUAL", "VALUE", "equal", 4, 5, [1], [{}], {"a": 1})
A = coded(b"a")
FORMS = {
    "range": ("kv/range", {"key": A, "range_end": coded(b"c"), "limit": 1, "revision": 0, "keys_only": True, "count_only": False}),
    "put": ("kv/put", {"key": coded(b"p"), "value": A, "lease": 0, "prev_kv": True}),
    "delete": ("kv/deleterange", {"key": coded(b"p"), "range_end": coded(b"q"), "prev_kv": True}),
    "compare": ("kv/txn", {"key": A, "range_end": "", "target": "VERSION", "result": "EQUAL", "version": "1"}),
    "compare of values": ("kv/txn", {"key": A, "target": "VALUE", "result": "LESS", "value": coded(b"z")}),
    "txn": ("kv/txn", {"compare": [], "success": [], "failure": []}),
    "operation": ("kv/txn", {"request_range": {"key": A}, "request_put": {"key": A}, "request_delete_range": {"key": A}}),
    "compaction": ("kv/compaction", {"revision": "0"}),
    "grant": ("lease/grant", {"ID": "7", "TTL": "600"}), "keepalive": ("lease/keepalive", {"ID": "7"}), "revoke": ("lease/revoke", {"ID": "7"}),
    "watch": ("watch", {"key": A, "range_end": coded(b"c"), "start_revision": "0"}), "create": ("watch", {"create_request": {}})}
BODIES = (b"", b" ", b"{", b"{}", b"{}x", b" {} ", b"[]", b"1", b"null", b'""', b'{"key":"YQ==",}', b'{"key":"YQ==","key":"Yg=="}', b"[" * 5000, b'{"key":' * 900, b"\xff",
          b'{"key":"\xff"}', b"{\0}", b'{"key":"YQ==" "limit":1}', b"{'key':'YQ=='}")
PATHS = ("/", "/v3", "/v3/", "/v3/kv/range", "/v3/kv/range/", "/v3/kv/range?x=1", "/v3/KV/range", "/v3beta/kv/range", "/v3/kv/lease/revoke", "/v3/lease/leases", "/v3/watch",
         "/metrics", "/metrics/", "/v3/rankrun/lifeline", "/v3/auth/authenticate", "/version", "/health")


def wrap(form, fields):
    if form.startswith("compare"):
        return {"compare": [fields], "success": [{"request_put": {"key": coded(b"s")}}]}
    return {"create_request": fields} if form == "watch" else {"success": [fields]} if form == "operation" else fields


class Plain:
    """Asks each question on a connection of its own, so that what ends one ends no other."""

    def __init__(self, place, *words, **more):
        self.store, self.lines = trying.Store(place, "--quarantine=never", *words, **more), {}
        atexit.register(self.store.child.kill)

    def answer(self, method, path, body=b"", head=""):
        """As it stands in the table. Of a watch the first line."""
        with socket.create_connection(("127.0.0.1", self.store.port), timeout=30) as c, c.makefile("rb") as f:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it may have answered before all of it is there
                c.sendall(f"{method} {path} HTTP/1.1\r\n{head or 'Host: localhost'}\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            first = f.readline().decode().split(" ", 1)[1].strip()
            headers = {line.split(b":")[0].decode(): line.split(b": ", 1)[1].decode().strip() for line in iter(f.readline, b"\r\n")}
            if headers.get("Transfer-Encoding") == "chunked":
                text = f.read(int(f.readline(), 16)).decode().strip()
            else:
                text = f.read(int(headers.get("Content-Length", "0"))).decode() if method != "HEAD" else ""
        text = re.sub(r'("(?:revision|\w+_revision|version)":)"\d+"', r'\1"N"', " ".join(text.split()))
        return f"{first} {headers.get('Content-Type', '')} {text}".replace("application/json ", "").replace("text/html; charset=ISO-8859-1", "html")

    def note(self, what, question, answer):
        self.lines.setdefault((what, answer), []).append(question)

    def told(self):
        return [f"{what}: {' | '.join(questions)} -> {answer}" for (what, answer), questions in self.lines.items()]


def compare_table(chapter, lines):
    """With WRITE=1 it is written anew, to be read before it is believed."""
    lines = [f"{chapter}/{line}" for line in lines]
    with open(TABLE) as f:
        stands = f.read().splitlines()
    if os.environ.get("WRITE"):
        with open(TABLE, "w") as f:
            f.write("\n".join([line for line in stands if not line.startswith(chapter + "/")] + lines) + "\n")
        return
    mine = [line for line in stands if line.startswith(chapter + "/")]
    holds("lines that stand in the table", mine, TABLE)
    wrong = [*(f"\n- {line}" for line in mine if line not in lines), *(f"\n+ {line}" for line in lines if line not in mine)]
    holds(f"{chapter}: {len(wrong)} lines are others than those of the table", not wrong, "".join(wrong[:40]))


def try_forms(place):
    """Each field of each request with each value, every text that is no request, and each path by each method."""
    p = Plain(place)
    for name in (b"a", b"b", b"\0"):
        p.answer("POST", "/v3/kv/put", json.dumps({"key": coded(name), "value": coded(b"1")}).encode())
    for form, (path, fields) in FORMS.items():
        for field in fields:
            for value in VALUES:
                body = wrap(form, {**fields, field: value})
                answer = p.answer("POST", "/v3/" + path, json.dumps(body).encode())
                if path == "lease/grant" and answer.startswith("200"):
                    lease = re.search(r'"ID":"(-?\d+)"', answer)[1]
                    p.answer("POST", "/v3/lease/revoke", json.dumps({"ID": lease}).encode())
                    answer = answer.replace(f'"{lease}"', "DRAWN") if field == "ID" and lease not in str(value) else answer
                p.note(f"{form} {field}", json.dumps(value), answer)
            answer = p.answer("POST", "/v3/" + path, json.dumps(wrap(form, {k: v for k, v in fields.items() if k != field})).encode())
            p.note(f"{form} {field}", "none", answer if form != "grant" else answer[:6])
    for path in sorted({path for path, _ in FORMS.values()}):
        for body in BODIES:
            answer = p.answer("POST", "/v3/" + path, body)
            p.note(path, repr(body)[1:40], re.sub(r'"ID":"\d+"', "DRAWN", answer) if path == "lease/grant" else answer)
    for path in PATHS:
        for method in ("GET", "POST", "PUT", "DELETE", "HEAD", "PATCH", "OPTIONS"):
            if (method, path) != ("GET", "/metrics"):
                p.note(path, method, p.answer(method, path, b"{}"))
    compare_table("forms", p.told())
    p.store.ends(0)


def run_key(name, *parts):
    return coded("/".join(["/rankrun", name, *parts]).encode())


CUR = {"inc": "00000000000000ab", "min": 1, "max": 3, "max_restarts": 2, "max_free_rounds": 500, "hb_ns": 2 * 10 ** 9, "fence_ns": 20 * 10 ** 9, "hard_ns": 201 * 10 ** 8,
       "suspect_ns": 21 * 10 ** 9}
HEAD = {"round": 4, "phase": "run", "pid": "4-9-1", "n": 3, "last_round": 4, "last_pid": "4-9-1", "last_n": 3, "restarts": 1, "world": 6, "master_addr": "127.0.0.1",
        "master_port": 1, "token": "0" * 32}


def try_pages(place):
    """What the page of metrics says of runs in every state, with every name, and of none; and who may ask for it by which name."""
    p = Plain(place)
    put = lambda key, value: p.answer("POST", "/v3/kv/put", json.dumps({"key": key, "value": coded(json.dumps(value).encode() if not isinstance(value, bytes) else value)}).encode())
    page = lambda: p.answer("GET", "/metrics")
    text = lambda: [re.sub(r'(_bytes_total|version=)"?[^ "}]*"?', r"\1 N", line) for line in re.split(r" (?=rankrun_|# HELP)", page())]
    lines = [f"of none: {line}" for line in text()]
    heads = [{}, {"phase": "form"}, {"phase": "end", "cause": "failure"}, {"phase": "closed", "outcome": "succeeded"}, {"phase": "closed", "outcome": "failed"}, {"restarts": 2},
             {"restarts": 3}, {"n": 1, "world": 1, "round": 10 ** 12}]
    for i, more in enumerate(heads):
        put(run_key(f"r{i}", "cur"), {**CUR, "max_restarts": 2, "min": 1 + i % 2})
        put(run_key(f"r{i}", CUR["inc"], "head"), {**HEAD, **more})
        for k in range(i % 4):
            put(run_key(f"r{i}", CUR["inc"], "s", "%032x" % k), {"seq": 1} if k else {})
    put(run_key("without-head", "cur"), CUR)
    put(run_key("of-another", "cur"), CUR)
    put(run_key("of-another", "00000000000000ac", "head"), HEAD)
    put(run_key("of-another", "00000000000000ac", "s", "0" * 32), {})
    put(run_key("bad-head", "cur"), CUR)
    put(run_key("bad-head", CUR["inc"], "head"), b"{")
    put(run_key("bad-cur", "cur"), b"{}")
    put(run_key("no-cur", CUR["inc"], "head"), HEAD)
    for name in ("a%20b", "%41", "a%2", "%zz", "%00", "%7", "q%22%5c", 'q"\\', "%e4", "a.b-c_d", "x" * 200, "x" * 300, "cur", ""):
        put(run_key(name, "cur"), CUR)
    lines += [f"of some: {line}" for line in text() if "rankrun_job_" in line]
    for i in range(300):
        put(run_key(f"many-{i:03d}", "cur"), CUR)
    named = re.findall(r'rankrun_job_round\{run_id="([^"\\]*)"', page())
    lines += [f"of many: {len(named)}, the last is {named[-1]}"]
    compare_table("pages", lines)
    p.store.ends(0)


NAMES = ("localhost", "LOCALHOST", "localhost:1", "localhost.", "x.localhost", "xlocalhost", "127.0.0.1", "127.0.0.1:65535", "127.0.0.1:65536", "127.0.0.1:0", "[::1]", "[::1]:1", "::1", "[::1", "1.2.3",
         "1.2.3.4.5", "n", "n.", "n..", ".", "", "x.local", "x.local.", "x.locale", "local", "xlocal.y", "x.internal", "x.home.arpa", "home.arpa", "x.arpa", "x.test", "x.alt", "x.svc",
         "x.svc.cluster.local", "x.cluster.local", "x.example", "one.example", "ONE.example", "one.example.", "xone.example", "one.example.org", "one.exampl", "two.example", "one.example,two.example",
         ",", "three.example", "a b", "a/b", "a:b", "a:b:c", "x" * 300)


def try_names(place):
    """By which names it lets itself be asked, and where a request may come from."""
    p = Plain(place, "--allow-host=one.example,two.example")
    for name in NAMES:
        p.note("Host", name[:40], p.answer("POST", "/v3/kv/range", b'{"key":"YQ=="}', "Host: " + name))
    p.note("Host", "none", p.answer("POST", "/v3/kv/range", b'{"key":"YQ=="}', "X: y"))
    for origin in ("null", "", "http://localhost", "http://127.0.0.1"):
        for method, path in (("POST", "/v3/kv/range"), ("GET", "/metrics"), ("POST", "/v3/watch"), ("POST", "/v3/rankrun/lifeline"), ("POST", "/none")):
            p.note("Origin", f"{origin} {path}", p.answer(method, path, b"{}", "Host: localhost\r\nOrigin: " + origin))
    compare_table("names", p.told())
    p.store.ends(0)


def try_tokens(place):
    """Who shows a token that is another by a little is told so."""
    token = "of-this-store-alone-0123456789"
    p = Plain(place, env={"RANKRUN_STORE_TOKEN": token})
    shown = ("none", "Bearer " + token, "bearer " + token, "BEARER " + token, "Bearer  " + token, "Bearer " + token + " ", "Bearer " + token + "0", "Bearer " + token[:-1], "Bearer " + token[1:],
             "Bearer " + token.upper(), "Bearer", "Bearer ", "", token, "Basic " + token, "Bearer x" + token[1:], "Bearer " + token[:-1] + "x")
    for text in shown:
        for method, path in (("POST", "/v3/kv/range"), ("GET", "/metrics"), ("POST", "/v3/watch"), ("POST", "/v3/rankrun/lifeline"), ("POST", "/none"), ("POST", "/v3/auth/authenticate")):
            head = "Host: evil.example" + ("" if text == "none" else f"\r\nAuthorization: {text}")
            if path != "/metrics" or text != "Bearer " + token:
                p.note(path, text.replace(token, "TOKEN"), p.answer(method, path, b'{"key":"YQ=="}', head))
    compare_table("tokens", p.told())
    p.store.ends(0)


KEPT, BODY_MAX = coded(b"kept"), 2 << 20


def operations():
    """Transactions, each in words: as many operations as fit and one more, and each two that speak of the same key or nearly."""
    put = lambda key, more=b"": {"request_put": {"key": coded(key), "value": coded(b"1" + more)}}
    delete = lambda key, end=b"": {"request_delete_range": {"key": coded(key), "range_end": coded(end)}}
    get = lambda key, end=b"": {"request_range": {"key": coded(key), "range_end": coded(end), "count_only": True}}
    of_none = {"key": KEPT, "target": "VERSION", "result": "EQUAL", "version": "0"}
    for n in (127, 128, 129):
        yield f"{n} compares", {"compare": [of_none] * n, "success": [get(b"a")]}
        for branch in ("success", "failure"):
            yield f"{n} gets in {branch}", {branch: [get(b"a")] * n}
            yield f"{n} puts in {branch}", {"compare": [of_none], branch: [put(b"%03d" % i) for i in range(n)]}
    two = {"put b": put(b"b"), "put c": put(b"c"), "put a": put(b"a"), "delete b": delete(b"b"), "delete from a to b": delete(b"a", b"b"), "delete from a to c": delete(b"a", b"c"),
           "delete from b to c": delete(b"b", b"c"), "delete from b on": delete(b"b", b"\0"), "get from a to c": get(b"a", b"c")}
    for first, one in two.items():
        for second, other in two.items():
            yield f"{first}, {second}", {"success": [one, other]}
            yield f"{first}, two gets and {second} if not", {"compare": [of_none], "success": [get(b"z")], "failure": [one, get(b"b"), get(b"c"), other]}
    yield "put a, delete c, put b and put a", {"success": [put(b"a"), delete(b"c"), put(b"b"), put(b"a")]}
    yield "put of 1 MiB", {"success": [put(b"large", b"x" * (1 << 20))]}


def try_operations(place):
    """What a transaction may hold, and what it must not: what is refused has changed nothing."""
    p = Plain(place)
    ask = lambda path, body: p.answer("POST", "/v3/kv/" + path, json.dumps(body).encode())
    every = lambda: ask("range", {"key": "AA==", "range_end": "AA=="})
    lines = []
    for what, t in operations():
        ask("txn", {"success": [{"request_delete_range": {"key": "AA==", "range_end": "AA=="}}]})
        ask("txn", {"success": [{"request_put": {"key": coded(name), "value": coded(name)}} for name in (b"a", b"b", b"c", b"kept")]})
        before, answer, after = every(), ask("txn", t), every()
        lines.append(f"{what} -> {answer[:600]}; " + ("nothing is other" if before == after else f"{after.count('mod_revision')} keys are there"))
    whole = json.dumps({"success": []}).encode()
    for size in (BODY_MAX - 1, BODY_MAX, BODY_MAX + 1):
        lines.append(f"a body of {size} bytes -> {p.answer('POST', '/v3/kv/txn', whole + b' ' * (size - len(whole)))[:60]}")
    compare_table("operations", lines)
    p.store.ends(0)


def try_lifelines(place):
    """What a lifeline must say of its run, its session and its ends: each field with each value, and without it."""
    p, path = Plain(place), "/v3/rankrun/lifeline"
    hexes = [*("0123456789abcdef"[:n] * m for n, m in ((15, 1), (16, 1), (16, 2))), "0" * 31, "0" * 33, "0" * 17, "0123456789abcdeg", "0123456789ABCDEF", "0" * 31 + "g"]
    for field, values in {"run_id": ["", "x", "x" * 256, "x" * 257, "x" * 300], "inc": hexes, "uid": hexes, "revision": [], "from": ["127.0.0.1:1", "PEER", "OWN"], "to": ["127.0.0.1:1", "PEER", "OWN"]}.items():
        for value in [*values, *(VALUES if field not in ("from", "to") else (1, "", None)), "none"]:
            with socket.create_connection(("127.0.0.1", p.store.port), timeout=30) as c, c.makefile("rb") as f:
                peer, own = (f"127.0.0.1:{end[1]}" for end in (c.getsockname(), c.getpeername()))
                claim = {"run_id": "r", "inc": "0123456789abcdef", "uid": "0" * 32, "revision": 1, "from": peer, "to": own}
                claim[field] = {"PEER": peer, "OWN": own}.get(value, value) if isinstance(value, str) else value
                if value == "none":
                    del claim[field]
                body = json.dumps(claim).encode()
                c.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
                # Who is taken is never answered: the store counts it.
                while not select.select([f], [], [], 0)[0] and "rankrun_store_lifelines 1" not in p.answer("GET", "/metrics"):
                    pass
                answer = f.read().decode().split("\r\n") if select.select([f], [], [], 0)[0] else ["HTTP/1.1 taken", ""]
            while "rankrun_store_lifelines 1" in p.answer("GET", "/metrics"):
                pass
            text = answer[-1].replace(peer, "PEER").replace(own, "OWN")
            p.note(field, json.dumps(value)[:40], f"{answer[0][9:]} {text}")
    compare_table("lifelines", p.told())
    p.store.ends(0)


def try_knocks(place):
    """Who begins with what no HTTP begins with is answered, and told of once: a store for each first byte."""
    lines = []
    for first in (0, 1, 9, 21, 22, 23, 31, 32, 33, 65, 126, 127, 128, 255):
        p = Plain(place)
        for begin in (bytes([first]) + b"none of HTTP\r\n\r\n", b"\x16\x03\x01" if first != 22 else b"\0\0\0", b"GET"):
            with socket.create_connection(("127.0.0.1", p.store.port), timeout=30) as c, c.makefile("rb") as f:
                c.sendall(begin)
                c.shutdown(socket.SHUT_WR)
                lines.append(f"{first}, {begin[:3]}: {f.readline().decode().strip() or 'nothing'}")
        lines += [f"{first} says {line}" for line in p.store.ends(0).replace(str(p.store.port), "PORT").splitlines()[1:]]
    compare_table("knocks", lines)


if __name__ == "__main__":
    trying.main(globals())
