#!/usr/bin/env bash
# The scenarios of the faults, each as root and as an ordinary user, on nodes in namespaces and on nodes that are processes: they
# pass, or are refused before anything is begun. As root in namespaces tests/live plays them. tests/live/rows.txt says what was shown.
# ONLY="user processes" and FILES="restart/worker-killed" play some of it.
# deadline: 7200 s
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/live/patience.bash
. tests/live/runs.bash
export XDG_CACHE_HOME=$dir/cache
desk=$dir/desk
mkdir "$desk" && cp -R "$BIN" "$desk/bin" && cp -R scenarios "$desk" && chmod a+x "$TMPDIR" && chmod -R a+rwX "$dir" || exit 1
here=$PWD
[ -z "${ONLY-}${FILES-}" ] || rows_script=some-of-it # the table says what all of it shows

# How quick it is, is not asked here.
sed -i '/_within:/d' "$desk"/scenarios/*/*.yaml

play() { # play ISOLATION FILE
    local run rc said=$dir/said
    rm -rf "$desk/out"
    (cd "$desk" && timeout 240 ${as[@]+"${as[@]}"} bin/rankquake run "scenarios/$2" --isolation "$1" --out out) >"$said" 2>&1 </dev/null
    rc=$?
    [ $rc != 4 ] || { echo "$1 $2, ${as:+ordinary }user: $(tail -n 1 "$said")"; return; }
    for run in "$desk"/out/*/; do rows_note "$run" $rc; done
    [ $rc = 0 ] || [ $rc = 2 ] && only_harness_was_late "$said" || [ $rc = 0 ] || fail "$2 on $1 by ${as:+an ordinary }user: exit $rc"
}
files=(
    restart/{worker-killed,worker-hangs,worker-signalled,worker-crashes,poor-worker,deaf-worker,thread-hangs,shell-child,slow-to-obey,hangs-and-goes-on,mixed-collectives,leaves-a-daemon}
    restart/{file-too-long,loader-killed,orphan-left,interpreter-held,weight-flipped,agent-killed}
    membership/{agent-hangs,agent-hung-up,node-killed,node-powered-off,node-leaves,node-joins,node-reboots,node-flaps}
    membership/{node-frozen,poor-node,node-preempted,rack-reclaimed} clock/{clock-jumps,clock-strobes,uptimes}
    store/{store-killed,store-slow,store-terminated,lease-lost,compacted,answers-lost,etcd-full,etcd-members-lost}
    network/{slow-link,poor-link,half-open,connections-reset,connections-refused,mtu-black-hole,silent-corruption,names-lost}
)
for who in 'root processes' 'user namespaces' 'user processes'; do
    as=()
    case $who in *"${ONLY-}"*) ;; *) continue ;; esac
    [ "$(id -u)" = 0 ] || [[ $who = user* ]] || continue
    [ "$(id -u)" != 0 ] || [[ $who = root* ]] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    for file in ${FILES:-${files[@]}}; do
        play "${who#* }" $file.yaml
    done
done
cd "$here" && exit $failed
