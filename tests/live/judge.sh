#!/usr/bin/env bash
# A recorded run is judged and rendered again from its directory alone, and what is no run is refused.
set -u
rq=$BIN/rankquake
cd "$(dirname "$0")/../.." || exit 1
run=$TMPDIR/run
mkdir "$run"
failed=0

expect() { # expect CODE TEXT ARGUMENT...
    local code=$1 text=$2
    shift 2
    timeout 300 "$rq" "$@" >"$TMPDIR/said" 2>&1 </dev/null
    local rc=$?
    [ $rc = "$code" ] && grep -qF -- "$text" "$TMPDIR/said" && return
    echo "rankquake $*: wanted exit $code and \"$text\", got exit $rc and:"
    cat "$TMPDIR/said"
    failed=1
}

cat >"$run/scenario.yaml" <<'END'
scenario: worker-killed
cluster: {nodes: 1}
job:
  nnodes: 1
  workers_per_node: 2
  run: [train, "--checkpoint-dir={shared}/ckpt"]
timeline:
  - {id: kill, when: {step: 5}, fault: worker-kill, on: rank 1}
expect: {restarts: 1, model: same-as-undisturbed, recover_within: 2s}
END
good=tests/histories/worker-killed.jsonl

cp "$good" "$run/history.jsonl"
expect 0 'worker-killed passed' judge "$run"
for file in verdict.json report.html report.json junit.xml; do
    [ -s "$run/$file" ] || { echo "$file was not written"; failed=1; }
done
expect 0 '"outcome":"passed"' report "$run" --to json
expect 0 '<testsuite name="worker-killed"' report "$run" --to junit
expect 0 'again      rankquake run' report "$run"
expect 64 'did you mean junit?' report "$run" --to jnit

sed 's/COUNT":"1"/COUNT":"2"/' "$good" >"$run/history.jsonl"
expect 1 'failed: restart_count' judge "$run"

# What others read is read by the others' own programs, where they are.
consume() { # consume REPORT PROGRAM ARGUMENT...: it takes the report at its standard input
    local name=$1
    shift
    command -v "$1" >/dev/null || return
    "$rq" report "$run" --to "$name" >"$TMPDIR/$name"
    "$@" <"$TMPDIR/$name" >"$TMPDIR/said" 2>&1 && return
    echo "$name: $* says:"
    cat "$TMPDIR/said"
    failed=1
}
consume junit xmllint --noout -
consume prometheus promtool check metrics
for name in ctrf gitlab json trace; do
    consume $name python3 -m json.tool
done
consume csv python3 -c '
import csv, sys
rows = list(csv.DictReader(sys.stdin))
assert [(r["fault"], r["outcome"]) for r in rows] == [("worker-kill", "failed")] and None not in rows[0], rows'
# Debian's parser is older than version 14, whose lines are those of 13 here.
consume tap perl -MTAP::Parser -e '
my $tap = do { local $/; <STDIN> };
$tap =~ s/^TAP version 14$/TAP version 13/m or die "no version";
my $p = TAP::Parser->new({tap => $tap});
$p->run;
die join "\n", $p->parse_errors if $p->parse_errors;
die "not " . $p->failed . " points failed" if $p->failed < 1;'
sed '/fault-evidence/d' "$good" >"$run/history.jsonl"
expect 3 '1 record is missing' judge "$run"
sed '/fault-evidence/d' "$good" | awk '{ sub(/"seq":[0-9]+/, "\"seq\":" NR) } 1' >"$run/history.jsonl"
expect 2 'inconclusive: fired' judge "$run"
head -c 9000 "$good" >"$run/history.jsonl"
expect 3 'the harness was killed' judge "$run"
sed 's/"left":\[\]/"left":["process 7"]/' "$good" >"$run/history.jsonl"
expect 5 '1 left: process 7' judge "$run"
sed '/job-end/i {"seq":64,"t":1159000000,"source":"harness","kind":"interrupted","signal":2}' "$good" |
    awk '{ sub(/"seq":[0-9]+/, "\"seq\":" NR); print }' >"$run/history.jsonl"
expect 130 'interrupted' judge "$run"

{ head -n 1 "$good" && echo '{"seq":2,' && echo '{}'; } >"$run/history.jsonl"
expect 64 'history.jsonl:2: JSON: expected' judge "$run"
rm "$run/history.jsonl"
expect 64 'history.jsonl is missing' judge "$run"
expect 64 'No such file or directory' judge "$run/none"
expect 64 'which run?' judge
expect 64 'one directory at a time' judge "$run" "$run"
exit $failed
