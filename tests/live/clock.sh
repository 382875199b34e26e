#!/usr/bin/env bash
# A wall clock that jumps by a day at each look, back and forth: no decision of rankrun or of its store follows it.
# A round forms, a killed worker restarts all, the job succeeds, and nobody was given up.
# deadline: 60 s
set -u
if ! command -v gcc >/dev/null; then
    echo 'no gcc on this host to build the clock with'
    exit 77
fi
if [ "$BUILD" != release ]; then
    echo 'instrumented programs take no clock before their own'
    exit 77
fi
run=$(cd "$BIN" && pwd)/rankrun
cd "$TMPDIR" || exit 1
fail() {
    echo "$*"
    cat said
    exit 1
}
cat >clock.c <<'END'
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int looks;

static int look(clockid_t id, struct timespec *ret) {
    int r = (int)syscall(SYS_clock_gettime, id, ret);
    if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)
        ret->tv_sec += __atomic_add_fetch(&looks, 1, __ATOMIC_RELAXED) & 1 ? 86400 : -86400;
    return r;
}
int clock_gettime(clockid_t id, struct timespec *ret) {
    return look(id, ret);
}
int gettimeofday(struct timeval *restrict ret, void *restrict zone) {
    struct timespec t;
    (void)zone;
    int r = look(CLOCK_REALTIME, &t);
    ret->tv_sec = t.tv_sec;
    ret->tv_usec = t.tv_nsec / 1000;
    return r;
}
time_t time(time_t *ret) {
    struct timespec t;
    look(CLOCK_REALTIME, &t);
    return ret ? *ret = t.tv_sec : t.tv_sec;
}
END
gcc -shared -fPIC -o clock.so clock.c || fail 'the clock was not built'
export LD_PRELOAD=$TMPDIR/clock.so
now=$(date +%s)
((now > EPOCHSECONDS + 80000 || now < EPOCHSECONDS - 80000)) || fail "the clock does not jump: $now"
cat >worker <<'END'
unset LD_PRELOAD
echo "$RANK of $WORLD_SIZE, $TORCHELASTIC_RESTART_COUNT" >>told
[ "$RANK$TORCHELASTIC_RESTART_COUNT" = 10 ] && kill -KILL $$
exit 0
END
exec 5< <(exec "$run" store --host=127.0.0.1 --port=0)
store=$!
trap 'kill $store 2>/dev/null' EXIT
read -r -t 180 -u 5 line
for k in 2 3; do
    "$run" --nnodes 2 --rdzv-backend embedded --rdzv-endpoint "127.0.0.1:${line##*:}" --local-addr 127.0.0.$k \
        --max-restarts 1 bash worker 2>>said &
    agents[k]=$!
done
for k in 2 3; do wait "${agents[k]}" || fail "agent $k: exit $?"; done
[ "$(grep -c 'of 2, 1$' told)" = 2 ] || fail "told: $(cat told)"
grep -q 'does not answer\|has not answered\|given up' said && fail 'somebody was given up'
exit 0
