#!/usr/bin/env bash
# A scheduler in the nodes: what cannot stand beside it is refused, and what needs one is skipped without it. The disasters, and what
# must not pass: tests/soak/slurm_faults.sh, which takes four minutes.
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

exit $failed
