#!/usr/bin/env bash
# Agents of rankrun over torchelastic's legacy rendezvous while their etcd is away: for less than a key lives
# nobody is disturbed, for longer the workers are killed and begin anew at no cost, and an etcd that comes back
# without its data is filled again.
# deadline: 300 s
set -u
. tests/live/etcd.bash
mkfifo "$TMPDIR/events"
exec 3<>"$TMPDIR/events"
export EVENTS=$TMPDIR/events
started=() etcd=''
port=$((20000 + $$ % 5000 * 2))

fail() {
    echo "FAILED: $*"
    cat "$TMPDIR/said"
    exit 1
}
trap 'kill -KILL "${started[@]}" 2>/dev/null; wait 2>/dev/null' EXIT

serve() {
    begin_etcd "http://127.0.0.1:$port" "$TMPDIR/etcd" --enable-v2 || fail 'no etcd'
    started+=("$etcd")
}

cat >"$TMPDIR/worker" <<'END'
#!/usr/bin/env bash
trap 'exit 0' USR1
echo "start $RANKRUN_ROUND $RANK $TORCHELASTIC_RESTART_COUNT $$" >"$EVENTS"
while :; do
    sleep 1000 &
    wait $!
done
END
chmod +x "$TMPDIR/worker"

await_round() { # sets round and pids[rank]
    local n what r rank count pid
    round='' pids=()
    for n in 1 2; do
        read -r -t 60 -u 3 what r rank count pid || fail "$1: only $((n - 1)) workers started"
        [ "${round:=$r}" = "$r" ] || fail "$1: rounds $round and $r mixed"
        [ "$count" = 0 ] || fail "$1: it cost a restart"
        pids[rank]=$pid
    done
}

# For that many seconds there is no etcd; what the agents do meanwhile is what is asked.
away() {
    kill -KILL "$etcd"
    wait "$etcd" 2>/dev/null
    read -r -t "$1" -u 3 && fail "workers started without an etcd"
    [ $# = 1 ] || rm -rf "$TMPDIR/etcd"
    serve
}

serve
for i in 1 2; do
    "$BIN/rankrun" --nnodes=2 --rdzv-backend=etcd --rdzv-endpoint="127.0.0.1:$port" --rdzv-id=away \
        --no-python "$TMPDIR/worker" 2>>"$TMPDIR/said" &
    agents[i]=$!
    started+=("$!")
done
await_round 'the first round'
first=("${pids[@]}")
away 3
read -r -t 8 -u 3 && fail 'an outage of 3 s has disturbed somebody'
kill -0 "${first[@]}" || fail 'workers are gone after an outage of 3 s'
away 14
kill -0 "${first[0]}" 2>/dev/null && fail 'a worker outlived its node'"'s key"
await_round 'after 14 s'
[ "$round" -gt 1 ] || fail "round $round after round 1"
last=$round
away 2 forgets
await_round 'without its data'
[ "$round" -gt "$last" ] || fail "round $round after round $last"
kill -USR1 "${pids[@]}"
for i in 1 2; do
    wait "${agents[i]}" || fail "agent $i ended with $?"
done
exit 0
