#!/usr/bin/env bash
# What programs do to a disk fails, is full, is slow or hangs while a fault lasts, as the kernel says of each call, or a disk of ours of
# each operation, and is as before when it is over, on nodes of both kinds; where nobody touches the disk, the verdict is open.
# deadline: 120 s
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/live/patience.bash
. tests/live/runs.bash

# It does one thing after the other, each when its fault is in force, and says what came of it.
cat >"$dir/job.sh" <<'END'
case $1 in */control) exit 0 ;; esac
told() { grep -qm 1 "\"kind\":\"fault-$1\",\"id\":\"$2\"" < <(tail -n +1 -f $out/history.jsonl); }
out=$1
cd $2 && mkdir d && echo old >d/old
echo begun
told in-force error
echo new 2>/dev/null >d/first && echo new >d/other && ! echo new >d/third && echo that-failed
told recovered error
echo new >d/third && echo gone-on
told in-force readonly
! mv d/old d/newer && ! mkdir e && ! rm d/old && cat d/old && echo that-was-refused
told recovered readonly
mv d/old d/newer && mkdir e && echo moved
told in-force full
echo 123456789 >d/a && ! echo 123456789 >d/b && rm d/b && echo 1234 >d/c && ! echo 1234 >>d/c && echo that-was-full
told recovered full
rm -f d/b
echo 123456789 >d/b && echo room
told in-force slow
sync d/a && echo that-was-slow
told recovered slow
echo again
told in-force stuck
sync d/a &
told evidence stuck
kill -0 $! && echo that-hangs
told recovered stuck
wait $! && echo done
[ $3 = kept ] && exit
told in-force short
$4 write d/part 100
told recovered short
$4 write d/part 100
exec 5>d/open && echo 1234567 >d/mapped && mkfifo hung && echo opened
told in-force remount
echo x >&5 || echo open-file-refused
chmod 600 d/a || echo chmod-refused
$4 map d/mapped
cat d/a
told recovered remount
$4 map d/mapped && echo mapped-again
told in-force pages
$4 map d/mapped
$4 direct d/direct
told recovered pages
$4 direct d/direct
told in-force hangs
bash -c 'trap : USR1; echo $$ >hung; read -r x <d/a' &
read -r pid <hung
told evidence hangs
kill -USR1 $pid; kill -KILL $pid; wait $pid; echo killed-by-$(($? - 128))
told recovered hangs
echo all-done
END
for disk in kept served; do
{
    printf 'cluster: {nodes: 1, disk: %s}\njob:\n  rdzv_conf: %s\n  run: [bash, %s, "{out}", "{shared}", %s, %s]\ntimeline:\n' $disk "$patient_map" "$dir/job.sh" $disk "$(realpath "$OUT/tests/live/spawn_writer")"
    while read -r id log over fault with; do
        echo "  - {id: $id, when: {log: /^$log\$/}, fault: disk-$fault, with: {$with}, on: n0}"
        echo "  - {when: {after: $id, log: /^$over\$/}, heal: $id}"
    done <<'END'
error begun that-failed error op: write, path: "{shared}/d/*", nth: 3, times: 1
readonly gone-on that-was-refused error error: EROFS, op: change
full moved that-was-full full bytes: 15, path: "{shared}/d/*", error: EDQUOT
slow room that-was-slow slow delay: 50ms, op: fsync
stuck again that-hangs stuck op: fsync, path: "{shared}/d/[a]"
END
    [ $disk = kept ] || cat <<'END'
  - {id: short, when: {log: /^done$/}, fault: disk-short, with: {bytes: 10, path: "{shared}/d/part"}, on: n0}
  - {when: {after: short, log: '/part: 10$/'}, heal: short}
  - {id: remount, when: {log: /^opened$/}, fault: disk-readonly, on: n0}
  - {when: {after: remount, log: /^1234/}, heal: remount}
  - {id: pages, when: {log: /^mapped-again$/}, fault: disk-error, with: {op: write}, on: n0}
  - {when: {after: pages, log: '/^direct d.direct: E/'}, heal: pages}
  - {id: hangs, when: {log: '/^direct d.direct: 4096/'}, fault: disk-stuck, with: {op: read/open, path: "{shared}/d/a"}, on: n0}
  - {when: {after: hangs, log: /^killed/}, heal: hangs}
END
    echo 'limits: {total: 240s}'
} >"$dir/$disk.yaml"
done
# A host is one run's at a time: that of this script has a place of its own for its lock.
own_lock=(unshare -m --propagation private sh -c 'mkdir -pm 700 $0 && mount -t tmpfs -o mode=700 tmpfs $0 && exec "$@"' /var/tmp/rankquake-0)
helper=$(realpath "$BIN/rankquake-node")
there() { # there WHAT CODE FILE: as runs, on a host that $helper reaches
    local as=("${own_lock[@]}") on_hosts=1
    runs "$@" --provider exec --hosts "$helper"
}
for run in 'kept namespaces' 'kept processes' 'kept hosts' 'served namespaces'; do
    read -r disk isolation <<<"$run"
    by=calls from=kernel at='[^"]*/shared/'
    [ $disk = kept ] || by=disk from=disk at=
    if [ $isolation = hosts ]; then
        [ "$(id -u)" = 0 ] || continue
        there "a disk, $run" 0 "$dir/$disk.yaml"
    else
        runs "a disk, $run" 0 "$dir/$disk.yaml" --isolation $isolation
    fi
    for id in error readonly full slow stuck; do
        recorded "a disk, $run" '"source":"kernel","kind":"fault-evidence","id":"'$id'".*"count":[0-9]+,"path":"'"$at"'[^"]*","by":"'$by'"'
        recorded "a disk, $run" '"kind":"fault-recovered","id":"'$id'","n":1}'
    done
    recorded "a disk, $run" '"source":"'$from'","kind":"disk-call","node":"n0","pid":[0-9]+,"verdict":"failed","path":"'"$at"'d/third","op":"write","error":"EIO","by":"'$by'"'
    cat "$dir"/out/*/logs/n0/*/* "$dir"/out/*/logs/n0/* 2>/dev/null >"$dir/said"
    for line in that-failed that-was-refused moved that-was-full room that-was-slow that-hangs done 'Input/output error' 'Read-only file system' 'Disk quota exceeded'; do
        said "a disk, $run" "$line"
    done
done
# What system calls do not show: parts of a write, pages, files that are open already; and who hangs there can be killed.
recorded 'a full disk' '"verdict":"shortened","path":"d/b","op":"write","by":"disk"'
recorded 'pages' '"pid":0,"verdict":"failed","path":"d/mapped","op":"write","error":"EIO"'
recorded 'a short write' '"source":"disk","kind":"fault-evidence","id":"short".*"count":1,"path":"d/part"'
for line in 'd/part: 10 ' 'd/part: 100 ' open-file-refused chmod-refused 'map d/mapped: EROFS' 'map d/mapped: 0' 'map d/mapped: EIO' \
    'direct d/direct: EIO' killed-by-9 all-done; do
    said 'a disk of ours' "$line"
done

# What a node is told late: n1 looks, n0 changes it, n1 looks again.
mkfifo "$dir/looked" "$dir/changed"
cat >"$dir/late.sh" <<'END'
case $1 in */control) exit 0 ;; esac
told() { grep -qm 1 "\"kind\":\"fault-$1\",\"id\":\"$2\"" < <(tail -n +1 -f $out/history.jsonl); }
out=$1 at=$4/
glance() { echo $(readlink latest) $(cat latest/model) new: $([ -e new ] && echo there) gone: $([ -e gone ] && echo there) $(stat -c %s grown); }
opens() { echo $(cat file grown; cat gone 2>/dev/null || echo gone-is-gone) lists: $(echo *); }
cd $2
if [ $3 = n0 ]; then
    mkdir step-10 step-20; echo ten >step-10/model; echo twenty >step-20/model
    for round in new old; do
        rm -f new; ln -sfn step-10 latest; touch gone; echo a >grown; echo one >file
        : >${at}changed
        : <${at}looked
        ln -s step-20 .l; mv -T .l latest; touch new; rm gone; echo b >>grown; echo two >.f; mv .f file
        : >${at}changed
        : <${at}looked
    done
    exit
fi
for round in new old; do
    : <${at}changed
    echo ready-$round
    told in-force $round
    glance >/dev/null
    [ $round = new ] || opens >/dev/null
    : >${at}looked
    : <${at}changed
    echo late-$round: $(glance) $(opens)
    echo mine >mine-$round; cat mine-$round
    echo seen-$round
    told recovered $round
    echo after-$round: $(glance) $(opens)
    : >${at}looked
done
END
{
    printf 'cluster: {nodes: 2}\njob:\n  rdzv_conf: %s\n  run: [bash, %s, "{out}", "{shared}", "{node}", %s]\ntimeline:\n' "$patient_map" "$dir/late.sh" "$dir"
    for id in new old; do
        echo "  - {id: $id, when: {log: /^ready-$id/}, fault: disk-late, with: {delay: 1h, opens: $id}, on: n1}"
        echo "  - {when: {after: $id, log: /^seen-$id/}, heal: $id}"
    done
    echo 'limits: {total: 240s}'
} >"$dir/late.yaml"
runs 'what others change' 0 "$dir/late.yaml"
cat "$dir"/out/*/logs/n1/*/* "$dir"/out/*/logs/n1/* 2>/dev/null >"$dir/said"
for line in '-new: step-10 ten new: gone: there 2 two a b gone-is-gone lists: file grown latest new step' \
    '-old: step-10 ten new: gone: there 2 one a lists: file gone grown latest mine'; do
    said 'what others change' "late$line"
done
for round in new old; do
    said 'what others change' "after-$round: step-20 twenty new: there gone: 4 two a b gone-is-gone lists: file grown latest mine.* new"
    recorded 'what others change' '"source":"disk","kind":"fault-evidence","id":"'$round'".*"path":"latest","by":"disk"'
    recorded 'what others change' '"kind":"fault-recovered","id":"'$round'","n":1}'
done
recorded 'what others change' '"kind":"disk-call","node":"n1","pid":[0-9]+,"verdict":"late","path":"new","op":"look"'

# The same by an ordinary user.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    cp -R "$BIN" "$dir/bin" && chmod -R a+rwX "$TMPDIR" || exit 1
    as=(setpriv --reuid=65534 --regid=65534 --clear-groups) root_bin=$BIN BIN=$dir/bin
    runs 'what others change, an ordinary user' 0 "$dir/late.yaml"
    for round in new old; do
        recorded 'what others change, an ordinary user' '"source":"disk","kind":"fault-evidence","id":"'$round'".*"path":"latest","by":"disk"'
    done
    as=() BIN=$root_bin
    rm -rf "$dir/out" "$dir/bin"
fi

# A job whose ranks each look where `latest` leads: the one whose node has looked before goes on from another step.
cat >"$dir/pointer.sh" <<'END'
case $1 in */control) echo 'resumed from step 0'; echo step 1; exit ;; esac
points() { mkdir -p $2/step-$1; ln -s step-$1 $2/.l; mv -T $2/.l $2/latest; echo saved-$1; }
echo "resumed from step $(basename $(readlink $2/latest || echo step-0) | tr -dc 0-9)"
echo step $((30 + RANK))
[ -e $3/struck ] && exit
if [ $RANK = 0 ]; then
    points 10 $2
    : >$3/changed
    : <$3/looked
    touch $3/struck
    points 20 $2
    exec tail -f /dev/null
fi
: <$3/changed
echo sees-10
grep -qm 1 '"kind":"fault-in-force","id":"late"' < <(tail -n +1 -f $1/history.jsonl)
readlink $2/latest
: >$3/looked
exec tail -f /dev/null
END
cat >"$dir/pointer.yaml" <<END
cluster: {nodes: 2}
job:
  nnodes: 2
  max_restarts: 1
  run: [bash, $dir/pointer.sh, "{out}", "{shared}", $dir]
  checkpoint: {dir: "{shared}", complete: "ls | sed -n 's/^step-//p'"}
observe: {step: 'step (\d+)', resume: 'resumed from step (\d+)'}
timeline:
  - {id: late, when: {log: /^sees-10/}, fault: disk-late, with: {delay: 1h}, on: node of rank 1}
  - {when: {after: late, log: /^saved-20/}, fault: worker-exit, on: rank 0}
limits: {total: 240s}
END
runs 'ranks that each look for the newest' 1 "$dir/pointer.yaml"
said 'ranks that each look for the newest' 'rank 1 on n. of round 2 resumed from step 10, and others from another'

# A disk stays as it is while its node is off, and what it has done by then counts. A helper that claims to fail a disk is not believed.
cat >"$dir/reboot.sh" <<'END'
case $1 in */control) exit 0 ;; esac
if ! grep -q '"kind":"fault-fired","id":"again"' $1/history.jsonl; then
    echo begun
    grep -qm 1 '"kind":"fault-in-force","id":"kept"' < <(tail -n +1 -f $1/history.jsonl)
    echo x >$2/first || echo refused-first
    echo struck
    exec tail -f /dev/null
fi
echo x >$2/second || echo refused-second
echo x >$2/third && echo third-is-made
END
cat >"$dir/reboot.yaml" <<END
cluster: {nodes: 1}
job:
  rdzv_conf: $patient_map
  run: [bash, $dir/reboot.sh, "{out}", "{disk}"]
timeline:
  - {id: kept, when: {log: /^begun$/}, fault: disk-error, with: {op: open, path: "{disk}/*", error: ESTALE, times: 2}, on: n0}
  - {id: other, when: {log: /^begun$/}, fault: disk-error, with: {op: open, path: "{shared}/*", error: ESTALE}, on: n0}
  - {id: again, when: {log: /^struck$/}, fault: node-reboot, with: {down: 100ms}, on: n0}
limits: {total: 240s}
END
reboots() { # reboots WHAT: only what was struck was felt
    recorded "$1" '"kind":"fault-evidence","id":"kept".*"count":1,"path":"[^"]*/first","by":"calls"'
    recorded "$1" '"kind":"fault-unfelt","id":"other".*no program of the node has done'
    cat "$dir"/out/*/logs/n0/*/* "$dir"/out/*/logs/n0/* 2>/dev/null >"$dir/said"
    for line in refused-first refused-second third-is-made; do said "$1" $line; done
}
runs 'a reboot with a bad disk' 2 "$dir/reboot.yaml" --isolation processes
reboots 'a reboot with a bad disk'
if [ "$(id -u)" = 0 ] && command -v python3 >/dev/null; then
    there 'a reboot of a host' 2 "$dir/reboot.yaml"
    reboots 'a reboot of a host'
    helper="python3 $PWD/tests/live/idle_helper.py $helper"
    there 'a helper that does nothing' 2 "$dir/reboot.yaml"
    helper=${helper##* }
    recorded 'a helper that does nothing' '"kind":"fault-in-force","id":"kept"'
    recorded 'a helper that does nothing' '"kind":"fault-unfelt","id":"kept".*no program of the node has done'
fi

# Nobody does to the disk what they are about.
cat >"$dir/idle.sh" <<'END'
case $1 in */control) exit 0 ;; esac
echo begun
grep -qm 1 '"kind":"fault-recovered","id":"stuck"' < <(tail -n +1 -f $1/history.jsonl)
END
{
    printf 'cluster: {nodes: 1}\njob:\n  rdzv_conf: %s\n  run: [bash, %s, "{out}"]\ntimeline:\n' "$patient_map" "$dir/idle.sh"
    for fault in error full readonly short slow stuck; do
        echo "  - {id: $fault, when: {log: /begun/}, fault: disk-$fault, with: {path: \"{disk}/**\"}, on: n0, for: 100ms}"
    done
    echo "  - {id: late, when: {log: /begun/}, fault: disk-late, on: n0, for: 100ms}"
    echo 'limits: {total: 240s}'
} >"$dir/idle.yaml"
runs 'a disk that nobody touches' 2 "$dir/idle.yaml"
for fault in error full readonly short slow stuck; do
    recorded 'a disk that nobody touches' '"kind":"fault-unfelt","id":"'$fault'".*no program of the node has (done to the disk what was to|given the disk more)'
done
recorded 'a disk that nobody touches' '"kind":"fault-unfelt","id":"late".*no program of the node has looked at what another'


# Bad input.
for bad in 'op: write|sync|"write.sync" is no kind of operation' 'error: EWRONG|error: EWRONG is none of EIO' 'path: d/a|path: "d/a" is not on a disk of the job'; do
    printf 'cluster: {nodes: 1}\njob: {run: ["true"]}\ntimeline: [{when: {step: 1}, fault: disk-error, with: {%s}, on: n0, for: 1s}]\n' "${bad%|*}" >"$dir/bad.yaml"
    runs "bad ${bad%|*}" 64 "$dir/bad.yaml"
    said "bad ${bad%|*}" "${bad##*|}"
done
exit $failed
