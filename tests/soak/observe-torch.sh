#!/usr/bin/env bash
# A PyTorch script that sends no events, watched through what it prints: it passes as it is, and is caught
# when its snapshot's epoch is forgotten at a restart.
# deadline: 400 s
set -u
cd "$(dirname "$0")/../.." || exit 1
python=
for candidate in /usr/bin/python3 python3; do
    [ -z "$python" ] && "$candidate" -c 'import torch' 2>/dev/null && python=$(type -P $candidate)
done
[ -n "$python" ] || { echo 'no python3 here has torch (Debian: python3-torch)'; exit 77; }
export XDG_CACHE_HOME=$TMPDIR/cache
dir=$TMPDIR/torch script=scenarios/jobs/pytorch/ddp.py
mkdir "$dir"
failed=0
sed 's/self.epoch, self.step = snapshot.*/self.epoch, self.step = 0, 0/' $script >"$dir/forgets.py"
cmp -s $script "$dir/forgets.py" && { echo "nothing was planted into $script"; exit 1; }

try() { # try SCRIPT CODE PATTERN
    cat >"$dir/ddp.yaml" <<END
cluster: {nodes: 1}
job:
  workers_per_node: 2
  env: {OMP_NUM_THREADS: "1"}
  run: [$python, $1, --epochs=3, --pause=0.05, "--snapshot={shared}/snapshot.pt"]
  checkpoint:
    dir: "{shared}"
    complete: "[ ! -e snapshot.pt ] || $python -c 'import torch; print(torch.load(\"snapshot.pt\")[\"step\"])'"
observe: {step: 'step (\\d+) loss', loss: 'loss ([0-9.]+)', resume: 'going on from epoch \\d+, step (\\d+)'}
timeline: [{id: kill, when: {step: 12}, fault: worker-kill, on: rank 1}]
limits: {start: 3m, stall: 2m}
END
    timeout 180 "$BIN/rankquake" run "$dir/ddp.yaml" --out "$dir/out" >"$dir/said" 2>&1 </dev/null
    local rc=$?
    [ $rc = 4 ] && { tail -n 1 "$dir/said"; exit 77; }
    [ $rc = "$2" ] && tr -s '\n ' '  ' <"$dir/said" | grep -qE -- "$3" && return
    echo "$1: exit $rc, not $2, or it did not say: $3"
    cat "$dir/said"
    failed=1
}
try $script 0 'resume_step all rounds went on from the newest complete checkpoint .round 2 from step (12|24)'
try "$dir/forgets.py" 1 'failed: resume_step .*resumed from step 0'
exit $failed
