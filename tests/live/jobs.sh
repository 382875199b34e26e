#!/usr/bin/env bash
# run --jobs: runs go side by side, those with times alone; what they print is not mixed; the exit code is
# that of all of them; an interrupted one leaves nothing and starts no more.
set -u
dir=$TMPDIR/jobs
mkdir "$dir"
bad=0
fail() {
    echo "$*"
    cat "$dir/said"
    bad=1
}
scenario() { # scenario NAME [MORE [SHELL]]
    {
        echo "scenario: $1"
        echo 'cluster: {nodes: 1, store: none}'
        echo "job: {run: [sh, -c, '${3-exec sleep 1.5}']}"
        [ -z "${2-}" ] || echo "$2"
    } >"$dir/$1.yaml"
}
scenario one
scenario two
scenario three
# Killed, it has nothing more to do; and nothing in the control run.
scenario timed 'timeline: [{when: {time: 300ms}, fault: worker-kill, on: workers}]' \
    'case $TORCHELASTIC_RESTART_COUNT{out} in 0*/control) ;; 0*) exec sleep 1000 ;; esac'
# From when to when a run went, on one clock.
span() { # span NAME
    local history
    history=$(echo "$dir"/out/"$1"-*/history.jsonl)
    sed -n '1s/.*"t":\([0-9]*\).*/\1/p;$s/.*"t":\([0-9]*\).*/\1/p' "$history" | paste -sd' '
}
overlap() { # overlap NAME NAME
    local a b
    read -ra a <<<"$(span "$1")"
    read -ra b <<<"$(span "$2")"
    [ "${a[0]}" -lt "${b[1]}" ] && [ "${b[0]}" -lt "${a[1]}" ]
}

# The job of the control run is known from here on.
"$BIN/rankquake" run "$dir/one.yaml" --out "$dir/first" >"$dir/said" 2>&1
rc=$?
[ $rc = 4 ] && { tail -n 1 "$dir/said"; exit 77; }
[ $rc = 0 ] || { cat "$dir/said"; exit 1; }

"$BIN/rankquake" run "$dir"/{timed,one,two,three}.yaml --jobs 3 --out "$dir/out" >"$dir/said" 2>&1
rc=$?
[ $rc = 0 ] || fail "exit $rc, wanted 0"
grep -q '^4 runs: 4 passed' "$dir/said" || fail 'they were not counted'
if ! overlap one two && ! overlap two three && ! overlap one three; then fail 'none went beside another'; fi
for other in one two three; do
    if overlap timed "$other"; then fail "a run with times went beside $other"; fi
done
# Title, then the last line of the same run, before the next title.
order=$(sed -nE 's/^([a-z]+), seed 1$/\1/p; s,^again .*/([a-z]+)\.yaml.*,\1,p' "$dir/said" | uniq -c | awk '{print $1}' | paste -sd' ')
[ "$order" = '2 2 2 2' ] || fail "the output is mixed: $order"

# One fails, and it is the code of all.
scenario fails 'expect: {outcome: failed}'
"$BIN/rankquake" run "$dir"/{one,fails}.yaml --jobs 2 --out "$dir/mixed" >"$dir/said" 2>&1
rc=$?
[ $rc = 1 ] || fail "one of two failed: exit $rc, wanted 1"
grep -q '^2 runs: 1 passed, 1 failed' "$dir/said" || fail 'they were not counted'

# Interrupted in the middle.
"$BIN/rankquake" run "$dir"/{one,two,three}.yaml --jobs 2 --set 'job.run=[sh, -c, "case {out} in */control) ;; *) exec sleep 1000 ;; esac"]' \
    --out "$dir/cut" >"$dir/said" 2>&1 &
harness=$!
end=$((SECONDS + 180))
until [ "$(cat "$dir"/cut/*/history.jsonl 2>/dev/null | grep -c '"kind":"worker-start"')" = 2 ]; do
    [ $SECONDS -lt $end ] || { fail 'two never ran'; break; }
    read -rt 0.05 <> <(:) || :
done
kill -TERM $harness
wait $harness
rc=$?
[ $rc = 130 ] || fail "interrupted: exit $rc, wanted 130"
[ "$(ls "$dir/cut" | wc -l)" = 2 ] || fail "after the interruption: $(ls "$dir/cut")"
[ -z "$(find "$dir/cut" -name scratch)" ] || fail 'a scratch is left'

# A job that fails in the control run is told by its run, once, and as the format asks.
"$BIN/rankquake" run "$dir"/{one,two}.yaml --jobs 2 --set 'job.run=[sh, -c, "exit 7"]' --format tap --out "$dir/broken" >"$dir/said" 2>"$dir/err"
rc=$?
[ $rc = 3 ] || fail "a control run that fails: exit $rc, wanted 3"
[ "$(grep -c '^TAP version' "$dir/said")" = 2 ] || fail 'a report for each of two is wanted, and no more'
[ "$(ls "$dir/broken" | wc -l)" = 2 ] || fail "after control runs that failed: $(ls "$dir/broken")"

# Interrupted in the control run, which is made first: none is begun, and nothing of it is left.
"$BIN/rankquake" run "$dir"/{one,two}.yaml --jobs 2 --set 'job.run=[sleep, "1000"]' --out "$dir/first-cut" >"$dir/said" 2>&1 &
harness=$!
end=$((SECONDS + 180))
until grep -qs '"kind":"worker-start"' "$dir"/first-cut/*/control/history.jsonl; do
    [ $SECONDS -lt $end ] || { fail 'there was no control run'; break; }
    read -rt 0.05 <> <(:) || :
done
kill -TERM $harness
wait $harness
rc=$?
[ $rc = 130 ] || fail "interrupted in the control run: exit $rc, wanted 130"
[ -z "$(ls "$dir/first-cut")" ] || fail "after that interruption: $(ls "$dir/first-cut")"

# A control run that is made beside others is kept for the runs that follow, but for those that are measured by its pace.
(
    export XDG_CACHE_HOME=$dir/cache
    made() { cat "$dir"/cache/rankquake/control/*/control.json; }
    "$BIN/rankquake" run "$dir/one.yaml" --beside --control --out "$dir/ahead" >"$dir/said" 2>&1 || fail 'a control run alone'
    [ -z "$(ls "$dir/ahead")" ] || fail "after a control run alone: $(ls "$dir/ahead")"
    made | grep -q '"beside":true' || fail "it was made beside others: $(made)"
    "$BIN/rankquake" run "$dir/one.yaml" --out "$dir/kept" >"$dir/said" 2>&1 || fail 'a run after it'
    grep -q 'control run: kept' "$dir/said" || fail 'it was made again'
    "$BIN/rankquake" run "$dir/one.yaml" --set expect.goodput=1% --out "$dir/paced" >"$dir/said" 2>&1
    grep -q 'control run: kept' "$dir/said" && fail 'a pace was measured by it'
    made | grep -q '"beside"' && fail "it was not made anew: $(made)"
    exit $bad
) || bad=1

"$BIN/rankquake" run "$dir/one.yaml" --jobs 0 >"$dir/said" 2>&1
[ $? = 64 ] && grep -qF -- '--jobs 0: write a whole number from 1' "$dir/said" || fail '--jobs 0 was taken'
exit $bad
