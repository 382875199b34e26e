#!/usr/bin/env bash
# Nodes that die loudly, agents of one host each with a loopback address of its own: a node whose processes are
# all killed is given up long before suspect; one that only lost its guard, or was stopped, is not; a spare
# takes its place; a gang ends with it.
# deadline: 120 s
set -u
. tests/live/patience.bash
failed=0
port=$((20000 + RANDOM % 10000))
mkfifo "$TMPDIR/starts"
exec 9<>"$TMPDIR/starts"

: >"$TMPDIR/store"
"$BIN/rankrun" store --host 127.0.0.1 --port $port >>"$TMPDIR/store" 2>&1 9>&- &
store=$!
# Its children, by what the kernel says: the number of one that has ended may be somebody else's by now.
trap 'kill -KILL $(cat /proc/$$/task/$$/children) 2>/dev/null' EXIT
tail -n +1 -f --pid=$store "$TMPDIR/store" | grep -q -m 1 listening || exit 1

agent() { # agent NUMBER ID CONF [OPTION...]: says "ROUND WORLD NUMBER" for each of its workers; its pid in $pid
    local n=$1 id=$2 conf=$3
    shift 3
    "$BIN/rankrun" --rdzv-endpoint 127.0.0.1:$port --rdzv-id "$id" --local-addr "127.0.0.$n" --max-restarts 9 \
        --rdzv-conf "$conf" "$@" --no-python bash -c \
        "echo \$RANKRUN_ROUND \$WORLD_SIZE $n >$TMPDIR/starts; exec sleep 1000" 2>"$TMPDIR/agent-$id-$n" 9>&- &
    pid=$!
}

below() { # below PID: all that descends from it
    local child
    for child in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do
        echo "$child"
        below "$child"
    done
}

kill_node() { # kill_node PID: everything at once
    kill -KILL "$1" $(below "$1")
}

expect() { # expect SECONDS WHAT LINE...: these starts, in any order
    local seconds=$1 what=$2 got=() line
    shift 2
    while [ ${#got[@]} -lt $# ] && read -r -t "$seconds" -u 9 line; do got+=("$line"); done
    [ "$(printf '%s\n' "$@" | sort)" = "$(printf '%s\n' "${got[@]}" | sort)" ] && return
    echo "$what: expected the starts '$*', saw '${got[*]}'"
    cat "$TMPDIR"/agent-*
    failed=1
}

over() { # over PID...: ended by hand
    kill -TERM "$@" 2>/dev/null
    wait "$@" 2>/dev/null
}

# Its silence alone would tell after a minute.
agent 1 loud suspect=60s --nnodes 1:2; a=$pid
agent 2 loud suspect=60s --nnodes 1:2; b=$pid
expect 30 'two nodes' '1 2 1' '1 2 2'
guard=$(cat "/proc/$b/task/$b/children")
kill -KILL $guard
expect 30 'a guard was killed, no node' '2 2 1' '2 2 2'
kill_node $b
expect 30 'a node was killed' '3 1 1'
over $a $b

# The guard dies of its deadline after 1.6 s; the agent holds the lifeline, stopped as it is.
stopped='hb=300ms,fence=1500ms,hard=1600ms,suspect=3500ms'
agent 1 stopped $stopped --nnodes 1:2; a=$pid
agent 2 stopped $stopped --nnodes 1:2; b=$pid
expect 30 'two nodes' '1 2 1' '1 2 2'
begin=${EPOCHREALTIME/./}
kill -STOP $b $(below $b)
expect 30 'a node was stopped' '2 1 1'
[ $((${EPOCHREALTIME/./} - begin)) -ge 1900000 ] || { echo 'a stopped node was given up too early'; failed=1; }
kill -KILL $b
over $a $b

agent 1 spare $patient,last_call_timeout=100ms --nnodes 2:3; a=$pid
agent 2 spare $patient,last_call_timeout=100ms --nnodes 2:3; b=$pid
expect 30 'two members' '1 2 1' '1 2 2'
agent 3 spare $patient,last_call_timeout=100ms --nnodes 2:3 --standby; c=$pid
kill_node $b
expect 30 'a spare takes the place' '2 2 1' '2 2 3'
over $a $b $c

agent 1 gang $patient --nnodes 1:2 --on-node-loss gang; a=$pid
agent 2 gang $patient --nnodes 1:2 --on-node-loss gang; b=$pid
expect 30 'two of a gang' '1 2 1' '1 2 2'
kill_node $b
wait $a
[ $? = 1 ] && grep -q 'node 127.0.0.2 was lost or left' "$TMPDIR/agent-gang-1" || {
    echo 'a gang does not end with its node:'
    cat "$TMPDIR/agent-gang-1"
    failed=1
}
over $b
kill $store
wait $store
exit $failed
