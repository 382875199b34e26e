#!/usr/bin/env bash
# rankquake-node, spoken with as a harness would and as none would: on this host by two pipes, and where hosts with an sshd can be
# stood up by ssh, as an ordinary user. Whichever way the harness goes, nothing is left.
# deadline: 400 s
set -u
bin=${BIN:-build/bin} fails=0
fail() { echo "carrier: $*"; fails=$((fails + 1)); }
command -v python3 >/dev/null || { echo "python3 is not installed"; exit 77; }
node=$(realpath "$bin/rankquake-node")
chmod 711 "$TMPDIR" # an ordinary user is let in by a key that lies there
library=$TMPDIR/library
mkdir "$library" && cp "$bin/rankprobe" "$bin/rankquake_clock.so" scenarios/jobs/rankquake.py "$library"

python3 tests/live/carrier.py "pipes-$$" "$library" "$node" || fail "by pipes"
refused() { # refused PATTERN ARGUMENT...
    local pattern=$1 said
    shift
    said=$("$node" "$@" 2>&1 </dev/null)
    [ $? = 64 ] && grep -q -- "$pattern" <<<"$said" || fail "$*: $said"
}
refused 'no such option' --fly
refused 'how long' --dead-man
refused 'dead-man' --dead-man soon
"$node" --version </dev/null | grep -q 'protocol 2$' || fail "no version"
[ "${BUILD:-release}" != release ] || ! ldd "$node" 2>/dev/null | grep -q '=>' || fail "it needs libraries of the host"

bed=$TMPDIR/bed
tests/clusters/ssh up "$bed" 2 >"$TMPDIR/said" 2>&1
case $? in
0)
    trap 'tests/clusters/ssh down "$bed"' EXIT
    on() { tests/clusters/ssh in "$bed" ctl ssh -F "$bed/ssh_config" "$@"; }
    on worker@n1 'cat >rankquake-node && chmod 755 rankquake-node' <"$node" || fail "not copied"
    tests/clusters/ssh in "$bed" ctl python3 tests/live/carrier.py "ssh-$$" "$library" ssh -F "$bed/ssh_config" worker@n1 \
        ./rankquake-node || fail "by ssh"
    ;;
77) cat "$TMPDIR/said" ;;
*) fail "no hosts: $(cat "$TMPDIR/said")" ;;
esac
[ $fails = 0 ]
