#!/usr/bin/env bash
# The elastic line of the seeds ten times over (TRIALS=N) on a real etcd, whose leases and watches keep their own time.
# deadline: 400 s
set -u
if ! command -v etcd >/dev/null; then
    echo 'no etcd on this host: apt install etcd-server'
    exit 77
fi
# Below the ephemeral range; by this shell's pid, so that two runs do not meet.
port=$((20000 + $$ % 2500 * 4))
exec 3< <(exec etcd --data-dir "$TMPDIR/data" --listen-client-urls "http://127.0.0.1:$port" \
    --advertise-client-urls "http://127.0.0.1:$port" --listen-peer-urls "http://127.0.0.1:$((port + 1))" 2>&1)
etcd=$!
trap 'kill "$etcd" 2>/dev/null' EXIT
while read -r -t 30 -u 3 line; do
    case $line in *'ready to serve client requests'*) ready=1 && break ;; esac
done
[ -n "${ready-}" ] || { echo "etcd did not start within 30 s: ${line-}" && exit 1; }
cat <&3 >/dev/null &
for ((n = 1; n <= ${TRIALS:-10}; n++)); do
    mkdir "$TMPDIR/$n"
    ETCD_ENDPOINT=127.0.0.1:$port JOB_SUFFIX=-$n TMPDIR=$TMPDIR/$n bash tests/seeds/elastic.sh || exit 1
done
