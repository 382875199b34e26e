#!/usr/bin/env bash
# TORCHELASTIC_ERROR_FILE of the agent itself: what the worker that failed first left in its own is handed on there, on
# its own node alone; and all nodes name that worker, whatever their clocks say.
# deadline: 60 s
set -u
run=$(cd "$BIN" && pwd)/rankrun
cd "$TMPDIR" || exit 1
bad=0
fail() {
    echo "$*"
    bad=1
}
cat >worker <<'END'
leave() { echo "{\"message\": {\"message\": \"E: $1\", \"extraInfo\": {\"timestamp\": \"17\"}}}" >"$TORCHELASTIC_ERROR_FILE"; }
trap 'leave "of rank $RANK, a victim"; exit 7' TERM
if [ "$RANK" = 0 ]; then
    read -r _ <up
    leave "of rank 0, restart $TORCHELASTIC_RESTART_COUNT"
    kill -SEGV $$
fi
[ "$RANK" != 1 ] || echo up >up
read -r _ <never
END
mkfifo up never
exec 5<>never
TORCHELASTIC_ERROR_FILE=alone.json timeout 300 "$run" --nproc-per-node 2 --max-restarts 1 bash worker 2>said
[ $? = 1 ] || fail "one node: $(cat said)"
grep -qx '{"message":{"message":"E: of rank 0, restart 1","extraInfo":{"timestamp":"17"},"errorCode":-11}}' alone.json ||
    fail "one node: $(cat said alone.json)"
TORCHELASTIC_ERROR_FILE=none.json timeout 300 "$run" sh -c 'exit 3' 2>said
[ ! -e none.json ] || fail "a worker without an error file: $(cat none.json)"
grep -q 'first failure of round 1: node .*, rank 0, pid ' said || fail "without restarts, too, the round is named: $(cat said)"
TORCHELASTIC_ERROR_FILE=/nowhere/mine.json timeout 300 "$run" bash -c 'echo "{}" >"$TORCHELASTIC_ERROR_FILE"; exit 3' 2>said
[ $? = 1 ] && grep -q 'is not handed on: .*/nowhere/' said || fail "a folder that is not there: $(cat said)"

# On one node: who raised the error is still busy with its end when the one that waited for it has ended of that.
cat >slow <<'END'
if [ "$RANK" = 1 ]; then
    trap 'exit 5' TERM
    echo '{"message": {"message": "ValueError: the cause"}}' >"$TORCHELASTIC_ERROR_FILE"
    echo "$TORCHELASTIC_ERROR_FILE" >up
    read -r _ <never
fi
read -r other <up
until [ "$TORCHELASTIC_ERROR_FILE" -nt "$other" ]; do # the kernel's tick is coarse
    echo '{"message": "ConnectionError: of the other"}' >"$TORCHELASTIC_ERROR_FILE"
done
exit 1
END
TORCHELASTIC_ERROR_FILE=cause.json timeout 300 "$run" --nproc-per-node 2 bash slow 2>said
[ $? = 1 ] && grep -q 'failed: rank 0 .*: local rank 1 had failed before: ValueError: the cause; then here: ConnectionError' said ||
    fail "who failed before is not named: $(cat said)"
grep -qx '{"message":{"message":"ValueError: the cause","errorCode":5}}' cause.json || fail "the cause: $(cat cause.json)"

# Two nodes: the clock of the one whose workers are victims is a day behind, as far as a clock can be built here.
cat >clock.c <<'END'
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *ret) {
    int r = (int)syscall(SYS_clock_gettime, id, ret);
    ret->tv_sec -= id == CLOCK_REALTIME ? 86400 : 0;
    return r;
}
END
clock=
[ "$BUILD" != release ] || ! gcc -shared -fPIC -o clock.so clock.c 2>/dev/null || clock=$TMPDIR/clock.so
exec 6< <(exec "$run" store --host=127.0.0.1 --port=0)
store=$!
trap 'kill $store 2>/dev/null' EXIT
read -r -t 180 -u 6 line
for k in 2 3; do
    [ $k = 2 ] || export LD_PRELOAD=$clock
    TORCHELASTIC_ERROR_FILE=node$k.json timeout 300 "$run" --nnodes 2 --rdzv-endpoint "127.0.0.1:${line##*:}" \
        --local-addr 127.0.0.$k bash worker 2>said.$k &
    agents[k]=$!
done
unset LD_PRELOAD
for k in 2 3; do
    wait "${agents[k]}"
    [ $? = 1 ] || fail "node $k: $(cat said.$k)"
    grep -q 'failed: rank 0 .*E: of rank 0, restart 0' said.$k || fail "node $k names another: $(cat said.$k)"
done
grep -q '"E: of rank 0, restart 0",.*"errorCode":-11' node[23].json || fail 'the first failure is not handed on'
[ "$(ls node[23].json | wc -l)" = 1 ] || fail "a victim's error file was handed on: $(cat node[23].json)"
exit $bad
