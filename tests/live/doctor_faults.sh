#!/usr/bin/env bash
# doctor tries faults in scratch nodes: what was felt and is gone works, by less where the host gives less, and what it does not
# give cannot be had, each with the reason; a fault that changes nothing is never said to work. As root and as another user, on
# nodes of both kinds. Nothing is left behind, whoever interrupts or kills it.
# deadline: 300 s
set -u
dir=$TMPDIR/doctor
mkdir "$dir" && chmod 755 "$TMPDIR" && cp -R "$(realpath "$BIN")" "$dir/bin" || exit 1
chmod -R a+rX "$dir"
export NO_COLOR=1 TMPDIR=$dir/tmp
mkdir -m 1777 "$TMPDIR"
doctor=$dir/bin/rankquake
bad=0
fail() {
    echo "$*"
    cat "$dir/said"
    bad=1
}
tries() { # tries LABEL COMMAND...: what came of each is in `told`
    local label=$1
    shift
    "$@" >"$dir/said" 2>&1
    rc=$?
    sed -n '/^each fault, as/,/^faults: /p' "$dir/said" | tr -s ' \n' '  ' | sed 's/ \(work\|work with less\|cannot\|open\): /\n\1: /g' >"$dir/told"
    [ -z "$(ls -A "$TMPDIR")" ] || fail "$label: something is left in $TMPDIR: $(ls "$TMPDIR")"
}
told() { # told LABEL PATTERN: of one line, which has all of which the same is said
    grep -qE -- "$2" "$dir/told" || fail "$1: was not told: $2"
}

"$doctor" doctor >"$dir/said" 2>&1
namespaces=$(sed -n 's/^\([+x]\) namespaces .*/\1/p' "$dir/said")
processes=$(sed -n 's/^\([+x]\) processes .*/\1/p' "$dir/said")
[ "$processes" = + ] || { echo 'no nodes can be made here'; exit 77; }

if [ "$namespaces" = + ]; then
    tries 'in namespaces' "$doctor" doctor --faults worker-hang,net-delay,store-freeze,node-start
    [ $rc = 0 ] || fail "in namespaces: exit $rc"
    told 'in namespaces' '^work: net-delay, node-start, .*worker-hang'
    grep -q '^faults: [34] of 4 that were tried work here' "$dir/said" || fail 'in namespaces: not counted'
fi

# On processes the wire is missed, and a cut at the sockets is less; a worker dies there as it does anywhere.
tries 'on processes' "$doctor" doctor --isolation processes --faults worker-kill,node-poweroff,net-delay
told 'on processes' '^work: worker-kill'
told 'on processes' '^work with less: node-poweroff how: .*dropped at their sockets'
told 'on processes' '^cannot: net-delay why: there is no wire on which .* fix: '

# Another user has no control groups, unless somebody has delegated one.
other=(setpriv --reuid 65534 --regid 65534 --clear-groups)
if [ "$(id -u)" = 0 ] && "${other[@]}" test -x "$doctor" 2>/dev/null; then
    tries 'another user' "${other[@]}" "$doctor" doctor --faults worker-exit,node-memory --isolation processes
    [ $rc = 0 ] || fail "another user: exit $rc"
    told 'another user' '^work: worker-exit'
    told 'another user' '^work with less: node-memory how: by RLIMIT_AS of each process, .* fix: run as root'
fi

# Planted: whoever is struck was deaf before, and the interpreter is none. What changes nothing does not work.
mkdir "$dir/fakes"
printf '#!/bin/bash\ntrap "" TERM USR1\necho begun >>%s\nexec /bin/sh "$@"\n' "$dir/begun" >"$dir/fakes/sh"
printf '#!/bin/bash\necho ready\nexec sleep 3\n' >"$dir/fakes/python3"
chmod a+x "$dir/fakes"/*
PATH=$dir/fakes:$PATH tries 'what changes nothing' "$doctor" doctor --isolation processes --faults worker-deaf,worker-signal,worker-gil-hang,worker-abort
told 'what changes nothing' '^work: worker-abort'
told 'what changes nothing' '^cannot: worker-deaf why: .*nothing showed it: it ignores no signal that it did not ignore before fix: .*--keep'
told 'what changes nothing' '^cannot: worker-signal why: .*nothing showed it: .*ignored SIGUSR1'
told 'what changes nothing' '^cannot: worker-gil-hang why: it could not be brought in force: '

# For programs, and kept.
"$doctor" doctor --isolation processes --faults worker-exit --format json --keep >"$dir/said" 2>&1
grep -q '"tried":true.*"name":"worker-exit","family":"process","here":"works","why":null,"fix":null,"seen":"the target has ended"' "$dir/said" || fail '--format json'
ls "$TMPDIR"/rankquake-doctor-*/worker-exit-*/history.jsonl >/dev/null || fail '--keep: no history was kept'
rm -rf "$TMPDIR"/rankquake-doctor-*

# Interrupted and killed while it tries: a worker has begun.
for signal in INT KILL; do
    rm -f "$dir/begun" && mkfifo "$dir/begun"
    exec 7<>"$dir/begun"
    PATH=$dir/fakes:$PATH "$doctor" doctor --isolation processes --faults worker-hang >"$dir/said" 2>&1 &
    tried=$!
    read -rt 60 -u 7 line || fail "SIG$signal: no worker has begun"
    kill -$signal $tried
    wait $tried 2>/dev/null
    rc=$?
    exec 7<&-
    if [ $signal = INT ]; then
        [ $rc = 130 ] && [ -z "$(ls -A "$TMPDIR")" ] || fail "SIGINT: exit $rc, left: $(ls "$TMPDIR")"
        continue
    fi
    # Its run learns of it by a signal of the kernel's, and takes itself down.
    folder=$(echo "$TMPDIR"/rankquake-doctor-*)
    run=$(echo "$folder"/worker-hang-*)
    timeout 300 tail -n +1 -F "$run/history.jsonl" 2>/dev/null | grep -qm 1 '"kind":"health","left":\[\]' || fail 'SIGKILL: its run was not taken down'
    "$doctor" clean >"$dir/said" 2>&1 || fail 'SIGKILL: clean ends with another status' # it still writes its reports
    grep -q "^removed $folder, left by doctor $tried, which is dead" "$dir/said" || fail 'SIGKILL: clean has not removed its folder'
    [ -z "$(ls -A "$TMPDIR")" ] || fail "SIGKILL: left: $(ls "$TMPDIR")"
done

# Bad input.
refused() { # refused SENTENCE ARGUMENT...
    "$doctor" doctor "${@:2}" >"$dir/said" 2>&1
    rc=$?
    [ $rc = 64 ] && grep -q -- "$1" "$dir/said" || fail "${*:2}: exit $rc"
}
refused 'there is no fault "worker-kil"; did you mean worker-kill' --faults worker-kil
refused '--isolation goes with --faults' --isolation processes
refused '--isolation is auto, namespaces or processes' --faults all --isolation none
exit $bad
