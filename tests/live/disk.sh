#!/usr/bin/env bash
# The disk: what is done to a directory that lies on it is as on any other, is recorded in its order with its bytes, and whoever
# is killed, nothing of it stays mounted; a node that goes off loses what it has not synced. As root and as an ordinary user.
# deadline: 240 s
set -u
cd "$(dirname "$0")/../.." || exit 1
desk=$TMPDIR/disk
dir=$desk
mkdir "$dir" && cp -R "$BIN" "$dir/bin" && cp "$OUT/tests/faults/mechanism/disk/spawn_job" "$dir" || exit 1
chmod a+x "$TMPDIR" && chmod -R a+rwX "$dir" || exit 1
disk=("$dir/bin/rankquake" disk)
failed=0
fail() {
    echo "$*"
    failed=1
}
record() { # record WHAT LINE...: in this order, among others
    local what=$1 at=0 n
    shift
    for line; do
        n=$(tail -n +$((at + 1)) "$dir/record" | grep -nE -m 1 -- "$line" | cut -d: -f1)
        [ -n "$n" ] || { fail "$what: its record has no $line behind line $at"; cat "$dir/record"; return; }
        at=$((at + n))
    done
}
mounted() { grep -c ' fuse rankquake ' /proc/self/mountinfo; }
before=$(mounted)

users=('')
[ "$(id -u)" = 0 ] && command -v setpriv >/dev/null && users+=('setpriv --reuid=65534 --regid=65534 --clear-groups')
for as in "${users[@]}"; do
    who=${as:+an ordinary user}
    who=${who:-this user}
    rm -rf "$dir/job" "$dir/record"* && $as mkdir "$dir/job" && echo before | $as tee "$dir/job/old" >/dev/null || exit 1
    $as env RANK=3 "${disk[@]}" --over "$dir/job" --record "$dir/record" -- "$dir/spawn_job" "$dir/job" >"$dir/said" 2>&1
    rc=$?
    [ $rc = 4 ] && { tail -n 1 "$dir/said"; exit 77; }
    [ $rc = 0 ] || { fail "$who: what it does is not as on another disk: exit $rc"; cat "$dir/said"; }
    record "$who" '"had","directory":true,"file":1' '"had","file":2,"path":"old".*"size":7,"at":0' \
        '"mkdir".*"path":"step-1"' '"create".*"path":"step-1/model.tmp","mode":384' \
        '"write".*"path":"step-1/model.tmp","size":7,"at":7,.*"pid":[0-9]+,"rank":3' '"sync","file"' '"close"' \
        '"rename".*"path":"step-1/model.tmp","to":"step-1/model"' '"sync","directory":true,"file":1' \
        '"exchange".*"path":"one","to":"two"' '"link".*"path":"one","to":"uno"' '"unlink".*"path":"uno"' \
        '"symlink".*"path":"latest","to":"one"' '"rename","directory":true.*"path":"full","to":"moved"' \
        '"rmdir".*"path":"empty"' '"write".*"path":"appended","size":2' '"write".*"path":"appended","offset":2,"size":2' \
        '"truncate".*"path":"appended","offset":2' '"truncate".*"path":"appended"' '"allocate".*"allocated","size":5000' \
        '"truncate".*"allocated","offset":3' '"sync_data".*allocated' '"unlink".*"gone"' '"write".*"gone","size":5' \
        '"write".*"synced"' '"sync".*"synced"' '"write".*"mapped","size":4096' '"sync.*"mapped"' \
        '"write".*"mapped","offset":4096'
    [ "$(head -c 14 "$dir/record.bytes")" = $'before\nweights' ] || fail "$who: the bytes are others"
    [ "$(<"$dir/job/step-1/model")" = weights ] || fail "$who: nothing lies in the directory itself"
    $as "${disk[@]}" --over "$dir/job" -- sh -c '[ "$(id -u)" = "$1" ] && exit 7' sh "$($as id -u)"
    [ $? = 7 ] || fail "$who: the command is not who he is, or its status is lost"
    $as "${disk[@]}" --over "$dir/job" --record "$dir/record" --max-bytes 10 -- sh -c "echo 0123456789 >$dir/job/f" 2>"$dir/said" ||
        fail "$who: a record that is full ends the command"
    grep -q 'more than 10 bytes' "$dir/said" || fail "$who: it does not say that the record is full"
    record "$who: full" '"full": 10'
done

# Whoever is killed: nothing hangs, and nothing stays.
mkfifo "$dir/up"
"${disk[@]}" --over "$dir/job" -- sh -c "echo up >$dir/up; exec tail -f /dev/null" &
whole=$!
read -r _ <"$dir/up"
kill -KILL $whole
wait $whole 2>/dev/null
[ "$(mounted)" = "$before" ] || fail 'it is mounted where nobody has asked for it'
"${disk[@]}" --over "$dir/job" -- sh -c "
    for p in \$(cat /proc/\$(ps -o ppid= -p \$PPID | tr -d ' ')/task/*/children); do [ \$p = \$PPID ] || kill -KILL \$p; done
    while cat $dir/job/old; do :; done" >/dev/null 2>"$dir/said"
grep -q 'not connected' "$dir/said" || { fail 'a disk whose process has died does not say so'; cat "$dir/said"; }
"${disk[@]}" --over "$dir/none" -- true 2>"$dir/said"
[ $? = 3 ] && grep -q "$dir/none" "$dir/said" || fail 'a directory that is not there is not named'

# What a node finds on its disk when it is on again, on each isolation; whoever is no root has namespaces.
cat >"$dir/loses.yaml" <<'END'
cluster: {nodes: 1, disk: losing}
job:
  max_restarts: 0
  run:
    - sh
    - -c
    - |
      cd {disk}
      case {out} in */control) exit 0 ;; esac
      if [ -e begun ]; then { find . | sort; cat kept old; } >{out}/found; exit 0; fi
      echo kept >kept; echo old >old; mkdir d; echo x >d/x; echo begun >begun; sync begun old kept d d/x .
      echo lost >lost; echo changed >old; echo more >>kept; mv d/x d/y; rm d/y; mkdir e; mv d e/f; rm begun
      echo go
      exec tail -f /dev/null
timeline:
  - {id: dark, when: {log: '/^go/'}, fault: node-reboot, with: {down: 50ms}, on: n0}
limits: {total: 1m}
END
BIN=$dir/bin
. tests/live/runs.bash
chmod -R a+rwX "$TMPDIR"
as=()
loses() { # loses WHAT ISOLATION
    runs "$1" 0 "$2" --isolation "$3"
    [ "$(tr '\n' ' ' <"$dir"/out/*/found)" = '. ./begun ./d ./d/x ./kept ./old kept old ' ] ||
        fail "$1: after its reboot the node has on its disk: $(tr '\n' ' ' <"$dir"/out/*/found)"
}
for isolation in namespaces processes; do
    [ $isolation = processes ] && [ "$(id -u)" != 0 ] || loses "a node of $isolation" "$desk/loses.yaml" $isolation
done
as=(${users[1]:-})
loses 'an ordinary user' "$desk/loses.yaml" namespaces
# What such a disk itself lets fail; a damage to what lies on one that loses what was not synced.
cat >"$desk/fails.yaml" <<'END'
cluster: {nodes: 1, disk: losing}
job:
  max_restarts: 1
  run:
    - bash
    - -c
    - |
      case {out} in */control) exit 0 ;; esac
      cd {disk}
      if [ -e kept ]; then cat kept; exit 0; fi
      echo whole >kept; sync kept .
      echo begun
      in_force() { grep -qm 1 "\"kind\":\"fault-in-force\",\"id\":\"$1\"" < <(tail -n +1 -f {out}/history.jsonl); }
      in_force fails
      sync kept || echo that-failed
      in_force short
      head -c 100 /dev/zero >part
      echo written
      in_force closed
      echo x >>part || echo read-only
      exec tail -f /dev/null
timeline:
  - {id: fails, when: {log: /^begun/}, fault: disk-error, with: {op: fsync, path: "{disk}/*"}, on: n0}
  - {when: {after: fails, log: /^that-failed/}, heal: fails}
  - {id: cut, when: {after: fails, log: /^that-failed/}, fault: file-truncate, with: {path: "{disk}/kept"}, on: n0}
  - {id: short, when: {after: cut}, fault: disk-short, with: {bytes: 10, path: "{disk}/part"}, on: n0}
  - {when: {after: short, log: /^written/}, heal: short}
  - {id: closed, when: {after: short, log: /^written/}, fault: disk-readonly, with: {path: "{disk}/*"}, on: n0}
  - {when: {after: closed, log: /^read-only/}, heal: closed}
  - {when: {after: closed, log: /^read-only/}, fault: worker-kill, on: rank 0}
limits: {total: 1m}
END
fails() { # fails WHAT ISOLATION
    runs "$1" 0 "$desk/fails.yaml" --isolation "$2"
    recorded "$1" '"source":"disk","kind":"disk-call","node":"n0","pid":[0-9]+,"verdict":"failed","path":"kept","op":"fsync","error":"EIO","by":"disk"'
    recorded "$1" '"source":"disk","kind":"disk-call","node":"n0","pid":[0-9]+,"verdict":"shortened","path":"part"'
    recorded "$1" '"source":"disk","kind":"disk-call","node":"n0","pid":[0-9]+,"verdict":"failed","path":"part".*"error":"EROFS","by":"disk"'
    for fault in cut short closed; do recorded "$1" '"kind":"fault-evidence","id":"'$fault'"'; done
    for fault in short closed; do recorded "$1" '"kind":"fault-recovered","id":"'$fault'"'; done
}
chmod a+r "$desk/fails.yaml"
fails 'an ordinary user: a disk that fails' namespaces
own=("${as[@]}")
as=()
[ "$(id -u)" != 0 ] || fails 'processes: a disk that fails' processes
as=("${own[@]}")
timeout 300 "${as[@]}" "$BIN/rankquake" run "$desk/loses.yaml" --isolation processes --out "$dir/out" >"$dir/said" 2>&1
rc=$?
[ ${#as[@]} = 0 ] || { [ $rc = 4 ] && grep -q 'cluster.disk: losing: ' "$dir/said"; } ||
    fail "processes of an ordinary user: exit $rc, and no word of the disk"
exit $failed
