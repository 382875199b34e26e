#!/usr/bin/env bash
# try, init and run -- CMD: a command as it is typed, through the five built-in disasters, and as a file
# that lints and runs. The mistakes of who types one.
# deadline: 480 s
set -u
rq=$(cd "$BIN" && pwd)/rankquake
dir=$TMPDIR/try
mkdir "$dir" && cd "$dir" || exit 1
export XDG_CACHE_HOME=$TMPDIR/cache
bad=0
fail() {
    echo "$*"
    tail -n 40 said
    bad=1
}
said() { tr -s '\n ' '  ' <said; }
expect() { # expect WHAT CODE TEXT COMMAND...
    local what=$1 code=$2 text=$3
    shift 3
    timeout 300 "$@" >said 2>&1 </dev/null
    local rc=$?
    [ $rc = 4 ] && [ "$code" != 4 ] && { tail -n 1 said; exit 77; }
    [ $rc = "$code" ] || fail "$what: exit $rc, not $code"
    said | grep -qF -- "$text" || fail "$what: did not say: $text"
}

# ---- in the background: the example of the help, which reports its steps, so that faults hit one of them
# and runs go side by side (a job that reports none is tried in tests/soak/try-shell.sh), with three quarters of its steps ----
read -ra example <<<"$("$rq" help try | sed -n 's/^example: rankquake //p' | sed 's/--steps=400/--steps=300/')"
timeout 200 "$rq" try --jobs 5 --also node-leave,net-delay --out example-runs "${example[@]:1}" >example 2>&1 </dev/null &
example_pid=$!

# ---- and a job that does not come back after its first fault: the budget ends it ----
cat >stays.sh <<'END'
[ "$TORCHELASTIC_RESTART_COUNT" = 0 ] || sleep 1000
for i in 1 2 3 4 5 6; do sleep 0.4; done
END
timeout 200 "$rq" try --budget 40s --out stays-runs -- rankrun --nproc-per-node 2 bash stays.sh >stays 2>&1 </dev/null &
stays_pid=$!
cat >job.sh <<'END'
for i in 1 2 3 4 5 6 7 8; do echo "epoch $i of rank $RANK"; sleep 0.4; done
END

# ---- the same as a file, and every line of it that is a comment ----
expect init 0 'checks it' "$rq" init --out job.yaml -- rankrun --nproc-per-node 2 bash job.sh
expect 'init again' 64 'is there already; --force' "$rq" init --out job.yaml -- bash job.sh
expect 'what init writes' 0 'valid' "$rq" lint job.yaml
echo pass >x.py
expect 'init with what try takes' 0 'step: "epoch ([0-9]+)"' "$rq" init --observe step='epoch ([0-9]+)' --set job.checkpoint.dir=ckpt \
    -- rankrun --nproc-per-node 2 bash job.sh
cp said observed.yaml
grep -q 'step: 1, hold: false' said || fail 'init with steps of which none is known: not at the first'
expect 'init with a spare' 0 'cluster: {nodes: 3, start: 2}' "$rq" init -- rankrun --nnodes 2 bash job.sh
expect 'init with an interpreter' 0 'run: [/usr/bin/python3, -u, x.py]' "$rq" init --launcher rankrun \
    -- /usr/bin/python3 -m torch.distributed.run x.py
expect 'what init writes with it' 0 'valid' "$rq" lint observed.yaml
expect 'init with a wrong expression' 64 'rankquake init: --observe step: ' "$rq" init --observe step='([0-9+' -- bash job.sh
for id in hang loss dark join; do
    sed -E "s/^#( +- \{id: $id,)/ \1/; /id: kill/d" job.yaml >"$id.yaml"
    [ $id = join ] && start=1 || start=2
    expect "the line $id of init" 0 'valid' "$rq" lint "$id.yaml" --set cluster.start=$start
done
sed -E 's/time: [0-9]+m?s/time: 1s/' job.yaml >soon.yaml
expect 'run of it' 0 'passed' "$rq" run soon.yaml
expect 'init after a run, with steps' 0 'step 4 of 8' "$rq" init --observe step='epoch ([0-9]+)' -- rankrun --nproc-per-node 2 bash job.sh
grep -q 'step: 4, hold: false' said || fail 'init after a run, with steps: not at a step that it has made'
expect 'run with another command' 0 'passed' "$rq" run soon.yaml -- WORD=x rankrun --nnodes 7 sh -c 'test "$WORD" = x && sleep 3'
said | grep -q "are as the scenario says" || fail 'run -- CMD: not said what is not used'

# ---- mistakes ----
expect 'no command' 64 'type your command behind --' "$rq" try
expect 'a script that is not there' 64 'there is no file nosuch.py' "$rq" try -- rankrun nosuch.py
expect 'a program that is not there' 64 'there is no program "nosuch"' "$rq" try -- nosuch
expect 'an option of nobody' 64 'did you mean --nnodes?' "$rq" try -- rankrun --nnode=1 --nodez 2 job.sh
expect 'a job that is over at once' 2 'too short to be hit' "$rq" try -- true
expect 'a job that fails' 3 'the job failed in the control run' "$rq" try -- \
    sh -c '[ "$TORCHELASTIC_RESTART_COUNT" = 0 ] || exec sleep 1000; echo no such disk >&2; exit 3' # a launcher may be quicker than we
[ "$(grep -c 'no such disk' said)" = 1 ] || fail 'a job that fails: its last words are not there once'
grep -q 'with status 3; it was not started again' said || fail 'a job that fails: not said which worker'
expect 'a wrong expression' 64 'rankquake try: --observe step: ' "$rq" try --observe step='step ([0-9+' -- sh -c true

expect 'a fault that is not there' 64 'did you mean "net-delay"?' "$rq" try --also node-leave,net-dely -- true
expect 'a family that is not there' 64 '`rankquake list faults` names them' "$rq" try --also everything-else -- true
expect 'a fault twice, by its family too' 2 'runs with one fault each: ' "$rq" try --also node,node-leave -- true
[ "$(grep -o node-leave said | wc -l)" = 1 ] || fail 'a fault twice, by its family too: it is not tried once'

# ---- a job that leaves what the next run goes on from, and is not undone: told once ----
cat >left.sh <<'END'
for i in 1 2 3 4 5 6; do [ -e left-$RANK ] || sleep 0.5; done
touch left-$RANK
sleep 0.3
END
expect 'a job that goes on from before' 2 'it went on, it seems, from what' "$rq" try --set job.writes=kept -- rankrun bash left.sh
said | grep -q 'the others are not run' || fail 'a job that goes on from before: not stopped after the first'

expect 'init after try with other options' 0 'was kept, made with other options: ' "$rq" init -- rankrun bash left.sh
grep -q 'time: 20s' said && fail 'init after try with other options: not half of it'

# ---- a budget ----
expect 'a control run that outlasts the budget' 2 'had not ended when the budget of 3s was spent' "$rq" try --budget 3s -- sleep 1000
expect 'a budget without a unit' 64 '--budget 5: write a duration, as in 90s or 5m' "$rq" try --budget 5 -- sleep 1
wait $stays_pid
rc=$?
cp stays said
[ $rc = 2 ] || fail "the budget is spent: exit $rc, not 2"
for text in 'it ends after 40s with what there is by then' '--limit total=2m shortens each run' \
    'what each may cost under rankrun' '- worker-killed: about ' '? worker-killed inconclusive unfinished: ' \
    'the budget of 40s was spent before it had ended, so it is not judged' \
    '- node-killed skipped not run: the budget of'; do
    said | grep -qF -- "$text" || fail "the budget is spent: did not say: $text"
done
# The control run is kept by now, and nothing fits in what is left.
expect 'a budget in which no fault can come' 4 'not run: the budget of 1s is spent' \
    "$rq" try --budget 1s --out stays-runs -- rankrun --nproc-per-node 2 bash stays.sh
said | grep -q 'unfinished' && fail 'a budget in which no fault can come: something was begun'

# ---- interrupted ----
mkfifo "$TMPDIR/up"
exec 3<>"$TMPDIR/up"
# What a shell starts in the background has SIGINT ignored.
timeout 300 env --default-signal=INT "$rq" try -- UP="$TMPDIR/up" sh -c 'echo up >"$UP"; sleep 1000' >said 2>&1 </dev/null &
tried=$!
read -r -t 180 -u 3 _ || fail 'interrupted: its job has not begun'
exec 3<&-
kill -INT $tried
wait $tried
said | grep -q 'interrupted; everything is taken down' || fail 'interrupted: not said that all is taken down'

# ---- what came of it ----
wait $example_pid
rc=$?
cp example said
[ $rc = 4 ] && { tail -n 1 said; exit 77; }
[ $rc = 0 ] || fail "the example: exit $rc"
said | grep -q 'each fault strikes at step' || fail 'the example: not hit at a step'
said | grep -q "nothing tells when the job saves" || fail "the example: not said what would show its saves"
said | grep -q '+ control run passed [^+]*; not judged: [a-z_, ]*: try --set job.checkpoint.dir=DIR +' ||
    fail 'the example: its first row does not say what is not judged, and by which option it would be'
page=$(echo example-runs/try-*/index.html)
said | grep -q 'then 7 runs with one fault each: .*; node-leave; net-delay ' || fail 'the example: not said which seven'
said | grep -q -- '- net-delay: about .* - node-leave: about\|- node-leave: about .* - net-delay: about' || fail 'the example: not said what --also costs'
for name in 'control run' worker-killed worker-hangs node-killed node-powered-off node-joins node-leave net-delay; do
    grep -q "^+ $name  *passed" said || fail "the example: no passed $name"
    link=$(sed -n "s/.*href=\"\([^\"]*\)\">$name<.*/\1/p" "$page")
    [ -n "$link" ] && [ -f "${page%/*}/$link" ] || fail "the page does not lead to $name: $link"
done
expect 'a job without an end' 3 'Give it less to do, or more time' "$rq" try --limit total=2s -- sleep 1000
expect 'init after try' 0 'control run that was kept: ' "$rq" init -- rankrun --nproc-per-node 2 bash job.sh
grep -q 'time: 20s' said && fail 'init after try: not half of it'
expect 'init before try' 0 'time: 20s' "$rq" init -- rankrun --nproc-per-node 3 bash job.sh
left=$(grep -lsaF -f - /proc/[0-9]*/cmdline <<<"$dir")
[ -z "$left" ] || fail "left running: $left"
exit $bad
