"""The other end of a node helper, for scripts that speak to one: what a harness would say, and what none would. What is
wrong with its answers is in `wrong`."""
import json, os, select, struct, subprocess, time

DEADLINE_S = 60
wrong = []


def check(true, what):
    if not true:
        wrong.append(what)


class Helper:
    def __init__(self, command, run, hello=True):
        self.run = run
        self.began = time.monotonic()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.bytes, self.heard = b"", []
        if hello:
            self.hello = self.wait("hello")
            self.up_s = time.monotonic() - self.began
            self.say(op="hello", version=2)

    def raw(self, text):
        self.process.stdin.write(text)

    def say(self, **message):
        text = json.dumps(message).encode()
        self.raw(struct.pack(">I", len(text)) + text)

    def read(self, seconds=DEADLINE_S):
        """The next message; None: the helper has gone, or says nothing for so long."""
        until = time.monotonic() + seconds
        while True:
            if len(self.bytes) >= 4:
                n = struct.unpack(">I", self.bytes[:4])[0]
                if len(self.bytes) >= 4 + n:
                    m = json.loads(self.bytes[4:4 + n])
                    self.bytes = self.bytes[4 + n:]
                    self.heard.append(m)
                    return m
            if not select.select([self.process.stdout], [], [], max(0, until - time.monotonic()))[0]:
                return None
            more = os.read(self.process.stdout.fileno(), 65536)
            if not more:
                return None
            self.bytes += more

    def wait(self, op):
        while True:
            m = self.read()
            if m is None:
                check(False, f"no {op}; heard {[h['op'] for h in self.heard if h['op'] != 'output'][-20:]}")
                return {}
            if m["op"] == op:
                return m

    def setup(self, who=None, **more):
        self.events = f"@carrier-test-{os.getpid()}-{time.monotonic_ns()}"
        self.say(op="setup", name="n0", isolation="processes", privileged=False, dir="/tmp", addr="127.0.0.1",
                 events=self.events, run=who or self.run, **more)

    def start(self, *argv, env=()):
        self.say(op="run", argv=argv, cwd="/", env=["PATH=/usr/bin:/bin", f"RANKQUAKE_EVENTS={self.events}", *env])
        return self.wait("started")

    def end(self):
        self.process.stdin.close()
        bye = self.wait("bye")
        check(self.process.wait(DEADLINE_S) == 0, "it did not end well")
        return bye
