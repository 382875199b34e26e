"""Validates all scenarios of a folder, and mistakes, by a JSON Schema: schema.py SCHEMA FOLDER RANKQUAKE."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import jsonschema
import yaml


class Loader(yaml.SafeLoader):
    """YAML 1.2's idea of a bool and of a number: "on" is a word, "2:3" no number of minutes."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, expression) for tag, expression in rules
            if tag not in ("tag:yaml.org,2002:bool", "tag:yaml.org,2002:int")]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(true|false)$"), list("tf"))
Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile("^-?[0-9]+$"), list("-0123456789"))

JOB = "job: {run: [train]}\n"
LINE = "timeline: [{%s}]\n"
GOOD = [
    JOB,
    "suite: [a.yaml, b.yaml]\nabout: two\n",
    JOB + "vars: {at: 5}\ntimeline: [{when: {step: '{at}'}, fault: worker-kill, on: rank 0}]\n",
    JOB + "expect: {world_sizes: [2, '*'], restarts: 0..2, lost_work: 5s, goodput: 60%}\n",
    JOB + "sweep: [{job.max_restarts: 1}, {job.max_restarts: 2}]\n",
    JOB + "cluster: {store: {on: n1}, nodes: 3}\n",
    JOB + LINE % "when: {step: 5}, fault: worker-exit, on: n0/0, with: {code: 3}",
    JOB + "cluster:\n",
    JOB + "cluster: {nodes: 3, racks: [[n0, n1], [n2]]}\n"
    + LINE % "when: {step: 5}, fault: node-kill, on: random of rack 0",
    JOB + LINE % "when: {step: 5}, fault: node-kill, on: majority",
    JOB + LINE % "when: {step: 5}, fault: node-kill, on: coordinator",
    JOB + LINE % "when: {step: 5}, fault: net-partition, on: store-leader, for: 2s",
    JOB + LINE % "when: {step: 5}, fault: net-partition, on: n1, until: {round: 2}",
    JOB + LINE % "id: k, when: {step: 5}, fault: node-kill, on: n1, sticky: node",
    JOB + "random: {faults: 3, weights: llama3, shape: 0.6, again: 30%}\n",
    JOB + "random: {weights: {worker-kill: 3, node-kill: 1}}\n",
    "include: base.yaml\n" + JOB,
    "include: base.yaml\nexpect: {restarts: 1}\n",
    "include: base.yaml\njob: {max_restarts: 1}\n",
    "include: base.yaml\nreplay: {take: 3}\nprobe: {up: {every: 2s}}\n",
    "include: base.yaml\nreplay: ~\njob:\n",
    JOB + "expect: {log: {never: /Traceback/}}\n",
    JOB + "expect: {log: [{seen: /x/, on: rank 0, within: 5s}, {once: /y/, on: store}]}\n",
    JOB + "probe: {up: {http: 'http://n0/'}, rounds: {prometheus: 'http://n0/', metric: a, on: n1}}\n",
    JOB + "feature: [gpu, cpus 4, command test -d /srv]\n",
    JOB + "replay: {trace: faults.csv, speed: 750, causes: {gpu: worker-kill}}\n",
]
BAD = [  # the schema must find them, and so does lint
    "", "about: no job\n",
    "job: {nnodes: 2}\n",
    "include: base.yaml\njob: {max_restart: 1}\n",
    "include: base.yaml\n" + LINE % "fault: worker-kill, on: rank 0",
    JOB + "replay: {speed: 750}\n",
    JOB + "probe: {up: {every: 2s}}\n",
    "jobs: {run: [train]}\n" + JOB,
    JOB + "cluster: {node: 3}\n",
    JOB + "cluster: {nodes: three}\n",
    JOB + "cluster: {nodes: '3'}\n",
    JOB + "cluster: {nodes: 0}\n",
    JOB + "cluster: {racks: [n0, n1]}\n",
    JOB + LINE % "when: {step: 5}, fault: node-kill, on: random of rack",
    JOB + LINE % "when: {step: 5}, fault: node-kill, on: random of storms",
    JOB + LINE % "when: {step: 5}, fault: node-kill, on: n1, sticky: rank",
    JOB + LINE % "when: {step: 5}, fault: net-partition, on: n1, until: {rond: 2}",
    JOB + "cluster: {store: etc}\n",
    JOB + "limits: {total: 120}\n",
    JOB + "limits: {total: 2 minutes}\n",
    JOB + "expect: {outcome: success}\n",
    JOB + "expect: {goodput: 60}\n",
    JOB + "expect: {phases_within: {rendezvos: 1s}}\n",
    "job: {run: train}\n",
    JOB + LINE % "when: {step: 5}, on: rank 0",
    JOB + LINE % "when: {step: 5}, fault: worker-kil, on: rank 0",
    JOB + LINE % "when: {step: 5}, fault: worker-kill, heal: x, on: rank 0",
    JOB + LINE % "when: {stp: 5}, fault: worker-kill, on: rank 0",
    JOB + LINE % "when: {nth: 5}, fault: worker-kill, on: rank 0",
    JOB + LINE % "fault: worker-kill, on: rank 0",
    JOB + LINE % "when: {step: 5}, fault: worker-kill, on: rank zero",
    JOB + LINE % "when: {step: 5}, fault: worker-exit, on: rank 0, with: {cod: 3}",
    JOB + LINE % "when: {step: 5}, fault: worker-exit, on: rank 0, with: {code: x}",
    JOB + LINE % "when: {log: saving}, fault: worker-kill, on: rank 0",
    JOB + "timeline: {when: {step: 5}, fault: worker-kill, on: rank 0}\n",
    JOB + "random: {weights: lama3}\n",
    JOB + "random: {weights: {agent-kill: 3}}\n",
    JOB + "random: {fault: 3}\n",
    "include: {a: b}\n" + JOB,
    JOB + "feature: [gpus]\n",
    JOB + "feature: [cpus]\n",
    JOB + "feature: gpu\n",
    JOB + "expect: {log: {never: Traceback}}\n",
    JOB + "expect: {log: [{never: /a/, once: /b/}]}\n",
    JOB + "expect: {log: [{within: 5s}]}\n",
    JOB + "probe: {up: {http: 'n0:80'}}\n",
    JOB + "probe: {up: {cmd: [a], http: 'http://n0/'}}\n",
    JOB + "replay: {trace: faults.csv}\n",
    JOB + "replay: {trace: faults.csv, speed: 7, causes: {gpu: worker-kil}}\n",
    "suite: a.yaml\n",
]


def errors(validator, text):
    return [e.message for e in validator.iter_errors(yaml.load(text, Loader))]


def lint_takes(text):
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(text)
        file.flush()
        return subprocess.run([sys.argv[3], "lint", file.name], capture_output=True).returncode == 0


def main():
    schema = json.loads(pathlib.Path(sys.argv[1]).read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    files = sorted(pathlib.Path(sys.argv[2]).rglob("*.yaml"))
    wrong = [f"{f}: {e}" for f in files for e in errors(validator, f.read_text())]
    wrong += [f"{text!r}: {e}" for text in GOOD for e in errors(validator, text)]
    wrong += [f"{text!r} is taken for valid" for text in BAD if not errors(validator, text)]
    wrong += [f"lint takes {text!r}" for text in BAD if lint_takes(text)]
    print(*wrong, sep="\n")
    print(f"{len(files)} scenarios, {len(GOOD)} more that are valid, {len(BAD)} mistakes")
    sys.exit(bool(wrong) or len(files) < 10)


main()
