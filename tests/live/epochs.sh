#!/usr/bin/env bash
# What is wrong in every run alike, so that no control run shows it, is seen by the samples themselves: two planted variants of
# ranktrain, with models that are the control run's and reports that are those of an honest job. That a job without a bug
# passes shows scenarios/restart/nine-rounds.yaml.
set -u
unset RANKTRAIN_OPTIONS # the numbers are those of the whole network
. tests/live/runs.bash
. tests/live/patience.bash

job() { # job VARIANT
    printf 'cluster: {nodes: 1}\njob:\n  workers_per_node: 2\n  rdzv_conf: %s\n  run: [%s, --steps=25, --samples=960]\n' \
        "$patient_map" "$PWD/$OUT/tests/scenarios/jobs/ranktrain/spawn_train_$1"
    printf 'timeline: [{when: {step: 23}, fault: worker-kill, on: rank 0}]\nexpect: {model: same-as-undisturbed, epochs: shuffled}\n'
}
job reordered >"$dir/job.yaml"
runs 'one order for all epochs' 3 "$dir/job.yaml"
said 'one order for all epochs' 'in the control run, .*epoch 1 trains the samples in the order of epoch 0'
job replaced >"$dir/job.yaml"
runs 'a shard in place of another' 3 "$dir/job.yaml"
said 'a shard in place of another' 'in the control run, .*sample [0-9]+ was trained twice in epoch 0: by rank 0 in step [0-9]+ and by rank 1 in step [0-9]+'
exit $failed
