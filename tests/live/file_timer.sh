#!/usr/bin/env bash
# TORCHELASTIC_ENABLE_FILE_TIMER=1: a worker whose timer expires gets the signal it asked for and the group begins anew;
# one that is taken back does nothing; nobody else's process is hit, nonsense is told once, and no FIFO is left.
# deadline: 60 s
set -u
run=$(cd "$BIN" && pwd)/rankrun
cd "$TMPDIR" || exit 1
bad=0
fail() {
    echo "$*"
    bad=1
}
cat >ask.bash <<'END'
ask() { # ask PID SECONDS-FROM-NOW SIGNAL SCOPE: prints it, to be written
    local at=-1
    [ "$2" = never ] || at=$(awk -v now="$EPOCHREALTIME" -v s="$2" 'BEGIN { printf "%.6f", now + s }')
    echo "{\"version\": 1, \"pid\": $1, \"scope_id\": \"$4\", \"expiration_time\": $at, \"signal\": $3}"
}
END
mkfifo never
exec 5<>never
sleep 50 &
bystander=$!
trap 'kill "$bystander" 2>/dev/null' EXIT
cat >worker <<'END'
. ./ask.bash
if [ "$TORCHELASTIC_RESTART_COUNT" = 0 ]; then
    trap 'exit 4' USR1
    [ "$RANK" != 1 ] || ask $$ 0.2 10 'step 7' >>"$TORCHELASTIC_TIMER_FILE"
    while :; do read -r -t 1 _ <never; done
fi
# In one piece, so that nothing expires before it is taken back.
asked=$(ask $$ 0.3 9 a; ask $$ never 0 a; ask $$ 0.3 0 b; ask "$BYSTANDER" 0 9 c; echo nonsense)
echo "$asked" >>"$TORCHELASTIC_TIMER_FILE"
echo '{"version": 2}' >>"$TORCHELASTIC_TIMER_FILE"
sleep 0.6
END
export TORCHELASTIC_ENABLE_FILE_TIMER=1 BYSTANDER=$bystander
timeout 300 "$run" --nproc-per-node 2 --max-restarts 1 bash worker 2>said || fail "two rounds: $(cat said)"
grep -Eq 'its timer "step 7" expired [0-9]+ ms ago, signal 10' said || fail "the timer is not told: $(cat said)"
[ "$(grep -c 'is no request of a timer' said)" = 1 ] || fail "nonsense is not told once: $(cat said)"
grep -q "pid $bystander: its timer \"c\" expired, but it is no process of this job" said || fail "no word of another: $(cat said)"
kill -0 "$bystander" || fail "a process that is none of the job's was killed"
[ "$(ls -d watchdog_timer_* 2>/dev/null)" = '' ] || fail 'the FIFO is left'

export TORCHELASTIC_TIMER_FILE=$TMPDIR/mine
timeout 300 "$run" bash -c '. ./ask.bash; ask $BASHPID 0 9 late >>"$TORCHELASTIC_TIMER_FILE"; read -r _ <never' 2>said
[ $? = 1 ] || fail "no restart left: $(cat said)"
grep -q 'failed: rank 0 .* signal 9.*: its timer "late" expired' said || fail "the failure does not say why: $(cat said)"
[ ! -e mine ] || fail 'the FIFO that was named is left'
echo precious >mine
timeout 300 "$run" true 2>said
[ $? = 64 ] && grep -q 'no FIFO: name another file' said && [ "$(cat mine)" = precious ] || fail "a file in its place: $(cat said)"
exit $bad
