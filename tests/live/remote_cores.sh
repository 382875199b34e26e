#!/usr/bin/env bash
# A worker on a host of its own dies with a core file, which its host writes into the run's directory: by a command on this machine, and
# by ssh as another user, who may write it and read nothing. What cannot be written is told with the host's name.
# deadline: 300 s
set -u
if [ -z "${CORES_OWN-}" ]; then # a host is one run's at a time: that of this script has a place of its own for its lock
    [[ $TMPDIR != /var/tmp/* ]] && unshare -m true 2>/dev/null || { echo "this host grants no mounts of one's own"; exit 77; }
    CORES_OWN=1 exec unshare -m --propagation private sh -c 'mount -t tmpfs -o mode=1777 tmpfs /var/tmp && exec "$0"' "$0"
fi
. tests/live/patience.bash
bin=${BIN:-build/bin} fails=0
fail() { echo "remote_cores: $*"; fails=$((fails + 1)); }
node="$(realpath "$bin/rankquake-node") --dead-man 34$$ms"
chmod 711 "$TMPDIR"
scenario() { # scenario NAME FAULT
    cat >"$TMPDIR/$1.yaml" <<YAML
scenario: $1
about: A worker dies by itself.
cluster: {nodes: 2}
job:
  nnodes: 2
  rdzv_conf: {hb: 1s, fence: 20s, hard: 21s, suspect: 23s}
  run: [ranktrain, --steps=40, --compute-ms=10, --checkpoint-every=10, --collective-timeout=60, "--checkpoint-dir={shared}/ckpt"]
timeline:
  - {id: f, when: {step: 25}, fault: $2, on: rank 1}
YAML
}
is_kept() { # is_kept NAME RC: a whole core, told in the record
    local core
    [ "$2" = 0 ] || { [ "$2" = 2 ] && only_hosts_were_late "$TMPDIR/said"; } || { fail "$1: $2, $(tail -n 60 "$TMPDIR/said")"; return; }
    core=$(find "$TMPDIR/$1" -path '*/cores/*.core' -not -path '*/control/*')
    [ -n "$core" ] && [ "$(head -c 4 "$core")" = $'\x7fELF' ] && [ "$(stat -c %s "$core")" -gt 100000 ] || { fail "$1: no core: $(ls -l $core)"; return; }
    grep -q "\"kind\":\"fault-in-force\".*\"kept\":\"cores/$(basename "$core")\"" "$TMPDIR/$1"/*/history.jsonl || fail "$1: its core is not told"
}
scenario here worker-abort
"$bin/rankquake" run "$TMPDIR/here.yaml" --out "$TMPDIR/here" --set "cluster.provider=exec" --set "cluster.hosts=[\"$node # a\", \"$node # b\"]" >"$TMPDIR/said" 2>&1
is_kept here $?

bed=$TMPDIR/bed
tests/clusters/ssh up "$bed" 2 >"$TMPDIR/up" 2>&1
case $? in
0) trap 'tests/clusters/ssh down "$bed"' EXIT ;;
77) cat "$TMPDIR/up"; [ $fails = 0 ]; exit ;;
*) fail "no hosts: $(cat "$TMPDIR/up")"; exit 1 ;;
esac
scenario there worker-segfault
tests/clusters/ssh in "$bed" ctl "$bin/rankquake" run "$TMPDIR/there.yaml" --out "$TMPDIR/there" --provider ssh \
    --hosts worker@n0,worker@n1 --ssh "ssh -F $bed/ssh_config" >"$TMPDIR/said" 2>&1 </dev/null
is_kept there $?
[ $fails = 0 ]
