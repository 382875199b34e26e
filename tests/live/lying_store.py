#!/usr/bin/env python3
"""A store that lies: lying_store.py PORT LIES stands before the honest one at 127.0.0.1:PORT and passes everything on, but
for what the file LIES says when a request comes. Prints the port at which it listens.

refuse-writes        transactions that would write are refused as by an etcd that is full, all else is answered
refuse-writes-4xx    the same in other words, which say that the request was wrong
back N               every revision is N less: a store that is set back to what it was
answers-base64       values in answers are no base64
watch-base64         values in what watches tell are no base64
watch-ends           a watch ends as soon as it has begun
"""
import http.client, http.server, json, sys

PORT, LIES = int(sys.argv[1]), sys.argv[2]
REVISIONS = ("revision", "create_revision", "mod_revision")


def set_back(thing, n):
    if isinstance(thing, list):
        return [set_back(one, n) for one in thing]
    if not isinstance(thing, dict):
        return thing
    return {k: str(int(v) - n) if k in REVISIONS else set_back(v, n) for k, v in thing.items()}


def garble(thing):
    if isinstance(thing, list):
        return [garble(one) for one in thing]
    if not isinstance(thing, dict):
        return thing
    return {k: "?!" if k == "value" else garble(v) for k, v in thing.items()}


def writes(body):
    return any("request_range" not in op for op in json.loads(body).get("success", []))


class Liar(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def say(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def stream(self, answer, lie):
        self.send_response(answer.status)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while line := answer.readline():
            if lie[0] == "watch-base64":
                line = json.dumps(garble(json.loads(line))).encode() + b"\n"
            elif lie[0] == "back":
                line = json.dumps(set_back(json.loads(line), int(lie[1]))).encode() + b"\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            if lie[0] == "watch-ends":
                break
        self.wfile.write(b"0\r\n\r\n")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with open(LIES) as f:
            lie = f.read().split() or ["honest"]
        if self.path == "/v3/kv/txn" and lie[0].startswith("refuse-writes") and writes(body):
            text = "etcdserver: mvcc: database space exceeded" if lie[0] == "refuse-writes" else "etcdserver: read only"
            self.say(429 if lie[0] == "refuse-writes" else 400, json.dumps({"error": text, "message": text}).encode())
            return
        there = http.client.HTTPConnection("127.0.0.1", PORT)
        there.request("POST", self.path, body)
        answer = there.getresponse()
        if self.path == "/v3/watch":
            self.stream(answer, lie)
            return
        text = answer.read()
        if answer.status == 200 and lie[0] == "back":
            text = json.dumps(set_back(json.loads(text), int(lie[1]))).encode()
        elif answer.status == 200 and lie[0] == "answers-base64":
            text = json.dumps(garble(json.loads(text))).encode()
        self.say(answer.status, text)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):  # who asked has gone
        pass


server = Server(("127.0.0.1", 0), Liar)
print(server.server_port, flush=True)
server.serve_forever()
