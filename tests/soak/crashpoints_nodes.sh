#!/usr/bin/env bash
# crashpoints of a scenario on two nodes: nothing is found in a saver whose nodes wait for each other, a commit before the
# peer's part is found as the death of one node while the other goes on, and a job that does not start where there is
# something is said to be one. As this user and as an ordinary one, in namespaces and on processes. tests/live/crashpoints.sh and
# tests/live/crashpoints_nodes.sh kill it in the middle.
# deadline: 600 s
set -u
dir=$TMPDIR/crashpoints_nodes
mkdir "$dir" && cp -R "$(realpath "$BIN")" "$dir/bin" && cp "$OUT/tests/harness/crash/spawn_node_saver" "$dir/saver" || exit 1
chmod a+x "$TMPDIR" && chmod -R a+rX "$dir" || exit 1
. tests/live/says.bash
export NO_COLOR=1 XDG_CACHE_HOME=$dir/desk/cache
mkdir -m 1777 "$dir/desk" && cd "$dir/desk" || exit 1
for variant in good early stubborn; do
    cat >$variant.yaml <<END
cluster: {nodes: 2}
job:
  nnodes: 2
  run: [$dir/saver, "{shared}", "{disk}", $variant]
  checkpoint: {max_states: ${STATES:-20}}
END
done
tries() { # tries WHO ISOLATION [AS...]
    local own=("${@:3}" "$dir/bin/rankquake" crashpoints --isolation "$2")
    says 0 'nothing was found' "$1, $2: good" "${own[@]}" good.yaml
    says 1 '^ *what .*(shared/latest|part.bin)' "$1, $2: early" "${own[@]}" early.yaml
    [ "$2" = processes ] || grep -qE 'the death of rank [01] on n[01] before its' "$dir/said" ||
        fail "$1, $2: not found: the death of one, while the other goes on"
    says 2 'does not resume by itself' "$1, $2: stubborn" "${own[@]}" stubborn.yaml
    [ "$2" = processes ] || grep -q 'it is there already' "$dir/said" || fail "$1, $2: its last lines are not said"
}
tries 'this user' namespaces
tries 'this user' processes
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    for kind in namespaces processes; do
        rm -rf runs cache
        tries 'an ordinary user' $kind setpriv --reuid=65534 --regid=65534 --clear-groups
    done
fi
exit $bad
