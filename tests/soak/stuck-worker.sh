#!/usr/bin/env bash
# A worker in state D: SIGKILL does not end it, as the server of a file system has read its request and says nothing
# more. Its agent ends with 1 and says so, the other node goes on without it, and nothing is left once the file
# system is gone.
# deadline: 120 s
set -u
run=$(realpath "$BIN/rankrun")
stuck=$(realpath "${OUT:-build/release}/tests/live/spawn_stuck")
cd "$TMPDIR" || exit 1
mkdir mounted
mkfifo silence said go
exec 4<>silence 5<>said 6<>go
fail() {
    echo "$*"
    tail -n 20 here there
    exec 4>&-
    kill ${here-} ${there-} ${store-}
    exit 1
}
"$stuck" mounted <silence 4>&- >said 5>&- 6>&- &
server=$!
read -r -t 20 word <&5 || fail 'the file system says nothing'
if [ "$word" != ready ]; then
    echo "$word"
    wait "$server"
    exit $?
fi

cat >worker <<'EOF'
#!/bin/sh
# In the round of both: one node looks for a name that never comes, the other one fails when it is told to.
[ "$WORLD_SIZE" = 1 ] && exit 0
echo $$ >"worker-$NODE"
[ "$NODE" = there ] && exec cat mounted/name
read -r _ <go
exit 3
EOF
chmod +x worker
exec 7< <(exec "$run" store --host=127.0.0.1 --port=0 4>&- 5>&- 6>&-)
store=$!
read -r -t 20 line <&7 || fail 'the store says nothing'
agent() { # agent NODE, as its own process
    NODE=$1 exec timeout -k 5 90 "$run" --nnodes 1:2 --rdzv-id stuck --rdzv-backend embedded \
        --rdzv-endpoint "127.0.0.1:${line##*:}" --rdzv-conf profile=fast,stop_timeout=500ms,last_call_timeout=10 \
        --max-restarts 1 --no-python ./worker >"$1" 2>&1 4>&- 5>&- 6>&-
}
agent here &
here=$!
agent there &
there=$!
read -r -t 30 word <&5 || fail 'nobody has asked for the name'
echo >&6
wait "$there"
code=$?
[ "$code" = 1 ] || fail "the agent of the stuck worker ends with $code, not 1"
grep -q 'a worker cannot be killed (in state D?): this agent ends without a word' there ||
    fail 'the agent of the stuck worker does not say what is the matter'
state=$(sed 's/.*) //; s/ .*//' "/proc/$(cat worker-there)/stat") || fail 'the worker is gone: it was not stuck'
[ "$state" = D ] || fail "the worker is in state $state, not D"
wait "$here"
code=$?
[ "$code" = 0 ] || fail "the other node ends with $code: it did not go on alone"
exec 4>&-
kill "$store"
wait "$server" "$store"
timeout 20 tail --pid="$(cat worker-there)" -f /dev/null || fail 'the worker is still there'
grep -q " $TMPDIR/mounted " /proc/mounts && fail 'the file system is still mounted'
echo 'a worker in state D: its agent ended with 1 after its time, the other node went on'
