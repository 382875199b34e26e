"""As recorded.py, of agents that meet over torchelastic's legacy protocol in an etcd's v2 tree, with peers that do there what torchrun's agents do,
of a torch up to 2.3 and of a newer one; the table is recorded_tree.txt. Usage: recorded_tree.py STEPS CHAPTER..., or alone CHAPTER... Needs etcd."""
import base64
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import urllib.parse

import recorded
import recording
import trying
from recorded import work
from trying import holds

CONF = "last_call_timeout=60,timeout=60"


class Tree(recording.Recorded):
    """A proxy before an etcd's v2 API."""

    def serve_one(self, c, f):
        first = f.readline().split()
        if len(first) < 2:
            return False
        headers = http.client.parse_headers(f)
        verb, path, body = first[0].decode(), first[1].decode(), f.read(int(headers.get("Content-Length", "0")))
        if self.away and re.search(self.away, asked(verb, path, body, {})):
            return self.say(c, 503, b"{}")
        store = http.client.HTTPConnection("127.0.0.1", self.store, timeout=60)
        store.request(verb, path, body, {"Content-Type": headers.get("Content-Type", "application/x-www-form-urlencoded")})
        answer = store.getresponse()
        text, index = answer.read(), answer.getheader("X-Etcd-Index")
        store.close()
        try:
            self.heard(asked(verb, path, body, json.loads(text or b"{}")))
        except ValueError:
            self.heard(asked(verb, path, body, {}))
        c.sendall(f"HTTP/1.1 {answer.status} Said\r\nContent-Type: application/json\r\nX-Etcd-Index: {index}\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text)
        return True


def coded(text):
    return base64.b64encode(text.encode()).decode()


def decoded(text):
    return base64.b64decode(text).decode(errors="replace")


def asked(verb, path, body, answer):
    path, _, query = path.partition("?")
    q = dict(urllib.parse.parse_qsl(query, keep_blank_values=True) + urllib.parse.parse_qsl(body.decode(), keep_blank_values=True))
    key = urllib.parse.unquote(path)
    if "/kv/" in key:
        before, _, name = key.rpartition("/kv/")
        key = f"{before}/kv/{decoded(name)}"
        q.update((k, decoded(v)) for k, v in list(q.items()) if k in ("value", "prevValue"))
    code = answer.get("errorCode", 0)
    went = {0: "done", 100: "none", 101: "refused", 105: "refused", 401: "too old"}.get(code, f"error {code}")
    if key.endswith("/MASTER_PORT"):
        q["value"] = "PORT" if 0 < int(q.get("value", "0")) < 65536 else q["value"]
    if "waitIndex" in q:
        q["waitIndex"] = "N"
    if "dir" in q:
        went = "asked"
    return f"{verb} {key}{''.join(f' {k} {q[k]!r}' for k in sorted(q))}: {went}"


class Peers(recorded.Chapter):
    """Agents and peers that meet in an etcd."""
    backend, table = "etcd", os.path.join(recorded.HERE, "recorded_tree.txt")
    beat = re.compile(r"PUT .*/rank_\d+ .*refresh 'true'.*: done$|GET .* wait 'true' ")

    def begin(self):
        ports = []
        for s in [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]:
            ports.append(s.getsockname()[1])
            s.close()
        self.port, self.data = ports[0], self.place.inside("etcd")
        at, peers = (f"http://127.0.0.1:{port}" for port in ports)
        self.etcd = subprocess.Popen(["etcd", "--enable-v2", f"--data-dir={self.data}", f"--listen-client-urls={at}", f"--advertise-client-urls={at}",
                                      f"--listen-peer-urls={peers}", "--unsafe-no-fsync"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                     env={"PATH": os.environ["PATH"]})
        for line in self.etcd.stdout:
            if "ready to serve client requests" in line:
                break
        else:
            holds("an etcd begins", False, self.etcd.wait())
        recorded.threading.Thread(target=self.etcd.stdout.read, daemon=True).start()

    def proxy(self, heard):
        return Tree(self.port, heard)

    def agent(self, name, *words, conf=CONF, **more):
        return super().agent(name, *words, conf=conf, **more)

    def end(self):
        self.place.nothing_left("")
        self.etcd.terminate()
        self.etcd.wait()

    def said(self):
        return {re.sub(r"/v2/keys/torchelastic/p2p/run_told/rdzv", "", re.sub(r"\b[0-9a-f]{32}\b|\bTOKEN\b", "UID", line)) for line in super().said()}

    # ---- what a peer does ----

    def ask(self, verb, key, **q):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=recorded.PATIENCE)
        c.request(verb, f"/v2/keys/torchelastic/p2p/run_told/rdzv{key}" + ("?" + urllib.parse.urlencode(q) if verb != "PUT" else ""),
                  urllib.parse.urlencode(q) if verb == "PUT" else None, {"Content-Type": "application/x-www-form-urlencoded"})
        answer = json.loads(c.getresponse().read() or b"{}")
        c.close()
        return answer

    def put(self, key, value, **q):
        answer = self.ask("PUT", key, value=value, **q)
        holds(f"a peer's {key}", "node" in answer, answer)

    def tell(self, version, **what):
        for name, value in what.items():
            self.put(f"/v_{version}/kv/" + coded(name), coded(value))

    def until(self, key, good):
        """What a key is once it is as a peer waits for."""
        while True:
            answer = self.ask("GET", key)
            value = answer.get("node", {}).get("value")
            if value is not None and good(value):
                return value
            index = int(answer.get("index") or answer["node"]["modifiedIndex"]) + 1
            self.ask("GET", key, wait="true", waitIndex=index)

    def state(self, **parts):
        """Until the state has these."""
        return self.until("/active_version", lambda text: parts.items() <= json.loads(text).items())

    def change(self, text, ttl=None, **parts):
        new = json.dumps({**json.loads(text), **parts})
        self.put("/active_version", new, prevValue=text, **({"ttl": ttl} if ttl else {}))

    def set_up(self, version):
        """By a peer, as torchelastic does it; it is the first in it."""
        self.put("/active_version", '{"status": "setup"}', prevExist="false", ttl=60)
        self.put("/version_counter", str(version))
        self.ask("PUT", f"/v_{version}", dir="true")
        self.put("/active_version", json.dumps({"status": "joinable", "version": str(version), "participants": [0]}))

    def confirm(self, version, rank, last, **frozen):
        """That it takes part: as the last one, or as the one who ends the last call."""
        own = f"/torchelastic/p2p/run_told/rdzv/v_{version}/rank_{rank}"
        self.put(f"/v_{version}/rank_{rank}", "")
        if not last:
            text = self.until("/active_version", lambda t: json.loads(t).get("version") == str(version) and len(json.loads(t).get("participants", ())) == 2 - rank)
            return self.change(text, ttl=60, status="frozen", participants=[0, 1], keep_alives=[own])
        text = self.until("/active_version", lambda t: json.loads(t).get("version") == str(version) and json.loads(t).get("keep_alives"))
        self.change(text, status="final", keep_alives=json.loads(text)["keep_alives"] + [own], num_workers_waiting=0)

    def master(self, version):
        self.tell(version, MASTER_ADDR="host.of.peer", MASTER_PORT="12345")

    def known(self, version, name):
        """An agent has told that."""
        return decoded(self.until(f"/v_{version}/kv/" + coded(name), lambda value: True))


def info(rank, slots=1, role="default"):
    return json.dumps({"role": role, "rank": rank, "local_world_size": slots})


def with_first(c, version, last, newer=False, slots=1):
    """A round whose rank 0 is a peer, up to where workers start."""
    if not last:
        c.agents[-1].until("waiting 60 s for more")
    c.confirm(version, 0, last)
    c.state(status="final", version=str(version))
    c.master(version)
    c.tell(version, **{"torchelastic/role_info" + ("/0" if newer else "0"): info(0, slots)})
    if newer:
        c.tell(version, **{"torchelastic/assigned_ranks/1": f"[{slots}, {slots + 1}, {slots}, {slots + 1}]"})


def with_second(c, version, last, newer=False, role="default"):
    """A round whose rank 1 is a peer."""
    if last:
        c.change(c.state(status="joinable", version=str(version), participants=[0]), ttl=60, status="frozen", participants=[0, 1], keep_alives=[])
    c.confirm(version, 1, last)
    c.state(status="final", version=str(version))
    c.known(version, "MASTER_PORT")
    c.tell(version, **{"torchelastic/role_info" + ("/1" if newer else "1"): info(1, 2, role)})


def done_first(c, version, rank, agent, newer=False):
    """A peer is done, the agent's workers are then, and the peer waits for it."""
    state = "torchelastic/agent/terminal_state"
    if newer:
        c.tell(version, **{f"{state}/num_members": "1"})
    else:
        c.tell(version, **{f"{state}{rank}": str(rank)})
    for worker in range(agent.slots):
        agent.tell(f"{version}.{worker}", "exit 0")
    c.known(version, f"{state}/last_member" if newer else f"{state}{1 - rank}")
    if not newer:
        c.tell(version, **{f"{state}{rank}.FIN": "FIN"})
    agent.ends(0)


def two_rounds(newer, last):
    def play(c):
        """A peer makes the first round; a worker of the agent fails, and the peer makes another."""
        c.set_up(1)
        a = c.agent("a", "--nnodes=2" if last else "--nnodes=2:3", "--max-restarts=1", "--event-log-handler=console")
        with_first(c, 1, last, newer, 3)
        work(a, round=1)
        a.tell("1.0", "exit 3")
        c.state(num_workers_waiting=1)
        c.ask("DELETE", "/v_1/rank_0")
        c.until("/active_version", lambda t: json.loads(t).get("version") != "1" and "participants" in t)
        with_second(c, 2, not last, newer, "reader")
        work(a, round=2)
        done_first(c, 2, 1, a, newer)
    return play


def joined_by(newer, last):
    def play(c):
        """An agent makes the round, and a peer comes."""
        a = c.agent("a", "--nnodes=2" if last else "--nnodes=2:3", "--nproc-per-node=2", "--max-restarts=0")
        a.slots = 2
        with_second(c, 1, last, newer)
        a.works("1.0", "1.1")
        done_first(c, 1, 1, a, newer)
    return play


def named(name, play):
    play.__name__ = name
    return play


def lone(c):
    """One agent, whose worker fails twice."""
    a = c.agent("a", "--nnodes=1", "--nproc-per-node=2", "--max-restarts=1", "--role=trainer")
    a.works("1.0", "1.1")
    a.tell("1.1", """say '{"message": "it is tried"}'; exit 7""")
    a.works("2.0", "2.1")
    a.tell("2.0", "kill -KILL $PPID; exec sleep 60")
    a.ends(1)
    c.agent("b", "--nnodes=1").ends(1)


def lone_done(c):
    a = c.agent("a", "--nnodes=1", "--max-restarts=1", conf=CONF + ",etcd_prefix=/jobs")
    work(a, round=1)
    a.tell("1.0", "exit 0")
    a.ends(0)
    c.agent("b", "--nnodes=1", conf=CONF + ",etcd_prefix=/jobs").ends(0)


def left(c):
    """An agent leaves a round that it shares with a peer."""
    c.set_up(1)
    a = c.agent("a", "--nnodes=2", "--max-restarts=1")
    with_first(c, 1, True)
    work(a, round=1)
    a.child.send_signal(signal.SIGTERM)
    a.ends(143)


def closed(c):
    """A peer is done, and closes the run, before the agent is; then one that only comes."""
    c.set_up(1)
    a = c.agent("a", "--nnodes=2:3", "--max-restarts=1")
    with_first(c, 1, False)
    work(a, round=1)
    c.change(c.state(status="final"), status="closed")
    a.tell("1.0", "exit 0")
    a.ends(0)
    c.agent("b", "--nnodes=2").ends(1)


def waited(c):
    """Another node waits for a place, and the agent makes room; then it waits itself, and is no longer needed."""
    c.set_up(1)
    a = c.agent("a", "--nnodes=1:2", "--max-restarts=1")
    with_first(c, 1, True)
    work(a, round=1)
    c.change(c.state(status="final"), num_workers_waiting=1)
    a.until("worker 1.0: told to end")
    c.ask("DELETE", "/v_1/rank_0")
    text = c.until("/active_version", lambda t: json.loads(t).get("version") == "2" and "rankrun" in t)
    c.change(text, status="closed")
    a.ends(1)


def lost(c):
    """The peer is lost, and the agent makes a round of its own."""
    c.set_up(1)
    a = c.agent("a", "--nnodes=1:2", "--max-restarts=1", conf=CONF.replace("60", "0", 1))
    with_first(c, 1, True)
    work(a, round=1)
    c.ask("DELETE", "/v_1/rank_0")
    work(a, round=2)
    a.tell("2.0", "exit 0")
    a.ends(0)


def gang(c):
    """As that, of a job that is all or nothing."""
    c.set_up(1)
    a = c.agent("a", "--nnodes=1:2", "--max-restarts=1", "--on-node-loss=gang")
    with_first(c, 1, True)
    work(a, round=1)
    c.ask("DELETE", "/v_1/rank_0")
    a.ends(1)


def spare(c):
    """There are enough, and an agent waits; the run ends well."""
    c.put("/active_version", json.dumps({"status": "final", "version": "4", "participants": [0], "num_workers_waiting": 0,
                                         "keep_alives": ["/torchelastic/p2p/run_told/rdzv/v_4/rank_0"]}))
    c.put("/v_4/rank_0", "")
    a = c.agent("a", "--nnodes=1", "--max-restarts=1")
    a.until("waits as a spare")
    c.change(c.state(status="final"), status="closed", rankrun_end="")
    a.ends(0)


def late(c):
    """There is room in a round that runs: its peer ends it, and both make up another."""
    c.put("/active_version", json.dumps({"status": "final", "version": "4", "participants": [0], "num_workers_waiting": 0,
                                         "keep_alives": ["/torchelastic/p2p/run_told/rdzv/v_4/rank_0"]}))
    c.put("/version_counter", "4")
    c.put("/v_4/rank_0", "")
    a = c.agent("a", "--nnodes=2", "--max-restarts=1")
    c.state(num_workers_waiting=1)
    c.ask("DELETE", "/v_4/rank_0")
    with_second(c, 5, True)
    work(a, round=5)
    done_first(c, 5, 1, a)


def strange(c):
    """What is there is no rendezvous, no number, no node, no master."""
    c.put("/active_version", "what?")
    c.agent("a", "--nnodes=1").ends(1)
    c.ask("DELETE", "/active_version")
    c.put("/version_counter", "many")
    c.agent("b", "--nnodes=1").ends(1)
    c.ask("DELETE", "/active_version")
    for version, told in ((3, {"torchelastic/role_info0": "{}"}), (4, {"torchelastic/role_info0": info(0), "MASTER_ADDR": "host", "MASTER_PORT": "none"})):
        c.set_up(version)
        d = c.agent(f"d{version}", "--nnodes=2")
        c.state(status="frozen", version=str(version))
        c.confirm(version, 0, True)
        c.tell(version, **told)
        d.ends(1)
        c.ask("DELETE", "/active_version")
    c.agent("e", "--nnodes=2", conf="timeout=1,last_call_timeout=1").ends(1)


def closed_then(c, how, code):
    """Others close the run, and say nothing of an end; then the worker of an agent ends so."""
    a = c.agent("a", "--nnodes=1", "--max-restarts=1")
    work(a, round=1)
    c.change(c.state(status="final"), status="closed")
    a.tell("1.0", how)
    a.ends(code)


def closed_fails(c):
    """It has restarts left."""
    closed_then(c, "exit 3", 1)


def closed_done(c):
    """It ends well."""
    closed_then(c, "exit 0", 0)


def closed_before(c):
    """Others close it before an agent's workers have begun, and say nothing, that it went well, and that it did not."""
    for version, end in ((1, {}), (2, {"rankrun_end": ""}), (3, {"rankrun_end": "it was so"})):
        c.set_up(version)
        a = c.agent(f"a{version}", "--nnodes=2", "--max-restarts=1")
        c.confirm(version, 0, True)
        c.change(c.state(status="final", version=str(version)), status="closed", **end)
        a.ends(0 if version == 2 else 1)
        c.ask("DELETE", "/active_version")


CHAPTERS = (lone, lone_done, *(named(f"two_rounds{'_newer' * n}{'_last' * l}", two_rounds(n, l)) for n in (False, True) for l in (False, True)),
            *(named(f"joined_by{'_newer' * n}{'_last' * l}", joined_by(n, l)) for n in (False, True) for l in (False, True)),
            left, closed, closed_fails, closed_done, closed_before, waited, lost, gang, spare, late, strange)

if __name__ == "__main__":
    trying.main(recorded.tries(Peers, CHAPTERS))
