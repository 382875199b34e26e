#!/usr/bin/env bash
# Jobs that send no events, watched through what they print: steps, resumes and lines that faults wait for;
# a script that resumes wrongly; expressions that match nothing; and output of every ugly kind.
# deadline: 480 s
set -u
. tests/live/patience.bash
cd "$(dirname "$0")/../.." || exit 1
. tests/live/runs.bash

# What is planted into the script, and the rest of the scenario, from standard input.
write() { # write FILE NODES RUN-AS-SHELL
    {
        printf 'cluster: {nodes: %d}\njob:\n  rdzv_conf: %s\n  workers_per_node: %d\n' "$2" "$patient_map" $((3 - $2))
        printf '  run:\n    - bash\n    - -c\n    - |\n'
        sed 's/^/      /' <<<"$3"
        cat
        echo 'limits: {total: 240s}'
    } >"$dir/$1.yaml"
}

try() { # try WHAT CODE PATTERN FILE [ARGUMENT...]
    runs "$1" "$2" "${@:4}"
    said "$1" "$3"
}

# ---- a job that resumes as it should ----
good=scenarios/restart/printed-steps.yaml
try 'a script that prints its steps' 0 'observed loss [0-9]+, resume 2, checkpoint-commit [0-9]+, done 2, step' $good
recorded 'steps from the output' '"source":"job","kind":"step","node":"n0","pid":[0-9]+,"from":"output","step":17,"loss":23.5'
recorded 'a fault that is not held' '"fault-fired".*"step":17,.*"held":false,"done":[0-9]+'
[ -s "$(ls "$dir"/out/*/logs/n0/rank-1.2.log)" ] || fail 'no file of its own for the second start of rank 1'
grep -qE 'resume_step .*round 2 from step [0-9]+' "$dir/said" ||
    fail 'a script that prints its steps: resume_step does not say from where'

# ---- jobs that do not ----
resumes() { sed "s/from=.*/$1/" $good >"$dir/wrong.yaml"; }
resumes 'from=$(ls "$1" | sed -n "s,^saved-,,p" | sort -n | head -n 1)'
try 'a script that takes the oldest checkpoint' 1 'failed: resume_step .* resumed from step (5|10)' "$dir/wrong.yaml"
resumes 'from='
try 'a script that begins anew' 2 'began with step 1 although step [0-9]+ was complete: either it began anew, or observe.resume' "$dir/wrong.yaml"
resumes 'from=$(ls "$1" | sed -n "s,^saved-,,p" | sort -n | tail -n 1); [ -z "$from" ] || { echo "resuming from step $from"; exit 0; }'
try 'a script that resumes and has nothing to do' 1 \
    'all workers of round 2 ended well, and step [0-9]+ was the last .* failed: exactly_once' "$dir/wrong.yaml"
try 'a command that lists no checkpoints' 2 'job.checkpoint.complete .exit 3. did not say what is complete: it ended with exit code 3' \
    $good --set 'job.checkpoint.complete=exit 3'

# ---- expressions that match nothing: said before anything is broken ----
try 'an expression that never matches' 2 'observe.step matched none of [0-9]+ lines; the closest: step 1/40, loss 39.5' \
    $good --set "observe.step='^Step: (\\d+)'"
grep -q 'Nothing was disturbed yet' "$dir/said" || fail 'an expression that never matches: not said in the control run'
[ ! -e "$(ls -d "$dir"/out/*)/history.jsonl" ] || fail 'an expression that never matches: the disturbed run was made'
try 'a number that is none' 2 'is no number' $good --set "observe.step='(loss)'"
# A program whose lines come all at once: by cat, since the shell itself would write them one by one.
write late 1 'for i in $(seq 12); do sleep 0.1; out+="step $i"$'"'\\n'"'; done; cat <<<"$out"' <<'END'
observe: {step: '^step ([0-9]+)'}
END
try 'a program that buffers its output' 2 'the output is buffered; put stdbuf -oL in front' "$dir/late.yaml"
try 'a wrong expression' 64 'there is no \] to this \[' $good --set "observe.step='([0-9'"

# ---- lines that faults wait for ----
# It waits behind the fourth line until both faults have come, which the control run does not.
count='for i in 1 2 3 4 5 6 7 8; do
    sleep 0.05
    echo "did $i"
    [ $i != 4 ] || case ${WAITS-}{out} in no* | */control) ;; *)
        grep -m 1 "\"fault-in-force\",\"id\":\"said\"" < <(tail -n +1 -f {out}/history.jsonl) >/dev/null
    esac
done'
write lines 2 "$count" <<'END'
timeline:
  - {id: fourth, when: {log: '/did ([0-9]+)/', nth: 4}, fault: worker-kill, on: rank 0}
  - {id: said, when: {log: '/local rank 0, pid [0-9]+: SIGKILL/'}, fault: agent-kill, on: node of rank 0}
expect:
  log:
    - {seen: '/did 4/', on: rank 0}
    - {seen: '/rank 0, pid [0-9]+: SIGKILL/', on: agents} # the agent may be quicker than the fault's own answer
    - {seen: '/did 8/', on: workers, after: fourth, within: 60s}
    - {never: /Traceback/}
END
try 'the fourth line of a worker, and one of its agent' 0 'said: agent-kill on agent of n[01]' "$dir/lines.yaml"
recorded 'the fourth line' '"kind":"log".*"id":"fourth","line":"did 4"'
recorded 'a line of an agent' '"source":"launcher","kind":"log","node":"n[01]","from":"output","id":"said"'
grep -qE 'log +all 4 as expected' "$dir/said" || fail 'the lines that are expected: log did not pass'
# The same history, with something else expected of it.
expects() { # expects WHAT PATTERN OLD NEW
    sed "s|$3|$4|" "$dir/lines.yaml" >"$dir/other.yaml"
    "$BIN/rankquake" judge --scenario "$dir/other.yaml" "$dir"/out/*/history.jsonl >"$dir/said" 2>&1
    tr -s '\n ' '  ' <"$dir/said" | grep -qE -- "$2" || fail "$1: did not say: $2"
}
expects 'a line that was never to come' 'log rank 0 on n[01] printed .the first of [0-9]+.: did 4' "seen: '/did 4/'" "never: '/did 4/'"
expects 'a line that was to come once' 'log rank [01] on n[01] printed .the second of [0-9]+.: did 4' "seen: '/did 4/', on: rank 0" "once: '/did 4/'"
expects 'a line that nobody looked for' 'log nobody looked for lines that match /Oops/' Traceback Oops
try 'a line that never comes' 2 'none of [0-9]+ lines matched /did nine/; the closest: did 1' "$dir/lines.yaml" --set 'expect={}' \
    --set 'job.env={WAITS: "no"}' --set 'timeline=[{when: {log: "/did nine/"}, fault: worker-kill, on: rank 0}]'

# ---- bars and lines as the tools print them, by one worker for all ----
if command -v python3 >/dev/null; then
    cat >"$dir/bars.py" <<'END'
import glob, os, re, sys, time
shape, out, steps, first = sys.argv[1], sys.argv[2], 40, 0
rank = int(os.environ["RANK"])
say = lambda text: (sys.stderr.write(text), sys.stderr.flush()) if rank == 0 else None
os.makedirs(out, exist_ok=True)
saved = [int(re.search(r"(\d+)$", f).group(1)) for f in glob.glob(out + "/checkpoint-*")]
if saved:
    first = max(saved)
    say({"hf-trainer": "  Continuing training from global step %d\n" % first,
         "lightning": "Restored all states from the checkpoint at %s/epoch=%d-step=%d.ckpt\n" % (out, first // 10, first)}
        [shape])
for step in range(first, steps):
    time.sleep(0.02)
    n, loss = step + 1, 1 / (step + 1)
    if shape == "hf-trainer":
        say("\r%3d%%|%-10s| %d/%d [00:01<00:02,  5.00it/s]\033[A" % (n * 100 // steps, "#" * (n // 4), n, steps))
        if n % 10 == 0:
            say("\n{'loss': %.4f, 'grad_norm': 1.0, 'learning_rate': 1e-05, 'epoch': %.1f}\n" % (loss, n / 10))
    else:
        say("\rEpoch %d: %3d%%|%-10s| %d/10 [00:01<00:00, 5.00it/s, v_num=0, train_loss=%.4f]"
            % (step // 10, step % 10 * 10 + 10, "#" * (step % 10 + 1), step % 10 + 1, loss))
    if n % 10 == 0 and rank == 0:
        open(out + "/checkpoint-%d" % n, "w").close()
    if n == 30 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and "/control/" not in out:
        time.sleep(1000) # until it is killed
say("\n`Trainer.fit` stopped: `max_steps=%d` reached.\n{'train_runtime': 2.4, 'train_loss': 0.7}\n" % steps)
END
    for shape in hf-trainer lightning; do
        cat >"$dir/bars.yaml" <<END
cluster: {nodes: 1}
job:
  workers_per_node: 2
  run: [python3, $dir/bars.py, $shape, "{shared}/out"]
  checkpoint: {dir: "{shared}/out", complete: "ls | sed 's/checkpoint-//'"}
observe: {preset: $shape}
timeline: [{id: kill, when: {step: 25}, fault: worker-kill, on: rank 1}]
expect: {restarts: 1, recover_within: 20s}
limits: {total: 240s}
END
        try "output of $shape" 0 'resume_step all rounds went on from the newest complete checkpoint .round 2 from step [1-3]0' "$dir/bars.yaml"
        recorded "a loss of $shape" '"from":"output","step":3[1-9],"loss":0.0'
        recorded "a step of $shape, counted over the epochs" '"from":"output","step":40[,}]'
    done
    rm "$dir/bars.yaml"
fi

# ---- output of every ugly kind ----
# Rank 0 goes on once the child of rank 1, which has ended long before, has said its line.
write ugly 1 'mkfifo {shared}/late 2>/dev/null
echo step 1
head -c 10000000 /dev/zero | tr "\0" x
printf "\nstep 2 \377\376 \0 \033[1mstep\033[0m 3\rstep 4\r"
head -c 300000 /dev/urandom
echo; for i in $(seq 40); do head -c 1000000 /dev/zero | tr "\0" "\n"; done
echo step 5
if [ "$RANK" = 1 ]; then
    (sleep 0.5; echo step 99; echo >{shared}/late) &
    exec >&- 2>&-
    exit
fi
exec >/dev/stdout
read -r _ <{shared}/late
sleep 0.3; echo step 6
sleep 0.1; echo step 7' <<'END'
observe: {step: '^step ([0-9]+)'}
END
try 'output of every ugly kind' 0 'observed step [0-9]+, in [0-9]+ lines; [0-9]+ kB more came faster' "$dir/ugly.yaml"
recorded 'the last step after a flood' '"from":"output","step":7'
recorded 'a child that goes on when its worker has ended' '"late_lines":1'
! grep -q '"step":99' "$dir"/out/*/history.jsonl || fail 'a line of a child was taken for its worker'"'"'s'
exit $failed
