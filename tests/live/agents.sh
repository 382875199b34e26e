#!/usr/bin/env bash
# Real agents around a real store, all on loopback: workers get the right environment, a killed
# worker restarts all, a killed agent is given up, a late one joins, one leaves, the job ends, and
# nothing is left. What is waited for is a line in a FIFO, which the workers write.
# deadline: 120 s
set -u
. tests/live/patience.bash
export XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-$TMPDIR}
mkfifo "$TMPDIR/events"
exec 3<>"$TMPDIR/events"
agents=() # pids
seen=()   # pids of workers

fail() {
    echo "FAILED: $*"
    exit 1
}

# Its children, by what the kernel says: the number of one that has ended may be somebody else's by now.
finish() {
    kill -KILL $(cat /proc/$$/task/$$/children) 2>/dev/null
    wait
}
trap finish EXIT

cat >"$TMPDIR/worker" <<'END'
#!/usr/bin/env bash
trap 'exit 0' USR1
echo "$RANKRUN_ROUND $RANK $WORLD_SIZE $LOCAL_RANK $GROUP_RANK $TORCHELASTIC_RESTART_COUNT" \
    "$MASTER_ADDR:$MASTER_PORT $$" >"$EVENTS"
while :; do
    sleep 1000 &
    wait $!
done
END
chmod +x "$TMPDIR/worker"
export EVENTS=$TMPDIR/events

# The next N workers to start are those of one round: sets round, restarts, pids[rank]. All of them
# must have been told the same, and the ranks must be 0..N-1, contiguous per node.
await_round() { # await_round N WORLD
    local n masters=() r rank world local_rank group count master pid i
    round='' pids=() groups=()
    for ((n = 0; n < $1; n++)); do
        read -r -t 180 -u 3 r rank world local_rank group count master pid ||
            fail "only $n of $1 workers started"
        [ "${round:=$r}" = "$r" ] || fail "rounds $round and $r mixed"
        [ "$world" = "$2" ] || fail "round $r: world size $world, not $2"
        [ -z "${pids[rank]-}" ] || fail "round $r: rank $rank twice"
        ((rank / 2 == group && rank % 2 == local_rank)) || fail "rank $rank: node $group, $local_rank"
        [ "${masters[0]:-$master}" = "$master" ] || fail "masters $master and ${masters[0]}"
        [ "${restarts_seen:=$count}" = "$count" ] || fail "restart counts $count, $restarts_seen"
        masters[0]=$master pids[rank]=$pid restarts=$count
        seen+=("$pid")
    done
    restarts_seen=''
    for ((i = 0; i < $2; i++)); do
        [ -n "${pids[i]-}" ] || fail "round $round: no rank $i"
    done
}

running() { # running PID: it is there, and no zombie
    local state
    state=$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) && [ "${state%% *}" != Z ]
}

agent() { # agent ADDRESS [OPTION...]: sets the agent's pid
    local address=$1
    shift
    "$BIN/rankrun" --nnodes=2:3 --nproc-per-node=2 --max-restarts=2 --rdzv-backend=embedded \
        --rdzv-endpoint="127.0.0.1:$port" --rdzv-id="$job" --local-addr="$address" \
        --rdzv-conf=$watchful "$@" --no-python "$TMPDIR/worker" 2>>"$TMPDIR/said" &
    agent=$!
    agents+=("$agent")
}

ends() { # ends PID CODE WHAT
    wait "$1"
    local rc=$?
    [ $rc = "$2" ] || fail "$3: exit code $rc, not $2: $(tail -n 3 "$TMPDIR/said")"
}

# ---- alone ----

"$BIN/rankrun" --standalone --nproc-per-node=2 --no-python true || fail 'a job that succeeds'
"$BIN/rankrun" --standalone --nproc-per-node=2 --max-restarts=1 --no-python false 2>"$TMPDIR/said"
[ $? = 1 ] || fail 'a job that fails'
grep -q 'exited with code 1; max_restarts 1' "$TMPDIR/said" || fail "the summary: $(cat "$TMPDIR/said")"

# ---- a store that is not there ----

"$BIN/rankrun" --nnodes=2 --rdzv-backend=embedded --rdzv-endpoint=192.0.2.1:1 --rdzv-id=x \
    --rdzv-conf=$watchful,join_timeout=1 --no-python true 2>"$TMPDIR/said"
[ $? = 69 ] || fail "a store that is not there: $(cat "$TMPDIR/said")"
grep -q '192.0.2.1:1' "$TMPDIR/said" || fail "the endpoint is not named: $(cat "$TMPDIR/said")"

grep -q 'does not answer yet; trying for up to 1 s' "$TMPDIR/said" || fail "$(cat "$TMPDIR/said")"

"$BIN/rankrun" --rdzv-endpoint=nowhere.invalid:1 --rdzv-conf=join_timeout=1 --no-python true \
    2>"$TMPDIR/said"
[ $? = 69 ] || fail "a store whose name is not known: $(cat "$TMPDIR/said")"
grep -q 'nowhere.invalid.*trying for up to 1 s' "$TMPDIR/said" || fail "$(cat "$TMPDIR/said")"

# ---- what cannot work is said before anything starts ----

"$BIN/rankrun" --log-dir=/dev/null/logs --no-python touch "$TMPDIR/started" 2>"$TMPDIR/said"
[ $? = 64 ] || fail "a log directory that cannot be: $(cat "$TMPDIR/said")"
[ ! -e "$TMPDIR/started" ] || fail 'a worker ran without its log directory'

# ---- three nodes ----

serve() { # serve PORT [OPTION]
    exec 4< <(exec "$BIN/rankrun" store --host=127.0.0.1 --port="$1" ${2+"$2"})
    store=$!
    agents+=("$store")
    read -r -t 180 -u 4 line || fail 'the store did not start'
    port=${line##*:}
}

job=three
serve 0
agent 127.0.0.2 && a=$agent
agent 127.0.0.3 && b=$agent
agent 127.0.0.4 && c=$agent
await_round 6 6
[ "$restarts" = 0 ] || fail "first round with restart count $restarts"

kill -KILL "${pids[3]}"
await_round 6 6
[ "$restarts" = 1 ] || fail "a worker was killed: restart count $restarts"

kill -KILL "$c"
ends "$c" 137 'the killed agent'
before=("${pids[@]}") first=$round
await_round 4 4
[ "$restarts" = 1 ] || fail "an agent was killed: restart count $restarts"
[ "$round" -gt "$first" ] || fail "round $round after $first"
for pid in "${before[@]}"; do
    running "$pid" && fail "worker $pid of round $first runs in round $round"
done

agent 127.0.0.5 && d=$agent
await_round 6 6
[ "$restarts" = 1 ] || fail "an agent joined: restart count $restarts"

kill -TERM "$b"
ends "$b" 143 'the agent that left'
await_round 4 4

kill -USR1 "${pids[@]}"
ends "$a" 0 'the first agent'
ends "$d" 0 'the last agent'

# Later, with the same run id: told the outcome.
agent 127.0.0.6
ends "$agent" 0 'an agent after the end'
grep -q 'run "three" has already ended here: it succeeded; no worker was started' "$TMPDIR/said" ||
    fail "an agent after the end says: $(tail -n 3 "$TMPDIR/said")"

# ---- a store that comes back empty: the agents form the job anew ----

job=lost
quick=--rdzv-conf=$watchful,last_call_timeout=100ms # or the wait for a third would hide the other
agent 127.0.0.2 $quick && a=$agent
agent 127.0.0.3 $quick && b=$agent
await_round 4 4
marker=$XDG_RUNTIME_DIR/rankrun/store-127.0.0.1-$port
[ -s "$marker" ] || fail 'a store that serves has no marker'
kill -KILL "$store"
wait "$store"
before=("${pids[@]}")
serve "$port"
await_round 4 4
for pid in "${before[@]}"; do
    running "$pid" && fail "worker $pid outlived the store that it was started by"
done
grep -q 'the first round waits' "$TMPDIR/said" || fail 'a store that came back held nothing back'
kill -USR1 "${pids[@]}"
ends "$a" 0 'an agent whose store was lost'
ends "$b" 0 'the other agent whose store was lost'
kill -TERM "$store"

# ---- a store that ends after its jobs leaves no marker: one that begins then holds nothing back ----

serve 0
once=(--rdzv-endpoint="127.0.0.1:$port" --rdzv-conf=$watchful --no-python true)
marker=$XDG_RUNTIME_DIR/rankrun/store-127.0.0.1-$port
"$BIN/rankrun" "${once[@]}" || fail 'a job of one node'
[ -s "$marker" ] || fail "no marker of a store that serves: $marker"
kill -TERM "$store"
wait "$store"
[ -e "$marker" ] && fail 'a store that ended after its jobs has left its marker'
"$BIN/rankrun" "${once[@]}" 2>"$TMPDIR/once" || fail 'a job of one node that serves the store'
grep -q 'the first round waits' "$TMPDIR/once" && fail "held back for nothing: $(cat "$TMPDIR/once")"
[ -e "$marker" ] && fail 'an agent that served the store has left its marker'

# ---- no store at all: the first agent serves it, and goes last ----

job=hosted
agent 127.0.0.1 && a=$agent
agent 127.0.0.3 && b=$agent
await_round 4 4
kill -USR1 "${pids[@]}"
ends "$a" 0 'the agent that serves the store'
ends "$b" 0 'the agent that uses it'
grep -q "serving the store at 127.0.0.1:$port for this job" "$TMPDIR/said" ||
    fail "the agent that serves the store does not say so: $(tail -n 9 "$TMPDIR/said")"

# ---- a store that is lost for good: said at once, not at the end ----

job=gone
serve 0
agent 127.0.0.2 --nnodes=1 --rdzv-conf=profile=fast,give_up=2s && a=$agent
await_round 2 2
kill -KILL "$store"
wait "$store"
ends "$a" 69 'an agent whose store is gone'
grep -q "the store at 127.0.0.1:$port has not answered for [01].* waiting up to 2 s" "$TMPDIR/said" ||
    fail "an agent whose store is gone says: $(tail -n 9 "$TMPDIR/said")"

for pid in "${seen[@]}" "${agents[@]}"; do
    running "$pid" && fail "process $pid is left"
done
exit 0
