#!/usr/bin/env bash
# A job with one snapshot that it writes in place, as tutorials do: where it is torn all is made again from nothing; and
# one that takes an epoch which is in its snapshot for the next.
# deadline: 60 s
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/live/runs.bash

# It saves every second epoch. Disturbed, it stands at the seventh until it is killed: TORN says when the write is broken off.
cat >"$dir/job.sh" <<'END_OF_JOB'
mode=$1 file=$2/snapshot epoch=0
mkdir -p "$2"
if [ -e "$file" ]; then
    echo 'Loading snapshot'
    read -r saved whole <"$file"
    [ "$whole" = end ] && { epoch=$((saved + 1)); [ $mode = again ] && epoch=$saved; }
    [ "$whole" = end ] && echo "Resuming training from snapshot at Epoch $epoch"
fi
for ((; epoch < 12; epoch++)); do
    case $TORCHELASTIC_RESTART_COUNT$epoch$3 in
    *control) ;;
    06*)
        [ $mode = torn ] && printf '6' >"$file"
        echo "Epoch 6 | loss 6.5"
        exec tail -f /dev/null ;;
    esac
    [ $epoch = 3 ] && read -rt 0.5 <> <(:) # else all may have come at once, as from a program that keeps its lines
    echo "Epoch $epoch | loss $epoch.5"
    [ $((epoch % 2)) = 1 ] || { echo "$epoch end" >"$file" && echo "Epoch $epoch | Training snapshot saved"; }
done
END_OF_JOB
write() { # write MODE
    cat >"$dir/snapshot.yaml" <<END_OF_SCENARIO
scenario: snapshot
cluster: {nodes: 1}
job:
  run: [bash, $dir/job.sh, $1, "{shared}/ckpt", "{out}"]
  checkpoint: {dir: "{shared}/ckpt", complete: "sed -n 's/ end$//p' snapshot"}
observe:
  step: '^Epoch ([0-9]+) \| loss'
  loss: 'loss ([0-9.]+)'
  resume: '^Resuming .* at Epoch ([0-9]+)'
  checkpoint-commit: '^Epoch ([0-9]+) . Training snapshot saved'
timeline: [{id: kill, when: {step: 6}, fault: worker-kill, on: rank 0}]
expect: {outcome: succeeded, lost_work: 3}
limits: {total: 240s}
END_OF_SCENARIO
}

write torn
runs 'a snapshot that is torn' 1 "$dir/snapshot.yaml"
said 'a snapshot that is torn' 'checkpoints +the job had printed 3 commits, the last of step 4; after round 1 none is complete'
said 'a snapshot that is torn' 'lost_work +round 2 made 7 steps again'
said 'a snapshot that is torn' 'resume_step +rank 0 on n0 of round 2 began from nothing'
write good
runs 'a snapshot from which it goes on as it should' 0 "$dir/snapshot.yaml"
write again
runs 'an epoch that is made again after its own commit' 1 "$dir/snapshot.yaml"
said 'an epoch that is made again after its own commit' 'exactly_once +round 2 made step 4 again'
said 'an epoch that is made again after its own commit' 'lost_work +3 steps made again'
exit $failed
