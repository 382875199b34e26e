#!/usr/bin/env bash
# doctor --provider: hosts that ssh reaches as an ordinary user, and any command; what keeps a host from being used is told with its
# name; and the bound of a clock that is seven seconds ahead holds every time.
# deadline: 400 s
set -u
bin=${BIN:-build/bin} fails=0
fail() { echo "providers: $*"; fails=$((fails + 1)); }
command -v python3 >/dev/null || { echo "python3 is not installed"; exit 77; }
node=$(realpath "$bin/rankquake-node")
asked() { # asked RC PATTERN ARGUMENT...
    local rc=$1 pattern=$2 said got
    shift 2
    said=$("$bin/rankquake" doctor "$@" 2>&1 </dev/null)
    got=$?
    [ $got = "$rc" ] && grep -qF -- "$pattern" <<<"$said" || fail "doctor $*: wanted $rc and '$pattern', got $got: $said"
}

# What makes no sense is refused before any host is asked.
asked 64 'there are exec, slurm and ssh' --provider fax --hosts a
asked 64 'by --hosts or by --hostfile' --provider ssh
asked 64 'by --hosts or by --hostfile' --hosts a --hostfile b
asked 64 'no name of a host' --provider ssh --hosts 'a,-oProxyCommand=x'
asked 64 'no name of a host' --provider ssh --hosts 'a;reboot'
asked 64 'without a name' --provider ssh --hosts 'a,,b'
asked 64 'a is named twice' --provider ssh --hosts 'a,b,a'
asked 64 '--ssh is for hosts that ssh reaches' --provider exec --ssh ssh --hosts x
asked 64 'No such file' --hostfile "$TMPDIR/none"
printf '# none\n\n' >"$TMPDIR/empty"
asked 64 'names no host' --hostfile "$TMPDIR/empty"
printf 'n1\n-n2\n' >"$TMPDIR/option"
asked 64 'no name of a host' --hostfile "$TMPDIR/option"

# Commands.
frame() { # frame JSON: as bytes for printf
    printf '\\0\\0\\%o\\%o%s' $((${#1} / 256)) $((${#1} % 256)) "$1"
}
says() { # says NAME JSON...: a helper that says this and hears nothing
    local file=$TMPDIR/$1 text
    shift
    { echo '#!/bin/sh'; for text in "$@"; do echo "printf '$(frame "$text")'"; done; echo 'cat >/dev/null'; } >"$file"
    chmod 755 "$file"
    echo "$file"
}
asked 0 '1 of 1 can be used' --provider exec --hosts "$node"
asked 4 'what came is no message of a helper: "Last login: today"' --provider exec --hosts 'echo Last login: today'
asked 4 'exit code 3, "it is broken"' --provider exec --hosts 'sh -c "echo it is broken >&2; exit 3"'
asked 4 '(far): it speaks version 7 of the protocol of helpers, and we version 2' --provider exec \
    --hosts "$(says other '{"op":"hello","version":7,"host":"far"}')"
asked 4 'its clock cannot be read' --provider exec \
    --hosts "$(says mad '{"op":"hello","version":2}' '{"op":"clock","t1":5,"t2":9,"t3":8}')"
asked 4 'was lost while it was asked' --provider exec --hosts "$(says lost '{"op":"hello","version":2}' | sed 's/^/timeout 0.5 /')"
asked 4 'this is taken' --provider exec --hosts "$(says full '{"op":"hello","version":2}' '{"op":"broken","error":"this is taken"}')"

# Another job on a host, which has no processes but these: eight are told at most, and other tests have some, too.
cp "$(command -v sleep)" "$TMPDIR/rankrun"
cat >"$TMPDIR/shared" <<SH
#!/bin/sh
"$TMPDIR/rankrun" 1000 >/dev/null 2>&1 </dev/null &
until [ "\$(cat /proc/\$!/comm)" = rankrun ]; do :; done
exec "$node"
SH
chmod 755 "$TMPDIR/shared"
if unshare -rpf --mount-proc true 2>/dev/null; then
    asked 0 'a rankrun is at work there: process 2 of uid 0' --provider exec --hosts "unshare -rpf --mount-proc $TMPDIR/shared"
else
    echo "providers: no processes of one's own here, so no host has another job and nothing else"
fi

# No room on a host for the helper: a sentence with its name, and no half of a copy stays there.
if unshare -rm true 2>/dev/null; then
    mkdir "$TMPDIR/small"
    cat >"$TMPDIR/cramped" <<SH
#!/bin/sh
# In place of ssh, to a host whose disk holds less than the helper: the last word is the command.
for last; do :; done
exec unshare -rm sh -c 'mount -t tmpfs -o size=64k none $TMPDIR/small && XDG_CACHE_HOME=$TMPDIR/small sh -c "\$0"
    r=\$?
    find $TMPDIR/small -type f >>$TMPDIR/stays
    exit \$r' "\$last"
SH
    chmod 755 "$TMPDIR/cramped"
    asked 4 'n7: the helper could not be copied there: exit code 1' --provider ssh --ssh "$TMPDIR/cramped" --hosts n7
    asked 4 'No space left on device"; it needs room' --provider ssh --ssh "$TMPDIR/cramped" --hosts n7
    [ -e "$TMPDIR/stays" ] && [ ! -s "$TMPDIR/stays" ] || fail "half of a copy stays: $(cat "$TMPDIR/stays")"
else
    echo "providers: no mounts of one's own here, so no host is without room"
fi

# A connection that is lost in the middle of the copy: what has come of it does not stay, and is never taken for the helper.
cat >"$TMPDIR/lossy" <<SH
#!/bin/sh
for last; do :; done
export XDG_CACHE_HOME=$TMPDIR/astray
head -c 100000 | sh -c "\$last"
SH
chmod 755 "$TMPDIR/lossy"
asked 4 'n7: the helper could not be copied there: exit code 1' --provider ssh --ssh "$TMPDIR/lossy" --hosts n7
[ -d "$TMPDIR/astray/rankquake" ] && [ -z "$(ls "$TMPDIR/astray/rankquake")" ] || fail "a part of a copy: $(ls -R "$TMPDIR/astray")"

# A clock that is ahead: the truth lies within each bound. Sixty here; tests/soak/clock_bounds.sh asks a thousand times.
if unshare -T --monotonic 7 true 2>/dev/null; then
    for i in {1..60}; do echo "unshare -T --monotonic 7 $node # $i"; done >"$TMPDIR/ahead"
    "$bin/rankquake" doctor --provider exec --hostfile "$TMPDIR/ahead" --format json >"$TMPDIR/bounds" </dev/null || fail "60 clocks"
    python3 tests/live/clock_bounds.py 60 7000000000 <"$TMPDIR/bounds" || fail "bounds of 60 clocks"
else
    echo "providers: no time namespaces here, so no clock is ahead"
fi

# Hosts.
chmod 711 "$TMPDIR" # an ordinary user is let in by a key that lies there
bed=$TMPDIR/bed
tests/clusters/ssh up "$bed" 3 >"$TMPDIR/said" 2>&1
case $? in
0)
    trap 'tests/clusters/ssh down "$bed"' EXIT
    by_ssh() { tests/clusters/ssh in "$bed" ctl "$bin/rankquake" doctor --provider ssh "$@" --format json </dev/null; }
    by_ssh --ssh "ssh -F $bed/ssh_config" --hosts worker@n0,worker@n1,worker@n2 >"$TMPDIR/first" || fail "three hosts"
    by_ssh --ssh "ssh -F $bed/ssh_config" --hosts worker@n0,worker@n1,worker@n2 >"$TMPDIR/second" || fail "three hosts again"
    grep -o '"copied":[a-z]*' "$TMPDIR/first" | sort | uniq -c | grep -q '3 "copied":true' || fail "not copied: $(cat "$TMPDIR/first")"
    grep -o '"copied":[a-z]*' "$TMPDIR/second" | sort | uniq -c | grep -q '3 "copied":false' || fail "copied again: $(cat "$TMPDIR/second")"
    python3 tests/live/clock_bounds.py 3 0 <"$TMPDIR/second" || fail "bounds of three hosts"

    ssh-keygen -q -t ed25519 -N '' -f "$TMPDIR/wrong"
    sed "s#IdentityFile .*#IdentityFile $TMPDIR/wrong#" "$bed/ssh_config" >"$TMPDIR/wrong_config"
    by_ssh --ssh "ssh -F $TMPDIR/wrong_config" --hosts worker@n0 >"$TMPDIR/said"
    [ $? = 4 ] && grep -q 'worker@n0: cannot be reached: exit code 255.*Permission denied' "$TMPDIR/said" || fail "a wrong key: $(cat "$TMPDIR/said")"
    tests/clusters/ssh kill "$bed" n2
    by_ssh --ssh "ssh -o ConnectTimeout=3 -F $bed/ssh_config" --hosts worker@n1,worker@n2 >"$TMPDIR/said"
    [ $? = 4 ] && grep -q '"worker@n2","works":false,"why":"worker@n2: cannot be reached' "$TMPDIR/said" &&
        grep -q '"worker@n1","works":true' "$TMPDIR/said" || fail "a host that is off: $(cat "$TMPDIR/said")"
    ;;
77) cat "$TMPDIR/said" ;;
*) fail "no hosts: $(cat "$TMPDIR/said")" ;;
esac
[ $fails = 0 ]
