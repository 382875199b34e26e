#!/usr/bin/env bash
# Histories from elsewhere: one out of a plain log is judged by our checks, and by a program of the user's own; what is
# cut, muddled, of tomorrow or hostile is named or left open, and never passes.
# deadline: 60 s
set -u
rq=$BIN/rankquake here=tests/live/histories
fails=0
expect() { # WHAT CODE PATTERN: judges $TMPDIR/h.jsonl by $TMPDIR/s.yaml
    "$rq" judge --programs --scenario "$TMPDIR/s.yaml" "$TMPDIR/h.jsonl" >"$TMPDIR/out" 2>&1
    local code=$?
    [ "$code" = "$2" ] && grep -Eq -e "$3" "$TMPDIR/out" && return
    echo "$1: exit code $code, expected $2 and \"$3\":"
    head -n 20 "$TMPDIR/out"
    fails=$((fails + 1))
}
scenario() { # [CHECKS]
    cat >"$TMPDIR/s.yaml" <<EOF
scenario: from-a-log
cluster: {nodes: 1}
job: {workers_per_node: 2, run: [train, --checkpoint-every=2]}
expect: {restarts: 1, world_sizes: [2, 2]}
${1-}
EOF
}
convert() { python3 $here/from_log.py >"$TMPDIR/h.jsonl"; }
whole() { convert <$here/train.log; }

scenario
whole
expect 'a log in which all is well' 0 '^checks  23 of 23 passed'
cp "$TMPDIR/h.jsonl" "$TMPDIR/whole.jsonl"
sed 's/resume \(12[01]\) 2/resume \1 0/; s/step \(12[01]\) 3/step \1 1/; s/step \(12[01]\) 4/step \1 2/' $here/train.log | convert
expect 'a job that begins anew' 1 '(x|✗) lost_work .*resumed from step 0 when step 3'
sed 's/^\(5.0 start.*\) 1$/\1 0/' $here/train.log | convert
expect 'a restart that is not counted' 1 '(x|✗) restarts +0 in round 2'
sed '/exit 111/d' $here/train.log | convert
expect 'a worker that was never seen to end' 2 '\? one_round'

whole
cat >"$TMPDIR/mine.awk" <<'EOF'
/"kind": "step"/ { steps++ }
/NaN/ || (all && /"kind": "step"/) { match($0, /[0-9]+/); bad = bad (bad ? "," : "") substr($0, RSTART, RLENGTH) }
END { printf "{\"status\": \"%s\", \"seen\": \"%d steps\", \"evidence\": [%s]}\n", bad ? "fail" : "pass", steps, bad }
EOF
scenario "checks: [{name: mine, program: [awk, -f, $TMPDIR/mine.awk]}]"
expect 'an own check that passes' 0 '(\+|✓) own:mine +10 steps'
scenario "checks: [{name: mine, program: [awk, -v, all=1, -f, $TMPDIR/mine.awk]}]"
expect 'an own check that fails' 1 '^look at .*records [0-9]+, [0-9]+'
# Whatever else a program does is no answer.
scenario "checks:
  - {name: both, program: [echo, '{\"status\": \"fail\", \"status\": \"pass\"}']}
  - {name: crash, program: [sh, -c, 'kill -SEGV \$\$']}
  - {name: exit, program: [sh, -c, 'echo \"{\\\"status\\\": \\\"pass\\\"}\"; exit 3']}
  - {name: flood, program: [head, -c, '2000000', /dev/zero]}
  - {name: hang, program: [sleep, '600'], within: 200ms}
  - {name: invent, program: [echo, '{\"status\": \"pass\", \"evidence\": [999]}']}
  - {name: nowhere, program: [nowhere]}
  - {name: twice, program: [echo, '{\"status\": \"pass\"} {\"status\": \"pass\"}']}"
expect 'own checks without an answer' 2 'own:both .*must say once'
for said in 'both .*must say once' 'crash .*ended with SIGSEGV' 'exit .*ended with exit code 3' 'flood .*more than a megabyte' \
    'hang .*not answered after 200 ms' 'invent .*names a record that' 'nowhere .*No such file' 'twice .*one JSON object'; do
    grep -Eq "\? own:$said" "$TMPDIR/out" || { echo "own checks: not \"$said\":"; cat "$TMPDIR/out"; fails=$((fails + 1)); }
done
scenario 'checks: [{program: [echo]}]'
mkdir "$TMPDIR/run" && cp "$TMPDIR/s.yaml" "$TMPDIR/run/scenario.yaml" && cp "$TMPDIR/h.jsonl" "$TMPDIR/run/history.jsonl"
for verb in "judge --scenario $TMPDIR/s.yaml $TMPDIR/h.jsonl" "report $TMPDIR/run"; do
    for not in '' --no-programs; do
        # shellcheck disable=SC2086 # words
        "$rq" $verb $not | grep -q '? own:echo .*was not started' ||
            { echo "$verb $not starts them"; fails=$((fails + 1)); }
    done
    # shellcheck disable=SC2086 # words
    "$rq" $verb --programs | grep -q '? own:echo .*must print one JSON object' ||
        { echo "$verb --programs does not start them"; fails=$((fails + 1)); }
done

scenario
muddle() { # WHAT CODE PATTERN AWK...: one line changed
    awk "$4" "$TMPDIR/whole.jsonl" >"$TMPDIR/h.jsonl"
    expect "$1" "$2" "$3"
}
muddle 'cut in a line' 3 '\? (world_sizes|restarts) .*stops before the job' 'NR < 20; NR == 20 { printf "%s", substr($0, 1, 40) }'
muddle 'cut behind a line' 3 'the history stops while the job is running' 'NR <= 20'
muddle 'a line left out' 3 '1 record is missing, the first behind record 19' 'NR != 20'
muddle 'a line twice' 64 ':21: "seq" must be a number that rises' '{ print } NR == 20'
muddle 'two lines exchanged' 64 ':20: "seq" must be' 'NR == 19 { kept = $0; next } { print } NR == 20 { print kept }'
muddle 'of another version' 64 ':1: written in version 2 of the format; this rankquake reads 1' 'NR == 1 { sub(/"v": 1/, "\"v\": 2") } 1'
muddle 'of an unknown kind' 0 '^checks  23 of 23' 'NR == 12 { sub(/"worker-exec"/, "\"seen-tomorrow\"") } 1'
muddle 'without its first line' 64 'this is no history' 'NR > 1'
muddle 'of an end that tells nothing' 64 'does not say how it came out' '{ sub(/, "code": 1}/, "}") } 1'
muddle 'nested deeply' 64 ':20: JSON' 'NR == 20 { for (i = 0; i < 100000; i++) printf "[" } 1'
muddle 'of bytes that are no text' 0 '^checks' '{ sub(/"train"/, "\"\377\376\"") } 1'

"$rq" schema history >"$TMPDIR/schema.json"
for python in python3 /usr/bin/python3; do
    "$python" -c 'import jsonschema' 2>/dev/null && break
    python=
done
if [ -n "$python" ]; then
    "$python" - "$TMPDIR/schema.json" "$TMPDIR/whole.jsonl" tests/histories/*.jsonl <<'EOF' || fails=$((fails + 1))
import json
import sys

import jsonschema

schema = json.load(open(sys.argv[1]))
jsonschema.Draft7Validator.check_schema(schema)
validator = jsonschema.Draft7Validator(schema)
wrong = [f"{name}: {error.message}" for name in sys.argv[2:] for line in open(name)
         for error in validator.iter_errors(json.loads(line))]
bad = {"seq": 1, "t": 1, "source": "kernel", "kind": "worker-exit", "node": "n0", "pid": 7}
if validator.is_valid(bad) or not validator.is_valid({**bad, "code": 0}):
    wrong.append("the schema takes a worker-exit that does not say how")
print(*wrong[:10], sep="\n")
sys.exit(bool(wrong))
EOF
fi
exit $((fails > 0))
