#!/usr/bin/env bash
# What would go on for ever ends, with a sentence: a job whose workers kill their guard again and again, a guard that
# cannot live on this host, a node that is lost as often as it comes; and agents at a store that answers and is of no
# use: one that takes no write, shows nothing of what it took, or goes back to what it was (lying_store.py).
# deadline: 240 s
set -u
. tests/live/patience.bash
liar_py=$PWD/tests/live/lying_store.py
BIN=$(realpath "$BIN")
export XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-$TMPDIR}
cd "$TMPDIR" || exit 1
store='' liar='' agents=()

fail() {
    echo "FAILED: $*"
    tail -n 20 said* 2>/dev/null
    exit 1
}
# Its children, by what the kernel says: the number of one that has ended may be somebody else's by now.
finish() {
    kill -KILL $(cat /proc/$$/task/$$/children) 2>/dev/null
    wait
}
trap finish EXIT
ended() { # ended RC CODE SENTENCE
    [ "$1" = "$2" ] || fail "$what: exit code $1, not $2"
    grep -qE -e "$3" said || fail "$what: '$3' is not told"
}

# --- guards ---

cat >kills-guard <<'END'
#!/usr/bin/env bash
echo x >>rounds
kill -KILL $PPID
exec sleep 1000
END
chmod +x kills-guard
for restarts in 0 3; do
    for where in --standalone '--node-rank 0 --nnodes 1 --master-addr 127.0.0.1 --master-port '$((20000 + $$ % 10000)); do
        what="a killed guard, $restarts restarts, $where"
        : >rounds
        # shellcheck disable=SC2086
        timeout -k 5 300 "$BIN/rankrun" $where --max-restarts $restarts --no-python ./kills-guard >said 2>&1
        ended $? 1 "failed: node .*: the workers' guard \(pid [0-9]+\) was killed by signal 9"
        [ "$(wc -l <rounds)" = $((restarts + 1)) ] || fail "$what: $(wc -l <rounds) rounds"
    done
done

# A guard ends at once where it gets no timer. Root may queue as many signals as it likes, and is not tried.
if [ "$( (ulimit -i 0 && timeout 1 true) 2>&1)" ]; then
    what='a guard without a timer'
    (ulimit -i 0 && exec timeout -k 5 300 "$BIN/rankrun" --standalone --max-restarts 2 --no-python true) >said 2>&1
    ended $? 1 "the workers' guard \(pid [0-9]+\) exited with code 1"
fi

# --- stores ---

if ! command -v python3 >/dev/null; then
    echo 'python3 is missing, which the lying stores need'
    exit 77
fi
serve() { # serve: an honest store, and a liar before it: sets port
    exec 3< <(exec "$BIN/rankrun" store --host 127.0.0.1 --port 0 2>said.store)
    store=$!
    read -r -t 180 -u 3 line || fail 'the store did not start'
    echo honest >lies
    exec 4< <(exec python3 "$liar_py" "${line##*:}" lies 2>said.liar)
    liar=$!
    read -r -t 180 -u 4 port || fail 'the liar did not start'
}
agent() { # agent CONF PROGRAM...
    timeout -k 5 300 "$BIN/rankrun" --nnodes 1 --rdzv-backend etcd-v3 --rdzv-endpoint "127.0.0.1:$port" --rdzv-id "$id" \
        --rdzv-conf "$watchful,$1" --no-python "${@:2}" >said 2>&1
}
newcomer() { # newcomer ID LIE SENTENCE: it has not come into a run yet
    what="a newcomer, and a store with $2"
    echo "$2" >lies
    id=$1 agent join_timeout=3s,give_up=60s true
    ended $? 69 "$3"
    ended 69 69 "^rankrun: the store at 127.0.0.1:$port"
    echo honest >lies
}
member() { # member ID LIE SENTENCE: its workers run
    what="a member, and a store with $2"
    mkfifo "up.$1"
    # shellcheck disable=SC2016 # the worker's
    id=$1 agent give_up=2s,join_timeout=60s bash -c 'echo >"$0"; exec sleep 1000' "up.$1" &
    agents=($!)
    read -r -t 180 <>"up.$1" || fail "$what: no worker has started"
    echo "$2" >lies
    wait "${agents[0]}"
    ended $? 69 "$3"
    echo honest >lies
}

serve
newcomer n1 refuse-writes 'the store has taken no write for 3 s'
ended 69 69 'database space exceeded; etcd is full: compact, defrag and alarm disarm'
newcomer n2 refuse-writes-4xx 'the store has taken no write for 3 s'
newcomer n3 answers-base64 'a key or value is not base64'
newcomer n4 shows-nothing 'the store answers, but for 3 s this agent has not come into the run'
member m1 refuse-writes 'outcome unknown: the store has (not answered|taken no write) for 2 s'
member m2 refuse-writes-end-watches 'outcome unknown: the store has taken no write for 2 s'
member m3 'back 7' "the store at 127.0.0.1:$port says revision [0-9]+ after [0-9]+ of the same run"
exit 0
