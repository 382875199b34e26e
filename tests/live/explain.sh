#!/usr/bin/env bash
# Everything that has a name can be explained, and what explain gives as an example is accepted: faults
# and keys by lint in a scenario, verbs by what they print of themselves.
set -u
rq=$BIN/rankquake
dir=$TMPDIR/explain
mkdir "$dir"
bad=0
fail() {
    echo "$*"
    bad=1
}
explained() { # explained NAME PATTERN
    "$rq" explain "$1" >"$dir/said" 2>&1 || fail "explain $1: exit $?: $(cat "$dir/said")"
    grep -q -- "$2" "$dir/said" || fail "explain $1 does not say $2: $(cat "$dir/said")"
}
names() { "$rq" list "$1" | sed -n 's/^\([a-z][a-z_-]*\) .*/\1/p'; }

faults=$(names faults)
[ "$(wc -w <<<"$faults")" -ge 5 ] || fail "only these faults: $faults"
for fault in $faults; do
    explained "$fault" "^$fault: "
    example=$(sed -n 's/^ *example: //p' "$dir/said")
    [ -n "$example" ] || { fail "$fault has no example"; continue; }
    cat >"$dir/$fault.yaml" <<END
cluster: {nodes: 4, start: 3}
job: {nnodes: "2:4", workers_per_node: 2, run: [ranktrain, --steps=120]}
timeline:
  - $example
END
    "$rq" lint "$dir/$fault.yaml" >"$dir/said" 2>&1 || fail "the example of $fault: $(cat "$dir/said")"
done
for check in $(names checks); do explained "$check" "^$check: "; done

sections='cluster job checkpoint when expect limits scenario'
for section in $sections; do
    explained "$section" "^$section: "
    keys=$(sed -n 's/^  \([a-z_]*\)   *.*/\1/p' "$dir/said")
    [ -n "$keys" ] || fail "$section has no keys"
    for key in $keys; do explained "$section.$key" "^$section.$key: "; done
done

verbs=$("$rq" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p')
[ "$(wc -w <<<"$verbs")" -ge 8 ] || fail "only these verbs: $verbs"
for verb in $verbs; do
    explained "$verb" "^usage: rankquake $verb"
    "$rq" "$verb" --help >"$dir/help" 2>&1
    tail -n "$(wc -l <"$dir/help")" "$dir/said" | cmp -s - "$dir/help" || fail "$verb --help says something else than explain"
done

"$rq" explain worker-kil >"$dir/said" 2>&1 && fail 'a name that nobody has was explained'
grep -q 'did you mean "worker-kill"' "$dir/said" || fail 'the nearest name was not given'
exit $bad
