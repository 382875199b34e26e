#!/usr/bin/env python3
"""A store that lies: lying_store.py PORT LIES stands before the honest one at 127.0.0.1:PORT and passes everything on, but
for what the file LIES says when a request comes. Prints the port at which it listens.

refuse-writes              what would write is refused as by an etcd that is full, all else is answered
refuse-writes-4xx          the same in other words, which say that the request was wrong
refuse-writes-end-watches  the same, and watches end as soon as anybody asks for anything
back N                     watches end so, and every revision is N less, as of a store that is set back
shows-nothing              reads find no key
answers-base64             values in answers are no base64
"""
import http.client, http.server, json, socket, sys

PORT, LIES = int(sys.argv[1]), sys.argv[2]
REVISIONS = ("revision", "create_revision", "mod_revision")
watches = []  # connections to the honest store


def changed(thing, change):
    """All that is in there, with change(name, value) for each value that is no map or list."""
    if isinstance(thing, list):
        return [changed(one, change) for one in thing]
    if isinstance(thing, dict):
        return {k: changed(v, change) if isinstance(v, (dict, list)) else change(k, v) for k, v in thing.items()}
    return thing


def told(answer, lie):
    if lie[0] == "back":
        return changed(answer, lambda k, v: str(int(v) - int(lie[1])) if k in REVISIONS else v)
    if lie[0] == "answers-base64":
        return changed(answer, lambda k, v: "?!" if k == "value" else v)
    for one in answer.get("responses", []) if lie[0] == "shows-nothing" else []:
        one.get("response_range", {}).update(kvs=[], count="0")
    return answer


def writes(body):
    return any("request_range" not in op for op in json.loads(body).get("success", []))


class Liar(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def say(self, status, answer):
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, lie):
        full = lie[0] != "refuse-writes-4xx"
        text = "etcdserver: mvcc: database space exceeded" if full else "etcdserver: read only"
        self.say(429 if full else 400, {"error": text, "message": text})

    def stream(self, answer):
        self.send_response(answer.status)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            while line := answer.readline():
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
        except OSError:
            pass
        self.wfile.write(b"0\r\n\r\n")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with open(LIES) as f:
            lie = f.read().split() or ["honest"]
        while lie[0] in ("back", "refuse-writes-end-watches") and watches:
            watches.pop().shutdown(socket.SHUT_RDWR)
        if self.path == "/v3/kv/txn" and lie[0].startswith("refuse-writes") and writes(body):
            self.refuse(lie)
            return
        there = http.client.HTTPConnection("127.0.0.1", PORT)
        there.request("POST", self.path, body)
        if self.path == "/v3/watch":
            watches.append(there.sock)
            self.stream(there.getresponse())
            return
        answer = there.getresponse()
        text = json.loads(answer.read())
        self.say(answer.status, told(text, lie) if answer.status == 200 else text)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):  # who asked has gone
        pass


server = Server(("127.0.0.1", 0), Liar)
print(server.server_port, flush=True)
server.serve_forever()
