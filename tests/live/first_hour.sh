#!/usr/bin/env bash
# The mistakes of a first hour, through the real program: each ends with the exit code it should, and with
# a sentence that helps. What the loader alone refuses stands in tests/harness/scenario/test_bad_input.c,
# what starts nothing in tests/live/bad_input.sh.
# deadline: 300 s
set -u
rq=$BIN/rankquake
cd "$(dirname "$0")/../.." || exit 1
dir=$TMPDIR/hour
mkdir "$dir"
good=$dir/good.yaml three=scenarios/membership/node-killed.yaml
failed=0
# How quick it is, is not asked here: a machine that stands still cannot be.
sed '/_within:/d' scenarios/restart/worker-killed.yaml >"$good"

fail() {
    echo "$*"
    cat "$dir/said"
    failed=1
}

# What was said, as one line: reports fold what is long.
said() {
    tr -s '\n ' '  ' <"$dir/said"
}

try() { # try WHAT CODE TEXT COMMAND...
    local what=$1 code=$2 text=$3
    shift 3
    timeout 300 "$@" >"$dir/said" 2>&1 </dev/null
    local rc=$?
    [ $rc = 4 ] && [ "$code" != 4 ] && { tail -n 1 "$dir/said"; exit 77; }
    [ $rc = "$code" ] || fail "$what: exit $rc, not $code"
    said | grep -qF -- "$text" || fail "$what: did not say: $text"
}

run() { # run WHAT CODE TEXT FILE [ARGUMENT...]
    local what=$1 code=$2 text=$3 file=$4
    shift 4
    try "$what" "$code" "$text" "$rq" run "$file" --out "$dir/out" "$@"
}

# ---- the scenario ----
run 'a misspelt key' 64 'did you mean "max_restarts"?' $good --set job.max_restart=1
run 'a misspelt fault' 64 'did you mean "worker-kill"?' $good --set timeline.0.fault=worker-kil
run 'a wrong unit' 64 'is not a duration; write 250ms, 2s, 5m or 1h' $good --set limits.total=2minutes
run 'no unit' 64 'is not a duration' $good --set expect.recover_within=10
run 'a step in words' 64 'step must be a whole number, not "halfway"' $good --set timeline.0.when.step=halfway
run 'a node that is not there' 64 'there is no n7: the cluster has 3 nodes, n0 first' $three --set timeline.0.on=n7
run 'a worker that is not there' 64 'there is no n0/5: a node has 1 worker' $good --set timeline.0.on=n0/5
run 'a fault on what it is not for' 64 'node-kill cannot be aimed at workers' $three --set timeline.0.on=workers
run 'an expectation that no check answers' 64 'expect has no key "speed"' $good --set expect.speed=fast
run 'a world that cannot be' 64 'world_sizes: 7 can never be' $three --set 'expect.world_sizes=[7]'
run 'two faults that contradict each other' 64 'nothing is left to hit: kill (node-kill) has ended n2 by then' $three \
    --set 'timeline=[{id: kill, when: {step: 50}, fault: node-kill, on: n2}, {when: {step: 60}, fault: worker-kill, on: n2}]'
run 'a node started that is on' 64 'n0 is on from the beginning' $three \
    --set 'timeline=[{when: {step: 50}, fault: node-start, on: n0}]'
run 'a budget for another fault' 64 'no entry of the timeline has the id "dark"' $good --set 'expect.detect_within={dark: 2s}'
run 'a folder of the wrong name' 64 'no/such: cannot be opened: No such file or directory' no/such
run 'a seed in words' 64 '--seed lucky: write a whole number' $good --seed lucky
run 'a report that does not exist' 64 'there is no such report' $good --format pdf

# ---- the job ----
run 'a program that is not there' 64 'there is no script trian.py' $good --set 'job.run=[trian.py]'
run 'an option that the job does not know' 3 'the job failed in the control run' $good --set 'job.run=[ranktrain, --stepps=5]'

# ---- the run ----
run 'a step that is never reached' 2 'step 5000 never came' $good --set timeline.0.when.step=5000
grep -qF 'inconclusive: fired' "$dir/said" || fail 'a step that is never reached: fired does not decide'
run 'a fault that comes when all is over' 2 'the job ended before its trigger came true' $good \
    --set 'timeline=[{id: kill, when: {time: 100s}, fault: worker-kill, on: rank 0}]'
run 'a wrong expectation' 1 'restarts 1 in round 2' $good --set expect.restarts=0

# ---- where it is written ----
echo a file >"$dir/file"
try '--out is a file' 3 "$dir/file: Not a directory; another place can be named with --out" "$rq" run $good --out "$dir/file"
try '--out below a file' 3 'another place can be named with --out' "$rq" run $good --out "$dir/file/deeper"
try '--out that cannot be made' 3 '/proc/no: No such file or directory; another place' "$rq" run $good --out /proc/no
# Root may write everywhere; a user may not.
[ "$(id -u)" = 0 ] || try '--out of somebody else' 3 'Permission denied; another place' "$rq" run $good --out /root/runs
# A disk of one's own, as small as is wanted.
small=(unshare -rm sh -c 'mount -t tmpfs -o "size=$0" none "$1" && shift && exec "$@"')
mkdir "$dir/small"
if "${small[@]}" 64k "$dir/small" true 2>/dev/null; then
    try 'no disk space' 3 'make room, or name another place with --out' \
        "${small[@]}" 64k "$dir/small" "$rq" run $good --out "$dir/small"
    try 'a disk that fills up' 3 'the history of the run' \
        "${small[@]}" 17m "$dir/small" "$rq" run $good --out "$dir/small" \
        --set 'job.run=[sh, -c, "head -c 30000000 /dev/zero >{shared}/fill; sleep 0.5"]' --set 'timeline=[]' --set 'expect={}'
fi
try 'two runs at once into one folder' 0 'passed' sh -c '"$0" run "$1" --out "$2" & "$0" run "$1" --out "$2" && wait $!' \
    "$rq" $good "$dir/both"
[ "$(ls "$dir/both" | wc -l)" = 2 ] || fail 'two runs at once: not two directories'

# ---- where it is read ----
echo 'job: {run: [sleep, "0.2"]}' >"$dir/short.yaml"
timeout 300 "$rq" run "$dir/short.yaml" --out "$dir/out" 2>"$dir/said" </dev/null | head -n 1 >/dev/null
[ "${PIPESTATUS[0]}" = 0 ] || fail "a pipe that closes: exit ${PIPESTATUS[0]}, not 0"
timeout 300 "$rq" run "$dir/short.yaml" --out "$dir/out" >&- 2>"$dir/said" </dev/null
[ $? = 0 ] || fail 'no standard output: not 0'
[ -e /dev/full ] && try 'a full standard output' 3 'print the report: No space left on device' \
    sh -c '"$@" >/dev/full' sh "$rq" run "$dir/short.yaml" --out "$dir/out"
narrow() { # narrow COLUMNS ARGUMENT...: in a terminal of so many columns, without what colours it
    script -qec "stty cols $1 && $rq ${*:2}" /dev/null </dev/null | sed 's/\x1b\[[0-9;?]*[a-zA-Z]//g; s/.*\r\(.\)/\1/; s/\r//g'
}
if command -v script >/dev/null; then
    narrow 40 run $good --out "$dir/out" >"$dir/said"
    grep -q 'passed' "$dir/said" || fail '40 columns: no verdict'
    wide=$(awk '{ gsub(/[\200-\277]/, "") } length > 40' "$dir/said")
    [ -z "$wide" ] || fail "40 columns: wider lines: $wide"
fi

# ---- a run that is not one ----
try 'judging nothing' 64 'which run?' "$rq" judge
try 'judging a folder of runs' 64 'is no run: scenario.yaml is missing' "$rq" judge "$dir/out"
try 'a verb misspelt' 64 'did you mean "run"?' "$rq" rnu $good
try 'a word nobody knows' 64 'did you mean' "$rq" explain worker-kil
exit $failed
