#!/usr/bin/env bash
# A job that saves in ranktrain's format: the model that it names must be the one that lies on disk, whether its scenario
# compares models or not.
# deadline: 60 s
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/live/runs.bash

# NAMES: what it says its model is; SAVES: what it saves as its weights after the fourth step, when it is undisturbed and else.
cat >"$dir/job.sh" <<'END_OF_JOB'
names=$1 saves=$3 at=$4
case $5 in */control) saves=$2 ;; esac
sha() { printf %s "$1" | sha256sum | cut -d ' ' -f 1; }
for step in 1 2 3 4; do echo "step $step"; done
to=$at/step-00000004
mkdir -p "$to"
printf %s "$saves" >"$to/weights.f32"
printf '{"format": "ranktrain-checkpoint", "version": 1, "step": 4, "model": "%s", "files": [{"name": "weights.f32", "bytes": %d, "sha256": "%s"}]}' \
    "$(sha "$names")" ${#saves} "$(sha "$saves")" >"$to/manifest.json"
echo "model $(sha "$names")"
END_OF_JOB
write() { # write NAMES SAVES SAVES
    cat >"$dir/saved.yaml" <<END_OF_SCENARIO
scenario: saved
cluster: {nodes: 1}
job:
  run: [bash, $dir/job.sh, $1, $2, $3, "{shared}/ckpt", "{out}"]
  checkpoint: {dir: "{shared}/ckpt"}
observe: {step: '^step ([0-9]+)', done: '^model ([0-9a-f]+)'}
limits: {total: 240s}
END_OF_SCENARIO
}

write trained trained trained
runs 'a job that names what it has saved' 0 "$dir/saved.yaml"
said 'a job that names what it has saved' 'model [0-9a-f]{16}\.\.\., as it lies on disk'
runs 'a job that saves where nobody can read it' 0 "$dir/saved.yaml" --set 'job.checkpoint={dir: "{tmp}/ckpt"}'
said 'a job that saves where nobody can read it' "beware +model: .* is the job's word alone"
write trained trained zeroes
runs 'a job that names one model and saves another' 1 "$dir/saved.yaml"
said 'a job that names one model and saves another' 'failed: model .exit code 1'
runs 'the same, named as in the control run' 1 "$dir/saved.yaml" --set 'expect={model: same-as-undisturbed}'
said 'the same, named as in the control run' 'failed: model .exit code 1'
write trained zeroes zeroes
runs 'a job that does so undisturbed' 3 "$dir/saved.yaml"
said 'a job that does so undisturbed' 'failed in the control run.*: rank 0 on n0 names model'
exit $failed
