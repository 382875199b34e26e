#!/usr/bin/env bash
# Programs that do what programs should not: rankrun says what happened, ends with the exit code for it, does
# not stall and does not grow, and leaves no process.
# deadline: 120 s
set -u
run=$(cd "$BIN" && pwd)/rankrun
cd "$TMPDIR" || exit 1
bad=0
fail() {
    echo "$*"
    tail -n 20 said
    bad=1
}
expect() { # expect CODE TEXT OPTION-OR-PROGRAM...
    local code=$1 text=$2
    shift 2
    timeout 300 "$run" "$@" >out 2>said </dev/null
    local rc=$?
    [ $rc = "$code" ] || fail "$*: exit $rc, not $code"
    grep -qF -- "$text" said || fail "$*: did not say: $text"
}
gone() { # gone PID WHAT: it is no more, or only waits to be collected
    local state
    state=$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) && [ "${state%% *}" != Z ] && fail "$2 is left"
}

# Missing, not executable, of an interpreter that is missing, no program at all.
echo text >text
printf '#!/no/such/interpreter\n' >script
chmod +x script
expect 1 'cannot execute no-such-program: No such file or directory' --no-python no-such-program
expect 1 'cannot execute ./text: Permission denied' --no-python ./text
expect 1 'cannot execute ./script: No such file or directory' ./script
expect 64 'no program to run' --standalone

# One that ends at once is started once more for each restart, and no more.
expect 1 'exited with code 3; max_restarts 2 is used up' --max-restarts 2 sh -c 'echo up >>starts; exit 3'
[ "$(wc -l <starts)" = 3 ] || fail "it was started $(wc -l <starts) times"

# One that forks away is done when it ends; what it left behind is ended too.
timeout 300 "$run" sh -c 'setsid sleep 1000 </dev/null >/dev/null 2>&1 & echo $! >daemon' >said 2>&1 ||
    fail 'one that forks away'
gone "$(cat daemon)" 'what forked away'

# One that closes its output.
timeout 300 "$run" --tee 3 --log-dir logs sh -c 'echo said; exec >&- 2>&-; exit 0' >out 2>said || fail 'closed output'
grep -q 'said' out || fail 'what was said before the output was closed is lost'

# What was closed when rankrun was started is empty for its workers, and none of its own files.
timeout 300 "$run" sh -c 'readlink /proc/self/fd/0 /proc/self/fd/2 >seen' <&- >&- 2>&- || fail 'closed streams'
[ "$(paste -sd' ' seen)" = '/dev/null /dev/null' ] || fail "closed streams: workers have $(cat seen)"

# One that ignores SIGTERM, and its children: killed after the grace.
mkfifo up
"$run" --shutdown-timeout 200ms bash -c 'trap "" TERM; echo $$ >up; while :; do sleep 1000; done' 2>said &
agent=$!
read -r worker <up
kill -TERM $agent
wait $agent
rc=$?
[ $rc = 143 ] || fail "one that ignores SIGTERM: exit $rc"
gone "$worker" 'one that ignores SIGTERM'

# A worker that ignores it while its peer fails does not hold up the restart for ever.
expect 1 'exited with code 4' --nproc-per-node 2 --rdzv-conf stop_timeout=200ms bash -c \
    'mkfifo ready; trap "" TERM; [ $RANK = 0 ] && { echo >ready; while :; do sleep 1000; done; }
     until [ -p ready ]; do :; done; read -r _ <ready; exit 4'

# One that floods its output: 100 MB come whole through --tee, with memory that does not follow.
cat >flood <<'END'
line=$(head -c 999 /dev/zero | tr '\0' x)
yes "$line" | head -n "$1"
agent=$(sed -n 's/^PPid:\t//p' "/proc/$PPID/status")
sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$PPID/status" "/proc/$agent/status" >memory
END
timeout 300 "$run" --tee 1 --log-dir logs bash flood 100000 2>said | wc -lc >counted
read -r lines bytes <counted
[ "$lines" = 100000 ] || fail "of 100000 lines $lines were shown"
[ "$bytes" = 101100000 ] || fail "$bytes bytes were shown" # 1011 a line, with "[default0]:" and its end
if [ "$BUILD" = release ]; then
    while read -r kb; do
        [ "$kb" -lt 32768 ] || fail "100 MB of output made a process of rankrun grow to $kb kB"
    done <memory
fi
rm -rf logs

# Onto a console that takes nothing: the worker does not wait for it, and what it said is shown when it takes again.
mkfifo console
exec 7<>console
timeout 300 "$run" --tee 1 --log-dir logs bash -c 'bash flood 20000; echo done >up' 7<&- >console 2>said &
agent=$!
read -r _ <up
exec 8<console 7<&-
cat <&8 >out &
exec 8<&-
wait $agent || fail 'a console that takes nothing for a while'
wait $!
[ "$(wc -l <out)" = 20000 ] || fail "of 20000 lines $(wc -l <out) were shown after the console had stopped"
rm -rf logs out

# Onto a file that may not grow, by the limit of a batch system: what the agent itself has to say ends it no more.
(ulimit -f 100 && exec timeout 300 "$run" --tee 1 --log-dir logs bash -c 'bash flood 4000; exit 3' >out 2>&1)
rc=$?
[ $rc = 1 ] || fail "a console that may not grow: exit $rc, wanted 1"
rm -rf logs out

# A log directory that is full, cannot be written, or is none. Root may write anywhere, but not there.
if unshare -Urm true 2>/dev/null; then
    mkdir full
    RUN=$run unshare -Urm bash -c '
        mount -t tmpfs -o size=64k none full && : >out || exit 9
        timeout 300 "$RUN" --log-dir full --redirects 3 sh -c "head -c 1000000 /dev/zero || exit 5" >>out 2>&1
        [ $? = 1 ] || exit 1
        rm -rf full/*
        mount -o remount,ro full
        timeout 300 "$RUN" --log-dir full --redirects 3 touch started >>out 2>&1
        [ $? = 64 ] || exit 2
        exit 0' 2>said
    rc=$?
    cat out >>said
    [ $rc = 0 ] || fail "log directory: step $rc"
    grep -q 'exited with code 5.*no space is left in full/' said || fail 'a full log directory: not said'
    grep -q -- '--log-dir: write into full: Read-only file system' said || fail 'a read-only log directory: not said'
    [ ! -e started ] || fail 'a worker ran without its log directory'
fi
exit $bad
