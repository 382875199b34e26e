#!/usr/bin/env bash
# Many machines: the parts of --shard are the whole, each scenario once, whatever one machine knows alone; what one has cached another
# takes in (cache export, import), and a cache of another version, cut off or changed is named and leaves everything as it was;
# --budget runs first what failed last, then what shows most in the least time.
# deadline: 240 s
set -u
. tests/live/runs.bash
tree=$PWD quake=$(cd "$BIN" && pwd)/rankquake
cd "$dir" || exit 1
: >said
for i in 1 2 3 4 5; do
    cat >s$i.yaml <<END
scenario: s$i
cluster: {nodes: 2}
job: {run: [ranktrain, --steps=12]}
timeline: [{when: {step: 5}, fault: worker-kill, on: n1/0}]
END
done
rq() { # rq CODE ARGUMENT...
    local code=$1 rc
    timeout 120 "$quake" "${@:2}" >said 2>&1 </dev/null
    rc=$?
    [ $rc = 4 ] && [ "$code" != 4 ] && { tail -n 1 said; exit 77; }
    [ $rc = "$code" ] || fail "${*:2}: exit $rc, not $code"
}
names() { for run in "$@"; do basename "$run" | sed 's/-1-[0-9]*-[0-9]*\(-[0-9]*\)*$//'; done | sort; }

# ---- shards: run one after another, so that each knows times that the one before did not ----
printf '8000\ts1\t\n3000\ts2\t\n3000\ts3\t\n2000\ts4\t\n' >times
splits=
for part in 1 2 3; do
    rq 0 run s?.yaml --shard $part/3 --times times --out out
    grep -q -- '--times has none of these, so theirs are guessed: s5$' said || fail 'the guessed time is not named'
    splits+=$(grep -o 'split [0-9a-f]*' said)$'\n'
    case $part in
    1) said 'the first part' 'shard 1/3: 1 of 5 scenarios, about 15 s of 31 s' ;;
    2) said 'the second part' 'shard 2/3: 1 of 5 scenarios, about 8 s of 31 s' ;;
    3) said 'the third part' 'shard 3/3: 3 of 5 scenarios, about 8 s of 31 s' ;;
    esac
done
[ "$(names out/s*)" = "$(printf '%s\n' s1 s2 s3 s4 s5)" ] || fail "the shards are not the whole: $(names out/s*)"
[ "$(sort -u <<<"$splits" | grep -c split)" = 1 ] || fail 'the shards do not name one split'
rq 0 run s1.yaml --shard 2/2 --out none
[ -z "$(ls none 2>/dev/null)" ] || fail 'an empty shard ran something'
rq 64 run s1.yaml --shard 3/2
rq 64 run s1.yaml --shard 0/2
rq 64 run s1.yaml --times times
echo 'soon s1' >bad
rq 64 run s1.yaml --shard 1/2 --times bad
grep -q 'bad:1: "soon s1" is no time of a scenario' said || fail 'the line of --times is not named'

# ---- what was measured ----
"$quake" cache times s?.yaml >times || fail 'no times'
[ "$(cut -f 2 times | paste -sd' ')" = 's1 s2 s3 s4 s5' ] || fail 'not all were measured'
rq 0 run s?.yaml --shard 1/5 --times times --out out2
grep -q guessed said && fail 'a measured time was guessed'

# ---- another machine ----
"$quake" cache key s?.yaml >key
grep -qE '^rankquake-[0-9.]+-[a-z0-9_]+-[0-9a-f]{16}$' key || fail 'no key'
"$quake" cache key --each s1.yaml s2.yaml >keys
[ "$(cut -d ' ' -f 1 keys | sort -u | wc -l)" = 1 ] || fail 'two scenarios of one job have two control runs'
"$quake" cache key --set 'job.max_restarts=1' s?.yaml | cmp -s - key && fail 'the key is the same for another job'
rq 0 cache export carried
[ -n "$("$quake" cache list | grep "^control/$(cut -c 1-64 keys | head -n 1)/control.json")" ] || fail 'the control run is not listed'
"$quake" cache list >here
export XDG_CACHE_HOME=$dir/other
rq 0 cache list
[ -s said ] && fail 'an empty cache is not empty'
size=$(wc -c <carried)
for cut in 0 20 $((size / 2)) $((size - 1)); do # wherever it ends
    head -c "$cut" carried >cut-off
    rq 64 cache import cut-off
    grep -qE 'cut-off:[0-9]+: (it is cut off here|this is no exported cache|it is not what was exported); nothing was taken' said || fail "cut at $cut is not named"
done
sed '1s/"version":"[^"]*"/"version":"0.0.1"/' carried >older
rq 64 cache import older
grep -q 'older: the cache of rankquake 0.0.1, and this is ' said || fail 'the other version is not named'
sed 's/"content":"\(.\)/"content":"A\1/' carried >changed
rq 64 cache import changed
grep -qE 'changed:2: this file is not what was exported' said || fail 'what was changed is not named'
sed 's,"file":"durations/,"file":"../../durations/,' carried >outside
rq 64 cache import outside
rq 64 cache import said
[ -z "$("$quake" cache list)" ] || fail 'something was taken of what was refused'
rq 0 cache import carried
"$quake" cache list | cmp -s - here || fail 'not all has arrived'
rq 0 run s1.yaml --out out3
grep -q 'control run: kept' said || fail 'the control run was made again'
rq 0 cache import carried
grep -q 'were here already' said || fail 'what was here is not counted'
rq 64 cache
rq 64 cache import
rq 64 cache find
rq 64 cache key

# ---- the budget: what failed last first, then what is new, then the fast ones ----
cat >hangs.yaml <<'END'
scenario: hangs
cluster: {nodes: 2}
job: {run: [ranktrain, --steps=12]}
timeline: [{when: {step: 5}, fault: worker-hang, on: n1/0, for: 300ms}]
END
cat >fails.yaml <<'END'
scenario: fails
cluster: {nodes: 2}
job: {run: [ranktrain, --steps=12]}
timeline: [{when: {step: 5}, fault: worker-kill, on: n1/0}]
expect: {restarts: 3}
END
rq 0 run hangs.yaml --out out4
rq 1 run fails.yaml --out out4
rq 1 run s1.yaml s2.yaml hangs.yaml fails.yaml --budget 10m --out order
order=$(grep -oE '^. (s1|s2|hangs|fails) (passed|failed)' said | cut -d ' ' -f 2 | paste -sd' ')
[[ $order == 'fails hangs '* ]] || fail "the order is $order"
cd "$tree" || exit 1
exit $failed
