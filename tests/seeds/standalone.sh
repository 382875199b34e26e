#!/usr/bin/env bash
# S1: one node, its store beside it: --standalone --nnodes=1 --nproc_per_node=4 SCRIPT ARGUMENTS. Every worker has
# the environment that the seed's manual names, and when k <= n of them fail all are stopped and started again, and train to the
# model of one process.
set -u
PATH=$(cd "$BIN" && pwd):$PATH
run=$(command -v rankrun)
cd "$TMPDIR" || exit 1
bad=0
fail() {
    echo "$*"
    cat said
    bad=1
}
cat >script <<'END'
for name in LOCAL_RANK RANK GROUP_RANK ROLE_RANK LOCAL_WORLD_SIZE WORLD_SIZE ROLE_WORLD_SIZE GROUP_WORLD_SIZE \
    TORCHELASTIC_RESTART_COUNT TORCHELASTIC_MAX_RESTARTS; do
    eval "echo $name \${$name-is not set}"
done >"worker.$RANK"
echo "$MASTER_ADDR $MASTER_PORT $TORCHELASTIC_RUN_ID $ROLE_NAME $1" >"master.$RANK"
exec ranktrain --steps=3 --log-every=0
END
model=$(ranktrain --steps=3 --log-every=0 | grep '^model ')
timeout 300 "$run" --standalone --nnodes=1 --nproc_per_node=4 bash script --arg1 >said 2>&1 || fail 'standalone'
grep -qxF "$model" said && grep -q '^world 4, ' said || fail "standalone: not $model"
for rank in 0 1 2 3; do
    [ "$(cat worker.$rank)" = "LOCAL_RANK $rank
RANK $rank
GROUP_RANK 0
ROLE_RANK $rank
LOCAL_WORLD_SIZE 4
WORLD_SIZE 4
ROLE_WORLD_SIZE 4
GROUP_WORLD_SIZE 1
TORCHELASTIC_RESTART_COUNT 0
TORCHELASTIC_MAX_RESTARTS 0" ] || fail "rank $rank: $(cat worker.$rank)"
    cmp -s master.0 master.$rank || fail "rank $rank: $(cat master.$rank)"
done
read -r address port id role argument <master.0
getent ahosts "$address" >resolved || fail "MASTER_ADDR $address does not resolve"
((port > 0)) && [ -n "$id" ] && [ "$role$argument" = default--arg1 ] || fail "$(cat master.0)"

for failing in 1 2 4; do
    rm -f starts
    timeout 300 "$run" --standalone --nproc_per_node=4 --max_restarts=1 bash -c \
        'echo "$RANK $TORCHELASTIC_RESTART_COUNT" >>starts
         [ $TORCHELASTIC_RESTART_COUNT = 0 ] && [ $RANK -lt '$failing' ] && exit 1
         exec ranktrain --steps=3 --log-every=0 --collective-timeout=1000' >said 2>&1 || fail "$failing of 4 fail"
    grep -qxF "$model" said || fail "$failing of 4 fail: not $model"
    [ "$(grep ' 1$' starts | sort)" = "$(printf '%d 1\n' 0 1 2 3)" ] || fail "$failing of 4 fail: $(cat starts)"
done

# Several jobs side by side on one host, as torchrun's manual has them: two that are there at the same time.
mkfifo up.first up.second go
exec 3<>up.first 4<>up.second 5<>go
jobs=() ports=()
for job in first second; do
    timeout 300 "$run" --rdzv-backend=c10d --rdzv-endpoint=localhost:0 --nnodes=1 --nproc-per-node=2 bash -c \
        'echo "$WORLD_SIZE $MASTER_PORT" >up.'$job'; read -r word <go' >said.$job 2>&1 &
    jobs+=($!)
done
for fd in 3 4; do
    read -r -t 180 -u $fd world port && read -r -t 180 -u $fd _ same || fail "no workers: $(cat said.first said.second)"
    [ "$world" = 2 ] && [ "$port" = "$same" ] || fail "of several jobs one has world $world, ports $port and $same"
    ports+=("$port")
done
[ "${ports[0]}" != "${ports[1]}" ] || fail "two jobs have the port ${ports[0]}"
printf 'go\ngo\ngo\ngo\n' >&5
for pid in "${jobs[@]}"; do wait "$pid" || fail "one of several jobs ended $?: $(cat said.first said.second)"; done
exit $bad
