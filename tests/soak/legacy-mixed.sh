#!/usr/bin/env bash
# Real torchrun agents and agents of rankrun as one job, over torchelastic's legacy etcd rendezvous: in either
# order of arrival, workers of both killed, agents of both killed, both as the one that comes late. A PyTorch
# script sums over all of them in every round. TRIALS=N repeats it (1); LAST_CALL=S is for a busy machine, on which a
# torchrun may take longer than 12 s to start.
# deadline: 1800 s
set -u
. tests/live/etcd.bash
if ! /usr/bin/python3 -c 'import torch.distributed.run, etcd' 2>/dev/null; then
    echo 'the system Python has no torch or no client of etcd: apt install python3-torch python3-etcd'
    exit 77
fi
rankrun=$(realpath "$BIN/rankrun")
cd "$TMPDIR" || exit 1
mkfifo events
exec 3<>events
started=()
export EVENTS=$TMPDIR/events OMP_NUM_THREADS=1 PYTHON_EXEC=/usr/bin/python3 LOGLEVEL=INFO

fail() {
    echo "FAILED: $*"
    tail -n 40 said-*
    exit 1
}
# Of torchrun's agents the workers are left behind, so a group each.
finish() {
    local pid
    for pid in "${started[@]}"; do kill -KILL -- "-$pid" "$pid" 2>/dev/null; done
    wait
}
trap finish EXIT

cat >train.py <<'END'
import datetime, os, sys, time
import torch
import torch.distributed as dist

dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
rank, world = dist.get_rank(), dist.get_world_size()
who = "rankrun" if "RANKRUN_ROUND" in os.environ else "torchrun"


def total(x):
    t = torch.tensor([float(x)])
    dist.all_reduce(t)
    return int(t[0])


assert total(rank) == world * (world - 1) // 2
with open(os.environ["EVENTS"], "w") as f:
    master = os.environ["MASTER_ADDR"] + ":" + os.environ["MASTER_PORT"]
    f.write(f"{who} {rank} {world} {os.environ['TORCHELASTIC_RESTART_COUNT']} {master} {os.getpid()}\n")
while not total(rank == 0 and os.path.exists(sys.argv[1])):
    time.sleep(0.02)
dist.destroy_process_group()  # else gloo's threads may abort() a process that ends ("terminate called ...")
END

cat >joined.py <<'END'
# joined.py PORT RUN N: ends when N have joined the newest version of the rendezvous.
import json, sys, time
import etcd

client = etcd.Client(port=int(sys.argv[1]))
key, deadline = f"/torchelastic/p2p/run_{sys.argv[2]}/rdzv/active_version", time.time() + 200
index = None
while time.time() < deadline:
    try:
        node = client.read(key) if index is None else client.read(key, wait=True, waitIndex=index, timeout=200)
        index = (node.etcd_index if index is None else node.modifiedIndex) + 1
        if node.value and len(json.loads(node.value).get("participants", [])) >= int(sys.argv[3]):
            sys.exit(0)
    except etcd.EtcdKeyNotFound as e:
        index = e.payload["index"] + 1
sys.exit("nobody came")
END

serve() {
    begin_etcd "http://127.0.0.1:$port" "$TMPDIR/etcd" --enable-v2 || fail 'no etcd'
    started+=("$etcd")
}

# A job that does not talk: no worker fails when another is gone, so only a rankrun agent notices.
mkfifo end
cat >quiet <<'END'
who=torchrun
[ -n "${RANKRUN_ROUND-}" ] && who=rankrun
echo "$who $RANK $WORLD_SIZE $TORCHELASTIC_RESTART_COUNT $MASTER_ADDR:$MASTER_PORT $$" >"$EVENTS"
read -r line <"${EVENTS%/*}/end"
END
program=(train.py)

joined() { # joined N: that many have joined the run
    timeout 240 /usr/bin/python3 joined.py "$port" "$run" "$1" || fail "$run: nobody joined"
}

agent() { # agent torchrun|rankrun NNODES: sets agent, a process group of its own
    local command=("$rankrun")
    [ "$1" = torchrun ] && command=(/usr/bin/python3 -m torch.distributed.run --redirects 1 --tee 1)
    set -m
    "${command[@]}" --nnodes="$2" --max_restarts=9 --rdzv_backend=etcd --rdzv_endpoint="127.0.0.1:$port" \
        --rdzv_id="$run" --rdzv_conf=last_call_timeout="${LAST_CALL:-12}" "${program[@]}" "$TMPDIR/stop-$run" >>"said-$run-$1" 2>&1 &
    agent=$!
    set +m
    started+=("$agent")
}

# The next workers to start are WORLD ones of one round: sets pid_of[torchrun] and pid_of[rankrun], each of the
# last that came of that kind.
declare -A pid_of
await_round() { # await_round WORLD WHAT
    local n who rank world count there master='' ranks=''
    pid_of=()
    for ((n = 0; n < $1; n++)); do
        read -r -t 240 -u 3 who rank world count there pid || fail "$run, $2: only $n of $1 workers started"
        [ "$world" = "$1" ] || fail "$run, $2: a worker of $who has world size $world, not $1"
        [ "${master:=$there}" = "$there" ] || fail "$run, $2: masters $master and $there"
        case $ranks in *" $rank "*) fail "$run, $2: rank $rank twice" ;; esac
        ranks+=" $rank " pid_of[$who]=$pid
    done
    echo "$run: $2, $(((${EPOCHREALTIME/./} - begin) / 1000)) ms"
    begin=${EPOCHREALTIME/./}
}

now() {
    begin=${EPOCHREALTIME/./}
}

ends() { # ends PID WHAT
    wait "$1"
    local rc=$?
    [ $rc = 0 ] || fail "$run: $2 ended with $rc"
}

both() { # both FIRST SECOND: two nodes, of which each loses a worker
    local a b
    run=$1-first-$trial
    now
    agent "$1" 2 && a=$agent
    joined 1
    agent "$2" 2 && b=$agent
    await_round 2 'both are there'
    kill -KILL "${pid_of[rankrun]}"
    await_round 2 "rankrun's worker is killed"
    kill -KILL "${pid_of[torchrun]}"
    await_round 2 "torchrun's worker is killed"
    touch "stop-$run"
    ends "$a" "$1" && ends "$b" "$2"
}

deaths() { # an agent of each kind dies with its workers, another of its kind comes late
    local r t
    run=deaths-$trial
    now
    agent torchrun 1:2 && t=$agent
    joined 1
    agent rankrun 1:2 && r=$agent
    await_round 2 'both are there'
    kill -KILL -- "-$t" "${pid_of[torchrun]}"
    wait "$t" 2>/dev/null
    await_round 1 'torchrun is dead'
    agent torchrun 1:2 && t=$agent
    await_round 2 'torchrun comes late'
    kill -KILL "$r"
    wait "$r" 2>/dev/null
    await_round 1 'rankrun is dead'
    agent rankrun 1:2 && r=$agent
    await_round 2 'rankrun comes late'
    kill -TERM "$r"
    wait "$r"
    await_round 1 'rankrun has left'
    touch "stop-$run"
    ends "$t" torchrun
}

three() { # two agents of torchrun, which must both be told of what the third does
    local r t u
    run=three-$trial
    now
    agent torchrun 3 && t=$agent
    agent torchrun 3 && u=$agent
    joined 2
    agent rankrun 3 && r=$agent
    await_round 3 'three are there'
    kill -KILL "${pid_of[rankrun]}"
    await_round 3 "rankrun's worker is killed"
    touch "stop-$run"
    ends "$r" rankrun && ends "$t" torchrun && ends "$u" torchrun
}

# The dead node's key is held until the other torchrun, too, has seen that the rest wait.
quiet() {
    local r t u
    run=quiet-$trial
    now
    program=(--no_python sh quiet)
    agent torchrun 1:3 && t=$agent
    joined 1
    agent torchrun 1:3 && u=$agent
    joined 2
    agent rankrun 1:3 && r=$agent
    await_round 3 'three are there'
    kill -KILL -- "-$t"
    wait "$t" 2>/dev/null
    await_round 2 'torchrun is dead and nobody fails'
    exec 5<>end
    printf '\n\n\n\n\n\n' >&5
    ends "$r" rankrun && ends "$u" torchrun
    exec 5>&-
    program=(train.py)
}

port=$((20000 + $$ % 5000 * 2))
serve
for ((trial = 1; trial <= ${TRIALS:-1}; trial++)); do
    both torchrun rankrun
    both rankrun torchrun
    deaths
    three
    quiet
    echo "trial $trial of ${TRIALS:-1} passed"
done
exit 0
