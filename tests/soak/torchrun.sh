#!/usr/bin/env bash
# The system's own torchrun in the nodes: undisturbed it passes, a script in Python recovers from a killed
# worker, a lost node costs what torchrun says, and a job that ends at its start is told with its last words.
# deadline: 400 s
set -u
rq=$(realpath "$BIN/rankquake")
dir=$TMPDIR/torchrun
export XDG_CACHE_HOME=$dir/cache
mkdir -p "$dir" && cd "$dir" || exit 1
bad=0
if ! /usr/bin/python3 -c 'import torch.distributed.run' 2>/dev/null; then
    echo 'the system Python has no torch: apt install python3-torch'
    exit 77
fi

run() { # run NAME WANTED-EXIT FILE [OPTION...]
    local rc
    echo "--- $1"
    timeout 200 "$rq" run "$3" --launcher '/usr/bin/python3 -m torch.distributed.run' --out out "${@:4}" \
        >said 2>&1 </dev/null
    rc=$?
    [ $rc = 4 ] && { tail -n 1 said; exit 77; }
    [ $rc = "$2" ] && return
    echo "exit $rc, wanted $2"
    cat said
    bad=1
}

says() {
    grep -qE -- "$1" said && return
    echo "it does not say \"$1\":"
    cat said
    bad=1
}

cat >train.py <<'END'
import os, sys, time
step, path = 0, sys.argv[1]
if os.path.exists(path):
    step = int(open(path).read())
while step < 30:
    time.sleep(0.1)
    step += 1
    if os.environ["RANK"] == "0":
        with open(path + ".new", "w") as f:
            f.write(str(step))
        os.replace(path + ".new", path)
END
cat >script.yaml <<'END'
scenario: script
cluster: {nodes: 2}
job:
  launcher_args: [--monitor_interval, "0.2"]
  run: [train.py, "{shared}/step"]
timeline: [{id: kill, when: {time: 500ms}, fault: worker-kill, on: n1}]
expect: {world_sizes: [2, 2]}
END
run 'a script, a worker is killed' 0 script.yaml
says 'rank_order +torchrun gives no order'
says 'outcome +succeeded'

# n1 dies; n0's worker notices because it talks, n0 waits for the dead one's beats and goes on alone.
cat >lost.yaml <<'END'
scenario: lost
cluster: {nodes: 2}
job:
  nnodes: "1:2"
  rdzv_conf: {last_call_timeout: 1s}
  launcher_args: [--monitor_interval, "0.2"]
  run: [ranktrain, --steps=60, --checkpoint-every=10, "--checkpoint-dir={shared}/ckpt", --collective-timeout=5]
timeline: [{id: kill, when: {step: 25}, fault: node-kill, on: n1}]
expect: {world_sizes: [2, 1], restarts: 1, model: same-as-undisturbed}
limits: {total: 3m}
END
run 'a node is killed' 0 lost.yaml

cat >ends.yaml <<'END'
scenario: ends
cluster: {nodes: 1}
job: {max_restarts: 0, run: [sh, -c, 'echo no data here; exit 5']}
END
run 'a job that ends at its start' 3 ends.yaml
says 'failed in the control run'
says 'no data here'
exit $bad
