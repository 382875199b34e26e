#!/usr/bin/env bash
# Jobs and launchers that lie (tests/liars): each lie is caught by the check that tests/liars/README.md names, or is
# admitted there; the same job and launcher without a lie pass.
# deadline: 200 s
set -u
. tests/live/runs.bash

cat >"$dir/job.yaml" <<END
scenario: liar
cluster: {nodes: 1}
job:
  workers_per_node: 2
  run: [sh, $PWD/tests/liars/job.sh, none, "{shared}/ckpt"]
  env: {JOB_SECRET: kept}
  checkpoint: {dir: "{shared}/ckpt", complete: "ls | sed -n 's/^saved-//p'"}
observe:
  step: '^step (\\d+)/20'
  loss: ' loss (\\d+)'
  resume: '^resuming from step (\\d+)'
  checkpoint-commit: '^saved step (\\d+)'
  done: '^finished, model (\\w+)'
timeline: [{id: kill, when: {step: 8}, fault: worker-kill, on: rank 0}]
expect: {model: same-as-undisturbed}
limits: {total: 240s}
END
caught() { # caught CHECK: by it, whatever else is said
    LC_ALL=C.UTF-8 "$BIN/rankquake" judge "$dir"/out/* 2>&1 | grep -qE "^ *✗ $1 " || fail "$what: $1 does not catch it"
}
told() { # told CODE LIE... [--launcher ..]: the run of a job that tells this lie
    sed "s/job.sh, none/job.sh, $2/" "$dir/job.yaml" >"$dir/lie.yaml"
    runs "$what" "$1" "$dir/lie.yaml" "${@:3}"
}
job() { # job LIE CHECK
    what="a job: $1"
    told 1 "$1"
    caught "$2"
}
launcher() { # launcher LIE CHECK
    what="a launcher: $1"
    told 1 none --launcher "bash $PWD/tests/liars/launcher.sh $1 {worker}"
    caught "$2"
}
# A lie that is told in the control run too: no fault is tried then.
job_at_once() { # job_at_once LIE WORDS
    what="a job: $1"
    told 3 "$1"
    said "$what" "failed in the control run, .*$2"
}
launcher_at_once() { # launcher_at_once LIE WORDS
    what="a launcher: $1"
    told 3 none --launcher "bash $PWD/tests/liars/launcher.sh $1 {worker}"
    said "$what" "failed in the control run, .*$2"
}
admitted() { # admitted LIE: whoever makes a check catch it takes it out of the README's list, too
    what="a job: $1, which tests/liars/README.md says is not caught"
    told 0 "$1"
}

what='an honest job'
told 0 none
what='an honest launcher'
told 0 none --launcher "bash $PWD/tests/liars/launcher.sh none {worker}"

job good-in-control model
job forgets-weights resumed_loss
job stops-saving saving
job keeps-silent model
launcher restart-count agreement
launcher forgets-variable given
launcher success-after-failure one_outcome
sed -i 's/on: rank 0}/on: rank 0, times: 2}/' "$dir/job.yaml"
launcher keeps-file drift
sed -i 's/, times: 2}/}/' "$dir/job.yaml"
[ "${LIARS-}" = all ] || exit $failed # tests/soak/liars.sh has time for the others

job ends-early model
job_at_once commit-not-on-disk 'had printed 4 commits, the last of step 20; after round 1 none is complete'
job saves-in-words saving
job tidies-up checkpoints
job renumbers model
admitted steps-never-run
admitted resumed-from

launcher ignores-sigterm given
launcher one-restarted one_round
launcher_at_once fewer-workers 'the last round never became complete'
launcher_at_once port-of-each 'MASTER_PORT is 2950'

# A job that answers what it is asked for, and lies by accident.
type -P python3 >"$dir/said" || { echo 'no python3 here'; exit $failed; }
cat >"$dir/job.yaml" <<END
scenario: liar
cluster: {nodes: 1}
job:
  workers_per_node: 2
  run: [python3, $PWD/tests/liars/asked.py, none, "{shared}/ckpt"]
  checkpoint: {dir: "{shared}/ckpt", complete: "ls | sed -n 's/^saved-//p'"}
timeline: [{id: kill, when: {step: 8}, fault: worker-kill, on: rank 0}]
expect: {model: same-as-undisturbed, weights: same-as-undisturbed, epochs: shuffled}
limits: {total: 240s}
END
asked() { # asked LIE CODE WORDS
    what="a job that is asked: $1"
    sed "s/asked.py, none/asked.py, $1/" "$dir/job.yaml" >"$dir/lie.yaml"
    runs "$what" "$2" "$dir/lie.yaml"
    said "$what" "$3"
}
asked none 0 'liar passed'
asked hash-of-nothing 2 '\? weights +20 steps that count told the same weights, e3b0c442'
asked same-order 3 'failed in the control run, .*order'
asked same-part 3 'failed in the control run, .*twice'
exit $failed
