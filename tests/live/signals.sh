#!/usr/bin/env bash
# Signals to an agent in every phase of its life: those to leave on end it with 128 + n and its workers before
# it, the users' own are the workers', and neither ever stalls it.
# deadline: 120 s
set -u
run=$(cd "$BIN" && pwd)/rankrun
cd "$TMPDIR" || exit 1
bad=0
fail() {
    echo "$*"
    cat heard
    bad=1
}
: >heard
mkfifo said up end
exec 3<>said 4<>up
await() { # await WHAT: a line on the agent's stderr or from a worker
    local line fd=$1
    while read -r -t 180 -u "$fd" line; do
        echo "$line" >>heard
        [[ $line == *"$2"* ]] && return 0
    done
    fail "waited for: $2"
    return 1
}
# What a shell starts beside it has SIGINT and SIGQUIT ignored, and an agent leaves that as it is.
agent() { # agent OPTION...
    env --default-signal=INT,QUIT "$run" "$@" 2>said &
    agent=$!
}
ends() { # ends PID CODE PHASE
    wait "$1"
    local rc=$?
    [ $rc = "$2" ] || fail "$3: exit $rc, not $2"
    kill -0 "$1" 2>/dev/null && fail "$3: it is left"
}
cat >worker <<'END'
trap 'echo "user 1" >up' USR1
trap 'echo "user 2" >up' USR2
trap 'echo "told to stop" >up; [ -z "${STUBBORN-}" ] && exit 0' TERM INT HUP QUIT
echo "runs $RANK" >up
while :; do
    sleep 1000 &
    wait $!
done
END
cat >done <<'END'
if [ "$GROUP_RANK" = 0 ]; then
    echo "$AGENT" >done.is
    exit 0
fi
echo waits >up
read -r _ <end
END
watch() { # watch RUN: what its keys become from now on, by the store's own protocol
    local range
    range=$(printf '{"create_request":{"key":"%s","range_end":"%s"}}' "$(printf "/rankrun/$1/" | base64 -w 0)" \
        "$(printf '/rankrun/%s0' "$1" | base64 -w 0)")
    exec 8<>"/dev/tcp/127.0.0.1/${endpoint##*:}"
    printf 'POST /v3/watch HTTP/1.1\r\nHost: store\r\nContent-Length: %d\r\n\r\n%s' ${#range} "$range" >&8
    until [[ $line == *'"created":true'* ]]; do
        read -r -t 180 -u 8 line || return
    done
}
await_key() { # await_key PART
    local line key
    while read -r -t 180 -u 8 line; do
        for key in $(grep -o '"key":"[^"]*"' <<<"$line" | cut -d'"' -f4); do
            [[ $(base64 -d <<<"$key") == *"$1"* ]] && return
        done
    done
    fail "no key with $1"
}
exec 5< <(exec "$run" store --host=127.0.0.1 --port=0)
store=$!
trap 'kill $store 2>/dev/null' EXIT
read -r -t 180 -u 5 line
endpoint=127.0.0.1:${line##*:}

numbers='TERM 15
INT 2
HUP 1
QUIT 3'
while read -r name number; do
    # Nobody answers.
    agent --rdzv-backend embedded --rdzv-endpoint 192.0.2.1:1 --nnodes 2 --rdzv-id join true
    await 3 'does not answer yet' && kill -USR1 $agent && kill -USR2 $agent
    kill -$name $agent
    ends $agent $((128 + number)) "joining, $name"

    # Too few have come, then enough but more may.
    for nodes in 2 1:2; do
        agent --rdzv-backend embedded --rdzv-endpoint "$endpoint" --nnodes $nodes --rdzv-id wait-$name-$nodes \
            bash worker
        await 3 '1 of ' && kill -USR1 $agent && kill -USR2 $agent
        kill -$name $agent
        ends $agent $((128 + number)) "last call of $nodes, $name"
    done

    # Workers run.
    agent --standalone bash worker
    await 4 'runs 0' && kill -USR1 $agent && await 4 'user 1' && kill -USR2 $agent && await 4 'user 2'
    kill -$name $agent
    await 4 'told to stop'
    ends $agent $((128 + number)) "running, $name"

    # Workers are being stopped and take their time: a second signal neither lengthens it nor cuts the agent off
    # from them.
    STUBBORN=1 agent --standalone --shutdown-timeout 2s bash worker
    await 4 'runs 0' && kill -$name $agent && await 4 'told to stop'
    kill -USR1 $agent && await 4 'user 1'
    kill -$name $agent
    ends $agent $((128 + number)) "stopping, $name"

    # Its own workers are done, which the store has heard, and those of another are not: the job goes on
    # without it.
    watch "barrier-$name"
    agents=()
    for k in 0 1; do
        AGENT=$k agent --rdzv-backend embedded --rdzv-endpoint "$endpoint" --nnodes 2 --rdzv-id "barrier-$name" \
            --local-addr 127.0.0.$((k + 2)) bash done
        agents[k]=$agent
    done
    await 4 'waits' && await_key /done/ && read -r done <done.is
    kill -USR1 "${agents[done]}"
    kill -$name "${agents[done]}"
    ends "${agents[done]}" $((128 + number)) "in the barrier, $name"
    echo >end
    ends "${agents[1 - done]}" 0 "the other in the barrier, $name"
done <<<"$numbers"
exit $bad
