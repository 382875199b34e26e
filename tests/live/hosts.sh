#!/usr/bin/env bash
# rankrun -H: one command for agents on several hosts - this machine under two names -, what they say
# under their names, one exit code, and nothing left however it ends. With ssh: ssh.sh.
# deadline: 90 s
set -u
. tests/live/patience.bash
run=$(cd "$BIN" && pwd)/rankrun
bad=0
fail() {
    echo "$*"
    bad=1
}
here() { timeout 300 "$run" -H localhost,127.0.0.1:2 --accelerators 1 --rdzv-conf $patient "$@"; }
cd "$TMPDIR" || exit 1

said=$(X=5 here sh -c 'echo "$RANK of $WORLD_SIZE in $PWD with $X"' 2>err)
[ $? = 0 ] || fail "three workers: $(cat err)"
[ "$(sort <<<"$said")" = "[127.0.0.1] 1 of 3 in $PWD with 5
[127.0.0.1] 2 of 3 in $PWD with 5
[localhost] 0 of 3 in $PWD with 5" ] ||
    [ "$(sed 's/^[^]]*\] //' <<<"$said" | sort)" = "0 of 3 in $PWD with 5
1 of 3 in $PWD with 5
2 of 3 in $PWD with 5" ] || fail "three workers: $said"

here sh -c 'exit 7' >said 2>&1
[ $? = 1 ] || fail "a job that fails: $(cat said)"
grep -q 'exited with code 7' said || fail "a job that fails: not said how: $(cat said)"

# Its own agents stop when a host cannot be used at all.
printf '#!/bin/sh\nexit 255\n' >no-ssh
chmod +x no-ssh
timeout 300 "$run" -H localhost,unknown.invalid --ssh ./no-ssh --rdzv-conf $patient sleep 60 >said 2>&1
[ $? = 69 ] || fail "a host that cannot be reached: $(cat said)"
grep -q 'too few hosts are left: stopping the others' said || fail "too few hosts: $(cat said)"

# A signal goes to all; and what was killed leaves nothing. The workers say when they are there: the
# pipes they write to are at an end when the last of them is gone.
for signo in INT KILL; do
    mkfifo fifo.$signo
    "$run" -H localhost,127.0.0.1 --rdzv-conf $patient sh -c "exec >fifo.$signo; echo up; exec sleep 60" >said 2>&1 &
    launcher=$!
    exec 9<fifo.$signo
    read -r -t 180 -u 9 _ && read -r -t 180 -u 9 _ || fail "$signo: the workers did not come up: $(cat said)"
    kill -$signo $launcher
    wait $launcher 2>/dev/null
    rc=$?
    [ $signo = INT ] && expected=130 || expected=137
    [ $rc = $expected ] || fail "$signo: exit $rc: $(cat said)"
    timeout 300 cat <&9 >/dev/null || fail "$signo: workers are left"
    exec 9<&-
done
exit $bad
