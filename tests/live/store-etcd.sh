#!/usr/bin/env bash
# The client's contract over a real etcd: what holds for the embedded store holds there too.
set -u
if ! command -v etcd >/dev/null; then
    echo 'no etcd on this host: apt install etcd-server'
    exit 77
fi
# Below the ephemeral range; by this shell's pid, so that two runs do not meet.
port=$((20000 + $$ % 5000 * 2))
exec 3< <(exec etcd --data-dir "$TMPDIR/data" --listen-client-urls "http://127.0.0.1:$port" \
    --advertise-client-urls "http://127.0.0.1:$port" \
    --listen-peer-urls "http://127.0.0.1:$((port + 1))" 2>&1)
etcd=$!
trap 'kill "$etcd" 2>/dev/null' EXIT
while read -r -t 30 -u 3 line; do
    case $line in *'ready to serve client requests'*) ready=1 && break ;; esac
done
if [ -z "${ready-}" ]; then
    echo "etcd did not start within 30 s: ${line-}"
    exit 1
fi
cat <&3 >/dev/null &
"$OUT/tests/agent/store/spawn_contract" "127.0.0.1:$port"
