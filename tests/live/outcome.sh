#!/usr/bin/env bash
# rankrun outcome: it exits as the job did whatever the command between says, and as the command where no agent has told
# anything; its file is nobody else's, and gone afterwards.
set -u
BIN=$(realpath "$BIN")
PATH=$BIN:$PATH
cd "$TMPDIR" || exit 1
fails=0
fail() { echo "outcome: $*"; fails=$((fails + 1)); }
wants() { # wants RC PATTERN CMD...
    local rc=$1 pattern=$2 said got
    shift 2
    said=$("$@" 2>&1)
    got=$?
    { [ $got = "$rc" ] && grep -q -- "$pattern" <<<"$said"; } || fail "$*: wanted $rc and '$pattern', got $got: $said"
}
job='rankrun --standalone --no-python'

wants 0 'exited with 137, but the job succeeded' rankrun outcome sh -c "$job true; exit 137"
wants 1 'exited with 0, but the job failed' rankrun outcome sh -c "$job false; exit 0"
wants 1 'failed' rankrun outcome sh -c "$job true; $job false"
wants 0 '' rankrun outcome sh -c "$job true"
wants 7 'no agent told' rankrun outcome sh -c 'exit 7'
wants 137 'no agent told' rankrun outcome sh -c 'kill -KILL $$'
wants 64 'no-such-program' rankrun outcome no-such-program
wants 64 'dir ./nowhere' rankrun outcome --dir ./nowhere true
wants 64 'no command' rankrun outcome
wants 0 'share' env RANKRUN_OUTCOME=/nowhere/file $job true

# Workers are not told of the file: a rankrun that one of them starts is another job.
rankrun outcome sh -c "echo \$RANKRUN_OUTCOME >path; $job sh -c 'env >worker'"
grep -q '/.rankrun-outcome\.' path || fail "the command has no file: $(cat path)"
grep RANKRUN_OUTCOME worker && fail "a worker was told of the file"
mkdir shared
rankrun outcome --dir shared sh -c "ls -A shared >during; $job true"
grep -q rankrun-outcome during || fail "--dir is not where the file is"
[ -z "$(ls -A shared)" ] && ! ls -A | grep rankrun-outcome || fail "the file is still there"

# Who asks it to end asks the command.
mkfifo told
rankrun outcome sh -c 'trap "exit 9" TERM; echo here >told; read -r nothing <told' 2>/dev/null &
read -r _ <told
kill -TERM $!
wait $!
[ $? = 9 ] || fail "SIGTERM did not reach the command"
exit $((fails > 0))
