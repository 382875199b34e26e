#!/usr/bin/env bash
# The client's contract over a real etcd: what holds for the embedded store holds there too.
set -eu
if ! command -v etcd >/dev/null; then
    echo "no etcd on this host: apt install etcd-server"
    exit 77
fi
dir=$(mktemp -d)
# Ports below the ephemeral range, chosen by this shell's pid so that two runs do not meet.
port=$((20000 + $$ % 5000 * 2))
etcd --data-dir "$dir/data" --log-level error --listen-client-urls "http://127.0.0.1:$port" \
    --advertise-client-urls "http://127.0.0.1:$port" \
    --listen-peer-urls "http://127.0.0.1:$((port + 1))" >"$dir/log" 2>&1 &
etcd=$!
trap 'kill "$etcd" 2>/dev/null; wait "$etcd" 2>/dev/null || true; rm -rf "$dir"' EXIT
# etcd has no way to tell that it is up but to answer.
deadline=$((SECONDS + 30))
until curl -sf -o /dev/null "http://127.0.0.1:$port/health"; do
    if [ $SECONDS -ge $deadline ] || ! kill -0 "$etcd"; then
        cat "$dir/log"
        exit 1
    fi
    sleep 0.1
done
"${OUT:-build/release}/tests/agent/store/spawn_contract" "127.0.0.1:$port"
