#!/usr/bin/env bash
# Workers that are slow, deaf, short of something or held by one thread, and an agent that stands still or is sent a signal:
# each is felt by the kernel's word and over when it is healed; where nothing changes, the verdict is open and says so.
# deadline: 480 s
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/live/patience.bash
. tests/live/runs.bash

for file in restart/poor-worker.yaml restart/deaf-worker.yaml restart/thread-hangs.yaml restart/file-too-long.yaml \
    restart/loader-killed.yaml membership/agent-hangs.yaml membership/agent-hung-up.yaml; do
    runs "$file" 0 scenarios/$file
    ! grep -q '"kind":"fault-unfelt"' "$dir"/out/*/history.jsonl || fail "$file: something was not felt"
done
runs 'a hung agent on nodes that are processes' 0 scenarios/membership/agent-hangs.yaml --isolation processes

# A bit of memory: what is saved before it changes is sound, and what is trained after it is not.
runs 'a flipped bit that is not saved' 0 scenarios/restart/weight-flipped.yaml
recorded 'a flipped bit that is not saved' '"kind":"fault-evidence","id":"flip".*"before":[0-9]+,"after":[0-9]+'
said 'a flipped bit that is not saved' 'weights differ from step 1[78] of round 1 on, and none of that is in the model: rank 1 \(n[0-9]\) has'
grep -v 'id: fail\|restarts:' scenarios/restart/weight-flipped.yaml >"$dir/flipped.yaml"
runs 'a flipped bit that is trained with' 1 "$dir/flipped.yaml"
said 'a flipped bit that is trained with' 'failed: model'
said 'a flipped bit that is trained with' '(x|✗) weights +weights differ from step 1[78] of round 1 on: rank 1 \(n[0-9]\) has [0-9a-f]{16}, the other 2 [0-9a-f]{16}'
sed 's/region: weights, offset: 1003/region: gradients/' "$dir/flipped.yaml" >"$dir/region.yaml"
runs 'a region that nobody has announced' 2 "$dir/region.yaml"
said 'a region that nobody has announced' 'has announced no region "gradients"'

# Whoever is deaf already does not become so, and a limit that is as low already is no other. What is killed, held, slow or out
# of descriptors cannot hide it; of a worker without a child there is none to kill.
job() { # job FAULT SHELL
    printf 'cluster: {nodes: 1}\njob:\n  rdzv_conf: %s\n  run: [bash, -c, "%s"]\ntimeline:\n  - {id: it, when: {step: 5}, %s}\nlimits: {total: 60s}\n' \
        "$patient_map" "$2" "$1" >"$dir/job.yaml"
}
job 'fault: worker-deaf, with: {signal: SIGUSR1}, on: rank 0' "trap '' USR1; exec ranktrain --steps=20"
runs 'a worker that is deaf already' 2 "$dir/job.yaml"
said 'a worker that is deaf already' 'ignores no signal that it did not ignore before'
job 'fault: agent-signal, with: {signal: SIGWINCH}, on: n0' 'exec ranktrain --steps=20'
runs 'a signal that an agent ignores' 2 "$dir/job.yaml"
said 'a signal that an agent ignores' 'no handler for the signal, and neither ended nor stopped by it'
job 'fault: worker-file-size, with: {bytes: 1024000000}, on: rank 0, for: 1s' 'ulimit -f 1000000; exec ranktrain --steps=20'
runs 'a limit that is as low already' 2 "$dir/job.yaml"
said 'a limit that is as low already' 'its limits are what they were'
job 'fault: worker-child-kill, on: rank 0' 'exec ranktrain --steps=20'
runs 'a child that is not there' 2 "$dir/job.yaml"
said 'a child that is not there' 'has no child'
exit $failed
