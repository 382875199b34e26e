"""Whether what a run has recorded of a node with a clock of its own is as it was: stamps.py HISTORY NODE FIRST AHEAD PPM [STEP],
where the node's clock is AHEAD ns ahead and runs PPM fast since its stamp FIRST, and is set by STEP ns once. The truth
must lie within the bound of each stamp and of each `clock`; what was stamped between two samples of which the second shows
that the clock was set may be of either clock. Says how many and how wide."""
import json, sys

history, node = sys.argv[1], sys.argv[2]
first, ahead, ppm = int(open(sys.argv[3]).read()), int(sys.argv[4]), int(sys.argv[5])
step = int(sys.argv[6]) if len(sys.argv) > 6 else 0
records = [json.loads(line) for line in open(history)]


def ours(there):
    """When it was, by our clock, that the clock there showed this, less what it was set by."""
    return first + (there - first) / (1 + ppm / 1e6) - ahead


at_steps = [i for i, r in enumerate(records) if r["kind"] == "clock-step" and r["node"] == node]
asked = [i for i, r in enumerate(records) if r["kind"] == "clock" and r["node"] == node]
set_at = at_steps[0] if at_steps else len(records)
open_from = max([i for i in asked if i < set_at], default=0) if at_steps else len(records)
wrong, stamps, samples, widest = [], 0, 0, 0
for i, r in enumerate(records):
    if r.get("node") != node:
        continue
    now = step if i > set_at else 0
    if r["kind"] == "clock":
        truth = ahead + (r["t"] + ahead - first) * ppm / 1e6 + now
        samples += 1
        # The sample is a little older than its record.
        if abs(truth - r["ahead_ns"]) > r["bound_ns"] + 1e6 * ppm / 1e6:
            wrong.append(r)
    elif "bound" in r:
        stamps += 1
        widest = max(widest, r["bound"])
        either = open_from < i < set_at
        off = min(abs(r["t"] - ours(r["there"] - s)) for s in ({0, step} if either else {now}))
        if off > r["bound"] + 2 + (abs(step) if either else 0):
            wrong.append(r)
print(f"{stamps} stamps within +- {widest / 1e6:.3f} ms, {samples} samples, {len(at_steps)} steps, {len(wrong)} wrong {wrong[:2]}")
sys.exit(bool(wrong) or not stamps or not samples or len(at_steps) != (1 if step else 0))
