#!/usr/bin/env bash
# rankrun status: what a job is doing, told from its keys, over the embedded store and a real etcd:
# a restarted job while it runs, with one agent stopped, when it has succeeded; one that has failed.
# deadline: 120 s
set -u
run=$BIN/rankrun
bad=0
# Its children, by what the kernel says: the number of one that has ended may be somebody else's by now.
trap 'kill -KILL $(cat /proc/$$/task/$$/children) 2>/dev/null' EXIT
fail() {
    echo "$*"
    bad=1
}
has() { # has TEXT PATTERN
    grep -Eq "$2" <<<"$1" || fail "'$2' is not in: $1"
}
# Below the ephemeral range; by this shell's pid, so that two runs do not meet.
port=$((20000 + $$ % 4000 * 3))
mkfifo "$TMPDIR/up" "$TMPDIR/go"
exec 5<>"$TMPDIR/up" 6<>"$TMPDIR/go"
cat >"$TMPDIR/worker.sh" <<'END'
[ "$RANK$TORCHELASTIC_RESTART_COUNT" != 00 ] || exit 3
[ "$RANK" != 0 ] || echo up >"$TMPDIR/up"
read -r word <"$TMPDIR/go"
END
job() { # job BACKEND PORT: two agents, two workers each, in their second round
    agents=()
    for node in 0 1; do
        "$run" --rdzv-backend "$1" --rdzv-endpoint "127.0.0.1:$2" --rdzv-id "a job" --nnodes 2 \
            --nproc-per-node 2 --max-restarts 3 --role trainer --rdzv-conf hb=1s,last_call_timeout=2,admit=50ms \
            bash "$TMPDIR/worker.sh" 2>"$TMPDIR/err.$node" &
        agents+=($!)
    done
    read -r -t 180 -u 5 _ ||
        fail "$1: the second round did not start: $(cat "$TMPDIR"/err.*)"
}
end_job() {
    printf 'go\ngo\ngo\ngo\n' >&6
    for pid in "${agents[@]}"; do
        wait "$pid" || fail "the job failed: $(cat "$TMPDIR"/err.*)"
    done
}
status() {
    "$run" status --rdzv-backend "$1" --rdzv-endpoint "127.0.0.1:$2" --rdzv-id "${3-a job}" \
        --format "${4-text}" 2>&1
}
scrape() { # scrape PORT: what Prometheus is given of the job and its store
    exec 7<>"/dev/tcp/127.0.0.1/$1"
    printf 'GET /metrics HTTP/1.0\r\n\r\n' >&7
    said=$(timeout 300 cat <&7)
    exec 7>&-
    has "$said" '^Content-Type: text/plain; version=0.0.4'
    has "$said" '^rankrun_job_round\{run_id="a job"\} 2$'
    has "$said" '^rankrun_job_agents\{run_id="a job"\} 2$'
    has "$said" '^rankrun_job_restarts\{run_id="a job"\} 1$'
    has "$said" '^rankrun_job_phase\{run_id="a job",phase="running"\} 1$'
    has "$said" '^rankrun_store_lifelines 2$'
    has "$said" '^rankrun_store_connections [1-9][0-9]*$'
    has "$said" '^rankrun_store_(sent|received)_bytes_total [1-9][0-9]{3}'
    has "$said" '^rankrun_store_requests_total\{kind="kv/txn",code="200"\} [1-9][0-9]'
}
check() { # check BACKEND PORT
    local said
    said=$(status "$1" "$2" none) && fail "$1: a run that is not there is found: $said"
    [ "$(status "$1" "$2" none >/dev/null; echo $?)" = 1 ] || fail "$1: no such run is not 1"
    job "$1" "$2"
    said=$(status "$1" "$2") || fail "$1: not found: $said"
    has "$said" '^job +a job, '
    has "$said" '^phase +running, round 2$'
    has "$said" '^nodes +2 in the round \(2 to 2\), 0 waiting; world 4$'
    has "$said" '^restarts +1 of 3 used, 2 left$'
    has "$said" '^0 .* 0-1 +2  trainer +running +after [0-9]+ ms$'
    has "$said" '^1 .* 2-3 +2  trainer +running +after [0-9]+ ms$'
    [ "$1" != embedded ] || scrape "$2"
    kill -STOP "${agents[1]}"
    status "$1" "$2" 'a job' json >"$TMPDIR/json" || fail "$1: not found as JSON"
    kill -CONT "${agents[1]}"
    python3 - "$TMPDIR/json" <<'END' || fail "$1: $(cat "$TMPDIR/json")"
import json, sys
s = json.load(open(sys.argv[1]))
members = s["members"]
assert s["run_id"] == "a job" and s["restarts_left"] == 2 and s["world"] == 4, s
assert [m["first_rank"] for m in members] == [0, 2] and s["first_failure"] is None, s
assert [m["next_beat_ms"] is None for m in members].count(True) == 1, "one is stopped"
END
    end_job
    said=$(status "$1" "$2") || fail "$1: a closed run is not found: $said"
    has "$said" '^phase +closed: succeeded, round [0-9]+$'
    "$run" --rdzv-backend "$1" --rdzv-endpoint "127.0.0.1:$2" --rdzv-id bad --nproc-per-node 2 \
        sh -c '[ $RANK = 0 ] || exit 3; exec sleep 60' 2>"$TMPDIR/err.0"
    said=$(status "$1" "$2" bad)
    has "$said" '^phase +closed: failed, round 1$'
    has "$said" '^first failure .*, rank 1, pid [0-9]+: exit code 3'
}
[ "$(status embedded "$port" >/dev/null; echo $?)" = 69 ] || fail 'no store is not 69'
[ "$("$run" status 2>/dev/null; echo $?)" = 64 ] || fail 'no endpoint is not 64'
exec 3< <(exec "$run" store --host 127.0.0.1 --port "$port")
read -r -t 180 -u 3 line || fail 'the store did not start'
check embedded "$port"
if ! command -v etcd >/dev/null; then
    echo 'no etcd on this host: the embedded store alone was tried'
    exit $bad
fi
. tests/live/etcd.bash
begin_etcd "http://127.0.0.1:$((port + 1))" "$TMPDIR/data" || bad=1
check etcd-v3 $((port + 1))
exit $bad
