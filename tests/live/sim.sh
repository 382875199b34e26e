#!/usr/bin/env bash
# The verb sim: the same seed prints the same run to the byte, whatever is typed wrongly is refused
# with a sentence, and many seeds end with a table and exit code 0.
# deadline: 120 s
set -u
rq=$BIN/rankquake
dir=$TMPDIR/sim
mkdir "$dir"
failed=0

fail() {
    echo "$*"
    failed=1
}

refused() { # refused TEXT ARGUMENT...
    local text=$1
    shift
    "$rq" sim "$@" >"$dir/out" 2>"$dir/err"
    local code=$?
    [ $code = 64 ] || fail "sim $*: exit code $code, not 64"
    grep -qF -- "$text" "$dir/err" || fail "sim $*: does not say \"$text\" but: $(cat "$dir/err")"
    [ -s "$dir/out" ] && fail "sim $*: began although it was refused"
}

refused '--seeds 5:1: write FIRST:LAST' --seeds 5:1
refused '--seeds 7: write FIRST:LAST' --seeds 7
refused '--seed x: write a whole number' --seed x
refused '--seed and --seeds: one of the two' --seed 1 --seeds 1:2
refused '--agents x: write a whole number from 0 to 10000' --agents x
refused '--time soon: write a duration' --time soon
refused 'there is no kind "meteor"' --faults meteor
refused 'all weights are 0' --faults node-cut=0
refused 'it takes no files' tour.yaml
refused 'no other option but --out' --scenario x.yaml --seed 1
refused 'x.yaml: ' --scenario "$dir/x.yaml"
refused '--seeds 1:: write FIRST:LAST' --seeds 1:
refused '--seeds 1:9223372036854775807: write FIRST:LAST' --seeds 1:9223372036854775807
refused 'a day (24h) at most' --time 25h
refused '--jobs 0: write a whole number from 1 to 64' --jobs 0
refused 'there is no kind ""' --faults node-cut,,worker-fail
refused '--faults node-cut=: a weight is' --faults node-cut=
refused '--faults node-cut=-1: a weight is' --faults node-cut=-1
refused 'node-cut is there twice' --faults node-cut,node-cut=2
refused '--calm and --faults: without faults' --calm --faults node-cut
refused '--calm and --frozen: one of the two' --calm --frozen
refused '--frozen and --swarm: ' --frozen --swarm
refused '--swarm and --no-swarm: one of the two' --swarm --no-swarm
refused '--together: it is about --exhaustive' --together 2
refused '--frozen says nothing about --exhaustive' --exhaustive --frozen
: >"$dir/file"
refused "--out $dir/file: " --seed 7 --out "$dir/file"
refused '; name a directory that can be written to' --seed 7 --out "$dir/file/below"

# Files that are no schedules, or too much of one.
: >"$dir/x.yaml" && refused 'needs "simulation"' --scenario "$dir/x.yaml"
printf '\377\376' >"$dir/x.yaml" && refused 'this is not text' --scenario "$dir/x.yaml"
head -c 2000000 /dev/zero | tr '\0' x >"$dir/x.yaml" && refused 'is larger than 1 MiB' --scenario "$dir/x.yaml"
printf '%0500d' 0 | tr 0 '[' >"$dir/x.yaml" && refused 'nested more than' --scenario "$dir/x.yaml"
printf 'simulation: &a x\nagents: *a\n' >"$dir/x.yaml" && refused 'anchors and aliases are not used' --scenario "$dir/x.yaml"
printf 'simulation: x\nagents: 2\nnodes: "1:2"\ntrouble: 9999h\n' >"$dir/x.yaml" && refused 'trouble must be a day (24h) at most' --scenario "$dir/x.yaml"
refused 'is a directory' --scenario "$dir"

"$rq" sim --faults list | grep -q '^node-poweroff .*gone' || fail '--faults list does not print them'

# The times at the end are of this machine.
trace() { "$rq" sim --seed 42 --agents 5 --time 20s | grep -v '^seeds '; }
trace >"$dir/one"
trace >"$dir/two"
cmp -s "$dir/one" "$dir/two" || fail 'seed 42 is not the same run twice'
[ "$(wc -l <"$dir/one")" -gt 50 ] || fail 'seed 42 prints no events'

cat >"$dir/cut.yaml" <<'EOF'
simulation: a-cut
agents: 2
nodes: "1:2"
trouble: 2s
timeline:
  - {at: 500ms, fault: node-cut, on: n1, for: 1s}
EOF
"$rq" sim --scenario "$dir/cut.yaml" >"$dir/out" || fail "a schedule that breaks nothing ends with $?"
grep -q '500.000 n1 FAULT: the node is cut off for 1000 ms' "$dir/out" || fail 'the fault is not struck at its time'
grep -q '^a-cut: the job has succeeded' "$dir/out" || fail 'what came of it is not said'
sed -i 's/on: n1/on: n2/' "$dir/cut.yaml"
refused 'cut.yaml:6:38: there is no n2, agents is 2' --scenario "$dir/cut.yaml"

"$rq" sim --seeds 1:300 --agents 3 >"$dir/out" || fail "sim ends with $?"
of() { "$rq" sim --seeds 1:40 --agents 3 "$@" | grep '^a seed '; }
[ "$(of)" = "$(of --swarm)" ] || fail 'no swarm unless it is asked for'
[ "$(of)" != "$(of --no-swarm)" ] || fail '--no-swarm leaves kinds of faults out'
[ "$(of --faults node-cut)" != "$(of --faults node-cut --swarm)" ] || fail 'a kind that was named is left out'
head -n 1 "$dir/out" | grep -q '^sim, seeds 1:300' || fail 'the seeds do not stand first'
grep -q ' 0 seeds violate an invariant' "$dir/out" || fail 'no verdict'
# A seed as a run directory: the live judge reads it, the page is drawn from it.
"$rq" sim --seed 42 --agents 3 --calm --out "$dir/run" >"$dir/out" || fail "sim --out ends with $?"
grep -q "rankquake judge $dir/run" "$dir/out" || fail 'sim --out does not say what to do with it'
"$rq" judge "$dir/run" >"$dir/out" || fail "judge of a calm seed ends with $?: $(head -n 3 "$dir/out")"
grep -q 'one_round .*one after the other' "$dir/out" || fail 'judge does not judge the rounds of a simulated run'
# What breaks no promise breaks none for the live judge: an agent of another attempt, a job that comes once more, agents that
# were kept from the store for too long, restarts by node, a limit of free rounds, faults behind the end.
for seed in 2 3 7 10 13 15 20 35 86 91 116; do
    "$rq" sim --seed $seed --out "$dir/hit-$seed" >"$dir/out" || fail "sim --out of seed $seed ends with $?"
    grep -q ' 0 seeds violate an invariant' "$dir/out" || fail "seed $seed violates an invariant"
    "$rq" judge "$dir/hit-$seed" >"$dir/out" || fail "judge of seed $seed ends with $?: $(head -n 8 "$dir/out")"
done
"$rq" report "$dir/run" --to html | grep -q 'seed-42' || fail 'no page of a simulated run'
"$rq" list invariants | grep -q '^one_round *I1' || fail 'list invariants does not print them'
exit $failed
