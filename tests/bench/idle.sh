#!/usr/bin/env bash
# idle.sh SPAWN_TRAFFIC TREE: rank 0 takes what rank 1 sends it, once the harness has heard of that.
set -u
if [ "$RANK" = 0 ]; then
    exec "$1" sink
fi
python3 "$2/tests/bench/asks.py" "$2/scenarios/jobs" 1 0
address=$(getent ahostsv4 "$MASTER_ADDR" | awk 'NR == 1 { print $1 }')
until "$1" blast "$address" 2>/dev/null; do :; done
