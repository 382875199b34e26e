#!/usr/bin/env bash
# Nodes of one job with two ids wait for each other for ever: each agent is told of the other run, once. A job
# whose nodes have come hears nothing, and neither does one beside which another trains.
# deadline: 120 s
set -u
. tests/live/patience.bash
run=$(cd "$BIN" && pwd)/rankrun
cd "$TMPDIR" || exit 1
bad=0
fail() {
    echo "$*"
    tail -n 20 said.*
    bad=1
}
port=$((20000 + $$ % 10000))
mkfifo alpha beta
exec 3<>alpha 4<>beta
agent() { # agent ID NNODES COMMAND...: what it says goes into the pipe of its id
    "$run" --nnodes="$2" --rdzv-backend=embedded --rdzv-endpoint="127.0.0.1:$port" --rdzv-id="$1" \
        --rdzv-conf=hb=100ms,fence=1300ms,hard=1400ms,suspect=1600ms --no-python "${@:3}" &
    agents+=($!)
}
hears() { # hears FD FILE TEXT
    local line
    while read -r -t 180 -u "$1" line; do
        echo "$line" >>"$2"
        [[ $line == *"$3"* ]] && return 0
    done
    fail "$2 never said: $3"
}
agents=()
agent alpha 2 true 2>alpha
hears 3 said.alpha '1 of 2 nodes is here'
agent beta 2 true 2>beta
hears 4 said.beta 'another run waits in this store: "alpha", with 1 node; did you mean its id (--rdzv-id)?'
hears 3 said.alpha 'another run waits in this store: "beta", with 1 node; did you mean its id (--rdzv-id)?'
# With the right id both nodes of alpha are there; beta waits on, and hears nothing more.
agent alpha 2 true 2>said.second
wait "${agents[0]}" || fail 'the job that was waited for did not end well'
wait "${agents[2]}" || fail 'the node that came did not end well'
kill "${agents[1]}"
wait "${agents[1]}"
exec 3>&- 4>&-
[ "$(grep -c 'another run' said.alpha)" = 1 ] || fail 'alpha was told more than once'
grep -q 'another run' said.second && fail 'who met at once was told'
exit $bad
