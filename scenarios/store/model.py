"""What a store of rankrun's is to answer, said as plainly as can be: keys in a dictionary, what has happened in a list, every answer a text.
Bounds are those of `rankrun store --memory`. Of the standard library alone."""
import base64
import re

RECORD, OVERHEAD, RUNS_VALUE, RUNS_LEAST = 64, 256, 16 << 10, 1 << 10
HISTORY, OPERATIONS, REQUEST, LEASES, TTL = 8192, 128, 1536 << 10, 8192, 9000000
LINE_EVENTS, LINE_BYTES = 512, 256 << 10
TARGETS, RELATIONS = ("VERSION", "CREATE", "MOD", "VALUE", "LEASE"), ("EQUAL", "GREATER", "LESS", "NOT_EQUAL")
FIELDS = ("version", "create_revision", "mod_revision", "value", "lease")
OTHERS_FULL = "this store is full of keys that are no run's: see them and delete what is not needed, or start it anew; runs are served"
RUNS_FULL = ("this store is full of runs: somebody writes more of them than jobs do; see its keys and delete what is not theirs, or "
             "start it anew")


class Refused(Exception):
    """(HTTP status, code, what is said)"""

    def text(self):
        _, code, text = self.args
        return f'{{"error":"{text}","code":{code},"message":"{text}"}}'


def invalid(text):
    return Refused(400, 3, "etcdserver: " + text)


def out_of_range(text):
    return Refused(400, 11, "etcdserver: " + text)


def coded(text):
    return base64.b64encode(text).decode()


def header(revision):
    return f'"header":{{"revision":"{revision}"}}'


def within(key, start, end):
    return key == start if not end else key >= start and (end == b"\0" or key < end)


def prefix_end(prefix):
    return prefix[:-1] + bytes([prefix[-1] + 1])


def shown(key, r, values=True):
    """A key with what is known of it. What is nothing is left out."""
    value = r["value"] if values else b""
    parts = [("key", coded(key)), ("create_revision", r["create"]), ("mod_revision", r["mod"]), ("version", r["version"]), ("value", coded(value)), ("lease", r["lease"])]
    return "{" + ",".join(f'"{name}":"{v}"' for name, v in parts if v) + "}"


def run_of(key):
    """All that the keys of its run begin with."""
    found = re.match(rb"/rankrun/[^/]+/", key)
    return found[0] if found else b""


def is_runs(key, value):
    return len(value) <= RUNS_VALUE and (key == b"/rankrun/quarantine" or re.fullmatch(rb"/rankrun/[^/]+/cur", key) is not None)


def size_of(key, value, runs):
    size = len(key) + len(value) + OVERHEAD
    return max(size, RUNS_LEAST) if runs else size


class Watch:
    """next: what was before it is not for it."""

    def __init__(self, model, key, end, start):
        self.model, self.key, self.end = model, key, end
        self.next, self.over = start if start > 0 else model.revision + 1, False

    def lines(self):
        """What it is told now, if nothing was held back before."""
        m, told = self.model, []
        if self.next < m.compacted and not self.over:
            self.over = True
            return [f'{{"result":{{{header(m.revision)},"canceled":true,"compact_revision":"{m.compacted}"}}}}\n']
        mine = [e for e in m.events if e[0] >= self.next and within(e[1], self.key, self.end)]
        while mine and not self.over:
            n = size = 0
            while n < len(mine) and n < LINE_EVENTS and size < LINE_BYTES:
                size += m.record_size(mine[n])
                n += 1
            while n < len(mine) and mine[n][0] == mine[n - 1][0]:
                n += 1
            told.append(f'{{"result":{{{header(m.revision)},"events":[{",".join(map(event, mine[:n]))}]}}}}\n')
            mine = mine[n:]
        self.next = max(self.next, m.revision + 1)
        return told


def event(e):
    revision, key, record = e
    if record is None:
        return f'{{"type":"DELETE","kv":{{"key":"{coded(key)}","mod_revision":"{revision}"}}}}'
    return f'{{"kv":{shown(key, record)}}}'


class Model:
    def __init__(self, memory_mb):
        part = (memory_mb << 20) // 32
        self.runs_max, self.others_max, self.history_max = 10 * part, 4 * part, 2 * part
        self.revision = self.compacted = 1
        self.keys, self.leases, self.events = {}, {}, []
        self.written, self.renewals = 0, 0
        self.runs = self.runs_full = self.others_full = 0

    # ---- what is there ----

    def span(self, key, end):
        return [key] if not end and key in self.keys else sorted(k for k in self.keys if within(k, key, end))

    def record_size(self, e):
        return RECORD + len(e[1]) + len(e[2]["value"] if e[2] else b"")

    def happened(self, key, record):
        self.events.append((self.revision + 1, key, record))

    def step(self):
        """A revision is over."""
        self.revision += 1
        n = len(self.events)
        if n > HISTORY:
            self.compact(self.events[min(n - HISTORY + HISTORY // 4, n - 1)][0])

    def compact(self, revision):
        self.compacted = revision
        self.events = [e for e in self.events if e[0] >= revision]

    def history_from(self, most):
        size, i = 0, len(self.events)
        while i > 0 and size + self.record_size(self.events[i - 1]) <= most:
            i -= 1
            size += self.record_size(self.events[i])
        if i == len(self.events):
            return self.revision
        return self.events[i][0] if i else self.compacted

    # ---- what there is room for ----

    def look(self):
        sizes = {True: 0, False: 0}
        for key, r in self.keys.items():
            runs = is_runs(key, r["value"])
            sizes[runs] += size_of(key, r["value"], runs)
        self.runs = sizes[True]
        self.runs_full = sizes[True] > self.runs_max // 4 * 3
        self.others_full = sizes[False] > self.others_max // 4 * 3

    def wrote(self, n):
        """A request of so many bytes was done that may have put something."""
        self.written += n + OVERHEAD
        if self.written < min(self.history_max, self.runs_max, self.others_max) // 8:
            return
        self.written = 0
        if self.history_from(self.history_max) > self.compacted:
            half = self.history_from(self.history_max // 2)
            if self.compacted < half <= self.revision:
                self.compact(half)
        self.look()

    def kept_of(self, keys):
        return sum(size_of(k, self.keys[k]["value"], True) for k in keys)

    def room_for(self, key, value):
        if not is_runs(key, value):
            return not self.others_full
        run = run_of(key)
        theirs = self.kept_of(self.span(run, prefix_end(run))) if run else 0
        return (not self.runs_full or size_of(key, value, True) <= self.kept_of(self.span(key, b"")) or
                (self.runs <= self.runs_max and 0 < theirs < self.runs_max // 16))

    # ---- transactions: each operation is (kind, fields) ----

    def check(self, t):
        for kind, op in [*t["success"], *t["failure"]]:
            if kind == "put" and not self.room_for(op["key"], op["value"]):
                raise Refused(429, 8, RUNS_FULL if is_runs(op["key"], op["value"]) else OTHERS_FULL)
        size = 0
        if len(t["compare"]) > OPERATIONS:
            raise invalid("too many operations in txn request")
        if not all(c["key"] for c in t["compare"]):
            raise invalid("key is not provided")
        for branch in (t["success"], t["failure"]):
            size = self.check_branch(branch, size)

    def check_branch(self, ops, size):
        if len(ops) > OPERATIONS:
            raise invalid("too many operations in txn request")
        for _, op in ops:
            size += len(op["key"]) + len(op["range_end"]) + len(op["value"])
            if not op["key"]:
                raise invalid("key is not provided")
            if size > REQUEST:
                raise invalid("request is too large")
        puts = [op["key"] for kind, op in ops if kind == "put"]
        gone = [op for kind, op in ops if kind == "delete"]
        if len(set(puts)) < len(puts) or any(within(k, d["key"], d["range_end"]) for k in puts for d in gone):
            raise invalid("duplicate key given in txn request")
        return size

    def check_taken(self, ops):
        for kind, op in ops:
            if kind == "range" and op["revision"] > self.revision:
                raise out_of_range("mvcc: required revision is a future revision")
            if kind == "range" and op["revision"] and op["revision"] < self.revision:
                raise out_of_range("mvcc: required revision has been compacted")
            if kind == "put" and op["lease"] and op["lease"] not in self.leases:
                raise Refused(404, 5, "etcdserver: requested lease not found")

    def holds(self, c):
        found = self.span(c["key"], c["range_end"])
        name = {"create_revision": "create", "mod_revision": "mod"}.get(c["field"], c["field"])
        if not found:
            have = [None if name == "value" else 0]
        else:
            have = [self.keys[k][name] for k in found]
        good = {"EQUAL": lambda a, b: a == b, "GREATER": lambda a, b: a > b, "LESS": lambda a, b: a < b, "NOT_EQUAL": lambda a, b: a != b}[c["result"]]
        return all(v is not None and good(v, c["wanted"]) for v in have)

    def txn(self, t):
        """Whether it succeeded, and what each operation is answered, without the header."""
        self.check(t)
        succeeded = all(self.holds(c) for c in t["compare"])
        ops = t["success" if succeeded else "failure"]
        self.check_taken(ops)
        before = len(self.events)
        told = [getattr(self, kind)(op) for kind, op in ops]
        if len(self.events) > before:
            self.step()
        return succeeded, [kind for kind, _ in ops], [f"{{{header(self.revision)}{text}}}" for text in told]

    def range(self, op):
        found = self.span(op["key"], op["range_end"])
        count = f',"count":"{len(found)}"' if found else ""
        if op["count_only"]:
            return count
        n = op["limit"] if 0 < op["limit"] < len(found) else len(found)
        kvs = ",".join(shown(k, self.keys[k], not op["keys_only"]) for k in found[:n])
        return (f',"kvs":[{kvs}]' if n else "") + (',"more":true' if n < len(found) else "") + count

    def put(self, op):
        key, old = op["key"], self.keys.get(op["key"])
        new = {"create": old["create"] if old else self.revision + 1, "mod": self.revision + 1, "version": old["version"] + 1 if old else 1,
               "value": op["value"], "lease": op["lease"]}
        self.keys[key] = new
        self.happened(key, new)
        return f',"prev_kv":{shown(key, old)}' if old and op["prev_kv"] else ""

    def delete(self, op):
        found = self.span(op["key"], op["range_end"])
        old = ",".join(shown(k, self.keys[k]) for k in found)
        self.remove(found)
        return (f',"prev_kvs":[{old}]' if found and op["prev_kv"] else "") + (f',"deleted":"{len(found)}"' if found else "")

    def remove(self, keys):
        for k in keys:
            del self.keys[k]
            self.happened(k, None)

    def is_of_run(self, t):
        """Who asks so is an agent of a run that is there."""
        run = next((run_of(op["key"]) for _, op in t["success"] if run_of(op["key"])), b"")
        quarantine = lambda q: q["key"] == b"/rankrun/quarantine" and not q["range_end"]
        asked = [*t["compare"], *(op for _, op in t["success"])]
        return bool(run) and not t["failure"] and run + b"cur" in self.keys and all(
            quarantine(q) or q["key"].startswith(run) and (not q["range_end"] or q["range_end"].startswith(run)) for q in asked)

    # ---- leases ----

    def renew(self, lease):
        self.renewals += 1
        self.leases[lease]["renewed"] = self.renewals

    def grant(self, lease, ttl, drawn):
        if lease not in self.leases and len(self.leases) >= LEASES and not self.drop_leases():
            raise Refused(429, 8, "this store has as many leases as it takes")
        if lease and lease in self.leases:
            raise Refused(412, 9, "etcdserver: lease already exists")
        if ttl > TTL:
            raise out_of_range("too large lease TTL")
        self.leases[lease or drawn] = {"ttl": max(ttl, 1)}
        self.renew(lease or drawn)
        return f'{{{header(self.revision)},"ID":"{lease or drawn}"' + (f',"TTL":"{ttl}"' if ttl else "") + "}"

    def drop_leases(self):
        """An eighth of all, who was renewed longest ago first, but none of a run's keys."""
        spared = {r["lease"] for k, r in self.keys.items() if is_runs(k, b"")}
        gone = sorted((v["renewed"], i) for i, v in self.leases.items() if i not in spared)[:LEASES // 8]
        for _, lease in gone:
            self.end_lease(lease)
        return len(gone)

    def end_lease(self, lease):
        del self.leases[lease]
        held = sorted(k for k, r in self.keys.items() if r["lease"] == lease)
        self.remove(held)
        if held:
            self.step()

    def keep(self, lease):
        ttl = ""
        if lease in self.leases:
            self.renew(lease)
            ttl = f',"TTL":"{self.leases[lease]["ttl"]}"'
        mine = f',"ID":"{lease}"' if lease else ""
        return f'{{"result":{{{header(self.revision)}{mine}{ttl}}}}}\n'

    def revoke(self, lease):
        if lease not in self.leases:
            raise Refused(404, 5, "etcdserver: requested lease not found")
        self.end_lease(lease)
        return f"{{{header(self.revision)}}}"

    def forget(self, revision):
        if revision > self.revision:
            raise out_of_range("mvcc: required revision is a future revision")
        if revision <= self.compacted:
            raise out_of_range("mvcc: required revision has been compacted")
        self.compact(revision)
        return f"{{{header(self.revision)}}}"
