#!/usr/bin/env bash
# The client's contract over a real etcd: what holds for the embedded store holds there too.
set -u
. tests/live/etcd.bash
# Below the ephemeral range; by this shell's pid, so that two runs do not meet.
port=$((20000 + $$ % 5000 * 2))
trap 'kill "$etcd" 2>/dev/null' EXIT
begin_etcd "http://127.0.0.1:$port" "$TMPDIR/data" || exit 1
"$OUT/tests/agent/store/spawn_contract" "127.0.0.1:$port"
