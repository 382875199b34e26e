#!/usr/bin/env bash
# Wall clocks that jump, drift and strobe: what a program of the node reads is wrong while it lasts and right again when it is
# healed; where no program asks for the time the verdict is open. A job that goes by the wall clock is found out.
# deadline: 480 s
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/live/patience.bash
. tests/live/runs.bash
# Ours has no part in a program that is instrumented: its runtime wants to be the first.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0

runs 'clocks that jump' 0 scenarios/clock/clock-jumps.yaml
for id in back ahead; do
    recorded 'clocks that jump' '"source":"probe","kind":"fault-evidence","id":"'$id'"'
done
runs 'a clock that drifts, and strobes' 0 scenarios/clock/clock-strobes.yaml
for id in fast strobe; do
    recorded 'a clock that drifts, and strobes' '"source":"probe","kind":"fault-evidence","id":"'$id'"'
done
# What the job itself read: steps that are longer by its clock, then an hour that comes and goes, and then no more.
awk '/^step [0-9]+\/120 at/ { split($2, s, "/"); t = $4; n = s[1]
        if (before && (t - before > 1800 || before - t > 1800)) { jumps++; last = n }
        before = t }
    END { exit !(jumps >= 2 && last > 50 && last <= 102) }' "$dir"/out/*/logs/n0/rank-0.log ||
    fail 'a clock that strobes: the job did not read an hour that comes and goes, and only while it lasted'

# What a node's uptime is the kernel tells, so nothing can hide it: a node that starts has it.
runs 'uptimes' 0 scenarios/clock/uptimes.yaml
recorded 'uptimes' '"source":"kernel","kind":"fault-evidence","id":"slept".*"monotonic_ns":0,"boottime_ns":28800000000000'
recorded 'uptimes' '"source":"kernel","kind":"fault-evidence","id":"booted".*"monotonic_ns":-[0-9]+,"boottime_ns":-[0-9]+'
"$BIN/rankquake" run scenarios/clock/uptimes.yaml --isolation processes --out "$dir/none" >"$dir/said" 2>&1
rc=$?
[ $rc = 4 ] || fail "uptimes of nodes that are processes: exit $rc, not 4"
said 'uptimes of nodes that are processes' 'have its uptime'
[ ! -e "$dir/none" ] || fail 'uptimes of nodes that are processes: something was begun'

# One worker of a few steps, that does what SHELL says at each; it goes on at step 10 when the fault has come.
job() { # job FAULT SHELL
    cat >"$dir/job.yaml" <<END
cluster: {nodes: 1}
job:
  rdzv_conf: $patient_map
  run:
    - bash
    - -c
    - |
      for ((step = 1; step <= 30; step++)); do
          sleep 0.02
          $2
          echo "step \$step/30"
      done
observe: {step: '^step (\d+)/30'}
timeline:
  - {id: it, when: {step: 10}, $1}
limits: {total: 240s}
END
}
jump='fault: clock-jump, with: {by: -1h}, on: n0'
job "$jump" 'echo "at $EPOCHSECONDS"'
# Beside an object that the user wants, and on nodes that are processes.
LD_PRELOAD=libm.so.6 runs 'a clock that jumps, nodes that are processes' 0 "$dir/job.yaml" --isolation processes
recorded 'a clock that jumps, nodes that are processes' '"fault-evidence","id":"it".*"program":"bash".*"ahead_least":-3600000000000'
job 'fault: clock-strobe, with: {period: 60m}, on: n0' 'echo "at $EPOCHSECONDS"'
runs 'a strobe that never comes back' 2 "$dir/job.yaml"
said 'a strobe that never comes back' 'or not often enough'
# The launcher asks when a worker ends.
for fault in clock-jump clock-drift; do
    printf 'cluster: {nodes: 1}\njob: {rdzv_conf: %s, run: [ranktrain, --steps=20]}\ntimeline:\n  - {id: it, when: {step: 5}, fault: %s, on: n0}\n  - {id: right, when: {after: it, step: 12}, heal: it}\nlimits: {total: 240s}\n' \
        "$patient_map" $fault >"$dir/job.yaml"
    runs "$fault, and nobody asks for the time" 2 "$dir/job.yaml"
    said "$fault, and nobody asks for the time" 'they did not ask the C library'
done

# Saves that are called by the wall clock: behind a clock that went back the newest is not the last that was written.
cat >"$dir/saves.yaml" <<END
cluster: {nodes: 1}
job:
  rdzv_conf: $patient_map
  run:
    - bash
    - -c
    - |
      mkdir -p "\$1"
      newest=\$(ls "\$1" | sort -n | tail -n 1)
      step=\$([ -z "\$newest" ] || cat "\$1/\$newest")
      [ -z "\$step" ] || echo "resuming from step \$step"
      for ((step = step + 1; step <= 40; step++)); do
          sleep 0.02
          echo "step \$step/40"
          [ \$((step % 5)) = 0 ] || continue
          echo \$step >"\$1/\$EPOCHSECONDS\$((1000 + step))"
          echo "saved step \$step"
      done
      echo "finished, model \$step"
    - bash
    - "{shared}/ckpt"
  checkpoint: {dir: "{shared}/ckpt", complete: "cat * 2>/dev/null"}
observe:
  step: '^step (\d+)/40'
  resume: '^resuming from step (\d+)'
  checkpoint-commit: '^saved step (\d+)'
  done: '^finished, model (\w+)'
timeline:
  - {id: it, when: {step: 12}, fault: clock-jump, with: {by: -1h}, on: n0}
  - {id: fail, when: {after: it, step: 27}, fault: worker-kill, on: rank 0}
limits: {total: 240s}
END
runs 'saves that are called by the wall clock' 1 "$dir/saves.yaml"
said 'saves that are called by the wall clock' 'failed: .*resume_step'
exit $failed
