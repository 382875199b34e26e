#!/usr/bin/env bash
# What an etcd does in the middle of a job: it is compacted while it is away, it is killed and comes back with its
# data, it is killed and comes back without, it is full and fixed, it asks for a user all at once. Workers are ended
# by their fence, none costs a restart, and the job ends well. Each etcd is a real one.
# deadline: 300 s
set -u
. tests/live/etcd.bash
need_program etcdctl etcd-client
. tests/live/patience.bash
BIN=$(realpath "$BIN")
cd "$TMPDIR" || exit 1
export ETCDCTL_API=3 EVENTS=$TMPDIR/events
mkfifo events go said
exec 3<>events 4<>go 5<>said
# Below the ephemeral range; by this shell's pid, so that two runs do not meet.
port=$((20000 + $$ % 5000 * 2))
store=127.0.0.1:$port
etcd='' agents=()
fail() {
    echo "FAILED: $*"
    tail -n 20 said.* 2>/dev/null
    exit 1
}
finish() {
    kill -KILL ${etcd:+"$etcd"} "${agents[@]}" 2>/dev/null
    wait
}
trap finish EXIT

serve() { # serve DIR [OPTION...]
    begin_etcd "http://$store" "$1" --bcrypt-cost 4 "${@:2}" || fail 'no etcd'
}
kill_etcd() {
    kill -KILL "$etcd"
    wait "$etcd" 2>/dev/null
    etcd=''
}
control() { etcdctl --endpoints "$store" --dial-timeout 60s --command-timeout 60s "$@" >said.etcdctl 2>&1 || fail "etcdctl $*"; }

# A worker says that it runs, and waits for a word or its end.
# shellcheck disable=SC2016 # the worker's
worker='echo "$RANKRUN_ROUND $RANK $WORLD_SIZE $TORCHELASTIC_RESTART_COUNT $BASHPID" >"$EVENTS" && read -r _ <go'
begin_job() {
    while read -r -t 0 -u 3; do read -r -u 3 _; done # of the job before, when its agents were slow
    for n in 0 1; do
        "$BIN/rankrun" --nnodes 2 --max-restarts 0 --rdzv-backend etcd-v3 --rdzv-endpoint "$store" --rdzv-id "$1" \
            --rdzv-conf $watchful --local-addr "127.0.0.$((n + 2))" --no-python bash -c "$worker" 2>"said.$n" &
        agents[n]=$!
    done
    round=0
    await_round
}
# Both workers have started in one later round, and no restart is spent. An agent that is slow to come back may find
# the other ahead of it: then that round begins anew.
await_round() {
    local seen=0 r rank world restarts pid before=$round
    while ((seen < 2)); do
        read -r -t 60 -u 3 r rank world restarts pid || fail 'a worker did not start'
        [ "$world $restarts" = '2 0' ] || fail "round $r: world size $world, $restarts restarts; not 2, 0"
        ((r > before && r >= round)) || fail "round $r came after round $round"
        ((r == round ? (seen += 1) : (seen = 1)))
        round=$r pids[rank]=$pid
    done
}
await_fence() { # the workers of this round are dead: their ends of the FIFO are the shell's children no more
    for pid in "${pids[@]}"; do timeout 60 tail -s 0.02 --pid="$pid" -f /dev/null || fail 'a worker lives without a store'; done
}
end_job() {
    echo "go
go" >&4
    for n in 0 1; do
        wait "${agents[n]}"
        local rc=$?
        [ $rc = 0 ] || fail "$1, agent $n: exit code $rc"
    done
    grep -qF "$2" said.0 said.1 || fail "$1: '$2' is not told"
}

serve data
begin_job data
kill_etcd
await_fence
serve data
control get x -w fields
control compact --physical "$(awk '/"Revision"/ {print $3}' said.etcdctl)"
await_round
end_job 'etcd came back compacted' 'has not answered'

begin_job empty
kill_etcd
await_fence
serve other
await_round
end_job 'etcd came back without its data' 'has not answered'

begin_job user
control user add root:root
control user grant-role root root
control auth enable
await_fence
control --user root:root auth disable
await_round
end_job 'etcd asked for a user' 'give --rdzv-conf user=NAME,password_file=FILE'
kill_etcd

# Full: every write is refused, until somebody fixes it.
serve small --quota-backend-bytes $((16 << 20))
begin_job full
head -c 1000000 /dev/zero | tr '\0' x >big
while etcdctl --endpoints "$store" put key <big >said.etcdctl 2>&1; do :; done
grep -q 'database space exceeded' said.etcdctl || fail 'etcd is not full'
await_fence
control get x -w fields
control compact --physical "$(awk '/"Revision"/ {print $3}' said.etcdctl)"
control defrag
control alarm disarm
await_round
end_job 'etcd was full' 'compact, defrag and alarm disarm with etcdctl'
exit 0
