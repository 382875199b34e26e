#!/usr/bin/env bash
# run, try, judge and report as steps of a CI server (--ci): which files they leave for which server, what they tell it, that a check
# which fails now and then is told apart, that no secret and no command of the job's comes through, and that those who read the
# files take them (ci/consumers; what cannot be asked here is named at the end).
# deadline: 300 s
set -u
. tests/live/runs.bash
unset GITHUB_ACTIONS GITHUB_STEP_SUMMARY GITHUB_OUTPUT GITLAB_CI BUILDKITE JENKINS_URL
tree=$PWD quake=$(cd "$BIN" && pwd)/rankquake consumers=$PWD/ci/consumers
unasked=()
secret='tok"en<&>_s3cr3t\value' # what each page and file spells otherwise

takes() { # takes KIND FILE...
    local why
    why=$("$consumers" "$@" 2>&1)
    case $? in
    0) ;;
    77) unasked+=("$1: $(tail -n 1 <<<"$why")") ;;
    *) fail "$1 is refused: $why" ;;
    esac
}
has() { # has WHAT FILE PATTERN
    grep -qE -- "$3" "$2" || fail "$1: $2 has no $3"
}
hides() { # hides WHAT FILE|DIR...: what is left of the secret is its name
    if grep -rlF -- 's3cr3t' "${@:2}"; then fail "$1: the secret is in it"; fi
}
step() { # step CODE VERB ARGUMENT...: what it prints to $dir/printed and $dir/said
    local code=$1 rc
    timeout 200 "$quake" "$2" --ci "${@:3}" >"$dir/printed" 2>"$dir/said" </dev/null
    rc=$?
    [ $rc = 4 ] && [ "$code" != 4 ] && { tail -n 1 "$dir/said"; exit 77; }
    [ $rc = "$code" ] || { fail "${*:2}: exit $rc, not $code"; tail -n 20 "$dir/printed"; }
}
cd "$dir" || exit 1

# Every second run of the job prints a word that nobody wants: the control run was the first.
cat >job.sh <<'END'
if [ "$RANK$TORCHELASTIC_RESTART_COUNT" = 00 ]; then
    echo run >>"$1/runs"
    [ $(($(wc -l <"$1/runs") % 2)) = 1 ] || echo unwanted
    echo "::error::injected by the job"
    printf 'token %s\n' "$HF_TOKEN"
fi
exec ranktrain --steps=12
END
cat >now-and-then.yaml <<END
scenario: now-and-then
cluster: {nodes: 2}
job: {run: [sh, $dir/job.sh, $dir]}
timeline: [{when: {step: 5}, fault: worker-kill, on: n1/0}]
expect: {log: [{never: /unwanted/}]}
END
cat >well.yaml <<'END'
scenario: well
cluster: {nodes: 2}
job: {run: [ranktrain, --steps=12]}
timeline: [{when: {step: 5}, fault: worker-kill, on: n1/0}]
END
cat >cannot.yaml <<'END'
scenario: cannot
feature: [command false]
cluster: {nodes: 1}
job: {run: [ranktrain, --steps=12]}
END

# ---- GitHub ----
export HF_TOKEN=$secret GITHUB_ACTIONS=true GITHUB_STEP_SUMMARY=$dir/step.md GITHUB_OUTPUT=$dir/output
echo 'what another step wrote' >step.md
step 1 run now-and-then.yaml --repeat 4 --out gh
for file in junit.xml ctrf.json summary.md; do [ -s gh/$file ] || fail "there is no gh/$file"; done
[ -e gh/gl-code-quality-report.json ] && fail "GitHub is given GitLab's file"
takes junit gh/junit.xml gh/now-and-then-*/junit.xml
takes ctrf gh/ctrf.json
has 'a flaky check' gh/junit.xml '<failure type="fail" message="did not pass in [12] of [0-9] runs: '
has 'a flaky check' gh/junit.xml '<flakyFailure '
has 'the rate' gh/junit.xml 'name="failure_rate_high" value="0\.'
has 'the worker that failed' gh/junit.xml '<system-out>'
has 'an attachment' gh/junit.xml '\[\[ATTACHMENT\|gh/now-and-then-1-[0-9-]*/report.html\]\]'
has 'a flaky test' gh/ctrf.json '"flaky":true'
has 'what others wrote' step.md '^what another step wrote'
has 'the summary' step.md '^### ❌ RankQuake: now-and-then.yaml: failed'
has 'the summary' step.md 'did not pass in'
has 'which variables are covered' step.md 'HF\\_TOKEN'
has 'outputs' output '^exit-code=1$'
hides 'what is written' gh step.md output printed said
grep -qa 'token \*\*\*' gh/now-and-then-*/logs/*/* || fail 'the log of the worker lost more than its secret'
# Only what stands behind the end is obeyed, and that is ours.
token=$(sed -n '1s/^::stop-commands:://p' printed)
[ -n "$token" ] || fail 'commands are not stopped'
[ "$(grep -c "^::$token::\$" printed)" = 1 ] || fail 'commands are not obeyed again at the end'
sed "1,/^::$token::\$/d" printed >annotations
has 'the annotation' annotations '^::error file=now-and-then.yaml,title=now-and-then%3A log::'
takes github annotations
LC_ALL=C grep -qP '\x1b|\r' printed said && fail 'something is written for a terminal'
[ "$(wc -c <gh/summary.md)" -lt "$(wc -c <step.md)" ] || fail 'the summary replaced what was there'

# A summary that cannot be written is named, and costs nothing else.
export GITHUB_STEP_SUMMARY=$dir/nowhere/step.md
step 3 run well.yaml --out unwritten
has 'what is in the way' said 'nowhere/step.md, which GITHUB_STEP_SUMMARY names'
[ -s unwritten/junit.xml ] || fail 'the other files are not written'
unset GITHUB_ACTIONS GITHUB_STEP_SUMMARY GITHUB_OUTPUT

# ---- GitLab ----
export GITLAB_CI=true
step 1 run now-and-then.yaml well.yaml cannot.yaml --repeat 2 --jobs 2 --out gl
takes gitlab gl/gl-code-quality-report.json
takes junit gl/junit.xml
takes ctrf gl/ctrf.json
has 'a skipped scenario' gl/junit.xml '<testsuite name="cannot" tests="2" failures="0" errors="0" skipped="2"'
has 'two that passed' gl/junit.xml '<testsuite name="well" tests="[0-9]+" failures="0" errors="0"'
has 'the table' gl/summary.md '\| well \| passed \| 2, 0 failed \(0 to 66 %\) \|'
hides 'what is written side by side' gl printed said
unset GITLAB_CI

# ---- Jenkins, Buildkite, none ----
JENKINS_URL=http://ci.example/ step 0 report gl/well-* --out again
takes junit again/junit.xml
has 'runs that were made before' again/summary.md '\| well \| passed \| 2, '
[ -e again/gl-code-quality-report.json ] && fail 'Jenkins is given what GitLab reads'
BUILDKITE=true step 1 judge "$(grep -l '"exit_code":1' gl/now-and-then-*/verdict.json | head -n 1 | xargs dirname)"
[ "$(tail -n 1 printed)" = '^^^ +++' ] || fail 'Buildkite is not asked to open what failed'
step 0 try --out tried --budget 2m -- rankrun --nnodes 1 --nproc-per-node 1 ranktrain --steps=60 --compute-ms=10
takes junit tried/junit.xml
takes ctrf tried/ctrf.json
has 'the runs of try' tried/summary.md '\| worker-killed \| passed \| 1 \|'
"$quake" judge nowhere.jsonl --scenario well.yaml --ci >printed 2>said
[ $? = 64 ] || fail 'a history from elsewhere has no directory'

# ---- the reports of one run ----
one=$(echo gl/well-* | cut -d ' ' -f 1)
for kind in tap prometheus trace; do
    "$quake" report "$one" --to $kind >report.$kind || fail "no $kind"
    takes $kind report.$kind
done
# The one who reads traces refuses what its UI would not show whole: slices of a track that overlap.
printf '{"traceEvents":[{"ph":"M","name":"process_name","pid":1,"tid":0,"ts":0,"args":{"name":"p"}},%s,%s]}\n' \
    '{"ph":"X","name":"a","pid":1,"tid":0,"ts":0,"dur":10}' '{"ph":"X","name":"b","pid":1,"tid":0,"ts":5,"dur":10}' >overlap.json
"$consumers" trace overlap.json >said 2>&1
case $? in 1 | 77) ;; *) fail 'slices that overlap are taken' ;; esac
for why in ${unasked[@]+"${unasked[@]}"}; do echo "not asked: $why"; done
cd "$tree" || exit 1
exit $failed
