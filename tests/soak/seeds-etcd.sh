#!/usr/bin/env bash
# The elastic line of the seeds ten times over (TRIALS=N) on a real etcd, whose leases and watches keep their own time.
# deadline: 400 s
set -u
. tests/live/etcd.bash
# Below the ephemeral range; by this shell's pid, so that two runs do not meet.
port=$((20000 + $$ % 2500 * 4))
trap 'kill "$etcd" 2>/dev/null' EXIT
begin_etcd "http://127.0.0.1:$port" "$TMPDIR/data" || exit 1
for ((n = 1; n <= ${TRIALS:-10}; n++)); do
    mkdir "$TMPDIR/$n"
    ETCD_ENDPOINT=127.0.0.1:$port JOB_SUFFIX=-$n TMPDIR=$TMPDIR/$n bash tests/seeds/elastic.sh || exit 1
done
