#!/usr/bin/env bash
# Agents of newer torchruns and of rankrun as one job over torchelastic's legacy etcd rendezvous: each torchrun of
# the trees that ci/peers builds, as the first and as the second, with a worker that fails on either side.
# What the workers print is compared; the exit barrier may hold nobody for its 300 s.
# deadline: 1200 s
set -u
trees=${PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/rankquake/peers}
. tests/live/etcd.bash
if [ "$(id -u)" != 0 ] || ! ls "$trees"/*/usr/bin/python3 >/dev/null 2>&1; then
    echo "no tree with a torchrun, or not root: sudo ci/peers builds them in $trees"
    exit 77
fi
rankrun=$(realpath "$BIN/rankrun")
cd "$TMPDIR" || exit 1
mkfifo events
exec 3<>events
started=()
export OMP_NUM_THREADS=1
host=127.0.0.1

fail() {
    echo "FAILED: $*"
    tail -n 30 said-*
    exit 1
}
trap 'for pid in "${started[@]}"; do kill -KILL -- "-$pid" "$pid" 2>/dev/null; done; wait 2>/dev/null' EXIT

# Ends when told to, or, of who is to fail, at once in its first life.
cat >worker <<'END'
echo "$1 $RANK $WORLD_SIZE $GROUP_RANK $ROLE_RANK $ROLE_WORLD_SIZE $TORCHELASTIC_RESTART_COUNT $MASTER_ADDR:$MASTER_PORT" >"$3/events"
if [ "$1" = "$2" ] && [ "$TORCHELASTIC_RESTART_COUNT" = 0 ]; then
    exit 3
fi
read -r line <"$3/end"
END

port=$((20000 + $$ % 5000 * 2))
begin_etcd "http://$host:$port" "$TMPDIR/etcd" --enable-v2 || fail 'no etcd'
started+=("$etcd")

torchrun() { # torchrun TREE OPTION...: with this folder at /mnt
    unshare -m sh -c 't=$1 dir=$2; shift 2
        mount --bind "$dir" "$t/mnt" && mount --rbind /proc "$t/proc" && mount --rbind /dev "$t/dev" &&
            mount -t tmpfs none "$t/tmp" && exec chroot "$t" /usr/bin/python3 -m torch.distributed.run "$@"' \
        sh "$trees/$1" "$TMPDIR" "${@:2}" --no_python sh /mnt/worker torchrun "$fails" /mnt
}

agent() { # agent TREE|rankrun: sets agent
    local options=(--nnodes=2 --max_restarts=1 --rdzv_backend=etcd --rdzv_endpoint="$host:$port" --rdzv_id="$run"
        --local_addr="$host")
    set -m
    if [ "$1" = rankrun ]; then
        "$rankrun" "${options[@]}" --nproc_per_node=2 --no_python sh worker rankrun "$fails" "$TMPDIR" >>"said-$run" 2>&1 &
    else
        torchrun "$1" "${options[@]}" >>"said-$run" 2>&1 &
    fi
    agent=$!
    set +m
    started+=("$agent")
}

# joined TREE: somebody has; asked by a Python that has a client of etcd.
joined() {
    timeout 240 chroot "$trees/$1" /usr/bin/python3 - "$port" "$run" <<'END' || fail "$run: $1 did not join"
import json, sys
import etcd

client = etcd.Client(port=int(sys.argv[1]))
key, index = f"/torchelastic/p2p/run_{sys.argv[2]}/rdzv/active_version", None
while True:
    try:
        node = client.read(key) if index is None else client.read(key, wait=True, waitIndex=index, timeout=200)
        index = (node.etcd_index if index is None else node.modifiedIndex) + 1
        if node.value and json.loads(node.value).get("participants"):
            sys.exit(0)
    except etcd.EtcdKeyNotFound as e:
        index = e.payload["index"] + 1
END
}

await_round() {
    local n who rank world group role role_world count there master='' ranks=''
    for n in 1 2 3; do
        read -r -t 240 -u 3 who rank world group role role_world count there || fail "$run: worker $n did not start"
        [ "$world $role_world" = '3 3' ] || fail "$run: $who has world size $world, $role_world"
        [ "$role" = "$rank" ] || fail "$run: $who has rank $rank and role rank $role"
        [ "${master:=$there}" = "$there" ] || fail "$run: masters $master and $there"
        case $ranks in *" $rank "*) fail "$run: rank $rank twice" ;; esac
        ranks+=" $rank "
    done
}

try() { # try TREE FIRST SECOND FAILS
    local a b begin
    run=$1-$2-first-$4-fails fails=$4
    rm -f end
    mkfifo end
    agent "$2" && a=$agent
    joined "$1"
    agent "$3" && b=$agent
    await_round
    await_round
    begin=$SECONDS
    exec 5<>end
    printf '\n\n\n\n\n\n' >&5
    wait "$a" || fail "$run: $2 ended with $?"
    wait "$b" || fail "$run: $3 ended with $?"
    exec 5>&-
    ((SECONDS - begin < 120)) || fail "$run: the exit barrier held somebody"
    echo "$run: passed"
}

for tree in "$trees"/*; do
    tree=${tree##*/}
    [ "$tree" = bookworm ] && continue # the system's own is tried by legacy-mixed
    try "$tree" "$tree" rankrun rankrun
    try "$tree" rankrun "$tree" torchrun
done
exit 0
