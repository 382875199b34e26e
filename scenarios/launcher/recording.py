"""A proxy before a store that keeps what is asked of it, in words. Of the standard library alone."""
import base64
import json
import re
import socket

import garbling

# One comes as often as time passes; that it comes shows in what becomes of an agent.
BEAT = re.compile(r'if create of [^ ]*/s/([0-9a-f]+) equal N then put [^ ]*/s/\1 = \{"seq":[1-9][0-9]*\}: done$')


class Recorded(garbling.Garbling):
    """A proxy that keeps what is asked. Which answers are not given a chapter says: `away` is what requests have in them that get none."""

    def __init__(self, port, heard):
        self.heard, self.away, self.revisions, self.watches, self.ended = heard, None, set(), [], False
        super().__init__(port, "all")

    def answer_all(self, c, path, body):
        if self.away and re.search(self.away, asked(path, body, 0, b"{}")):
            return self.say(c, 503, b"{}")
        store, answer = self.ask(path, body)
        text = answer.read()
        store.close()
        self.revisions.update(re.findall(rb'"header": *.[^}]*"revision": *"(\d+)"', text))
        self.heard(asked(path, body, answer.status, text))
        return self.say(c, answer.status, text)

    def watch_all(self, c, path, body):
        if self.away:
            return self.say(c, 503, b"{}")
        w = json.loads(body)["create_request"]
        behind = str(int(w.get("start_revision", "0")) - 1).encode() in self.revisions
        self.heard(f"watch {span(w)}, from behind {'what it has read' if behind else 'something else'}{options(w, 'key', 'range_end', 'start_revision')}")
        self.watches.append(c)
        return self.watch(c, path, body)

    def end_watches(self):
        for c in self.watches:
            try:
                c.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it has ended before
        self.watches.clear()


def plain(text):
    return base64.b64decode(text).decode(errors="replace")


def span(q):
    """The key, or the range of keys."""
    return plain(q["key"]) + (f" to {plain(q['range_end'])}" if "range_end" in q else "")


def options(q, *known):
    return "".join(f", {name} {q[name]}" for name in sorted(q) if name not in known)


def compared(c):
    """A number of a revision stands for any but 0."""
    target = c.get("target", "?").lower()
    number = next((v for k, v in sorted(c.items()) if k.endswith(("version", "revision")) or k == "value"), "0")
    return f"{target} of {span(c)} {c.get('result', '?').lower()} {number if str(number) == '0' else 'N'}"


def done(op):
    (kind, q), = op.items()
    value = f" = {plain(q['value'])}" if "value" in q else ""
    bare = ", without a lease" if kind == "request_put" and "lease" not in q else ""
    return f"{kind.removeprefix('request_')} {span(q)}{value}{options(q, 'key', 'range_end', 'value', 'lease')}{bare}"


def asked(path, body, status, text):
    """What a request is, in words, and how it was answered."""
    try:
        q, a = json.loads(body or b"{}"), json.loads(text)
    except ValueError:
        return f"{path} {body!r}"
    if path.endswith("/kv/txn"):
        went = f"status {status}" if status != 200 else "done" if a.get("succeeded") else "refused"
        when = " and ".join(sorted(compared(c) for c in q.get("compare", [])))
        then, other = ["; ".join(done(op) for op in q.get(which, [])) for which in ("success", "failure")]
        return (f"if {when} then " if when else "") + then + (f" else {other}" if other else "") + f": {went}"
    if "key" in q:
        return f"{path} {span(q)}{options(q, 'key', 'range_end', 'value')}: {status}"
    return f"{path}{options(q)}: {status}"
