#!/usr/bin/env bash
# watch: a run is shown while it goes on, to its end, and one that has ended; a harness that is killed ends it with a
# sentence; and who watches leaves no trace in the run.
# deadline: 300 s
set -u
rq=$(realpath "$BIN")/rankquake
dir=$TMPDIR/watch
mkdir "$dir"
failed=0

fail() {
    echo "$*"
    failed=1
}

# The job waits at step 6 until somebody has seen it: whoever watches decides how long it lasts.
cat >"$dir/s.yaml" <<'END'
scenario: watched
cluster: {nodes: 1, store: none}
job:
  run: [sh, -c, 'for i in 1 2 3 4 5; do echo "step $i"; done; case {out} in */control) ;; *) mkfifo {out}/gate; echo "step 6"; cat {out}/gate >/dev/null ;; esac; echo "step 7"']
observe: {step: 'step ([0-9]+)'}
timeline: [{when: {step: 6}, fault: worker-hang, on: workers, for: 100ms}]
END
waits_for() { # waits_for TEXT <FILE: of what comes, until it does
    local line
    while IFS= read -r -t 180 line; do
        echo "$line" >>"$dir/seen"
        [[ $line == *$1* ]] && return 0
    done
    return 1
}
begin() { # leaves the harness in $harness and its directory in $run
    : >"$dir/seen"
    rm -rf "$dir/out"
    exec 7< <(exec "$rq" run "$dir/s.yaml" --out "$dir/out" 2>&1)
    harness=$!
    waits_for 'worker-hang' <&7 || { tail -n 1 "$dir/seen"; grep -q 'cannot\|needs' "$dir/seen" && exit 77; exit 1; }
    run=$(echo "$dir"/out/*)
}

# ---- as it goes on ----
begin
cp -a "$run/scenario.yaml" "$dir/before.yaml"
exec 8< <(exec "$rq" watch "$run" 2>&1)
watcher=$!
waits_for 'worker-hang' <&8 || fail 'who watches is not told of the fault'
kill -0 "$watcher" || fail 'it does not wait for the rest'
timeout 60 sh -c 'echo >"$0"' "$run/gate" || fail 'the job does not come to its gate'
cat <&8 >"$dir/said"
wait "$watcher"
[ $? = 0 ] || fail "watching to the end: exit $?: $(cat "$dir/said")"
grep -q 'rank 0 .* step 7' "$dir/said" || fail "the lane does not come to step 7: $(cat "$dir/said")"
cat <&7 >/dev/null
wait "$harness" || fail 'the run that was watched did not pass'
cmp -s "$run/scenario.yaml" "$dir/before.yaml" || fail 'who watches has changed the run'

# ---- one that has ended ----
"$rq" watch "$run" >"$dir/said" 2>&1 || fail "one that has ended: exit $?"
grep -q 'watched, seed 1 .* ended' "$dir/said" || fail "one that has ended: $(cat "$dir/said")"
grep -q 'worker-hang on n0/0.* over' "$dir/said" || fail "its fault is not over: $(cat "$dir/said")"

# ---- who watches is killed in the middle, and so is the harness ----
begin
"$rq" watch "$run" >/dev/null 2>&1 &
watcher=$!
exec 8< <(exec "$rq" watch "$run" 2>&1)
second=$!
waits_for 'worker-hang' <&8 || fail 'the second who watches is told nothing'
kill -KILL "$watcher"
wait "$watcher" 2>/dev/null
kill -0 "$harness" || fail 'the run ended with who watched it'
kill -KILL "$harness"
cat <&8 >"$dir/said"
wait "$second"
[ $? = 3 ] || fail "its harness was killed: exit $?, not 3"
grep -q 'its harness has ended before its history did' "$dir/said" || fail "its harness was killed: $(cat "$dir/said")"
exec 7<&-
wait "$harness" 2>/dev/null
"$rq" clean "$dir/out" >"$dir/said" 2>&1 || fail "clean: $(cat "$dir/said")"

# ---- a terminal ----
if command -v script >/dev/null; then
    first=$(echo "$dir"/out/*)
    for size in '80 24' '30 8' '200 50'; do
        TERM=xterm script -qec "stty cols ${size% *} rows ${size#* }; exec '$rq' watch '$first'" /dev/null </dev/null >"$dir/said"
        grep -q $'\033\[K' "$dir/said" || fail "$size: no frame is drawn"
        [ "$(grep -c 'rank 0' "$dir/said")" -ge 1 ] || fail "$size: there is no lane: $(cat -v "$dir/said")"
        [ "$(wc -l <"$dir/said")" -le "$((${size#* } + 1))" ] || fail "$size: more lines than the terminal has: $(cat -v "$dir/said")"
    done
fi

# ---- what is no run ----
refused() { # refused TEXT ARGUMENT...
    "$rq" watch "${@:2}" >"$dir/said" 2>&1
    [ $? = 64 ] || fail "watch ${*:2}: not refused"
    grep -q -- "$1" "$dir/said" || fail "watch ${*:2}: $(cat "$dir/said")"
}
refused 'name the directory of one run'
refused 'there is no run' "$dir/none"
refused 'this is no run' "$dir/s.yaml"
refused 'this is no run' "$dir/out"
mkdir "$dir/bad" && cp "$dir/before.yaml" "$dir/bad/scenario.yaml"
refused 'history.jsonl' "$dir/bad"
echo '{"no": "history"}' >"$dir/bad/history.jsonl"
"$rq" watch "$dir/bad" >"$dir/said" 2>&1 && fail 'what is no history was shown'
grep -q 'record 1' "$dir/said" || fail "no history: $(cat "$dir/said")"
exit $failed
