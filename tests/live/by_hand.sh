#!/usr/bin/env bash
# A run that takes faults by hand: it stands still at its start and at a step, is told what to do by watch and by standard
# input, is judged by what was done as if it had stood in its file, and leaves nothing. What is wrong is refused with a sentence.
# deadline: 300 s
set -u
rq=$(realpath "$BIN")/rankquake
dir=$TMPDIR/hand
mkdir "$dir"
failed=0

fail() {
    echo "$*"
    failed=1
}
cat >"$dir/s.yaml" <<'END'
scenario: by-hand
cluster: {nodes: 2}
job: {run: [ranktrain, --steps=40, --compute-ms=10], workers_per_node: 1}
END
waits_for() { # waits_for TEXT: in what the run says, on descriptor 7
    local line
    while IFS= read -r -t 180 -u 7 line; do
        echo "$line" >>"$dir/seen"
        [[ $line == *$1* ]] && return 0
    done
    return 1
}
begin() { # begin ARGUMENT...: leaves the harness in $harness and its directory in $run
    rm -rf "$dir/out"
    : >"$dir/seen"
    exec 7< <(exec "$rq" run "$dir/s.yaml" --out "$dir/out" "$@" 2>&1 </dev/null)
    harness=$!
}
say() { # say EXIT TEXT LINE
    "$rq" watch "$run" --say "$3" >"$dir/said" 2>&1
    local rc=$?
    [ $rc = "$1" ] || fail "$3: exit $rc, not $1: $(cat "$dir/said")"
    grep -qF -- "$2" "$dir/said" || fail "$3: it does not say \"$2\": $(cat "$dir/said")"
}
ends() { # ends EXIT: the run that was begun
    cat <&7 >>"$dir/seen"
    wait "$harness"
    local rc=$?
    [ $rc = "$1" ] || fail "exit $rc, not $1: $(tail -n 30 "$dir/seen")"
    exec 7<&-
    [ ! -e "$run/hand.sock" ] && [ ! -e "$run/by-hand.yaml" ] && [ ! -e "$run/presence.json" ] || fail "something is left: $(ls "$run")"
}

# ---- it stands still at its start, and at a step; what is done there is judged ----
begin --paused
waits_for 'it stands still until somebody says go' || { tail -n 1 "$dir/seen"; wait "$harness"; [ $? = 4 ] && exit 77; exit 1; }
run=$(echo "$dir"/out/*)
grep -q '"worker-start"' "$run/history.jsonl" && fail 'a worker was started before somebody said go'
[ "$(stat -c %a "$run/hand.sock")" = 600 ] || fail "the socket is for others, too: $(stat -c %a "$run/hand.sock")"
say 1 'there is no fault "worker-kil"; did you mean "worker-kill"?' 'worker-kil n1/0'
say 1 'there is no n7' 'worker-kill n7/0'
say 1 'needs a target' 'node-freeze'
say 1 'write FAULT TARGET KEY=VALUE' 'worker-kill n1/0 n0/0'
say 1 'by hand a fault comes at a step' '{fault: worker-kill, on: n1/0, when: {syscall: fsync}}'
say 1 'nothing of that name is in force' 'heal nobody'
say 1 'write the number of a step' 'break soon'
say 1 'write FAULT TARGET' ' '
cmp -s <(grep -c hand- "$run/scenario.yaml") <(echo 0) || fail "what was refused stands in the scenario: $(cat "$run/scenario.yaml")"
say 0 'it stands still when a worker comes to step 20' 'break 20'
say 0 'it goes on' go
waits_for 'it stands still until somebody says go' || fail 'it does not stand still at step 20'
say 0 'hand-1' 'worker-kill n1/0'
say 0 'it goes on' go
ends 0
grep -q 'hand-1: worker-kill on n1/0' "$dir/seen" || fail "the report does not have it: $(cat "$dir/seen")"
grep -q 'restart_count  *1 after 2 rounds, as the faults imply' "$dir/seen" || fail "it is not judged as a fault: $(grep restart "$dir/seen")"
grep -q 'fired  *1 of 1 fired, came in force and left evidence' "$dir/seen" || fail "it is not judged as one of the timeline: $(grep fired "$dir/seen")"
"$rq" judge "$run" >"$dir/said" 2>&1 || fail "judged again: $(cat "$dir/said")"
grep -q '1 of 1 fired' "$dir/said" || fail "judged again it is another: $(grep fired "$dir/said")"
grep -q '"by-hand","line":"worker-kil n1/0","error":"there is no fault' "$run/history.jsonl" || fail 'what was refused is not in the history'
"$rq" lint "$run/scenario.yaml" >"$dir/said" 2>&1 || fail "what was done cannot be done again: $(cat "$dir/said")"
"$rq" watch "$run" | grep -q 'worker-kill on n1/0' || fail 'watch does not show it'
say 64 'takes nothing by hand' go

# ---- from standard input; what still lasts is undone at the end ----
rm -rf "$dir/out"
printf 'go\n{fault: node-freeze, on: n0, when: {step: 15}, for: 200ms}\n{fault: worker-slow, on: n1/0, when: {step: 20}}\nno-such n0\n' |
    "$rq" run "$dir/s.yaml" --paused --out "$dir/out" >"$dir/seen" 2>&1 || fail "standard input: $(cat "$dir/seen")"
run=$(echo "$dir"/out/*)
for text in 'ok it will not stand still at its start' 'ok hand-1' 'ok hand-2' 'no there is no fault "no-such"'; do
    grep -qF "$text" "$dir/seen" || fail "standard input: no answer \"$text\""
done
for id in hand-1 hand-2; do
    grep -q "\"fault-recovered\",\"id\":\"$id\",\"n\":1}" "$run/history.jsonl" || fail "$id was not undone"
done

# ---- who watches is killed in the middle, and then the harness ----
begin --paused
waits_for 'it stands still until somebody says go' || fail 'it does not stand still'
run=$(echo "$dir"/out/*)
"$rq" watch "$run" >/dev/null 2>&1 &
watcher=$!
say 0 'step 20' 'break 20'
kill -KILL "$watcher"
wait "$watcher" 2>/dev/null
say 0 'it goes on' go
waits_for 'it stands still until somebody says go' || fail 'it does not stand still at step 20'
say 0 'hand-1' 'node-freeze n0'
kill -KILL "$harness"
exec 7<&-
wait "$harness" 2>/dev/null
"$rq" clean "$dir/out" >"$dir/said" 2>&1 || fail "clean: $(cat "$dir/said")"
pgrep -f "$dir/out" >/dev/null && fail "something runs on: $(pgrep -af "$dir/out")"

# ---- what is none of it ----
"$rq" run "$dir/s.yaml" --interactive --jobs 2 --out "$dir/out" >"$dir/said" 2>&1 </dev/null
[ $? = 64 ] || fail "--jobs: not refused: $(cat "$dir/said")"
exit $failed
