#!/usr/bin/env bash
# A real Slurm in the nodes: what needs one is skipped without it, an unchanged script for sbatch goes through two disasters, and one
# verdict is given over both attempts of the job. All of them, and what must not pass: tests/soak/slurm_faults.sh.
# deadline: 240 s
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/live/runs.bash

# ---- refused before anything is started ----

bad() { # bad PATTERN TEXT
    printf '%s\n' "$2" >"$dir/bad.yaml"
    "$BIN/rankquake" lint "$dir/bad.yaml" >"$dir/said" 2>&1
    [ $? = 64 ] || fail "$1: not refused"
    said "$1" "$1"
}
bad 'leave launcher out' $'cluster: {scheduler: slurm}\nlauncher: torchrun\njob: {run: [job.sh]}'
bad 'leave isolation: processes out' $'cluster: {scheduler: slurm, isolation: processes}\njob: {run: [job.sh]}'
bad 'scheduler' $'cluster: {scheduler: slrum}\njob: {run: [job.sh]}'
without='cluster: {nodes: 2}
job: {run: [ranktrain, --steps=5]}
timeline: [{id: it, when: {step: 2}, fault: slurm-requeue, on: rank 1}]'
echo "$without" >"$dir/without.yaml"
"$BIN/rankquake" run "$dir/without.yaml" --out "$dir/out" >"$dir/said" 2>&1
[ $? = 4 ] || fail 'a fault of a scheduler that is not there is not skipped'
said 'a fault without its scheduler' 'no scheduler has started the job'

# ---- what is felt, and what is judged over two attempts ----

for name in requeued daemon-killed; do
    runs "$name" 0 scenarios/slurm/$name.yaml
    recorded "$name" '"source":"(kernel|harness)","kind":"fault-evidence"'
done
exit $failed
