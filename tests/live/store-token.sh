#!/usr/bin/env bash
# A store with a token: who shows it is served, workers are not told it, and who does not show it is told what to do.
# Without one a store that other hosts can reach says so.
# deadline: 120 s
set -u
. tests/live/patience.bash
BIN=$(realpath "$BIN")
cd "$TMPDIR" || exit 1
store='' agents=()
fail() {
    echo "FAILED: $*"
    cat said* 2>/dev/null
    exit 1
}
# Its children, by what the kernel says: the number of one that has ended may be somebody else's by now.
finish() {
    kill -KILL $(cat /proc/$$/task/$$/children) 2>/dev/null
    wait
}
trap finish EXIT
serve() { # serve [OPTION...]: sets store and port
    exec 3< <(exec "$BIN/rankrun" store --port 0 "$@" 2>said.store)
    store=$!
    read -r -t 180 -u 3 line || fail 'the store did not start'
    port=${line##*:}
}
end_store() {
    kill -TERM "$store"
    cat <&3 >/dev/null # until it is gone
    store=''
}
agent() { # agent N PROGRAM...
    timeout 300 "$BIN/rankrun" --nnodes 2 --rdzv-endpoint "127.0.0.1:$port" --rdzv-id "$id" --local-addr "127.0.0.$1" \
        --rdzv-conf "$patient,join_timeout=30${conf-}" --no-python "${@:2}" >"said.$1" 2>&1
}

(umask 077 && echo 's3cret-of-this-job' >token)
serve --host 127.0.0.1 --token-file token
grep -q 'without a token' said.store && fail 'a store with a token says that it has none'
id=good
# shellcheck disable=SC2016 # the worker's
RANKRUN_STORE_TOKEN=s3cret-of-this-job agent 2 bash -c '[ -z "${RANKRUN_STORE_TOKEN-}" ]' &
agents=($!)
conf=,token_file=token agent 3 true || fail 'a token from a file'
wait "${agents[0]}" || fail 'a token from the variable'
status() { timeout 300 "$BIN/rankrun" status --rdzv-endpoint "127.0.0.1:$port" --rdzv-id good "$@" >said.status 2>&1; }
status --rdzv-conf token_file=token || fail 'the status of a job'
refused() { # refused FILE SENTENCE
    local rc=$?
    [ $rc = 69 ] || fail "exit code $rc, not 69"
    grep -qF -e "$2" "said.$1" || fail "'$2' is not told"
}
status
refused status 'this store wants a token: --rdzv-conf token_file=FILE'
id=bad conf=,join_timeout=2s agent 4 true
refused 4 'this store wants a token: --rdzv-conf token_file=FILE'
id=bad conf=,join_timeout=2s,token=guessed agent 5 true
refused 5 'the token is not the one that this store was given'
end_store

# Of one that an agent serves: it is the job's.
port=$((20000 + $$ % 10000)) id=hosted
export RANKRUN_STORE_TOKEN=of-the-job
agent 6 true &
agents=($!)
agent 7 true || fail 'a job whose agent serves the store'
wait "${agents[0]}" || fail 'the agent that serves the store'
unset RANKRUN_STORE_TOKEN

serve --host 0.0.0.0
grep -q "without a token everybody who reaches port $port" said.store || fail 'an open store does not say so'
end_store
serve --host 127.0.0.1
grep -q 'without a token' said.store && fail 'a store that only this host reaches says that it is open'
end_store
exit 0
