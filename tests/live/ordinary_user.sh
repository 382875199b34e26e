#!/usr/bin/env bash
# An ordinary user, who is nobody on this host: a fault of each family is felt and gone again, on nodes in namespaces that he may
# make for himself and on nodes that are processes.
# deadline: 240 s
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/live/patience.bash
. tests/live/runs.bash
if [ "$(id -u)" = 0 ]; then
    command -v setpriv >/dev/null || { echo 'setpriv is missing, by which root becomes somebody else'; exit 77; }
    as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
fi
chmod -R a+rwX "$XDG_CACHE_HOME" # it is of $TMPDIR: runs.bash
cp -R "$BIN" "$dir/bin" && mkdir "$dir/desk" && chmod a+x "$TMPDIR" && chmod -R a+rwX "$dir" || exit 1
BIN=$dir/bin

for isolation in namespaces processes; do
    network='net-loss, with: {share: 10%}'
    [ $isolation = namespaces ] || network='net-partition, with: {planes: data}'
    cat >"$dir/job.yaml" <<END
cluster: {nodes: 2}
job:
  rdzv_conf: $patient_map
  run: [ranktrain, --steps=60, --compute-ms=5, --collective-timeout=30, --checkpoint-every=20, "--checkpoint-dir={shared}/ckpt"]
timeline:
  - {id: process, when: {step: 5},  fault: worker-slow, with: {share: 30%}, on: rank 0}
  - {id: node,    when: {step: 20}, fault: node-freeze, on: n1, for: 100ms}
  - {id: network, when: {step: 25}, fault: $network, on: n1, for: 1500ms}
  - {id: fast,    when: {step: 35}, heal: process} # some looks must find it standing still, and some not
  - {id: store,   when: {step: 40}, fault: store-freeze, on: store, for: 100ms}
  - {id: past,    when: {step: 45}, fault: store-compact, on: store}
  - {id: clock,   when: {step: 50}, fault: clock-jump, with: {by: -1h}, on: n1}
  - {id: disk,    when: {step: 54}, fault: file-flip, with: {path: "{shared}/ckpt/*/weights.f32"}, on: n1}
  - {id: crash,   when: {step: 55}, fault: worker-exit, on: n1}
  - {id: right,   when: {after: crash, round: 2}, heal: clock}
limits: {total: 240s}
END
    runs "an ordinary user, $isolation" 0 "$dir/job.yaml" --isolation $isolation
    for id in process node network store past clock disk crash; do
        recorded "an ordinary user, $isolation" '"kind":"fault-evidence","id":"'$id'"'
        [[ $id = @(crash|past|disk) ]] || recorded "an ordinary user, $isolation" '"kind":"fault-recovered","id":"'$id'","n":1}'
    done
done
exit $failed
