#!/usr/bin/env bash
# S1 1.5, 1.6, 1.16: the fixed and the elastic line of the seed's manual word for word, with etcd's v2 API:
# --nnodes=2 and --nnodes=1:4, --nproc_per_node, --rdzv_id, --rdzv_backend=etcd, --rdzv_endpoint=host:port; also by
# PET_* variables, as an operator that starts the same command on each node gives them, with etcd's v3 API, and by the line
# that names no --max_restarts: torchelastic's own default holds where it is asked for. Every job trains, to one model.
# deadline: 60 s
set -u
. tests/live/etcd.bash
PATH=$(cd "$BIN" && pwd):$PATH
run=$(command -v rankrun)
cd "$TMPDIR" || exit 1
fail() {
    echo "$*"
    cat said told
    exit 1
}
# Below the ephemeral range; by this shell's pid, so that two runs do not meet.
port=$((20000 + $$ % 2500 * 4 + 2))
trap 'kill "$etcd" 2>/dev/null' EXIT
begin_etcd "http://127.0.0.1:$port" data --enable-v2 || exit 1
cat >script <<'END'
echo "$RANK of $WORLD_SIZE, $GROUP_RANK of $GROUP_WORLD_SIZE, $TORCHELASTIC_RUN_ID $TORCHELASTIC_RESTART_COUNT $1" >>told
getent ahosts "$MASTER_ADDR" >/dev/null || echo "$MASTER_ADDR does not resolve" >>told
echo "$TORCHELASTIC_MAX_RESTARTS" >restarts
exec ranktrain --dataset=generated --steps=2 --log-every=0 >>trained
END
ranktrain --dataset=generated --steps=2 --log-every=0 >alone 2>said || fail 'alone'
model=$(grep '^model ' alone)
both() { # both WHAT EXPECTED COMMAND...: the same command on two nodes
    local agents=() k what=$1 expected=$2
    shift 2
    : >told
    : >trained
    for k in 1 2; do
        timeout 300 "$@" bash script --arg1 2>>said &
        agents+=($!)
    done
    for k in 0 1; do wait "${agents[k]}" || fail "$what, a node: exit $?"; done
    [ "$(sort told)" = "$expected" ] || fail "$what"
    [ "$(grep '^model ' trained)" = "$model" ] || fail "$what: $(cat trained), not $model"
}
four() { printf '%d of 4, %d of 2, %s 0 --arg1\n' 0 0 $1 1 0 $1 2 1 $1 3 1 $1; }
both 'fixed' "$(four fixed)" "$run" --nnodes=2 --nproc_per_node=2 --rdzv_id=fixed --rdzv_backend=etcd \
    --rdzv_endpoint="127.0.0.1:$port"
both 'elastic' "$(four elastic)" "$run" --nnodes=1:4 --nproc_per_node=2 --rdzv_id=elastic --rdzv_backend=etcd \
    --rdzv_endpoint="127.0.0.1:$port" --rdzv_conf=last_call_timeout=3
both 'elastic, v3' "$(four elastic3)" "$run" --nnodes=1:4 --nproc_per_node=2 --rdzv_id=elastic3 --rdzv_backend=etcd-v3 \
    --rdzv_endpoint="127.0.0.1:$port" --rdzv_conf=last_call_timeout=3
both 'fault tolerant' "$(four tolerant)" "$run" --compat torchelastic --nnodes=2 --nproc_per_node=2 --rdzv_id=tolerant \
    --rdzv_endpoint="127.0.0.1:$port"
[ "$(cat restarts)" = 3 ] || fail "fault tolerant: $(cat restarts) restarts"
both 'by variables' "$(four operator)" env PET_NNODES=2 PET_NPROC_PER_NODE=2 PET_RDZV_ID=operator \
    PET_RDZV_BACKEND=etcd PET_RDZV_ENDPOINT="127.0.0.1:$port" "$run"
exit 0
