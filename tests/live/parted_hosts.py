"""Hosts of a bed with a helper each, for scripts that cut them off from each other, and a job on them that tells what it hears of the
others. Such a script is called with RUN CONFIG USER FOLDER and words of its own; CONFIG is the bed's ssh_config, or its slurm.conf:
then each helper is a step of an allocation (Host.job). FOLDER has the helper and parted_job.py. All hosts of a bed have one kernel, and
so one clock."""
import base64, os, select, signal, subprocess, sys, time

from other_end import DEADLINE_S, Helper, check, wrong

run, config, user, folder, parts = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:]
bed = os.path.dirname(config)
by_slurm = config.endswith("slurm.conf")
address = {"n0": "10.77.0.1", "n1": "10.77.0.2", "n2": "10.77.0.3"}
CONNECT = 1


def ssh(host):
    return ["ssh", "-F", config, f"{user}@{host}"]


def srun(job, host):
    return ["srun", "-Q", "-u", "--overlap", "--no-kill", f"--jobid={job}", "-N1", "-n1", "-w", host]


class Host(Helper):
    kept = []
    job = None  # the allocation of Slurm whose step it is

    def __init__(self, name, *more):
        super().__init__((srun(Host.job, name) if by_slurm else ssh(name)) + [folder + "/rankquake-node", *more], run)
        self.name = name
        self.partly, self.lines, self.seen, self.spoken = b"", [], 0, time.monotonic()
        Host.kept.append(self)

    def say(self, **message):
        self.spoken = time.monotonic()
        super().say(**message)

    def end(self):
        Host.kept.remove(self)
        return super().end()

    @staticmethod
    def keep():
        """Everybody is spoken to again and again, as a harness does."""
        for h in Host.kept:
            if time.monotonic() - h.spoken > 0.2:
                h.say(op="beat")

    def begin(self, port, watch=CONNECT, own=None):
        self.setup(watch=watch, dead_man=self.dead_man_ns)
        self.wait("ready")
        self.start("/usr/bin/python3", folder + "/parted_job.py", own or address[self.name], str(port),
                   *[f"{n}={a}" for n, a in address.items() if n != self.name])

    def take(self):
        """The job's lines by now, as (word, peer, seconds)."""
        for m in self.heard[self.seen:]:
            if m["op"] == "output":
                self.partly += base64.b64decode(m["bytes"])
        self.seen = len(self.heard)
        *whole, self.partly = self.partly.split(b"\n")
        for line in whole:
            words = line.decode().split()
            check(len(words) == 3, f"{self.name}: the job says {line!r}")
            if len(words) == 3:
                self.lines.append((words[0], words[1], float(words[2])))
        return self.lines

    def forget(self):
        """What was said by now: of a job that goes on for long it would be read again and again."""
        self.take()
        self.heard, self.seen, self.lines = [], 0, []

    def until(self, word, peer, after=0.0):
        """When the job says that of that peer for the first time after then."""
        until, at = time.monotonic() + DEADLINE_S, 0
        while time.monotonic() < until:
            lines = self.take()
            for w, p, t in lines[at:]:
                if (w, p) == (word, peer) and t > after:
                    return t
            at = len(lines)
            self.read(0.1)
            self.keep()
        check(False, f"{self.name}: no \"{word} {peer}\" after {after}; last {self.lines[-4:]}")
        return float("inf")

    def ask(self, op, answer, **more):
        self.say(op=op, token=7, **more)
        m = self.wait(answer)
        check(m.get("token") == 7 and m.get("error") is None, f"{self.name}: {op}: {m}")
        return m

    def part(self, name, peers, **more):
        m = self.ask("part", "parted", name=name, **more,
                     peers=[{"name": p, "addresses": [address.get(p, p)], **how} for p, how in peers.items()])
        return m["t"] / 1e9, m

    def heard_of(self, peer, since, until):
        return [(w, p, t) for w, p, t in self.take() if w != "none" and p == peer and since < t < until]


def up(port, names=("n0", "n1", "n2"), dead_man_s=120, **how):
    hosts = [Host(n) for n in names]
    for h in hosts:
        h.dead_man_ns = int(dead_man_s * 1e9)
        h.begin(port, **how)
    for h in hosts:
        for other in names:
            if other != h.name:
                h.until("old", other)
                h.until("new", other)
    return hosts


def passed(host, cut, peer):
    return counted(host, cut, peer).get("passed")


def counted(host, cut, peer):
    for c in host.ask("count", "counted")["cuts"]:
        if c["name"] == cut:
            return next(p for p in c["peers"] if p["name"] == peer)
    return {}


def is_over(a, b, mended):
    for x, y in ((a, b.name), (b, a.name)):
        x.until("old", y, mended)
        x.until("new", y, mended)


# ---- the hosts' processes, as the control host sees them, whose process namespace is around theirs ----


def first_of(host):
    """The first process of a host: the only child of what made its namespaces."""
    parent = open(f"{bed}/hosts/{host}").read().split()[0]
    return open(f"/proc/{parent}/task/{parent}/children").read().split()[0]


def processes_on(host):
    """All that live there: {their number there: ours}."""
    space, found = os.readlink(f"/proc/{first_of(host)}/ns/pid"), {}
    for p in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{p}/ns/pid") == space:
                status = open(f"/proc/{p}/status").read()
                found[int(status.split("\nNSpid:")[1].split("\n")[0].split()[-1])] = int(p)
        except OSError:
            pass  # it has ended
    return found


def all_of(h):
    """What is a helper's on its host, a pidfd each: itself, its keeper, its program. To be asked while all three live."""
    there = processes_on(h.name)
    helper = there[h.hello["pid"]]
    parent = int(open(f"/proc/{helper}/stat").read().rsplit(")", 1)[1].split()[1])
    program = there[next(m for m in h.heard if m["op"] == "started")["pid"]]
    return {who: os.pidfd_open(p) for who, p in (("helper", helper), ("keeper", parent), ("program", program))}


def strike(*processes, signo=signal.SIGKILL):
    for p in processes:
        signal.pidfd_send_signal(p, signo)


def have_ended(named):
    """Waits for the end of processes; returns when the last of them was seen to end, and closes what tells of them."""
    waiting, poll = dict(named), select.poll()
    for p in waiting.values():
        poll.register(p, select.POLLIN)
    end = time.monotonic() + DEADLINE_S
    while waiting and time.monotonic() < end:
        for fd, _ in poll.poll(max(0, end - time.monotonic()) * 1000):
            poll.unregister(fd)
            waiting = {who: p for who, p in waiting.items() if p != fd}
    check(not waiting, f"still there after {DEADLINE_S} s: {', '.join(waiting)}")
    when = time.monotonic()
    for p in named.values():
        os.close(p)
    return when


def left_by(h):
    """What a helper has started and still lives on its host, by the name in its environment."""
    left = []
    for there, p in processes_on(h.name).items():
        try:
            if f"RANKQUAKE_HELPER={h.hello['pid']}.".encode() in open(f"/proc/{p}/environ", "rb").read():
                left.append(f"{h.name}: process {there}, {open(f'/proc/{p}/comm').read().strip()}")
        except OSError:
            pass
    return left
