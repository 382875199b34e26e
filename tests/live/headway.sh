#!/usr/bin/env bash
# How far long work is: on a terminal one line that is written over and never wider than it, none where the
# terminal is dumb, nothing with --quiet, and objects that a program reads.
# deadline: 300 s
set -u
rq=$(realpath "$BIN")/rankquake
dir=$TMPDIR/headway
mkdir -p "$dir/here"
failed=0

fail() {
    echo "$*"
    failed=1
}

cat >"$dir/s.yaml" <<'END'
scenario: short
cluster: {nodes: 1, isolation: processes}
job: {run: [ranktrain, --steps=20, --compute-ms=10], workers_per_node: 1}
END
if ! "$rq" run "$dir/s.yaml" --out "$dir/first" >"$dir/said" 2>&1; then
    [ "$("$rq" run "$dir/s.yaml" --out "$dir/first" >/dev/null 2>&1; echo $?)" = 4 ] && { tail -n 1 "$dir/said"; exit 77; }
    fail "the run does not pass: $(cat "$dir/said")"
fi
run=$(echo "$dir"/first/*)

# ---- for programs ----
# objects FILE: all of it can be read, it goes one way, and the last one says that it is over.
objects() {
    python3 - "$1" "$2" <<'END'
import json, sys
seen = {}
for line in open(sys.argv[1]):
    o = json.loads(line)
    key = (o["progress"], o.get("of"), o["unit"])
    assert {"done", "total", "rate", "left_s", "elapsed_s", "over"} <= set(o), o
    assert o["left_s"] is None or o["left_s"] >= 0, o
    before = seen.get(key)
    if before and before["over"]:
        before = None
    assert not before or o["elapsed_s"] >= before["elapsed_s"], (before, o)
    seen[key] = o
assert seen, "nothing was written"
assert all(o["over"] for o in seen.values()), seen
units = {k[2] for k in seen}
assert set(sys.argv[2].split(",")) <= units, units
END
}
told() { # told UNITS ARGUMENT...: of descriptor 7
    (cd "$dir/here" && "$rq" "$2" --json-progress 7 "${@:3}" 7>"$dir/objects" >"$dir/said" 2>&1)
    local rc=$?
    [ $rc -lt 2 ] || fail "${*:2}: exit $rc: $(cat "$dir/said")"
    objects "$dir/objects" "$1" 2>"$dir/why" || fail "${*:2}: $(tail -n 1 "$dir/why"): $(tail -n 3 "$dir/objects")"
}
if command -v python3 >/dev/null; then
    told seeds sim --seeds 1:300
    [ "$(tail -n 1 "$dir/objects" | python3 -c 'import json,sys; print(json.load(sys.stdin)["done"])')" = 300 ] || fail 'sim: not all seeds were told'
    told steps run "$dir/s.yaml" --out "$dir/out"
    told runs,steps run "$dir/s.yaml" --repeat 2 --out "$dir/out"
    told runs run "$dir/s.yaml" --repeat 3 --jobs 2 --out "$dir/out"
    told checks judge "$run"
    told states sim --exhaustive --agents 1
    told trials crashpoints --max-states 6 --out "$dir/out" -- ranktrain --steps=8 --checkpoint-every=4 --samples=256 '--checkpoint-dir={dir}'
    told runs,steps try --budget 3m --out "$dir/out" -- rankrun --nproc-per-node 1 ranktrain --steps=60 --compute-ms=10
fi
"$rq" sim --seeds 1:50 --json-progress 2 2>&1 >/dev/null | grep -q '^{"progress":"sim"' || fail 'nothing on standard error'
# A worker that is left must not keep a reader waiting.
"$rq" run "$dir/s.yaml" --out "$dir/out" --set 'job.run=["sh","-c","ls -l /proc/self/fd >{out}/fds"]' --json-progress 9 9>"$dir/objects" >"$dir/said" 2>&1
grep -q "$dir/objects" "$dir"/out/*/fds 2>/dev/null && fail 'a worker was given the descriptor'
for fd in 8 0 nine -1 2000000; do
    "$rq" sim --seeds 1:2 --json-progress "$fd" 8<&- 0</dev/null >"$dir/said" 2>&1
    [ $? = 64 ] || fail "--json-progress $fd: not refused"
    grep -q -- "--json-progress $fd" "$dir/said" || fail "--json-progress $fd: $(cat "$dir/said")"
done
"$rq" sim --seeds 1:2 --json-progress 8 8</dev/null >"$dir/said" 2>&1
[ $? = 64 ] || fail 'a descriptor that can only be read was taken'
# Who looks on and goes away ends nothing.
"$rq" sim --seeds 1:2000 --json-progress 8 8> >(head -n 1 >/dev/null) >"$dir/said" 2>&1 || fail "its reader went: $(cat "$dir/said")"

# ---- quiet ----
"$rq" run "$dir/s.yaml" --quiet --format json --out "$dir/out" >/dev/null 2>"$dir/said" || fail 'quiet: it does not pass'
[ ! -s "$dir/said" ] || fail "quiet, and yet: $(cat "$dir/said")"
"$rq" run "$dir/s.yaml" --quiet --out "$dir/out" >"$dir/said" 2>&1
head -n 1 "$dir/said" | grep -q 'passed (exit code 0)' || fail "quiet: the first line is no verdict: $(head -n 3 "$dir/said")"

# ---- a terminal ----
command -v python3 >/dev/null || { [ $failed = 1 ] && exit 1; echo 'python3 is not installed, which reads what was drawn'; exit 77; }
command -v script >/dev/null || { [ $failed = 1 ] && exit 1; echo 'script(1), which makes a terminal, is not installed'; exit 77; }
at_terminal() { # at_terminal COLUMNS ARGUMENT...: all that is written to a terminal of so many columns
    script -qec "stty cols $1; exec $(printf '%q ' "$rq" "${@:2}")" /dev/null </dev/null
}
# What is written over later fits, without what colours it: one that ended at the edge would begin another line.
fits() { # fits COLUMNS
    python3 -c '
import re, sys
drawn = sys.stdin.buffer.read().decode("utf-8", "replace").split("\r\033[K")[:-1]
wide = [s for s in (re.sub("\033\\[[0-9;?]*[a-zA-Z]", "", d.split("\n")[-1]) for d in drawn) if len(s) >= int(sys.argv[1])]
print("\n".join(wide))
sys.exit(bool(wide))' "$1"
}
export TERM=xterm
for columns in 90 40 24; do
    at_terminal $columns run "$dir/s.yaml" --repeat 2 --out "$dir/out" >"$dir/said"
    fits "$columns" <"$dir/said" >"$dir/wide" || fail "$columns columns: $(head -n 2 "$dir/wide")"
    grep -q '1 of 2' "$dir/said" || fail "$columns columns: it does not say which of the runs it is"
    grep -q $'\r\033\[K' "$dir/said" || fail "$columns columns: no line was written over"
done
at_terminal 90 run "$dir/s.yaml" --out "$dir/out" | grep -q 'about [0-9]* s left' || fail 'it does not say how long the job takes'
for columns in 90 30 8; do
    at_terminal $columns crashpoints --max-states 6 --out "$dir/out" -- ranktrain --steps=8 --checkpoint-every=4 --samples=256 '--checkpoint-dir={dir}' >"$dir/said"
    grep -q '[0-9] %' "$dir/said" || fail "crashpoints, $columns columns: no share is drawn: $(cat "$dir/said")"
done
at_terminal 90 run "$dir/s.yaml" --quiet --repeat 2 --out "$dir/out" >"$dir/said"
grep -q $'\r\033\[K\|1 of 2' "$dir/said" && fail 'quiet, and yet a line is drawn'
TERM=dumb at_terminal 90 run "$dir/s.yaml" --repeat 2 --out "$dir/out" >"$dir/said"
grep -q $'\033' "$dir/said" && fail "a dumb terminal was sent: $(grep -m 1 $'\033' "$dir/said" | cat -v)"
grep -q 'round 1: 1 worker' "$dir/said" || fail 'a dumb terminal is told nothing'
NO_COLOR=1 at_terminal 90 run "$dir/s.yaml" --out "$dir/out" >"$dir/said"
grep -q $'\033\[[0-9;]*m' "$dir/said" && fail 'NO_COLOR, and yet there are colours'
grep -q $'\r\033\[K' "$dir/said" || fail 'NO_COLOR: no line was written over'
exit $failed
