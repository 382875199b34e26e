#!/usr/bin/env bash
# idle.sh SPAWN_TRAFFIC SPAWN_ASKS: rank 0 takes what rank 1 sends it, once the harness has heard of that.
set -u
if [ "$RANK" = 0 ]; then
    exec "$1" sink
fi
"$2" 1 0
address=$(getent ahostsv4 "$MASTER_ADDR" | awk 'NR == 1 { print $1 }')
until "$1" blast "$address" 2>/dev/null; do :; done
