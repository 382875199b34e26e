#!/usr/bin/env bash
# The scheduler's disasters, with a real Slurm in the nodes: an unchanged script for sbatch goes through each of them, one verdict is
# given over all attempts of the job, and where nothing was struck the verdict is open. What would not survive is caught.
# deadline: 600 s
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/live/runs.bash

# ---- what is felt ----

for name in requeued drained node-down daemon-killed controller-killed cancelled preempted out-of-time; do
    runs "$name" 0 scenarios/slurm/$name.yaml
    recorded "$name" '"source":"(kernel|disk)","kind":"fault-evidence"'
    if [ "$name" = drained ]; then
        recorded "the drained node is passed over" '"kind":"worker-start","node":"n3"'
        recorded "it is of use again" '"kind":"fault-recovered","id":"drain"'
        said 'restarts over attempts' 'budget +2 attempts, in each at most 0 of 1 restarts'
    fi
done

# ---- what is not ----

# Ranks that are not known to be Slurm's, a controller where there is none, a daemon that is gone already.
cat >"$dir/stranger.sbatch" <<'END'
#!/bin/bash
#SBATCH --nodes=2
srun rankrun --shutdown-timeout 3 --no-python env -u SLURM_JOB_ID ranktrain --steps=150 --compute-ms=20
END
cat >"$dir/open.yaml" <<END
cluster: {nodes: 2, scheduler: slurm}
job: {run: [$dir/stranger.sbatch]}
timeline:
  - {id: cancel, when: {step: 10}, fault: slurm-cancel, on: rank 0}
  - {id: requeue, when: {step: 15}, fault: slurm-requeue, on: rank 0}
  - {id: preempt, when: {step: 20}, fault: slurm-preempt, on: rank 1}
  - {id: limit, when: {step: 25}, fault: slurm-time-limit, on: rank 1}
  - {id: down, when: {step: 30}, fault: slurm-node-down, on: rank 1}
  - {id: controller, when: {step: 35}, fault: slurm-controller-kill, on: n1, for: 1s}
  - {id: first, when: {step: 40}, fault: slurm-daemon-kill, on: n1, for: 4s}
  - {id: second, when: {after: first, step: 60}, fault: slurm-daemon-kill, on: n1, for: 1s}
  - {id: drained, when: {after: first, step: 62}, fault: slurm-drain, on: n1, for: 1s}
  - {id: drain, when: {after: first, step: 64}, fault: slurm-drain, on: n0, for: 20s}
  - {id: twice, when: {after: drain, step: 66}, fault: slurm-drain, on: n0, for: 1s}
limits: {total: 4m}
END
runs 'nothing to strike' 2 "$dir/open.yaml"
for id in cancel requeue preempt limit down controller second drained; do
    recorded "nothing to strike, $id" "\"kind\":\"fault-failed\",\"id\":\"$id\""
done
recorded 'drained already' '"kind":"fault-unfelt","id":"twice"'
said 'a rank that is not Slurms' 'was not started by Slurm'
said 'a controller elsewhere' 'no slurmctld runs there'

# ---- what must not pass ----

# Each attempt has a folder of its own, as on a disk of the node: the next one begins anew.
cat >"$dir/scratch.sbatch" <<'END'
#!/bin/bash
#SBATCH --nodes=2
srun rankrun --shutdown-timeout 3 ranktrain --steps=150 --compute-ms=20 --checkpoint-every=10 --checkpoint-dir="$1/attempt-${SLURM_RESTART_COUNT:-0}"
code=$?
[ $code -ne 143 ] || sleep infinity
exit $code
END
cat >"$dir/scratch.yaml" <<END
cluster: {nodes: 2, scheduler: slurm}
job:
  run: [$dir/scratch.sbatch, "{shared}"]
  checkpoint: {dir: "{shared}/attempt-0"}
timeline: [{id: requeue, when: {step: 45}, fault: slurm-requeue, on: rank 1}]
limits: {total: 4m, stall: 60s}
END
runs 'checkpoints that do not outlive an attempt' 1 "$dir/scratch.yaml"
said 'checkpoints that do not outlive an attempt' '(x|✗) resume_step'

# The same on disks of the nodes' own: the nodes that have the checkpoints are drained, and the next attempt runs on two others.
cat >"$dir/local.sbatch" <<'END'
#!/bin/bash
#SBATCH --nodes=2
srun rankrun --shutdown-timeout 3 ranktrain --steps=150 --compute-ms=20 --checkpoint-every=10 --checkpoint-dir=/tmp/checkpoints
code=$?
[ $code -ne 143 ] || sleep infinity
exit $code
END
cat >"$dir/local.yaml" <<END
cluster: {nodes: 4, scheduler: slurm}
job: {run: [$dir/local.sbatch]}
timeline:
  - {id: first, when: {step: 20}, fault: slurm-drain, on: n0}
  - {id: second, when: {after: first, step: 30}, fault: slurm-drain, on: n1}
  - {id: requeue, when: {after: second, step: 45}, fault: slurm-requeue, on: rank 1}
limits: {total: 4m, stall: 60s}
END
runs 'scratch of a node' 1 "$dir/local.yaml"
said 'scratch of a node' '(x|✗) lost_work +round 2 resumed from step 0, and step [34][0-9] had been committed on n[01]'

# A script that requeues what has failed: it would go on for ever, were its second attempt not a better one.
cat >"$dir/again.sbatch" <<'END'
#!/bin/bash
#SBATCH --nodes=2
case $1:${SLURM_RESTART_COUNT:-0} in */control:0 | *:1) exec srun rankrun --max-restarts 1 ranktrain --steps=40 --compute-ms=20 ;; esac
srun rankrun --max-restarts 1 ranktrain --steps=40 --checkpoint-every=10 --checkpoint-dir=/proc/none || scontrol requeue "$SLURM_JOB_ID"
sleep infinity
END
cat >"$dir/again.yaml" <<END
cluster: {nodes: 2, scheduler: slurm}
job: {run: [$dir/again.sbatch, "{out}"]}
limits: {total: 4m, stall: 60s}
END
runs 'a script that requeues what has failed' 1 "$dir/again.yaml"
said 'a script that requeues what has failed' '(x|✗) budget +attempt 1 was begun after rank [01] on n[01] had failed in round 2, the last restart of attempt 0'

# ---- control runs side by side ----

# Of two sizes of one script, of which each is a job of its own, both are under way at once. Who interrupts ends both, and nothing stays;
# else each is kept.
two=(scenarios/slurm/requeued.yaml scenarios/slurm/drained.yaml)
rm -rf "$dir/out"
XDG_CACHE_HOME=$dir/cut "$BIN/rankquake" run --jobs 2 "${two[@]}" --out "$dir/out" >"$dir/said" 2>&1 &
harness=$! end=$((SECONDS + 180))
until [ "$(grep -ls '"kind":"worker-start"' "$dir"/out/*/control/history.jsonl | wc -l)" = 2 ]; do
    [ $SECONDS -lt $end ] || { fail 'two control runs were never under way at once'; break; }
    read -rt 0.05 <> <(:) || :
done
kill -TERM $harness
wait $harness
rc=$?
[ $rc = 130 ] || fail "interrupted in two control runs: exit $rc, wanted 130"
[ -z "$(ls "$dir/out")" ] || fail "after that interruption: $(ls "$dir/out")"
XDG_CACHE_HOME=$dir/cut "$BIN/rankquake" run --jobs 2 "${two[@]}" --out "$dir/out" >"$dir/said" 2>&1 </dev/null || fail "the two: exit $?"
[ "$(cat "$dir"/cut/rankquake/control/*/control.json | grep -c '"beside":true')" = 2 ] || fail "the two control runs are not kept"
exit $failed
