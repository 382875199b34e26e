#!/usr/bin/env bash
# Torchrun's static rendezvous: ranks, address and port are what the command lines say, in either
# order of start, also after a restart; what cannot be is said.
# deadline: 60 s
set -u
run=$BIN/rankrun
bad=0
fail() {
    echo "$*"
    bad=1
}
# A port of ours: the pair is asked for until both are free, which only the kernel can tell.
port=$(python3 - <<'END'
import socket
for first in range(21000, 60000, 7):
    try:
        pair = [socket.socket() for _ in range(2)]
        for k, s in enumerate(pair):
            s.bind(("", first + k))
    except OSError:
        continue
    print(first)
    break
END
)
node() { # node RANK COMMAND...
    local rank=$1
    shift
    timeout 300 "$run" --nnodes 2 --node-rank "$rank" --master-addr localhost --master-port "$port" \
        --nproc-per-node $((rank + 1)) --max-restarts 1 "$@"
}
cat >"$TMPDIR/worker.sh" <<'END'
echo "$GROUP_RANK/$LOCAL_RANK is $RANK of $WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT, $TORCHELASTIC_RESTART_COUNT"
[ "$RANK$TORCHELASTIC_RESTART_COUNT" != 20 ]
END
for first in 0 1; do
    node $first bash "$TMPDIR/worker.sh" >"$TMPDIR/said.$first" 2>"$TMPDIR/err.$first" &
    node $((1 - first)) bash "$TMPDIR/worker.sh" >"$TMPDIR/said.$((1 - first))" 2>"$TMPDIR/err.other"
    [ $? = 0 ] || fail "node $((1 - first)): $(cat "$TMPDIR/err.other")"
    wait $! || fail "node $first: $(cat "$TMPDIR/err.$first")"
    expected="0/0 is 0 of 3 at localhost:$port, 1
1/0 is 1 of 3 at localhost:$port, 1
1/1 is 2 of 3 at localhost:$port, 1"
    got=$(cat "$TMPDIR"/said.[01] | grep ', 1$' | sort)
    [ "$got" = "$expected" ] || fail "node $first first: $got"
done
[ "$("$run" --master-port "$port" sh -c 'echo $MASTER_ADDR:$MASTER_PORT' 2>&1)" = "127.0.0.1:$port" ] ||
    fail 'one node: not the port that was asked for'
node 2 true 2>&1 | grep -q 'node-rank 2: must be 0 to 1' || fail 'a rank that is none: not said'
exit $bad
