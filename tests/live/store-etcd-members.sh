#!/usr/bin/env bash
# A real etcd of three members, whose leader is killed twice in mid-round: once while workers run, who are not
# disturbed, and once in the moment in which a worker is killed, so that a round has to be formed over an etcd that
# is electing. Its history is compacted before, so that watches which go to another member begin with what is gone.
# deadline: 180 s
set -u
. tests/live/etcd.bash
need_program etcdctl etcd-client
BIN=$(realpath "$BIN")
cd "$TMPDIR" || exit 1
export ETCDCTL_API=3 EVENTS=$TMPDIR/events
mkfifo events go
exec 3<>events 4<>go
fail() {
    echo "FAILED: $*"
    tail -n 20 said.* 2>/dev/null
    exit 1
}
# Its children, by what the kernel says: the number of one that has ended may be somebody else's by now.
finish() {
    kill -KILL $(cat /proc/$$/task/$$/children) 2>/dev/null
    wait
}
trap finish EXIT

# Below the ephemeral range; by this shell's pid, so that two runs do not meet.
port=$((20000 + $$ % 1600 * 6))
client() { echo "127.0.0.1:$((port + 2 * $1))"; }
peer() { echo "http://127.0.0.1:$((port + 2 * $1 + 1))"; }
all=m0=$(peer 0),m1=$(peer 1),m2=$(peer 2)
# What a member says of itself comes as a line: `leader N`, `ready N`.
mkfifo said
exec 5<>said
member() { # member N: starts it, anew with what it had
    etcd --name "m$1" --data-dir "data$1" --unsafe-no-fsync --heartbeat-interval 50 --election-timeout 500 \
        --listen-client-urls "http://$(client "$1")" --advertise-client-urls "http://$(client "$1")" \
        --listen-peer-urls "$(peer "$1")" --initial-advertise-peer-urls "$(peer "$1")" --initial-cluster "$all" \
        > >(exec sed -un "s/.*became leader at term.*/leader $1/p;
            s/.*\(ready to serve client requests\|serving client traffic\|serving insecure client requests\).*/ready $1/p" >&5) 2>&1 &
    etcd[$1]=$!
}
await() { # await WORD COUNT: sets last, the member that said it last
    local word n=0
    while ((n < $2)); do
        read -r -t 180 -u 5 word last || fail "no $1 within 60 s"
        [ "$word" = "$1" ] && ((n += 1))
        [ "$word" = leader ] && leader=$last
    done
}
control() { etcdctl --dial-timeout 60s --command-timeout 60s "$@" 2>said.etcdctl || fail "etcdctl $*"; }
for i in 0 1 2; do
    member $i
done
await ready 3

# shellcheck disable=SC2016 # the worker's
worker='echo "$RANKRUN_ROUND $RANK $WORLD_SIZE $TORCHELASTIC_RESTART_COUNT $BASHPID" >"$EVENTS" && read -r _ <go'
agent() { # agent N MEMBER...: knows the members in this order
    local n=$1 list
    shift
    list=$(for i in "$@"; do client "$i"; done | paste -sd,)
    "$BIN/rankrun" --nnodes 2 --max-restarts 1 --rdzv-backend etcd-v3 --rdzv-endpoint "$list" \
        --rdzv-id members --local-addr "127.0.0.$((n + 2))" --no-python bash -c "$worker" 2>"said.$n" &
    agents[n]=$!
}
await_round() { # await_round RESTARTS: both workers have started in one round; sets round, pids[rank]
    local i r rank world restarts pid
    for i in 1 2; do
        read -r -t 180 -u 3 r rank world restarts pid || fail 'a worker did not start'
        [ "$world $restarts" = "2 $1" ] || fail "round $r: world size $world, $restarts restarts; not 2, $1"
        [ $i = 1 ] || [ "$round" = "$r" ] || fail "rounds $round and $r mixed"
        round=$r pids[rank]=$pid
    done
}
kill_leader() { # which is lost then; on a busy machine another may have been elected meanwhile
    local word last
    while read -r -t 0 -u 5; do
        read -r -u 5 word last
        [ "$word" = leader ] && leader=$last
    done
    lost=$leader
    kill -KILL "${etcd[lost]}"
    wait "${etcd[lost]}" 2>/dev/null
}
# The one begins with the leader, the other ends with it.
agent 0 "$leader" $(((leader + 1) % 3)) $(((leader + 2) % 3))
agent 1 $(((leader + 1) % 3)) $(((leader + 2) % 3)) "$leader"
await_round 0
first=$round

# While the workers run: who is asked next has no leader for a while, and knows no revision of before.
control --endpoints "$(client "$leader")" get x -w fields >revision
control --endpoints "$(client "$leader")" compact --physical "$(awk '/"Revision"/ {print $3}' revision)" >/dev/null
kill_leader
await leader 1
member "$lost"
await ready 1
read -r -t 0 -u 3 && fail 'a worker was started when the first leader was lost'
for pid in "${pids[@]}"; do kill -0 "$pid" || fail 'a worker was ended when the first leader was lost'; done

# In the moment in which a worker dies.
kill_leader
kill -KILL "${pids[1]}"
await_round 1
await leader 1
((round == first + 1)) || fail "round $round came after round $first"
echo "go
go" >&4
for i in 0 1; do
    wait "${agents[i]}"
    rc=$?
    [ $rc = 0 ] || fail "agent $i: exit code $rc"
done
exit 0
