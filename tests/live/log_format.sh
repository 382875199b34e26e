#!/usr/bin/env bash
# What rankrun prints on stderr: one line a round for the whole job; as JSON, every line an object.
# deadline: 60 s
set -u
run=$BIN/rankrun
bad=0
fail() {
    echo "$*"
    bad=1
}
twice='[ $RANK$TORCHELASTIC_RESTART_COUNT != 00 ] || exit 3'
said=$("$run" true 2>&1)
[ "$said" = '' ] || fail "one node, nothing happened: $said"
said=$("$run" --max-restarts 1 sh -c "$twice" 2>&1)
grep -Eq '^rankrun: round 2 \(failure\): world 1, 1 node, 1 of 1 restarts used; stop [0-9]+ ms, rendezvous [0-9]+ ms, start [0-9]+ ms$' <<<"$said" ||
    fail "no line of the second round: $said"
"$run" --log-format json --nproc-per-node 2 sh -c 'exit 3' 2>"$TMPDIR/json"
python3 - "$TMPDIR/json" <<'END' || fail "$(cat "$TMPDIR/json")"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert all({"time", "level", "what", "text"} <= set(l) for l in lines), "a key is missing"
by = {l["what"]: l for l in lines}
r = by["round"]
assert (r["round"], r["cause"], r["world"], r["nodes"], r["restarts"]) == (1, "start", 2, 1, 0), r
assert {"stop_ms", "rendezvous_ms", "start_ms", "restarts_max"} <= set(r), r
assert by["worker"]["level"] == "error" and by["worker"]["pid"] > 0, by["worker"]
assert by["failure"]["rank"] in (0, 1) and by["exit"]["level"] == "error", lines
assert "OMP_NUM_THREADS" in by["option"]["text"], lines
END
"$run" --event-log-handler console --role trainer --rdzv-id "a \"job\"" --nproc-per-node 2 --max-restarts 1 \
    sh -c '[ $RANK = 1 ] || exec sleep 60; echo "{\"message\": \"no luck\"}" >"$TORCHELASTIC_ERROR_FILE"; exit 3' 2>"$TMPDIR/events"
"$run" --event-log-handler console true 2>>"$TMPDIR/events"
python3 - "$TMPDIR/events" <<'END' || fail "torchelastic's events: $(cat "$TMPDIR/events")"
import json, sys
events = [json.loads(line) for line in open(sys.argv[1]) if line.startswith("{")]
told = [(e["source"], e["name"].rsplit(".", 1)[1], e["metadata"]["global_rank"]) for e in events]
assert told == [("WORKER", "TERMINATED", 0), ("WORKER", "FAILED", 1), ("AGENT", "FAILED", None),
                ("WORKER", "SUCCEEDED", 0), ("AGENT", "SUCCEEDED", None)], told
failed, agent = events[1]["metadata"], events[2]["metadata"]
assert set(failed) == {"run_id", "global_rank", "group_rank", "worker_id", "role", "hostname", "state", "total_run_time",
                       "rdzv_backend", "raw_error", "metadata", "agent_restarts"}, failed
assert failed["run_id"] == 'a "job"' and failed["role"] == "trainer" and failed["worker_id"].isdigit(), failed
assert json.loads(failed["raw_error"])["message"] == "no luck" and failed["agent_restarts"] == 1, failed
assert json.loads(failed["metadata"])["local_rank"] == [1] and agent["worker_id"] is None, failed
END
exec 3< <(exec "$run" store --host 127.0.0.1 --port 0 --log-format json)
store=$!
trap 'kill "$store"' EXIT
read -r -t 180 -u 3 line
port=$(python3 -c 'import json, sys; l = json.loads(sys.argv[1]); assert l["what"] == "listening"; print(l["port"])' "$line") ||
    fail "the store's line: $line"
for node in 0 1; do
    "$run" --rdzv-endpoint "127.0.0.1:$port" --nnodes 2 --max-restarts 1 --log-format json \
        sh -c "$twice" 2>"$TMPDIR/err.$node" &
    agents[node]=$!
done
for node in 0 1; do
    wait "${agents[node]}" || fail "node $node: $(cat "$TMPDIR/err.$node")"
done
for round in '1,"cause":"start"' '2,"cause":"failure"'; do
    n=$(cat "$TMPDIR"/err.[01] | grep -c "\"what\":\"round\",\"round\":$round,\"world\":2,\"nodes\":2,")
    [ "$n" = 1 ] || fail "round $round is told $n times: $(cat "$TMPDIR"/err.[01])"
done
# From many hosts each line is still an object, and says its host.
"$run" -H localhost --log-format json sh -c 'echo plain >&2; exit 3' 2>"$TMPDIR/json"
python3 - "$TMPDIR/json" <<'END' || fail "of a host: $(cat "$TMPDIR/json")"
import json, sys
lines = open(sys.argv[1]).read().splitlines()
assert lines.count("[localhost] plain") == 1, "what workers write is passed on as it is"
lines = [json.loads(l) for l in lines if not l.startswith("[")]
assert {l["host"] for l in lines} == {"localhost"} and "failure" in {l["what"] for l in lines}, lines
END
echo nonsense | "$run" remote --log-format=json 2>&1 | grep -q '^{"time":.*"what":"host"' || fail 'rankrun remote'
exit $bad
