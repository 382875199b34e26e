#!/usr/bin/env bash
# A debug build of rankrun stands still at its failpoints, and a fault strikes exactly there: the coordinator is
# killed when its head is in the store and it has not heard so. A release build knows nothing of them.
# deadline: 120 s
set -u
. tests/live/patience.bash
name=coordinator-unheard
if [ "${BUILD:-release}" = release ]; then
    ! grep -q "$name" "$BIN/rankrun" && exit 0
    echo "a release build of rankrun knows the failpoint $name"
    exit 1
fi
if ! grep -q "$name" "$BIN/rankrun"; then
    echo 'only debug builds have failpoints (make BUILD=debug)'
    exit 77
fi
cat >"$TMPDIR/unheard.yaml" <<YAML
scenario: coordinator-unheard
cluster: {nodes: 3}
job:
  nnodes: "2:3"
  rdzv_conf: $patient_map
  run: [ranktrain, --steps=60, --checkpoint-every=10, "--checkpoint-dir={shared}/ckpt"]
timeline:
  - {id: fail, when: {step: 20}, fault: worker-kill, on: rank 2}
  - {id: unheard, when: {after: fail, failpoint: coordinator-unheard, within: 5s}, fault: agent-kill, on: NODE}
expect: {outcome: succeeded}
limits: {total: 240s}
YAML
# Any of them may coordinate; the one that writes the head is told by the failpoint itself.
for node in n0 n1 n2; do
    sed "s/NODE/$node/" "$TMPDIR/unheard.yaml" >"$TMPDIR/$node.yaml"
    "$BIN/rankquake" run "$TMPDIR/$node.yaml" --out "$TMPDIR/$node" >"$TMPDIR/said" 2>&1
    rc=$?
    [ $rc = 4 ] && tail -n 1 "$TMPDIR/said" && exit 77
    [ $rc = 0 ] && cat "$TMPDIR/$node"/*/history.jsonl >"$TMPDIR/history" && grep -q "\"what\":\"$name\"" "$TMPDIR/history" &&
        grep -q "\"kind\":\"fault-in-force\",\"id\":\"unheard\"" "$TMPDIR/history" && exit 0
    [ $rc = 2 ] || break # 2: this one did not coordinate
done
cat "$TMPDIR/said"
exit 1
