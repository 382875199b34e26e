#!/usr/bin/env bash
# S1: the elastic line, --nnodes=1:4 --nproc_per_node=2 --rdzv_id --rdzv_backend --rdzv_endpoint, the same on every
# node. Two nodes start, a third arrives, k of 6 workers fail, a node departs, another dies and is replaced; each
# time all workers stop and a new group with new ranks begins, which trains three steps more from what was saved, and at the
# end the model is that of one process that was never disturbed. As a gang the death ends the job.
# deadline: 90 s
set -u
. tests/live/patience.bash
PATH=$(cd "$BIN" && pwd):$PATH
run=$(command -v rankrun)
cd "$TMPDIR" || exit 1
mkfifo events
exec 3<>events
all=()
fail() {
    echo "FAILED: $*"
    cat said
    exit 1
}
# Its children, by what the kernel says: the number of one that has ended may be somebody else's by now.
trap 'kill -KILL $(cat /proc/$$/task/$$/children) 2>/dev/null; wait' EXIT
cat >script <<'END'
trap 'exit 0' USR1
ranktrain --steps=$((RANKRUN_ROUND * 3)) --checkpoint-every=3 --checkpoint-dir="saved.$1" --log-every=0 >>"trained.$1" || exit 1
echo "$RANKRUN_ROUND $RANK $WORLD_SIZE $GROUP_RANK $TORCHELASTIC_RESTART_COUNT $MASTER_ADDR:$MASTER_PORT $$" >events
while :; do
    sleep 1000 &
    wait $!
done
END
endpoint=${ETCD_ENDPOINT-} # of a real etcd: tests/soak/seeds-etcd.sh
conf=$patient,last_call_timeout=300ms
if [ -n "$endpoint" ]; then
    backend=${ETCD_BACKEND:-etcd-v3}
    [ $backend = etcd-v3 ] || conf=last_call_timeout=300ms
else
    backend=embedded
    exec 5< <(exec "$run" store --host=127.0.0.1 --port=0)
    read -r -t 180 -u 5 line
    endpoint=127.0.0.1:${line##*:}
fi
nodes=1
node() { # node [OPTION...]: one more, by the job's one command line; only its address is its own
    nodes=$((nodes + 1))
    "$run" --nnodes=1:4 --nproc_per_node=2 --max_restarts=3 --rdzv_id="$job" --rdzv_backend=$backend \
        --rdzv_endpoint="$endpoint" --rdzv_conf=$conf --local_addr=127.0.0.$nodes "$@" bash script "$job" 2>>said &
    node=$!
}
running() { # running PID
    local state
    state=$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) && [ "${state%% *}" != Z ]
}
# The next round with that world: every rank once, one master that resolves, groups from 0 to 3, and no worker of an
# earlier group runs any more. Rounds of fewer nodes may come before, while nodes arrive.
group() { # group WORLD RESTARTS
    local round=0 r rank world g count master pid n=0 there=''
    while ((n < $1)); do
        read -r -t 180 -u 3 r rank world g count master pid || fail "$job: $n of $1 workers started"
        all+=("$pid")
        [ "$world" = "$1" ] || continue
        ((r == round)) || { round=$r n=0 pids=() there=$master; }
        [ -z "${pids[rank]-}" ] && ((rank < world && g == rank / 2 && g < 4)) || fail "$job: rank $rank, group $g"
        # over etcd's v2 API each agent counts its own
        [ "$count" = "$2" ] || [ $backend = etcd ] || fail "$job: restart count $count, not $2"
        [ "$there" = "$master" ] || fail "$job: masters $there and $master"
        pids[rank]=$pid n=$((n + 1))
    done
    last=$round
    getent ahosts "${there%:*}" >/dev/null || fail "MASTER_ADDR ${there%:*} does not resolve"
    for pid in "${all[@]}"; do
        [[ " ${pids[*]} " == *" $pid "* ]] || ! running "$pid" || fail "$job: worker $pid of an earlier group runs"
    done
}
ends() { # ends PID CODE WHAT
    wait "$1"
    local rc=$?
    [ $rc = "$2" ] || fail "$job: $3: exit $rc, not $2"
}
job=elastic${JOB_SUFFIX-}
node && a=$node
node && b=$node
group 4 0
node && c=$node # arrives
group 6 0
kill -KILL "${pids[1]}" "${pids[4]}" # two of six, on two nodes: one failed round
group 6 1
kill -TERM "$b" # departs
group 4 1
ends "$b" 143 'the node that departs'
kill -KILL "$c" # dies, with its workers
group 2 1
node && d=$node # replaced
group 4 1
kill -USR1 "${pids[@]}"
ends "$a" 0 'the first node'
ends "$d" 0 'the one in the place of the dead'
ranktrain --steps=$((last * 3)) --log-every=0 >alone 2>>said || fail 'alone'
[ "$(grep '^model ' "trained.$job" | tail -n 1)" = "$(grep '^model ' alone)" ] ||
    fail "after $last rounds: $(tail -n 3 "trained.$job") and alone: $(cat alone)"
grep -q "^world 6, round .*" "trained.$job" && grep -q "^resumed step " "trained.$job" || fail "trained: $(cat "trained.$job")"

job=gang${JOB_SUFFIX-}
node --on-node-loss=gang && a=$node
node --on-node-loss=gang && b=$node
group 4 0
kill -KILL "$b"
ends "$a" 1 'the rest of a gang'
grep -q "\"$job\" failed: .*127.0.0.7" said || fail 'the gang: the lost node is not named'
exit 0
