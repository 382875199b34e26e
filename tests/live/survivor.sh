#!/usr/bin/env bash
# Where nodes are processes of the host: a job that kills its node's first process and leaves one behind that has
# neither its session nor its environment. It is found, named by its own number, and ended.
# deadline: 60 s
set -u
cat >"$TMPDIR/job.sh" <<'END_OF_JOB'
#!/bin/bash
setsid env -i bash -c 'echo $$ >"$0"; echo >"$0.ready"; exec sleep 1000' "$1" </dev/null >/dev/null 2>&1 &
read -r <"$1.ready"
guard=$PPID
agent=$(cut -d ' ' -f 4 "/proc/$guard/stat")
first=$(cut -d ' ' -f 4 "/proc/$agent/stat")
kill -KILL "$first"
wait
END_OF_JOB
chmod +x "$TMPDIR/job.sh"
mkfifo "$TMPDIR/number.ready"
cat >"$TMPDIR/s.yaml" <<END_OF_SCENARIO
scenario: survivor
cluster: {nodes: 1, store: none, isolation: processes, privileged: true} # else it could not signal it
job: {max_restarts: 0, run: ["$TMPDIR/job.sh", "$TMPDIR/number"]}
END_OF_SCENARIO
"$BIN/rankquake" run "$TMPDIR/s.yaml" --fresh --out "$TMPDIR/out" >"$TMPDIR/said" 2>&1
rc=$?
bad=0
number=$(cat "$TMPDIR/number") || { cat "$TMPDIR/said"; exit 1; }
[ $rc = 3 ] || { echo "exit $rc, wanted 3"; bad=1; }
cat "$TMPDIR"/out/*/control/history.jsonl "$TMPDIR"/out/*/history.jsonl 2>/dev/null | grep '"kind":"health"' |
    grep -q "\"process $number, of a node whose helper was killed\"" || {
    echo "process $number is not named"
    grep -h '"health"' "$TMPDIR"/out/*/control/history.jsonl
    bad=1
}
if kill -0 "$number" 2>/dev/null; then
    echo "process $number lives"
    kill -KILL "$number"
    bad=1
fi
[ $bad = 0 ] || cat "$TMPDIR/said"
exit $bad
