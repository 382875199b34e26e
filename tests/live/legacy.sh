#!/usr/bin/env bash
# Agents of rankrun alone over torchelastic's legacy etcd rendezvous, on a real etcd: workers get the right
# environment, a killed worker restarts all at once, a late node is taken in, a spare disturbs nobody, one that
# leaves is not waited for, the run is closed, and an endpoint that cannot do it is told.
# deadline: 120 s
set -u
. tests/live/etcd.bash
mkfifo "$TMPDIR/events"
exec 3<>"$TMPDIR/events"

fail() {
    echo "FAILED: $*"
    cat "$TMPDIR"/said*
    exit 1
}
# Its children, by what the kernel says: the number of one that has ended may be somebody else's by now.
trap 'kill -KILL $(cat /proc/$$/task/$$/children) 2>/dev/null; wait 2>/dev/null' EXIT

serve() { # serve PORT [OPTION...]: an etcd that is ready
    begin_etcd "http://127.0.0.1:$1" "$TMPDIR/etcd-$1" "${@:2}" || fail 'no etcd'
}

cat >"$TMPDIR/worker" <<'END'
#!/usr/bin/env bash
trap 'exit 0' USR1
echo "$RANKRUN_ROUND $RANK $WORLD_SIZE $GROUP_RANK $TORCHELASTIC_RESTART_COUNT $MASTER_ADDR:$MASTER_PORT $$" >"$EVENTS"
while :; do
    sleep 1000 &
    wait $!
done
END
chmod +x "$TMPDIR/worker"
export EVENTS=$TMPDIR/events OMP_NUM_THREADS=1

# The next N workers to start are those of one round: sets round and pids[rank].
await_round() { # await_round N
    local n r rank world group count master_there
    round='' master='' pids=()
    for ((n = 0; n < $1; n++)); do
        read -r -t 180 -u 3 r rank world group count master_there pid || fail "only $n of $1 workers started"
        [ "${round:=$r}" = "$r" ] || fail "rounds $round and $r mixed"
        [ "${master:=$master_there}" = "$master_there" ] || fail "masters $master and $master_there"
        [ "$world" = "$1" ] || fail "round $r: world size $world, not $1"
        [ -z "${pids[rank]-}" ] || fail "round $r: rank $rank twice"
        ((rank / 2 == group)) || fail "rank $rank on node $group"
        pids[rank]=$pid
    done
}

agent() { # agent JOB [OPTION...]
    "$BIN/rankrun" --nproc-per-node=2 --max-restarts=2 --rdzv-backend=etcd --rdzv-endpoint="127.0.0.1:$port" \
        --rdzv-id="$1" --rdzv-conf=last_call_timeout=300ms "${@:2}" --no-python "$TMPDIR/worker" 2>>"$TMPDIR/said" &
    agent=$!
}

ends() { # ends PID CODE WHAT
    wait "$1"
    local rc=$?
    [ $rc = "$2" ] || fail "$3: exit code $rc, not $2"
}

# What rankrun status says of a job: its text, in which each PATTERN is found, and its exit code.
told() { # told CODE JOB PATTERN...
    local said rc pattern
    said=$("$BIN/rankrun" status --rdzv-backend=etcd --rdzv-endpoint="127.0.0.1:$port" --rdzv-id="$2" 2>&1)
    rc=$?
    [ $rc = "$1" ] || fail "status of $2: exit code $rc, not $1: $said"
    for pattern in "${@:3}"; do
        grep -Eq "$pattern" <<<"$said" || fail "status of $2: no '$pattern' in: $said"
    done
}

port=$((20000 + $$ % 2500 * 4))
serve $port --enable-v2
told 1 one 'has no run one'
agent one --nnodes=2:3 && a=$agent
agent one --nnodes=2:3 && b=$agent
await_round 4
[ "$round" = 1 ] || fail "the first round is $round"

# A worker is killed: its key is given back, nobody waits for its end of life.
begin=$SECONDS
kill -KILL "${pids[1]}"
await_round 4
((SECONDS - begin < 8)) || fail "a restart waited for a key to expire"

# A third node is taken in; a fourth waits and takes the place of the one that leaves.
agent one --nnodes=2:3 && c=$agent
await_round 6
: >"$TMPDIR/said"
exec 5< <(exec "$BIN/rankrun" --nproc-per-node=2 --nnodes=2:3 --rdzv-backend=etcd --rdzv-endpoint="127.0.0.1:$port" \
    --rdzv-id=one --rdzv-conf=last_call_timeout=300ms --no-python "$TMPDIR/worker" 2>&1)
d=$!
read -r -t 180 -u 5 line
[[ $line == *'waits as a spare'* ]] || fail "a spare: $line"
told 0 one '^job +one, torchelastic' "^phase +running, round $round$" \
    '^nodes +3 in the round .bounds unknown., [01] waiting; world 6$' '^restarts +unknown' "^master +$master$" \
    '^0 .* 0-1 +2  default +running +within 10 s +rankrun$' '^2 .* 4-5 +2  default +running '
"$BIN/rankrun" status --rdzv-backend=etcd --rdzv-endpoint="127.0.0.1:$port" --rdzv-id=one --format=json |
    python3 -c '
import json, sys
s = json.load(sys.stdin)
assert s["phase"] == "running" and s["world"] == 6 and s["restarts"] is None and s["first_failure"] is None, s
assert [m["first_rank"] for m in s["members"]] == [0, 2, 4] and all(m["alive"] for m in s["members"]), s
' || fail 'status as JSON'
kill -TERM "$b"
ends "$b" 143 'one that was told to leave'
await_round 6
kill -USR1 "${pids[@]}"
ends "$a" 0 'one that was there all the time'
ends "$c" 0 'the late one'
ends "$d" 0 'the spare'

# The run is closed, and says how it ended.
agent one --nnodes=2:3
ends "$agent" 0 'who comes after the end'
grep -q 'has ended, it succeeded' "$TMPDIR/said" || fail 'the end is not told'
told 0 one '^phase +closed: succeeded, round '
"$BIN/rankrun" --rdzv-backend=etcd --rdzv-endpoint="127.0.0.1:$port" --rdzv-id=two --no-python false 2>"$TMPDIR/said"
[ $? = 1 ] || fail 'a job that fails'
grep -q 'exited with code 1' "$TMPDIR/said" || fail 'a failure without a reason'
told 0 two '^phase +closed: failed, round 1$' '^first failure .*exited with code 1'

# What cannot be is said, with what to do.
serve $((port + 2))
"$BIN/rankrun" --rdzv-backend=etcd --rdzv-endpoint="127.0.0.1:$((port + 2))" --no-python true 2>"$TMPDIR/said"
rc=$?
version=$(etcd --version | sed -n 's/^etcd Version: //p')
case $version in
2.* | 3.[0-3].*) ;; # serves v2 unasked
*)
    [ $rc = 64 ] || fail "an etcd without v2: exit code $rc"
    grep -q 'enable-v2' "$TMPDIR/said" || fail 'what is missing is not told'
    v2=$port
    port=$((v2 + 2))
    told 64 one 'enable-v2'
    port=$v2
    ;;
esac
exec 6< <(exec "$BIN/rankrun" store --host=127.0.0.1 --port=0)
read -r -t 180 -u 6 line
"$BIN/rankrun" --rdzv-backend=etcd --rdzv-endpoint="127.0.0.1:${line##*:}" --no-python true 2>"$TMPDIR/said"
[ $? = 64 ] && grep -q 'is no etcd' "$TMPDIR/said" || fail 'a store that is no etcd'
exit 0
