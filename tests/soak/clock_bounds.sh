#!/usr/bin/env bash
# The bound of a clock that is seven seconds ahead holds a thousand times of a thousand.
# deadline: 600 s
set -u
bin=${BIN:-build/bin} fails=0
node=$(realpath "$bin/rankquake-node")
command -v python3 >/dev/null || { echo "python3 is not installed"; exit 77; }
unshare -T --monotonic 7 true 2>/dev/null || { echo "no time namespaces here"; exit 77; }
for i in {1..20}; do echo "unshare -T --monotonic 7 $node # $i"; done >"$TMPDIR/ahead"
for i in {1..50}; do
    "$bin/rankquake" doctor --provider exec --hostfile "$TMPDIR/ahead" --format json </dev/null >"$TMPDIR/bounds" &&
        python3 tests/live/clock_bounds.py 20 7000000000 <"$TMPDIR/bounds" || { echo "round $i"; fails=$((fails + 1)); }
done
[ $fails = 0 ]
