#!/usr/bin/env bash
# The buttons of watch --serve, pressed on the page itself in a browser where there is one (else what they send is sent): a node is
# killed by hand while the run stands still, the others finish the job, and the run is judged as if its timeline had said so.
# deadline: 300 s
set -u
command -v curl >/dev/null || { echo 'skipped: curl asks for the page, and there is none'; exit 77; }
rq=$(realpath "$BIN")/rankquake
dir=$TMPDIR/buttons
mkdir "$dir"
failed=0 browser=
fail() {
    echo "$*"
    failed=1
}
for name in chromium chromium-browser google-chrome; do
    command -v $name >/dev/null && browser=$name && break
done
cat >"$dir/s.yaml" <<'END'
scenario: pressed
cluster: {nodes: 3}
job:
  nnodes: "2:3"
  rdzv_conf: {profile: fast, hb: 300ms, fence: 2s, hard: 2.1s, suspect: 2.3s}
  run: [ranktrain, --steps=40, --checkpoint-every=10, --collective-timeout=6, "--checkpoint-dir={shared}/ckpt"]
END
waits_for() { # waits_for TEXT: of what the run prints, until it does
    local line
    while IFS= read -r -t 180 line <&7; do
        echo "$line" >>"$dir/seen"
        [[ $line == *$1* ]] && return 0
    done
    return 1
}
presses() { # presses LINE ANSWER
    local rc=77
    if [ -n "$browser" ]; then
        timeout 180 python3 tests/live/press.py $browser "$dir/profile" "$url" "$1" >"$dir/said" 2>&1
        rc=$?
    fi
    if [ $rc = 77 ]; then
        browser=
        curl -s -m 60 -d "$1" "${url}say" >"$dir/said" || fail "$1 cannot be sent"
    elif [ $rc != 0 ]; then
        fail "the button for $1: $(tail -n 3 "$dir/said")"
    fi
    grep -qF -- "$2" "$dir/said" || fail "$1: it is not answered by \"$2\": $(cat "$dir/said")"
}
command -v python3 >/dev/null || browser=

exec 7< <(exec "$rq" run "$dir/s.yaml" --paused --out "$dir/out" 2>&1 </dev/null)
harness=$!
: >"$dir/seen"
waits_for 'it stands still until somebody says go' || { tail -n 1 "$dir/seen"; wait "$harness"; [ $? = 4 ] && exit 77; exit 1; }
run=$(echo "$dir"/out/*)
exec 8< <(exec "$rq" watch "$run" --serve 2>"$dir/server.err")
server=$!
IFS= read -r -t 180 -u 8 url || { fail "no address is printed: $(cat "$dir/server.err")"; exit 1; }
curl -s -m 60 -d 'break 20' "${url}say" >/dev/null || fail 'break 20 cannot be sent'
presses go 'goes on'
waits_for 'it stands still until somebody says go' || fail 'it does not stand still at step 20'
presses 'node-kill n2' 'hand-1'
# Agents know no pause: when they have missed the node long enough they start the next round, and the run ends by itself.
curl -s -m 60 -d go "${url}say" >/dev/null
while IFS= read -r -t 180 line <&7; do echo "$line" >>"$dir/seen"; done
wait "$harness" || fail "the run did not pass: $(tail -n 30 "$dir/seen")"
wait "$server" || fail "the server: $(cat "$dir/server.err")"
grep -q '"by-hand","line":"node-kill n2"' "$run/history.jsonl" || fail 'the history does not have what was pressed'
grep -q '"kind":"fault-in-force","id":"hand-1".*"fault":"node-kill".*"ends_node":true' "$run/history.jsonl" || fail 'no node was killed'
grep -q '1 of 1 fired' "$dir/seen" || fail "it is not judged as one of the timeline: $(grep fired "$dir/seen")"
# Two nodes are left, and they finish the job.
grep -E '"kind":"worker-start"' "$run/history.jsonl" | tail -n 2 | grep -c '"WORLD_SIZE":"2"' | grep -qx 2 || fail 'the last round is not of two nodes'
echo "${browser:-no browser is here: what the buttons send was sent}"
exit $failed
