"""Checks manifests against rules.json, and what a schema cannot say: check.py RULES RANKRUN FILE...

Names that belong together are the same, the sizes agree, and rankrun takes every option that stands there. Prints what is wrong,
a line each, and ends with 1.
"""
import json
import subprocess
import sys

import jsonschema
import yaml

wrong = []


def say(path, what):
    wrong.append(f"{path}: {what}")


def podspecs(doc):
    """Of a manifest: each pod's spec, and the arguments that an operator puts in front of its own."""
    spec = doc["spec"]
    if doc["kind"] == "Pod":
        yield spec, []
    elif doc["kind"] == "Job":
        yield spec["template"]["spec"], []
    elif doc["kind"] == "JobSet":
        for job in spec["replicatedJobs"]:
            yield job["template"]["spec"]["template"]["spec"], []
    elif doc["kind"] == "PyTorchJob":
        yield spec["pytorchReplicaSpecs"]["Worker"]["template"]["spec"], []
    elif doc["kind"] == "ElasticJob":
        yield spec["replicaSpecs"]["Worker"]["template"]["spec"], [
            "--rdzv_backend=etcd", f"--rdzv_endpoint={spec['rdzvEndpoint']}", f"--rdzv_id={doc['metadata']['name']}",
            f"--nnodes={spec['minReplicas']}:{spec['maxReplicas']}"]


def check_options(path, rankrun, container, before):
    """rankrun stops at the first option that it does not take: it must be the one that is put behind all of them."""
    if container.get("command", ["rankrun"]) != ["rankrun"] or "args" not in container:
        return
    args = container["args"]
    script = next((i for i, a in enumerate(args) if not a.startswith("-")), len(args))
    ran = subprocess.run([rankrun, *before, *args[:script], "--no-such-option", *args[script:]], capture_output=True, text=True,
                         stdin=subprocess.DEVNULL, timeout=60)
    if ran.returncode != 64 or "no-such-option" not in ran.stderr:
        say(path, f"rankrun does not take {args[:script]}: {ran.stderr.strip()}")


def check_pod(path, rankrun, spec, before):
    volumes = {v["name"] for v in spec.get("volumes", [])}
    for container in spec["containers"]:
        for mount in container.get("volumeMounts", []):
            if mount["name"] not in volumes:
                say(path, f"container {container['name']} mounts {mount['name']}, which is no volume of its pod")
        check_options(path, rankrun, container, before)
        grace = next((int(a.split("=")[1]) for a in container.get("args", []) if a.startswith("--shutdown-timeout=")), 30)
        if container.get("command", ["rankrun"]) == ["rankrun"] and spec.get("terminationGracePeriodSeconds", 30) < grace:
            say(path, "the pod is killed before the grace of its workers is over")


def check_indexed(path, spec, subdomain, services):
    pod = spec["template"]["spec"]
    if spec["completions"] != spec["parallelism"]:
        say(path, "completions and parallelism differ: not all ranks are there at the same time")
    if (pod.get("subdomain") or subdomain) not in services:
        say(path, f"no headless service is named {pod.get('subdomain') or subdomain}")
    for container in pod["containers"]:
        if f"--nnodes={spec['completions']}" not in container["args"]:
            say(path, f"--nnodes is not {spec['completions']}")


def check_elastic(path, policy, replicas):
    if not policy["minReplicas"] <= replicas <= policy["maxReplicas"]:
        say(path, f"{replicas} replicas are not between minReplicas and maxReplicas")


def check_doc(path, doc, services, labels):
    spec, kind = doc["spec"], doc["kind"]
    headless = {n for n, s in services.items() if s.get("clusterIP") == "None" and s.get("publishNotReadyAddresses")}
    if kind == "Service" and "app" in spec["selector"] and spec["selector"] not in labels:
        say(path, f"service {doc['metadata']['name']} selects no pod")
    if kind == "Service" and spec["selector"].get("batch.kubernetes.io/job-name", "train") != "train":
        say(path, f"service {doc['metadata']['name']} selects the pods of no job")
    if kind == "Job":
        check_indexed(path, spec, None, headless)
    if kind == "JobSet":
        network = spec.get("network", {})
        for job in spec["replicatedJobs"]:
            check_indexed(path, job["template"]["spec"], network.get("subdomain"),
                          {network.get("subdomain")} if network.get("publishNotReadyAddresses") else {})
    if kind == "PyTorchJob":
        check_elastic(path, spec["elasticPolicy"], spec["pytorchReplicaSpecs"]["Worker"]["replicas"])
    if kind == "ElasticJob":
        check_elastic(path, spec, spec["replicaSpecs"]["Worker"]["replicas"])
        host, _, port = spec["rdzvEndpoint"].partition(":")
        if int(port) not in [p["port"] for p in services.get(host, {}).get("ports", [])]:
            say(path, f"no service serves {spec['rdzvEndpoint']}")


def main():
    rules, rankrun, files = json.load(open(sys.argv[1])), sys.argv[2], sys.argv[3:]
    validator = jsonschema.Draft202012Validator(rules)
    docs = []
    for path in files:
        text = open(path).read()
        if not text.startswith("# Schema-checked, never run in a cluster."):
            say(path, "it does not say that it was never run")
        docs += [(path, d) for d in yaml.safe_load_all(text)]
    for path, doc in docs:
        for kind in rules["$defs"].values():
            if isinstance(doc, dict) and kind.get("properties", {}).get("kind", {}).get("const") == doc.get("kind"):
                for e in validator.evolve(schema={**kind, "$defs": rules["$defs"]}).iter_errors(doc):
                    say(path, f"{doc['kind']}: {'.'.join(map(str, e.absolute_path))}: {e.message}")
                break
        else:
            say(path, "a kind that the rules do not know")
    if not wrong:
        services = {d["metadata"]["name"]: d["spec"] for _, d in docs if d["kind"] == "Service"}
        labels = [d["metadata"].get("labels") for _, d in docs]
        for path, doc in docs:
            check_doc(path, doc, services, labels)
            for spec, before in podspecs(doc):
                check_pod(path, rankrun, spec, before)
    print("\n".join(wrong) or f"{len(docs)} objects in {len(files)} manifests are as they should be")
    sys.exit(1 if wrong else 0)


main()
