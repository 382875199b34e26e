#!/usr/bin/env bash
# A sweep ends with the table of what it shows over the swept value, and with its picture beside the run directories: the one
# that `report` draws of the same runs. A worker that stands still twice as long costs more of the time.
set -u
. tests/live/runs.bash
. tests/live/patience.bash

cat >"$dir/stands.yaml" <<END
cluster: {nodes: 1}
vars: {for: 200ms}
sweep: {vars.for: [200ms, 900ms]}
job:
  rdzv_conf: $patient_map
  run: [ranktrain, --steps=8, --compute-ms=50]
timeline:
  - {id: it, when: {step: 4}, fault: worker-hang, on: rank 0, for: "{for}"}
END
runs 'a sweep' 0 "$dir/stands.yaml" --jobs 1
said 'a sweep' 'stands over vars.for .* 200ms +1 +passed +[0-9]+ % .* 900ms +1 +passed +[0-9]+ % .* curve +.*/out/stands-curve.svg'
figure() { sed -n "s/^$1 .* passed *\([0-9]*\) %.*/\1/p" "$dir/said"; }
[ "$(figure 900ms)" -lt "$(figure 200ms)" ] || fail 'what stands still for longer has no lower figure'
"$BIN/rankquake" report "$dir"/out/stands.* --to svg | cmp -s - "$dir/out/stands-curve.svg" || fail 'the picture is not the one that report draws'
exit $failed
