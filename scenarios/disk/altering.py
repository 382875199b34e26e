"""Alters checkpoints by a program - each field of a manifest and each of its files in each form there is, names of a directory, rounds, networks that change from one
to the next, leases that are drawn - and has jobs resume from each, evaluators test each and both save beside each. What they say, what they end with and what lies
there afterwards is compared with altered.txt, and what is kept with a model of a few lines.

Usage: altering.py [PART...], in an empty directory; WRITE=1 writes altered.txt anew. What is otherwise is a line that begins with "otherwise: "."""
import difflib
import hashlib
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "altered.txt")
DATA = "--dataset=mnist", "--data-dir=data"
TRAIN = ["ranktrain", *DATA, *"--samples=24 --width=1 --batch-size=12 --shards=4 --log-every=0 --checkpoint-every=1 --checkpoint-keep=99".split()]
EVALUATE = ["ranktrain", "evaluate", *DATA]
SEEN = re.compile("ranktrain|resumed|model")
LEASES = 16
others = 0


def otherwise(*lines):
    global others
    others += 1
    for line in lines:
        print(f"otherwise: {line}", flush=True)


def asked(words, **env):
    """What is said, without what is another each time, and the exit status."""
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=90, env={**os.environ, **env})
    said = re.sub(r" in [0-9.]+ ms|, for the reasons above: .* --fresh", "", re.sub(r"\bpid-\d+", "pid-P", done.stdout.decode(errors="backslashreplace")))
    return [line.replace(computes, "COMPUTES") for line in said.splitlines()], done.returncode


def name_of(step):
    return f"step-{step:08}"


def sum_of(data):
    return hashlib.sha256(data).hexdigest()


def written(path, data):
    if os.path.lexists(path):
        os.unlink(path)
    with open(path, "wb") as f:
        f.write(data)


def lying(path):
    """The bytes of a plain file, or what else lies there."""
    if os.path.islink(path):
        return "link to " + os.readlink(path)
    if os.path.isdir(path):
        return {name: lying(os.path.join(path, name)) for name in os.listdir(path)}
    with open(path, "rb") as f:
        return f.read()


class Checkpoint:
    """One that was saved, whose weights are numbers that a few lines make, so that no library has decided them."""

    def __init__(self, top, *words, step=1):
        self.words = words
        asked([*TRAIN, f"--checkpoint-dir={top}", f"--steps={step}", *words])
        at = os.path.join(top, name_of(step))
        self.files = lying(at)
        self.manifest = json.loads(self.files.pop("manifest.json"))
        model = b""
        for entry in self.manifest["files"]:
            values = range(len(self.files[entry["name"]]) // 4)
            first = entry.get("first", 0)
            of = entry["name"].split(".")[0]
            small = 0 if of == "second_moment" else 500
            data = struct.pack(f"<{len(values)}f", *((((i + first) * 7919 + len(of)) % 1000 - small) / 2000 for i in values))
            self.files[entry["name"]], entry["sha256"] = data, sum_of(data)
            model += data if entry["name"].startswith("weights") else b""
        self.manifest["model"] = sum_of(model)
        shutil.rmtree(top)

    def text(self, step, **fields):
        return json.dumps({**self.manifest, "step": step, **fields}, separators=(",", ":"))

    def put(self, top, step, text=None, files=None):
        at = os.path.join(top, name_of(step))
        os.makedirs(at)
        for name, data in {**self.files, **(files or {})}.items():
            if data is not None:
                written(os.path.join(at, name), data)
        if text is not None:
            written(os.path.join(at, "manifest.json"), text.encode("utf-8", "surrogateescape"))
        return at


# ---- forms ----

def forms_of(value):
    """What else a field may be, as JSON, by name."""
    yield from (("null", "null"), ("a list", "[]"), ("an object", "{}"))
    if isinstance(value, bool):
        yield from (("the other", json.dumps(not value)), ("1", "1"), ("a word", '"true"'))
    elif isinstance(value, (int, float)):
        yield from (("one less", json.dumps(value - 1)), ("one more", json.dumps(value + 1)), ("negative", "-2"), ("0", "0"), ("beyond 32 bits", json.dumps(value + 2**32)),
                    ("the largest", str(2**63 - 1)), ("beyond 64 bits", "9" * 20), ("a tenth more", json.dumps(value + 0.1)), ("as a word", json.dumps(str(value))),
                    ("true", "true"))
    elif isinstance(value, str):
        yield from (("empty", '""'), ("a number", "7"), ("one shorter", json.dumps(value[:-1])), ("one longer", json.dumps(value + "0")), ("in capitals", json.dumps(value.upper())),
                    ("the first another", json.dumps("_" + value[1:])), ("the last another", json.dumps(value[:-1] + "_")), ("long", json.dumps("a" * 300)),
                    ("with a zero", json.dumps(value + "\0a")), ("with a slash", json.dumps("../" + value)))
    elif isinstance(value, list):
        yield from (("empty", "[]"), ("doubled", json.dumps(value + value)), ("turned", json.dumps(value[::-1])), ("without the first", json.dumps(value[1:])),
                    ("without the last", json.dumps(value[:-1])), ("of numbers", "[1,2]"), ("a number", "7"))


def with_field(fields, key, text):
    """The object with another value of one field; None: without it."""
    return "{" + ",".join(f"{json.dumps(k)}:{text if k == key else json.dumps(v)}" for k, v in fields.items() if k != key or text is not None) + "}"


def value_of(fields, key):
    """What it is computed by is the host's, and another's is altered in its place."""
    return "cpu of another" if key == "computes" else fields[key]


def altered_manifests(c, keys):
    """Of each field each form: what was done, and the text at a step."""
    def at(key, form):
        def text(step):
            fields = {**c.manifest, "step": step}
            return with_field(fields, key, dict(forms_of(value_of(fields, key))).get(form))
        return text
    for key in keys:
        for form in ("missing", *dict(forms_of(value_of(c.manifest, key)))):
            yield key, form, at(key, form)
        yield key, "said twice, first otherwise", lambda step, key=key: "{" + f"{json.dumps(key)}:0," + c.text(step)[1:]
        yield key, "said twice, last otherwise", lambda step, key=key: c.text(step)[:-1] + f",{json.dumps(key)}:0" + "}"


def altered_entries(c):
    """The same of each entry of the list of files."""
    for i, entry in enumerate(c.manifest["files"]):
        for key, value in entry.items():
            for form, other in (("missing", None), *forms_of(value)):
                entries = [json.dumps(each) for each in c.manifest["files"]]
                entries[i] = with_field(entry, key, other)
                files = "[" + ",".join(entries) + "]"
                yield f"{key} of file {i}", form, lambda step, files=files: with_field({**c.manifest, "step": step}, "files", files)


def altered_texts(c):
    """What is no such object, and lengths at their bound."""
    for what, alter in {
            "empty": lambda text: "", "blank": lambda text: " \n", "null": lambda text: "null", "in a list": lambda text: f"[{text}]", "twice": lambda text: text + text,
            "and a zero": lambda text: text + "\0", "without its end": lambda text: text[:-1], "half": lambda text: text[:len(text) // 2],
            "with another field": lambda text: text[:-1] + ',"other":{"step":7,"files":[]}}', "of no characters": lambda text: text.replace("generated", "gen\udcff")}.items():
        yield "text", what, lambda step, alter=alter: alter(c.text(step))
    for n in (65535, 65536, 65537):
        yield "text", f"of {n} bytes", lambda step, n=n: c.text(step).ljust(n)


def altered_files(c):
    """What was done, and the files that are others; None: not there."""
    for name, data in c.files.items():
        for form, other in (("missing", None), ("empty", b""), ("one byte shorter", data[:-1]), ("one byte longer", data + b"\0"), ("one number shorter", data[:-4]),
                            ("one number longer", data + data[:4]), ("doubled", data + data), ("its first bit another", bytes([data[0] ^ 1]) + data[1:]),
                            ("its last bit another", data[:-1] + bytes([data[-1] ^ 128])), ("turned", data[::-1]), ("of another", bytes(len(data)))):
            yield name, form, {name: other}


# ---- who reads them ----

def tested(top, last, words=()):
    """What an evaluator says of each step, in one run: by step."""
    lines, status = asked([*EVALUATE, f"--model-dir={top}", f"--max-steps={last}", *words])
    said = {}
    for line in lines:
        m = re.search(r"step (\d+) ", line)
        said.setdefault(int(m[1]) if m else -1, []).append(line.replace(f"ranktrain evaluate: ignored step {m[1]} of {top}: ", "ignored: ").replace(f"step {m[1]} ", "") if m else line)
    if status:
        said.setdefault(-1, []).append(f"ends with {status}")
    return said


def resumed(top, step, words):
    """What a job says that is to end at this step, and what has become of the one that lay there."""
    at = os.path.join(top, name_of(step))
    before, there = lying(at), sorted(os.listdir(top))
    lines, status = asked([*TRAIN, f"--checkpoint-dir={top}", f"--steps={step}", *words])
    said = [line.replace("ranktrain: rank 0: ", "").replace(f"{top}/{name_of(step)}", "IT") for line in lines if SEEN.match(line)]
    if f"resumed step {step} from IT" not in said:  # of what it trained itself the sum is a library's
        said = [line for line in said if not line.startswith("model")]
    now = lying(at)
    said.append("it lies there as before" if now == before else "it is another one" if is_complete(now, step) else f"it is now {sorted(now)}")
    if sorted(os.listdir(top)) != there:
        said.append("there are " + re.sub(r"pid-\d+", "pid-P", " ".join(sorted(os.listdir(top)))))
    return said + [f"ends with {status}"]


def is_complete(files, step):
    try:
        manifest = json.loads(files["manifest.json"])
        return manifest["step"] == step and {e["name"] for e in manifest["files"]} == set(files) - {"manifest.json"} and all(
            len(files[e["name"]]) == e["bytes"] and sum_of(files[e["name"]]) == e["sha256"] for e in manifest["files"])
    except (KeyError, ValueError, TypeError):
        return False


def in_short(c, evaluated, trained):
    """What became of one."""
    why = evaluated[0].removeprefix("ignored: ")
    if trained == ["resumed step 2 from IT", f"model {c.manifest['model']}", "it lies there as before", "ends with 0"]:
        return "as it was: " + ", ".join(evaluated)
    if trained == [f"ignored IT: {why}", "resumed step 1 from ck/step-00000001", "it is another one", "ends with 0"]:
        return "replaced: " + why
    if trained[0] == f"ignored IT: {why}" and len(trained) == 4 and trained[1].startswith("ck holds 1 checkpoint and none") and trained[2] == "it lies there as before":
        return f"{trained[3]}: {why}"
    return f"evaluated: {', '.join(evaluated)}; trained: {', '.join(trained)}"


def each_form(title, c, texts=(), files=(), second=False):
    """Each is tested, all in one run, and is what a job goes on from; second: where it cannot, there is another. Those that come to the same stand in one line."""
    cases = [(of, form, text, {}) for of, form, text in texts] + [(of, form, c.text, names) for of, form, names in files]
    groups = {}
    for step, (_, _, text, names) in enumerate(cases, 1):
        c.put("tested", step, text(step), names)
    by_step = tested("tested", len(cases))
    shutil.rmtree("tested")
    for step, (of, form, text, names) in enumerate(cases, 1):
        if second:
            c.put("ck", 1, c.text(1))
        c.put("ck", 2, text(2), names)
        trained = resumed("ck", 2, c.words)
        shutil.rmtree("ck")
        groups.setdefault((of, in_short(c, by_step.get(step, ["nothing"]), trained)), []).append(form)
    return [f"{title}: {of}: {', '.join(forms)}\n  {what}" for (of, what), forms in groups.items()] + ["evaluate " + line for line in by_step.get(-1, [])]


# ---- the parts ----

def fields():
    c = Checkpoint("of", "--lr=0.0625", "--momentum=0.5", "--scale-lr=3")
    return each_form("whole", c, altered_manifests(c, c.manifest))


def entries():
    whole, adam = Checkpoint("of"), Checkpoint("of", "--optimizer=adam")
    parts = Checkpoint("of", "--spawn=2", "--mode=zero", "--checkpoint-sharded")
    parts.words = ()  # who goes on from it is alone
    return [*each_form("whole", whole, altered_entries(whole)), *each_form("adam", adam, [*altered_manifests(adam, ("version", "parts", "optimizer", "files")), *altered_entries(adam)]),
            *each_form("parts", parts, [*altered_manifests(parts, ("version", "parts", "optimizer", "parameters", "files")), *altered_entries(parts)])]


def files():
    whole, adam = Checkpoint("of"), Checkpoint("of", "--optimizer=adam")
    parts = Checkpoint("of", "--spawn=2", "--mode=zero", "--checkpoint-sharded")
    parts.words, said = (), []
    for title, c in (("whole", whole), ("adam", adam), ("parts", parts)):
        said += each_form(title, c, files=altered_files(c), second=True)
    for what, name, make in (("a directory for its manifest", "manifest.json", os.mkdir), ("a directory for its weights", "weights.f32", os.mkdir),
                             ("a link to its weights", "weights.f32", lambda path: os.symlink("../../weights", path))):
        whole.put("ck", 1, whole.text(1))
        at = whole.put("ck", 2, whole.text(2))
        written("weights", whole.files["weights.f32"])
        os.unlink(os.path.join(at, name))
        make(os.path.join(at, name))
        said += [what] + ["  evaluate: " + line for step, lines in sorted(tested("ck", 2).items()) if step != 1 for line in lines]
        said += ["  train: " + line for line in resumed("ck", 2, ())]
        shutil.rmtree("ck")
    return said


def texts():
    c = Checkpoint("of")
    return each_form("whole", c, altered_texts(c), second=True)


def names():
    """A directory is found by its name alone, which says its step in one way."""
    c = Checkpoint("of")
    said = []
    for name in ("step-00000002", "step-0000002", "step-000000002", "step-00000002x", "step-00000002 ", ".step-00000002", "step_00000002", "Step-00000002", "step-+0000002",
                 "step--0000002", "step-2", "step-", "step-0x000002", "step-99999999", "step-100000000", "step-99999999999999999999", "step-00000000"):
        c.put("ck", 1, c.text(1))
        m = re.fullmatch(r"step-(\d+)", name)
        os.rename(c.put("ck", 2, c.text(min(int(m[1]), 2**62) if m else 2)), os.path.join("ck", name))
        lines, status = asked([*TRAIN, "--checkpoint-dir=ck", "--steps=99999999", "--seed=2", "--lr=1000"])  # of another training: no step is made, and else few
        said += [f"named {name!r}"] + ["  train: " + line for line in lines if SEEN.match(line)] + [f"  train: ends with {status}"]
        shutil.rmtree("ck")
    for what in ("a file", "a link to another", "a link to nothing", "an empty directory"):
        c.put("ck", 1, c.text(1))
        at = os.path.join("ck", name_of(2))
        if what == "a file":
            written(at, b"x")
        elif what == "an empty directory":
            os.mkdir(at)
        else:
            c.put("elsewhere", 2, c.text(2))
            os.symlink("../elsewhere/" + (name_of(2) if what.endswith("another") else "nothing"), at)
        said += [f"{name_of(2)} is {what}"] + ["  evaluate: " + line for step, lines in sorted(tested("ck", 2).items()) if step != 1 for line in lines]
        lines, status = asked([*TRAIN, "--checkpoint-dir=ck", "--steps=2"])
        said += ["  train: " + line for line in lines if SEEN.match(line)] + [f"  train: ends with {status}"]
        said += ["  there are " + " ".join(f"{name}{'@' if os.path.islink(os.path.join('ck', name)) else ''}" for name in sorted(os.listdir("ck")))]
        shutil.rmtree("ck")
        shutil.rmtree("elsewhere", ignore_errors=True)
    return said


def rounds():
    """Who wrote one, and who reads and saves beside it: a higher round of the same run alone is obeyed."""
    c = Checkpoint("of")
    said = []
    for run, wrote, own in [(run, wrote, own) for run in ("", "job", "jobs", "jo") for wrote, own in ((0, 0), (1, 0), (0, 1), (2, 1), (2, 2), (2, 3), (2**40, 2))]:
        for last in (1, 2):
            c.put("ck", 1, c.text(1))
            c.put("ck", 2, c.text(2, round=wrote, run_id=run))
            lines, status = asked([*TRAIN, "--checkpoint-dir=ck", f"--steps={last + 1}", "--checkpoint-keep=1"], RANKRUN_ROUND=str(own), TORCHELASTIC_RUN_ID="job")
            said += [f"round {wrote} of run {run!r} wrote, and round {own} of run 'job' trains to step {last + 1}"]
            said += ["  " + line.replace("ranktrain: rank 0: ", "") for line in lines if SEEN.match(line)]
            newest = lying(os.path.join("ck", sorted(os.listdir("ck"))[-1]))
            said += [f"  ends with {status}; there are {' '.join(sorted(os.listdir('ck')))}, the newest of round {json.loads(newest['manifest.json'])['round']}"]
            shutil.rmtree("ck")
    return said


def drafts():
    """What others have left: of a round that is over it is swept."""
    said = []
    begins = (".step-00000001.round-", ".place-x.round-", ".step-.round-", ".step-00000001.other-", ".other.round-", "step-00000001.round-", ".place-", ".step.round-")
    for parts in ((), ("--checkpoint-sharded",)):
        os.mkdir("ck")
        for begin in begins:
            for i, end in enumerate(("4", "5", "6", "5.pid-7", "6.parts-2", "", "-1", "x", "05", str(2**63))):
                path = os.path.join("ck", begin + end)
                if (i + len(begin)) % 2 and not begin.startswith(".place"):
                    os.mkdir(path)
                    written(os.path.join(path, "weights.f32"), b"x")
                    written(os.path.join(path, ".hidden"), b"x")
                elif begin.startswith(".step-"):
                    os.mkdir(path)
                else:
                    written(path, b"")
        lines, status = asked([*TRAIN, "--checkpoint-dir=ck", "--steps=1", *parts], RANKRUN_ROUND="5")
        said += [f"left behind by others, and round 5 saves{' in parts' if parts else ''}: ends with {status}"] + ["  " + line for line in lines if line.startswith("ranktrain")]
        said += ["  there is " + name for name in sorted(os.listdir("ck"))]
        shutil.rmtree("ck")
    return said


NETWORKS = [("lenet", 1, ()), ("lenet", 2, ()), ("lenet", 2, ("--optimizer=adam",)), ("lenet", 1, ("--optimizer=adam",)), ("lenet", 3, ()), ("lenet", 1, ()), ("resnet18", 1, ()),
            ("lenet", 1, ()), ("vgg11", 1, ()), ("resnet18", 2, ()), ("resnet18", 1, ()), ("lenet", 6, ()), ("vgg11", 1, ())]


def networks():
    """They change from one checkpoint to the next."""
    made = {}
    for network, width, words in NETWORKS:
        if (network, width, words) not in made:
            made[network, width, words] = Checkpoint("of", f"--network={network}", f"--width={width}", *words)
    for step, key in enumerate(NETWORKS, 1):
        made[key].put("ck", step, made[key].text(step))
    said = []
    for words in ((), ("--network=lenet",), ("--network=resnet18", "--eval-freq=2"), ("--network=vgg11", "--eval-batch-size=7"), ("--eval-freq=5",)):
        said += ["one network after another" + "".join(" " + word for word in words)]
        said += [f"  {step}: {line}" for step, lines in sorted(tested("ck", len(NETWORKS) // 5 * 5 if "--eval-freq=5" in words else 12 if "--eval-freq=2" in words else len(NETWORKS),
                                                                      words).items()) for line in lines]
    shutil.rmtree("ck")
    return said


def leases():
    """What is kept, by a model: the newest so many, and what a reader that lives has not read. Drawn by a seed."""
    draw, said = random.Random(11), []
    c = Checkpoint("of")
    for case in range(24):
        last, keep = draw.randint(4, 12), draw.randint(1, 4)
        there = sorted(draw.sample(range(1, last), draw.randint(1, last - 1)))
        for step in [*there, last - 1]:
            if not os.path.exists(os.path.join("ck", name_of(step))):
                c.put("ck", step, c.text(step))
        later = last + draw.randint(1, 9)
        if draw.random() < 0.3:
            c.put("ck", later, c.text(later))
        held = {}
        for i in range(draw.choice((0, 1, 1, 2, 3, LEASES, LEASES + 1))):
            read, every = draw.randint(-1 if i < 3 else last - 2, last), draw.choice((1, 1, 2, 3, 5))
            held[f"evaluator-h-{i}.lease"] = (read, every, draw.random() < 0.7)
            path = os.path.join("ck", f"evaluator-h-{i}.lease")
            written(path, json.dumps({"format": "ranktrain-lease", "read": read, "every": every}).encode().ljust(256))
            if not held[f"evaluator-h-{i}.lease"][2]:
                os.utime(path, (1e9, 1e9))
        steps = {int(name[5:]) for name in os.listdir("ck") if name.startswith("step")}
        lines, status = asked([*TRAIN, "--checkpoint-dir=ck", f"--steps={last}", f"--checkpoint-keep={keep}"])
        live = [(read, every) for read, every, lives in held.values() if lives]
        upto = sorted((steps | {last}) - {later}, reverse=True)
        wanted = {step for i, step in enumerate(upto) if i < keep or len(live) > LEASES or any(step > read and step % every == 0 for read, every in live)}
        want = sorted([name_of(step) for step in wanted | (steps & {later})] + [name for name, (_, _, lives) in held.items() if lives])
        have = sorted(os.listdir("ck"))
        if status or have != want:
            otherwise(f"draw {case}: of {sorted(steps)}, keeping {keep} and saving {last}, with {held}", f"are kept {have}", f"and not {want}", *lines)
        shutil.rmtree("ck")
    return said


PARTS = {"texts": texts, "names": names, "rounds": rounds, "drafts": drafts, "networks": networks, "leases": leases, "files": files, "fields": fields, "entries": entries}


def make_data():
    """Few images that two lines make, as ranktrain prepare leaves them."""
    os.mkdir("idx")
    for name, n in (("train", 24), ("t10k", 20)):
        pixels = bytes((i * 7 + x * y + (x + y) * (i % 10)) % 256 for i in range(n) for y in range(28) for x in range(28))
        written(f"idx/{name}-images-idx3-ubyte", struct.pack(">4I", 0x803, n, 28, 28) + pixels)
        written(f"idx/{name}-labels-idx1-ubyte", struct.pack(">2I", 0x801, n) + bytes(i % 10 for i in range(n)))
    lines, status = asked("ranktrain prepare --dataset=mnist --from=idx --no-verify --to=data".split())
    if status:
        otherwise(*lines)


def computes_here():
    asked([*TRAIN, "--checkpoint-dir=of", "--steps=1"])
    with open(os.path.join("of", name_of(1), "manifest.json")) as f:
        ret = json.load(f)["computes"]
    shutil.rmtree("of")
    return ret


def read_table(table):
    """Of each part its lines."""
    with open(table) as f:
        return {part.split("\n", 1)[0]: part.rstrip("\n").split("\n") for part in f.read().split("## ")[1:]}


def compare(now, then):
    if now != then:
        otherwise(f"{now[0]}: what is said is not as it was written down", *list(difflib.unified_diff(then, now, "written", "now", lineterm="", n=2))[:80])


def run(parts, table):
    """Those that the command line names, or all: written down, or compared until one is otherwise."""
    names, writes = sys.argv[1:] or list(parts), os.environ.get("WRITE")
    then = {} if writes else read_table(table)
    seen = {}
    for name in names:
        seen[name] = "\n".join([name, *parts[name]()]).split("\n")
        if not writes:
            compare(seen[name], then.get(name, []))
        if others:
            break
    if writes:
        with open(table, "w") as f:
            f.write("".join("## " + "\n".join(lines) + "\n" for lines in seen.values()))
    n = sum(not line.startswith(" ") for lines in seen.values() for line in lines[1:])
    print(f"{n} groups of forms are as they must be" if not others else f"{others} were otherwise", flush=True)


def settle():
    """What is asked depends on nothing that a launcher or a user has set."""
    for name in [k for k in os.environ if re.match("RANK|WORLD_SIZE|LOCAL_|MASTER_|TORCHELASTIC|GROUP_|ROLE_|CURL_CA", k)]:
        del os.environ[name]
    os.environ.update(OPENBLAS_NUM_THREADS="1", LC_ALL="C", MASTER_PORT="29512")
    os.umask(0o022)


if __name__ == "__main__":
    settle()
    computes = "\0"
    make_data()
    computes = computes_here()
    run(PARTS, TABLE)
