"""Whether the bounds that `doctor --provider --format json` tells of N clocks hold the offset that they have, in ns:
clock_bounds.py N OFFSET <JSON. Says how wide they are."""
import json, sys

wanted, offset = int(sys.argv[1]), int(sys.argv[2])
hosts = json.load(sys.stdin)["hosts"]
clocks = [h["clock"] for h in hosts if h["works"]]
wrong = [c for c in clocks if not c["low_ns"] <= offset <= c["high_ns"] or c["steps"] or c["samples"] < 100]
widths = sorted((c["high_ns"] - c["low_ns"]) / 2000 for c in clocks)
if len(clocks) != wanted or wrong:
    print(f"{len(clocks)} of {wanted} clocks were read, {len(wrong)} bounds are wrong: {wrong[:3]}")
    sys.exit(1)
print(f"{wanted} of {wanted} hold; +- {widths[0]:.1f} us at best, {widths[len(widths) // 2]:.1f} in the middle, {widths[-1]:.1f} at worst")
