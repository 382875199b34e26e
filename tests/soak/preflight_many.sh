#!/usr/bin/env bash
# Preflight of many hosts (HOSTS=64), each with an sshd of its own: in which time, all in all and of each probe.
# deadline: 1200 s
set -u
cd "$(dirname "$0")/../.." || exit 1
dir=$TMPDIR/preflight bed=$TMPDIR/bed n=${HOSTS:-64}
mkdir "$dir"
. tests/live/says.bash
rq=$(cd "$BIN" && pwd)/rankquake
tests/clusters/ssh up "$bed" "$n" >"$dir/said" 2>&1
rc=$?
[ $rc != 77 ] || { tail -n 1 "$dir/said"; exit 77; }
[ $rc = 0 ] || { fail 'the hosts did not come up'; exit 1; }
trap 'tests/clusters/ssh down "$bed"' EXIT
mkdir "$bed/shared"
begin=${EPOCHREALTIME/./}
# Speed is not what hosts on one processor are judged by, and leftovers may be anybody's.
says 0 "reach +all $((n * (n - 1))) ways" 'all is well' tests/clusters/ssh in "$bed" ctl "$rq" preflight --hosts "$(seq -s, -f 'n%g' 0 $((n - 1)))" \
    --via "ssh -F $bed/ssh_config {host} $rq" --shared "$bed/shared" --ports 29400,29401 --space 1
took=$(((${EPOCHREALTIME/./} - begin) / 1000))
cat "$dir/said"
echo "preflight of $n hosts: $((took / 1000)).$(printf %03d $((took % 1000))) s, with all probes and the ways by ssh; load $(cut -d' ' -f1 /proc/loadavg) on $(nproc) processors"
exit $bad
