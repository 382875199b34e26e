#!/usr/bin/env bash
# The elastic line of the seeds on a real etcd, whose leases and watches keep their own time: ten times over (TRIALS=N) by its v3
# API, and once by its v2 API, where a node that is lost is noticed when its key has expired: arrival, departure, gang.
# deadline: 500 s
set -u
. tests/live/etcd.bash
# Below the ephemeral range; by this shell's pid, so that two runs do not meet.
port=$((20000 + $$ % 2500 * 4))
trap 'kill "$etcd" 2>/dev/null' EXIT
begin_etcd "http://127.0.0.1:$port" "$TMPDIR/data" --enable-v2 || exit 1
for ((n = 1; n <= ${TRIALS:-10}; n++)); do
    mkdir "$TMPDIR/$n"
    ETCD_ENDPOINT=127.0.0.1:$port JOB_SUFFIX=-$n TMPDIR=$TMPDIR/$n bash tests/seeds/elastic.sh || exit 1
done
mkdir "$TMPDIR/v2"
ETCD_ENDPOINT=127.0.0.1:$port ETCD_BACKEND=etcd TMPDIR=$TMPDIR/v2 bash tests/seeds/elastic.sh
