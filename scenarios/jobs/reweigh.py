"""Writes other weights into a checkpoint of ranktrain, and their sums into its manifest: all that is asked is what a rank makes of them.

Usage: reweigh.py CHECKPOINT FROM-TO=HOW...: the numbers from FROM on and below TO are multiplied by HOW, or become it, where it is nan, inf or has "=" before it."""
import array
import hashlib
import json
import os
import sys


def main():
    path, manifest = os.path.join(sys.argv[1], "weights.f32"), os.path.join(sys.argv[1], "manifest.json")
    weights = array.array("f")
    with open(path, "rb") as f:
        weights.frombytes(f.read())
    for change in sys.argv[2:]:
        where, how = change.split("=", 1)
        begin, end = (int(word) for word in where.split("-"))
        becomes = how.startswith("=") or not how[0].isdigit()
        for i in range(begin, end):
            weights[i] = float(how.lstrip("=")) if becomes else weights[i] * float(how)
    with open(path, "wb") as f:
        weights.tofile(f)
    with open(manifest) as f:
        said = json.load(f)
    said["model"] = said["files"][0]["sha256"] = hashlib.sha256(weights.tobytes()).hexdigest()
    with open(manifest, "w") as f:
        json.dump(said, f, separators=(",", ":"))


main()
