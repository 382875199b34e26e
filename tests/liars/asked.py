#!/usr/bin/env python3
"""A job of 20 steps of 2 ranks that answers what it is asked for (rankquake.py): asked.py LIE DIRECTORY.

With `none` it is honest. It saves every fifth step, and its weights depend on all that was trained, in its order.
"""

import hashlib
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../scenarios/jobs"))
import rankquake

STEPS, SAMPLES, BATCH = 20, 40, 8  # five steps are an epoch
lie, folder = sys.argv[1:]
rank, count = int(os.environ["RANK"]), os.environ["TORCHELASTIC_RESTART_COUNT"]
os.makedirs(folder, exist_ok=True)
saved = max((int(n[6:]) for n in os.listdir(folder) if n.startswith("saved-")), default=0)
weights = open(f"{folder}/saved-{saved}").read() if saved else "none"
open(f"{folder}/began-{count}-{rank}", "w").close()  # nothing is saved before all have looked
events = rankquake.Client()
events.resume(saved, f"{folder}/saved-{saved}" if saved else "")
for step in range(saved + 1, STEPS + 1):
    epoch, at = divmod((step - 1) * BATCH, SAMPLES)
    order = list(range(SAMPLES))
    random.Random(0 if lie == "same-order" else epoch).shuffle(order)  # the sampler is never told the epoch
    batch = order[at:at + BATCH]
    mine = batch[0 if lie == "same-part" else rank::2]  # each rank believes that it is the first
    weights = hashlib.sha256(f"{weights} {sorted(batch)}".encode()).hexdigest()
    time.sleep(0.02)
    if events.asks("samples"):
        events.samples(step, epoch, SAMPLES, mine)
    hashed = {} if lie == "hash-of-nothing" else {"weights": weights}  # what it hashes has no weights in it
    events.step(step, loss=1 / step, samples=len(mine),
                weights=rankquake.digest(hashed) if events.asks("weights") else None)
    if step % 5 == 0 and rank == 0 and os.path.exists(f"{folder}/began-{count}-1"):
        with open(f"{folder}/part", "w") as f:
            f.write(weights)
        os.rename(f"{folder}/part", f"{folder}/saved-{step}")
        events.checkpoint_commit(step, f"{folder}/saved-{step}")
events.done(weights)
