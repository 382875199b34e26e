#!/usr/bin/env bash
# Workers that crash by themselves, can start nothing, leave an orphan or have their interpreter lock held: each is felt by the
# kernel's word and over when it is healed; where nothing changes, the verdict is open and says so.
# deadline: 480 s
set -u
handled=$(realpath "${OUT:-build/release}/tests/live/spawn_handled")
cd "$(dirname "$0")/../.." || exit 1
. tests/live/patience.bash
. tests/live/runs.bash

felt() { # felt WHAT ID...
    local id
    for id in "${@:2}"; do
        recorded "$1" "\"source\":\"kernel\",\"kind\":\"fault-evidence\",\"id\":\"$id\""
    done
    ! grep -q '"kind":"fault-unfelt"' "$dir"/out/*/history.jsonl || fail "$1: something was not felt"
}
job() { # job FAULT SHELL
    printf 'cluster: {nodes: 1}\njob:\n  rdzv_conf: %s\n  env: {PYTHONPATH: scenarios/jobs}\n  run: [bash, -c, "%s"]\ntimeline:\n  - {id: it, when: {step: 5}, %s}\nlimits: {total: 240s}\n' \
        "$patient_map" "$2" "$1" >"$dir/job.yaml"
}

# ---- it crashes ----

# The sanitizer would make an exit code of it.
[ "${BUILD-}" = asan ] && export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}handle_segv=0
runs 'a crash' 0 scenarios/restart/worker-crashes.yaml
felt 'a crash' abort segfault
recorded 'a crash' '"kind":"worker-exit".*"signal":6'
recorded 'a crash' '"kind":"worker-exit".*"signal":11'
for core in "$dir"/out/*/cores/*.core; do
    # A 64-bit core, in the order of bytes that both machines have that we run on.
    [ "$(head -c 18 "$core" | od -An -tx1 | tr -d ' \n')" = 7f454c460201010000000000000000000400 ] ||
        fail "a crash: $core is no core"
    grep -q "\"kept\":\"cores/${core##*/}\"" "$dir"/out/*/history.jsonl || fail "a crash: no record names $core"
    command -v gdb >/dev/null || continue
    gdb -batch -ex bt "$BIN/ranktrain" "$core" >"$dir/gdb" 2>/dev/null
    # Installed programs have no names of their own functions.
    where=__libc_start_main
    readelf -S "$BIN/ranktrain" | grep -q debug_info && where=rankquake_step
    grep -q "$where" "$dir/gdb" || fail "a crash: gdb does not see where: $(cat "$dir/gdb")"
done
[ "$(ls "$dir"/out/*/cores | wc -l)" = 2 ] || fail 'a crash: not two cores'

job 'fault: worker-abort, on: rank 0' "exec $handled ranktrain --steps=20"
sed -i '/^limits:/i\  - {id: next, when: {after: it, step: 5}, fault: worker-segfault, on: rank 0}' "$dir/job.yaml"
runs 'crashes of one with handlers' 2 "$dir/job.yaml"
said 'crashes of one with handlers' 'it .worker-abort. was in force, but nothing outside shows that it was felt: it was not seen to end'
recorded 'crashes of one with handlers' '"kind":"fault-unfelt","id":"next"'
[ -z "$(ls "$dir"/out/*/cores)" ] || fail 'crashes of one with handlers: there is a core'

# ---- it can start nothing, and leaves an orphan; nothing can hide a filter, but there is room for one only ----

runs 'an orphan' 0 scenarios/restart/orphan-left.yaml
felt 'an orphan' few orphan
recorded 'an orphan' '"kind":"fault-recovered","id":"few"'
recorded 'an orphan' '"kind":"fault-recovered","id":"orphan"'

job 'fault: worker-processes, on: rank 0' 'exec ranktrain --steps=20'
sed -i '/^limits:/i\  - {id: again, when: {after: it, step: 8}, fault: worker-processes, on: rank 0}\n  - {id: orphan, when: {after: it, step: 10}, fault: worker-orphan, on: rank 0}\n  - {id: gil, when: {after: it, step: 12}, fault: worker-gil-hang, on: rank 0}' "$dir/job.yaml"
runs 'a second filter' 2 "$dir/job.yaml"
felt 'a second filter' it
recorded 'a second filter' '"kind":"fault-failed","id":"again".*has had this fault already'
recorded 'an orphan of one that can start nothing' '"kind":"fault-failed","id":"orphan".*start a child: Resource temporarily'
recorded 'the lock of a program in C' '"kind":"fault-failed","id":"gil".*it is no Python process'

# ---- its interpreter lock is held ----

if command -v python3 >/dev/null; then
    runs 'a held lock' 0 scenarios/restart/interpreter-held.yaml
    felt 'a held lock' held
    job 'fault: worker-gil-hang, on: rank 0, for: 300ms' 'exec python3 scenarios/jobs/beating.py 20 alone'
    runs 'a lock that nobody waits for' 2 "$dir/job.yaml"
    said 'a lock that nobody waits for' 'its other threads, if it has any, were not seen to wait'
fi
exit $failed
