"""Runs what stands in ci/examples as its server would, but without one: the shell of its steps, with their environment.

    stages.py github|gitlab|jenkins|buildkite FILE NAME=VALUE...     inputs, parameters or variables

Steps of others' actions (uses:) are named and left out. Exits as the step that failed, or 0.
"""
import os, re, subprocess, sys, tempfile

import yaml


def shell(command, environment, how=("bash", "-e", "-o", "pipefail")):
    return subprocess.run([*how, "-c", command], env={**os.environ, **environment}).returncode


def github(path, given):
    action = yaml.safe_load(open(path))
    inputs = {k: str(v.get("default", "")) for k, v in action["inputs"].items()} | given
    missing = [k for k, v in action["inputs"].items() if v.get("required") and not inputs[k]]
    if missing:
        sys.exit(f"{path}: {missing[0]} is required")
    outputs = {}
    added = tempfile.NamedTemporaryFile("r+", suffix=".path")
    environment = {"GITHUB_ACTIONS": "true", "GITHUB_ACTION_PATH": os.path.dirname(os.path.abspath(path)), "GITHUB_PATH": added.name}

    def filled(text):
        def value(match):
            kind, rest = match[1].split(".", 1)
            return inputs[rest] if kind == "inputs" else outputs.get(rest, "") if kind == "steps" else ""

        return re.sub(r"\$\{\{ *([^} ]+) *\}\}", value, str(text))

    code = 0
    for step in action["runs"]["steps"]:
        condition = step.get("if", "success()")
        wanted = condition == "always()" or code == 0
        if "inputs." in condition:
            name, value = re.fullmatch(r"inputs\.([\w-]+) == '([^']*)'", condition).groups()
            wanted &= inputs[name] == value
        if not wanted or "uses" in step:
            print("left out:", step.get("uses", condition), file=sys.stderr)
            continue
        with tempfile.NamedTemporaryFile("r+") as out:
            path_now = ":".join([*reversed(open(added.name).read().split()), os.environ["PATH"]])
            more = {k: filled(v) for k, v in step.get("env", {}).items()}
            code = shell(filled(step["run"]), {**environment, "PATH": path_now, "GITHUB_OUTPUT": out.name, **more}) or code
            for line in open(out.name):
                name, _, value = line.rstrip("\n").partition("=")
                outputs[f"{step.get('id')}.outputs.{name}"] = value
    for name, spec in action["outputs"].items():
        print(f"output {name}={filled(spec['value'])}")
    return code


def gitlab(path, given):
    spec, jobs = open(path).read().split("\n---\n")
    wanted = yaml.safe_load(spec)["spec"]["inputs"]
    inputs = {k: str(v["default"]) for k, v in wanted.items() if "default" in v} | given
    for name in wanted:
        if name not in inputs:
            sys.exit(f"{path}: {name} is required")
    jobs = re.sub(r"\$\[\[ *inputs\.([\w-]+) *\]\]", lambda m: inputs[m[1]], jobs)
    job = yaml.safe_load(jobs)["rankquake"]
    return shell("\n".join(job["script"]), {"GITLAB_CI": "true", **job["variables"]})


def jenkins(path, given):
    text = open(path).read()
    defaults = dict(re.findall(r"string\(name: '(\w+)', defaultValue: '([^']*)'", text))
    defaults |= {k: v for k, v in re.findall(r"choice\(name: '(\w+)', choices: \['([^']*)'", text)}
    command = re.search(r"sh '''(.*?)'''", text, re.S)[1]
    return shell(command, {"JENKINS_URL": "http://jenkins.example/", **defaults, **given}, ("sh", "-xe"))


def buildkite(path, given):
    pipeline = yaml.safe_load(open(path))
    code = 0
    for step in pipeline["steps"]:
        count = step.get("parallelism", 1)
        for job in range(count):
            own = {"BUILDKITE": "true", "BUILDKITE_PARALLEL_JOB": str(job), "BUILDKITE_PARALLEL_JOB_COUNT": str(count)}
            environment = {k: str(v) for k, v in pipeline["env"].items()} | own | given
            code = shell(step["command"].replace("$$", "$"), environment) or code
    return code


kind, path, *rest = sys.argv[1:]
sys.exit({"github": github, "gitlab": gitlab, "jenkins": jenkins, "buildkite": buildkite}[kind](path, dict(r.split("=", 1) for r in rest)))
