#!/usr/bin/env bash
# Trends: runs added to a trend file by several at once, a file that is cut, what the gate and the page say, and git bisect run with
# a real bisection over a scratch repository.
set -u
cd "$(dirname "$0")/../.." || exit 1
rq=$(realpath "${BIN:-build/bin}")/rankquake
dir=$TMPDIR/history
mkdir -p "$dir"
failed=0
fail() { echo "history: $*"; failed=1; }

expect() { # expect CODE WORDS COMMAND...: it ends so, and says that
    local code=$1 words=$2 rc
    shift 2
    "$@" >"$dir/said" 2>&1
    rc=$?
    [ $rc = "$code" ] || { fail "$* ends with $rc and not with $code"; cat "$dir/said"; }
    grep -qF -- "$words" "$dir/said" || { fail "$* does not say: $words"; cat "$dir/said"; }
}

# ---- one run, added, added again, and by several at once
"$rq" run scenarios/restart/worker-killed.yaml --repeat 6 --out "$dir/runs" >"$dir/said" 2>&1
rc=$?
[ $rc -le 2 ] || { fail "the runs end with $rc"; tail "$dir/said"; exit 1; }
runs=("$dir"/runs/*/)
file=$dir/trend.jsonl
expect 0 '1 run added' "$rq" history add "${runs[0]}" --file "$file" --commit aaa --branch main --machine m
expect 0 '0 runs added, 1 was there already' "$rq" history add "${runs[0]}" --file "$file" --commit aaa --branch main --machine m
for of in file directory; do
    to=$dir/many.jsonl
    [ $of = file ] || to=$dir/many/
    adding=()
    for run in "${runs[@]}"; do
        "$rq" history add "$run" --file "$to" --commit bbb --branch main --machine m >/dev/null &
        adding+=($!)
    done
    for one in "${adding[@]}"; do wait "$one" || fail "adding to a $of beside others fails"; done
    expect 0 '6 runs: ' "$rq" history show --file "$to"
done
[ "$(wc -l <"$dir/many.jsonl")" = 6 ] || fail 'six adds at once leave other than six lines'
grep -q '"calibration_ms":[1-9]' "$dir/many.jsonl" || grep -q '"calibration_ms":0\.[0-9]' "$dir/many.jsonl" || fail 'no calibration was kept'
grep -q '"kill/recover":[1-9]' "$dir/many.jsonl" || fail 'no recovery was kept'

# ---- a file that is cut in the middle
head -c $(($(wc -c <"$dir/many.jsonl") - 40)) "$dir/many.jsonl" >"$dir/cut.jsonl"
expect 0 "$dir/cut.jsonl:6 is cut off after" "$rq" history show --file "$dir/cut.jsonl"
grep -qF '5 runs: ' "$dir/said" || fail 'the whole lines of a cut file are not used'
last=$(tail -n 1 "$dir/many.jsonl" | sed 's/.*"id":"\([0-9a-f]*\)".*/\1/')
for run in "${runs[@]}"; do
    [ "$(sha256sum <"$run/history.jsonl" | cut -d' ' -f1)" != "$last" ] ||
        expect 0 '1 run added' "$rq" history add "$run" --file "$dir/cut.jsonl" --commit bbb --branch main --machine m
done
expect 0 '6 runs: ' "$rq" history show --file "$dir/cut.jsonl"
grep -qF 'cut.jsonl:6 is' "$dir/said" || fail 'a line that was cut is not named once more was added'

# ---- bad input
expect 64 'add, show or gate?' "$rq" history
expect 64 'did you mean show?' "$rq" history shwo
expect 64 'add which runs?' "$rq" history add
expect 64 'No such file' "$rq" history gate --file "$dir/none.jsonl"
expect 64 "$dir/none" "$rq" history add "$dir/none" --file "$file" --commit a --branch b
expect 64 '--runs 2' "$rq" history gate --runs 2 --file "$file"
expect 64 'no run of commit zzz' "$rq" history gate --commit zzz --file "$file"
expect 64 'the commit cannot be told' env -C "$dir" -u GITHUB_SHA -u CI_COMMIT_SHA -u GIT_COMMIT -u BUILDKITE_COMMIT -u CIRCLE_SHA1 \
    GIT_CEILING_DIRECTORIES="$dir" "$rq" history add "${runs[0]}" --file "$file"
expect 3 'is no plain file' "$rq" history add "${runs[0]}" --file /dev/null --commit a --branch b

# ---- commit and branch as a CI server and as git have them
repo=$dir/repo
git init -q -b trunk "$repo" && git -C "$repo" -c user.name=a -c user.email=a@b commit -q --allow-empty -m first || exit 1
head=$(git -C "$repo" rev-parse HEAD)
clean=(env -C "$repo" -u GITHUB_SHA -u GITHUB_HEAD_REF -u GITHUB_REF_NAME -u CI_COMMIT_SHA -u CI_COMMIT_BRANCH -u GIT_COMMIT -u GIT_BRANCH -u BRANCH_NAME)
expect 0 "commit ${head:0:12} on trunk" "${clean[@]}" "$rq" history add "${runs[0]}" --file "$dir/by-git.jsonl"
expect 0 'commit cafe on pull' "${clean[@]}" GITHUB_SHA=cafe GITHUB_HEAD_REF=pull GITHUB_REF_NAME=1/merge "$rq" history add "${runs[0]}" --file "$dir/by-ci.jsonl"

# ---- the gate: entries of one run, with times of their own
entries() { # entries COMMIT BRANCH FIRST N FACTOR CODE
    head -n 1 "$dir/many.jsonl" | awk -v commit="$1" -v branch="$2" -v first="$3" -v n="$4" -v factor="$5" -v code="$6" '{
        for (i = first; i < first + n; i++) {
            line = $0
            sub(/"id":"[^"]*"/, "\"id\":\"" commit "-" i "\"", line)
            sub(/"time_ns":[0-9]*/, "\"time_ns\":" i, line)
            sub(/"commit":"[^"]*"/, "\"commit\":\"" commit "\"", line)
            sub(/"branch":"[^"]*"/, "\"branch\":\"" branch "\"", line)
            sub(/"exit_code":[0-9]*/, "\"exit_code\":" code, line)
            sub(/"calibration_ms":[0-9.e-]*/, "\"calibration_ms\":2", line)
            sub(/"measures":.*/, "\"measures\":{\"job\":" 900 + i * 7 % 13 ",\"kill/recover\":" (100 + i * 5 % 11) * factor "}}", line)
            print line
        }
    }'
}
{ entries old main 1000 50 1 0; entries same change 2000 10 1 0; } >"$dir/same.jsonl"
expect 0 'no worse' "$rq" history gate --file "$dir/same.jsonl"
{ entries old main 1000 50 1 0; entries slow change 2000 10 1.2 0; } >"$dir/slow.jsonl"
expect 1 'slower' "$rq" history gate --file "$dir/slow.jsonl" --against main
grep -q 'kill/recover .*slower' "$dir/said" && ! grep -q ' job .*slower' "$dir/said" || fail 'the gate names another measure than the one that is slower'
{ entries old main 1000 50 1 0; entries few change 2000 4 1.2 0; } >"$dir/few.jsonl"
expect 2 'at least 10 of each are wanted' "$rq" history gate --file "$dir/few.jsonl"
{ entries old main 1000 50 1 0; entries bad change 2000 7 1 0; entries bad change 2010 3 1 1; } >"$dir/flaky.jsonl"
expect 1 'fails more often' "$rq" history gate --file "$dir/flaky.jsonl" --runs 5

# Two kinds of times that come and go, twice as long or not: neither slower nor cleared, and it says how many more runs would tell.
{ entries old main 1000 40 1 0; entries noisy change 2000 5 1 0; entries noisy change 2005 5 1.9 0; } >"$dir/noisy.jsonl"
expect 2 'this machine is too noisy for so few runs; about ' "$rq" history gate --file "$dir/noisy.jsonl" --measure kill/recover
grep -q 'about [1-9][0-9]* more of each are wanted, or run both alternately$' "$dir/said" || fail 'the gate does not say how many more runs it needs'

# ---- the page, with the first bad commit
{ for i in 1 2 3 4 5; do entries "good$i" main ${i}000 10 1 0; done; for i in 6 7 8; do entries "late$i" main ${i}000 10 1.3 0; done; } >"$dir/page.jsonl"
expect 0 'first bad commit' "$rq" history show --file "$dir/page.jsonl" --page "$dir/page.html"
grep 'first bad commit' "$dir/said" | grep -q late6 || { fail 'another commit is marked as the first bad one'; cat "$dir/said"; }
[ "$(grep -c '<svg' "$dir/page.html")" = 2 ] || fail 'the page has other than one chart for each measure'
grep -q 'first bad commit: late6' "$dir/page.html" || fail 'the page does not mark the first bad commit'

# ---- git bisect run: from the sixth commit on a job that was started again gives up; in the fifth it ends before the fault
for i in 1 2 3 4 5 6 7 8; do
    again='' steps=60
    [ $i -lt 6 ] || again='[ "$TORCHELASTIC_RESTART_COUNT" = 0 ] || exit 9'
    [ $i != 5 ] || steps=4
    printf '%s\nexec ranktrain --steps=%s --checkpoint-every=10 --checkpoint-dir="$1/ckpt"\n' "$again" $steps >"$repo/job.sh"
    git -C "$repo" add -A && git -C "$repo" -c user.name=a -c user.email=a@b commit -q --allow-empty -m "change $i" &&
        git -C "$repo" tag "c$i" || exit 1
done
cat >"$dir/bisect.yaml" <<END
job: {nnodes: "1", max_restarts: 1, run: [sh, "$repo/job.sh", "{shared}"]}
cluster: {nodes: 1}
timeline:
  - {id: kill, when: {step: 25}, fault: worker-kill, on: n0/0}
expect: {outcome: succeeded}
END
code_at() { # code_at TAG [OPTION...]
    git -C "$repo" checkout -q "$1" || exit 1
    shift
    "$rq" run "$dir/bisect.yaml" --bisect --out "$dir/bisected" "$@" >"$dir/said" 2>&1
}
code_at c1
rc=$?
[ $rc = 0 ] || { fail "--bisect gives $rc where the job passes"; tail -n 30 "$dir/said"; }
code_at c5
rc=$?
[ $rc = 125 ] || { fail "--bisect gives $rc where nothing can be told"; tail -n 30 "$dir/said"; }
code_at c8
rc=$?
[ $rc = 1 ] || { fail "--bisect gives $rc where a check fails"; tail -n 30 "$dir/said"; }
code_at c1 --set job.run='[false]'
rc=$?
[ $rc = 131 ] || fail "--bisect gives $rc where the control run broke"
code_at c1 --set job.no_such_word=1
rc=$?
[ $rc = 192 ] || fail "--bisect gives $rc where the scenario is wrong"
git -C "$repo" bisect start c8 c1 >/dev/null 2>&1
(cd "$repo" && git bisect run "$rq" run "$dir/bisect.yaml" --bisect --out "$dir/bisected") >"$dir/said" 2>&1
rc=$?
{ [ $rc = 0 ] || [ $rc = 2 ]; } && grep -Eq 'is the first bad commit|first bad commit could be any of' "$dir/said" || fail "git bisect run ends with $rc"
bad=$(git -C "$repo" bisect log | sed -n 's/^# \(first bad commit: \[\|possible first bad commit: \[\)\([0-9a-f]*\).*/\2/p')
grep -q "$(git -C "$repo" rev-parse c6)" <<<"$bad" || { fail "git bisect run finds another commit: $bad"; tail -n 30 "$dir/said"; }
git -C "$repo" bisect log | grep -q "^git bisect skip $(git -C "$repo" rev-parse c5)" ||
    [ "$(git -C "$repo" bisect log | grep -c skip)" = 0 ] || fail 'another commit than the fifth is skipped'
git -C "$repo" bisect reset -q >/dev/null 2>&1
exit $failed
