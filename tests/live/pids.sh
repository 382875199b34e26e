#!/usr/bin/env bash
# The system gives the number of a process that is gone to another one, in a long run. Here it has forty numbers, so
# they come again within seconds, and whoever had one before is not taken for whoever has it now.
# deadline: 120 s
set -u
fail() {
    echo "$*"
    cat "$TMPDIR/said"
    exit 1
}
# Before 6.14 the highest number is the whole host's, and nobody's to change.
if ! printf '6.14\n%s\n' "$(uname -r)" | sort -VC; then
    echo "Linux $(uname -r) has no pid_max of a namespace's own: 6.14 or newer"
    exit 77
fi
if ! unshare -pf --mount-proc true 2>"$TMPDIR/said"; then
    echo "no pid namespace: $(tail -n 1 "$TMPDIR/said")"
    exit 77
fi
cat >"$TMPDIR/s.yaml" <<'END_OF_SCENARIO'
scenario: pids
cluster: {nodes: 1, store: none}
job:
  workers_per_node: 3
  max_restarts: 20
  run: [ranktrain, --steps=40, --checkpoint-every=2, --collective-timeout=20, "--checkpoint-dir={shared}/ckpt"]
timeline: [{id: kill, when: {event: checkpoint-commit}, fault: worker-kill, on: rank 0, times: 16}]
expect: {restarts: 16, lost_work: 1}
END_OF_SCENARIO
# The numbers below 300 are given once only.
unshare -pf --mount-proc sh -c 'cd /proc/sys/kernel && echo 340 >pid_max && echo 300 >ns_last_pid || exit 4
    cd "$0" && exec "$@"' "$PWD" "$BIN/rankquake" run "$TMPDIR/s.yaml" --out "$TMPDIR/out" >"$TMPDIR/said" 2>&1
rc=$?
[ $rc = 4 ] && { tail -n 1 "$TMPDIR/said"; exit 77; }
[ $rc = 0 ] || fail "exit $rc, wanted 0"
again=$(cat "$TMPDIR"/out/*/history.jsonl | grep '"kind":"worker-start"' | grep -o '"pid":[0-9]*' | sort | uniq -d | wc -l)
((again >= 10)) || fail "only $again numbers came again"
