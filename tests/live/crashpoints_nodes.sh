#!/usr/bin/env bash
# crashpoints of a scenario: its job on two nodes, with what they share and each node's own disk in one record. What a node had
# not synced when it lost its power is found with the node's name, and bad input is refused. Killed in the middle it leaves
# nothing but files that `clean` finds.
# deadline: 240 s
set -u
dir=$TMPDIR/crashpoints_nodes
mkdir "$dir" && cp -R "$(realpath "$BIN")" "$dir/bin" && cp "$OUT/tests/harness/crash/spawn_node_saver" "$dir/saver" && cp "$OUT/tests/live/spawn_refused" "$dir/refused" || exit 1
chmod a+x "$TMPDIR" && chmod -R a+rX "$dir" || exit 1
. tests/live/says.bash
export NO_COLOR=1 XDG_CACHE_HOME=$dir/cache
rq=$dir/bin/rankquake
mkdir -m 1777 "$dir/desk" && cd "$dir/desk" || exit 1
job() { # job VARIANT [LINE of job.checkpoint]
    cat <<END
cluster: {nodes: 2}
job:
  nnodes: 2
  run: [$dir/saver, "{shared}", "{disk}", $1]
  checkpoint: {max_states: 8${2:+, $2}}
END
}
job no-fsync >no-fsync.yaml
job none >none.yaml
job stubborn >stubborn.yaml
"$rq" crashpoints none.yaml >"$dir/said" 2>&1
rc=$?
[ $rc = 4 ] && { tail -n 1 "$dir/said"; exit 77; }
[ $rc = 2 ] && grep -q 'wrote nothing into {shared}' "$dir/said" || fail "a job that does not save: exit $rc"

# ---- what a node's power takes ----
says 1 '^1\. hard failure' 'a part that is not synced' "$rq" crashpoints --deaths power --junit junit.xml no-fsync.yaml
tr -s '\n ' '  ' <"$dir/said" | grep -qE 'rename of shared/latest.tmp to shared/latest before fsync of (n[01])/step-[24]/part.bin: after power loss of node \1 `\1/' ||
    fail 'the node that lost its power is not named'
grep -q 'node n[01]' junit.xml || fail 'junit.xml does not name the node'
[ -z "$(find runs -name scratch -o -name presence.json)" ] || fail 'something is left in the run directory'
# The line that repeats one of its trials does, from the record that there is.
repeat=$(sed -n 's/^ *repeat *rankquake //p' "$dir/said" | head -n 1)
run=$(sed 's/.*--from \([^ ]*\) .*/\1/' <<<"$repeat")
says 1 'hard failure' 'the line that repeats a trial' bash -c "'$rq' $repeat"
says 64 'that run has no such trial' 'a trial that there is not' "$rq" crashpoints --from "$run" --only 3/00000000 no-fsync.yaml
says 64 'nowhere/baseline.json' 'a record that there is not' "$rq" crashpoints --from nowhere no-fsync.yaml

# ---- what cannot be answered is said ----
says 2 'does not resume by itself' 'a job that does not resume' "$rq" crashpoints stubborn.yaml
grep -q 'it is there already' "$dir/said" || fail 'its last lines are not said'
says 2 'the record is full \(4096 bytes, --max-bytes\)' 'a record that is too large' "$rq" crashpoints --max-bytes 4096 --max-states 2 no-fsync.yaml
says 4 'By FUSE: it takes namespaces. By system calls: .*seccomp=unconfined' 'nothing records' \
    "$dir/refused" namespaces,listener "$rq" crashpoints no-fsync.yaml

# ---- what is wrong is said before anything is done ----
job good 'fs: [fat]' >bad.yaml
says 64 'there is no file system "fat"' 'a file system that there is not' "$rq" crashpoints bad.yaml
says 64 'there is no file system "fat"' 'the same by lint' "$rq" lint bad.yaml
job good 'deaths: [fire]' >bad.yaml
says 64 'there are process, kernel and power' 'a death that there is not' "$rq" crashpoints bad.yaml
job good 'result: "{disk}/x"' >bad.yaml
says 64 'begins with \{shared\}' 'a result on one of several disks' "$rq" crashpoints bad.yaml
says 64 '\{shared\} and each \{disk\} are recorded' 'a directory besides a scenario' "$rq" crashpoints --dir x none.yaml
says 64 'one of them' 'a scenario and a command' "$rq" crashpoints none.yaml -- true

# ---- killed in the middle ----
cat >stays.yaml <<'END'
cluster: {nodes: 2}
job: {nnodes: 2, run: [sh, -c, 'echo >{shared}/x; exec sleep 1234']}
END
cat >comes-back.yaml <<'END'
cluster: {nodes: 1}
job: {run: [sh, -c, '[ ! -e {shared}/x ] || exec sleep 1234; echo >{shared}/x']}
END
ends() { # ends SIGNAL ISOLATION SCENARIO: while that sleeps; nothing of the job is left
    "$rq" crashpoints --limit 60s --isolation "$2" "$3" >"$dir/said" 2>&1 &
    own=$!
    timeout 300 bash -c 'until pgrep -fx "sleep 1234" >/dev/null; do read -rt 0.05 <> <(:); done; :' || fail "$*: the job did not start"
    kill -"$1" $own
    wait $own 2>/dev/null
    timeout 300 bash -c 'while pgrep -fx "sleep 1234" >/dev/null; do read -rt 0.05 <> <(:); done; :' || fail "$*: the job is left"
}
ends TERM namespaces stays.yaml
ends INT processes comes-back.yaml # in a trial
[ -z "$(find runs -name scratch -o -name presence.json)" ] || fail 'something is left after SIGTERM and SIGINT'
ends KILL processes stays.yaml
ends KILL namespaces comes-back.yaml
grep -F " $dir/" /proc/self/mounts && fail 'something is left mounted'
says 0 'scratch, left by harness' 'clean after a kill' "$rq" clean
[ -z "$(find runs -name scratch -o -name presence.json)" ] || fail 'clean has not found all'
exit $bad
