#!/usr/bin/env bash
# doctor says of this host what it can and cannot do: every question once, with the fix for what is
# missing; exit 0 where the demo can run, 4 where it cannot. What is taken away here is missed there.
# deadline: 300 s
set -u
dir=$TMPDIR/doctor
mkdir "$dir"
bad=0
export NO_COLOR=1
fail() {
    echo "$*"
    cat "$dir/said"
    bad=1
}
# What stands in front of a question: + works, x lacks, - not asked.
answer() { sed -n "s/^\([-+x]\) $1  .*/\1/p" "$dir/said"; }

"$BIN/rankquake" doctor >"$dir/said" 2>&1
rc=$?
for question in blas cgroup clock cores cuda curl cut dataset etcd 'exit status' fuse gpu kernel 'kernel stack' \
    namespaces nccl priority processes programs ptrace 'ranktrain cuda' rootfs scheduler seccomp sockets uptime wire; do
    [ "$(answer "$question" | wc -l)" = 1 ] || fail "$question is not answered once"
    if [ "$(answer "$question")" = x ]; then
        grep -A9 "^x $question  " "$dir/said" | sed '1d' | sed '/^[-+x]/,$d' | grep -q 'fix:' ||
            fail "$question: no fix"
    fi
done
needed=$(sed -n '1,/^$/p' "$dir/said" | grep -c '^x')
if [ "$needed" = 0 ]; then
    [ $rc = 0 ] && grep -q '^the demo can run here' "$dir/said" || fail "exit $rc where nothing is missing"
else
    [ $rc = 4 ] && grep -q '^no scenario can run' "$dir/said" || fail "exit $rc where something is missing"
fi
# Every fault there is, less what is missed.
faults=$("$BIN/rankquake" list faults | wc -l) scheduled=$("$BIN/rankquake" list faults | grep -c '^slurm-')
if [ "$needed" = 0 ] && [ "$(answer ptrace)" = + ]; then
    many="all $faults"
    [ "$(answer scheduler)" = + ] || many="$((faults - scheduled)) of $faults"
    grep -q "^faults: $many can be injected here\(, not slurm-[^ ]*\(, slurm-[^ ]*\)*\)\?$" "$dir/said" || fail 'the faults are not counted'
fi
# Each fault once, with what becomes of it.
told() { sed -n '/^each fault, by/,/^faults: /p' "$dir/said" | sed '/^faults: /d' | tr -s ' \n' '  '; }
names=$("$BIN/rankquake" list faults | cut -d' ' -f1)
told >"$dir/told"
for fault in $names; do
    [ "$(grep -oE "[ ,:]$fault[ ,]" "$dir/told" | wc -l)" = 1 ] || fail "$fault is not told of once"
done
if command -v python3 >/dev/null; then
    "$BIN/rankquake" doctor --format json >"$dir/json" 2>"$dir/said"
    python3 - "$dir/json" $names <<'END' || fail '--format json'
import json, sys
faults = json.load(open(sys.argv[1]))['faults']
assert [f['name'] for f in faults] == sys.argv[2:], faults
assert all(f['here'] == 'works' or f['why'] and f['fix'] for f in faults), faults
END
fi
"$BIN/rankquake" doctor --format html >"$dir/said" 2>&1
[ $? = 64 ] || fail 'a format that there is not was taken'
# Another user is told what he can do, not what root could, each with the fix.
other=(setpriv --reuid 65534 --regid 65534 --clear-groups)
if [ "$(id -u)" = 0 ] && "${other[@]}" test -x "$BIN/rankquake" 2>/dev/null; then
    TMPDIR=/tmp "${other[@]}" "$BIN/rankquake" doctor >"$dir/said" 2>&1
    rc=$?
    [ $rc = $([ "$(answer namespaces)$(answer processes)" = xx ] && echo 4 || echo 0) ] || fail "another user: exit $rc"
    case $(answer namespaces) in
    +) told | grep -qE ' work: .*net-delay' || fail 'another user, with namespaces: no net-delay' ;;
    x) told | grep -qE ' cannot: .*net-delay.* fix: ' || fail 'another user, without namespaces: net-delay' ;;
    *) fail 'another user: namespaces are not asked for' ;;
    esac
fi
# It says of the namespaces what a run says of them, and of the rest what is done without.
cat >"$dir/s.yaml" <<<'{cluster: {nodes: 1, store: none}, job: {run: ["true"]}}'
"$BIN/rankquake" plan --set cluster.isolation=namespaces "$dir/s.yaml" >"$dir/plan" 2>&1
plan=$?
case $(answer namespaces)$plan in
+0 | x4) ;;
*) fail "namespaces: $(answer namespaces), but plan exits $plan" ;;
esac

# A program alone has no launcher beside it.
mkdir "$dir/alone" && cp "$BIN/rankquake" "$dir/alone/" || exit 1
"$dir/alone/rankquake" doctor >"$dir/said" 2>&1
rc=$?
[ $rc = 4 ] && [ "$(answer programs)" = x ] || fail "without rankrun: exit $rc"
grep -q "there is no program $dir/alone/rankrun" "$dir/said" || fail 'the missing program is not named'

# No etcd in PATH is no loss; one that is named and does not answer is.
PATH=/nowhere "$BIN/rankquake" doctor >"$dir/said" 2>&1
[ "$(answer etcd)" = - ] || fail 'no etcd in PATH'
"$BIN/rankquake" doctor --etcd 127.0.0.1:1 >"$dir/said" 2>&1
[ "$(answer etcd)" = x ] && grep -q 'nothing answers at 127.0.0.1:1' "$dir/said" || fail 'an etcd that is not there'

# A driver that answers, one whose device lets one process in, and one that does not answer.
fake=$(realpath "$OUT/tests/fakes/nvml/libnvidia-ml.so.1")
gpu() { # gpu LINE...
    printf '%s\n' 'driver 570.86.15' "$@" >"$dir/nvml"
    RANKQUAKE_NVML=$fake RANKQUAKE_FAKE_NVML=$dir/nvml "$BIN/rankquake" doctor >"$dir/said" 2>&1
}
gpu 'device GPU-a 81920 0 0 NVIDIA H200'
[ "$(answer gpu)" = + ] && grep -q '1: NVIDIA H200, driver 570.86.15' "$dir/said" || fail 'a device'
[ "$(answer cuda)" = - ] && fail 'a device, and nobody asked for CUDA'
gpu 'device GPU-a 81920 0 3 NVIDIA H200'
[ "$(answer gpu)" = x ] && grep -q 'nvidia-smi -c DEFAULT' "$dir/said" || fail 'a device for one process'
gpu 'error Init_v2 18'
[ "$(answer gpu)" = x ] && grep -q 'version mismatch (18)' "$dir/said" || fail 'a driver of another version'

# A host that allows no networks.
if unshare -Ur true 2>/dev/null; then
    unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_net_namespaces && exec "$@"' sh \
        "$BIN/rankquake" doctor >"$dir/said" 2>&1
    rc=$?
    [ $rc = $([ "$(answer processes)" = + ] && echo 0 || echo 4) ] || fail "without network namespaces: exit $rc"
    for question in namespaces wire sockets; do
        [ "$(answer $question)" = x ] || fail "without network namespaces: $question works"
    done
    if [ "$(answer processes)" = + ]; then
        grep -q '^isolation: processes would be used' "$dir/said" || fail 'not told what would be used'
        grep -q '^  to have namespaces: .*sysctl user.max_net_namespaces=' "$dir/said" ||
            grep -q '^  to have namespaces: docker' "$dir/said" || fail 'not told what would give namespaces'
    fi
    if [ "$(answer processes)" = + ]; then
        told | grep -qE ' work with less: .*node-kill.* how: nodes are processes' || fail 'not told what works with less'
        told | grep -qE ' cannot: .*net-delay.* why: .* fix: ' || fail 'not told why net-delay cannot be had'
    fi
    grep -q 'max_net_namespaces 0' "$dir/said" || fail 'the switch is not named'
fi

"$BIN/rankquake" doctor what >"$dir/said" 2>&1
[ $? = 64 ] || fail 'a file was taken'
exit $bad
