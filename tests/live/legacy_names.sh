#!/usr/bin/env bash
# On torchelastic's etcd rendezvous the master is the full name of rank 0's host where every node knows that name, and
# its address where one of them does not. The nodes are processes with host names and hosts files of their own.
# deadline: 60 s
set -u
. tests/live/etcd.bash
if [ -z "${INSIDE-}" ]; then
    INSIDE=1 unshare -Urnmu true 2>/dev/null || { echo 'no namespaces of its own here: host names cannot be given'; exit 77; }
    exec env INSIDE=1 unshare -Urnmu bash "$0"
fi
run=$(cd "$BIN" && pwd)/rankrun
cd "$TMPDIR" || exit 1
fail() {
    echo "$*"
    cat said told
    exit 1
}
trap 'kill "$etcd" 2>/dev/null' EXIT
ip link set lo up && ip address add 10.9.0.1/32 dev lo || exit 1
begin_etcd http://10.9.0.1:2379 data --enable-v2 || exit 1
for name in n0 n1; do
    printf '127.0.0.1 localhost\n10.9.0.1 %s.example %s\n' $name $name >$name.hosts
done
cat n0.hosts n1.hosts >all.hosts

node() { # node NAME HOSTS JOB: one agent of two
    unshare -um bash -c 'hostname "$1" && mount --bind "$2" /etc/hosts && exec timeout 300 "$4" --compat torchelastic \
        --nnodes=2 --nproc_per_node=1 --rdzv_id="$3" --rdzv_endpoint=10.9.0.1:2379 --no-python sh -c \
        "echo \"\$RANK \$(hostname) \$MASTER_ADDR\" >>told"' node "$1" "$2" "$3" "$run" 2>>said &
    agents+=($!)
}
both() { # both JOB HOSTS HOSTS: sets name, of rank 0's host, and masters
    local k
    agents=()
    : >told
    : >said
    node n0 "$2" "$1"
    node n1 "$3" "$1"
    for k in 0 1; do wait "${agents[k]}" || fail "$1: exit $?"; done
    name=$(awk '$1 == 0 { print $2 }' told)
    masters=$(awk '{ print $3 }' told | sort -u)
    [ "$(wc -l <told)" = 2 ] || fail "$1: not two workers"
}
both known all.hosts all.hosts
[ "$masters" = "$name.example" ] || fail "all know $name.example, and the master is $masters"
both unknown n0.hosts n1.hosts
[ "$masters" = 10.9.0.1 ] || fail "each knows only itself, and the master is $masters"
exit 0
