#!/usr/bin/env bash
# Hosts are asked before jobs run on them: four with a real sshd, on which all is well; then one thing after the other is
# planted on one of them, and the probe that is about it names that host. A host that hangs, or is none, holds nobody up.
# deadline: 420 s
set -u
dir=$TMPDIR/preflight bed=$TMPDIR/bed
mkdir "$dir"
. tests/live/says.bash
rq=$(cd "$BIN" && pwd)/rankquake

# This host alone.
says 0 'limits +open files' 'this host' "$rq" preflight --probe limits --probe versions --probe space --probe nics --space 1
says 0 'allreduce +there is one host alone' 'nobody to talk to' "$rq" preflight --probe allreduce
says 1 'has [0-9]+ MB free, and 1000000000 are asked for' 'no space' "$rq" preflight --probe space --space 1000000000
says 0 'bandwidth +latency and bandwidth' 'the list' "$rq" preflight --list
says 64 'did you mean limits' 'a misspelt probe' "$rq" preflight --probe limit
says 64 'there is no such probe' 'no probe' "$rq" preflight --without weather
says 64 'write names' 'no hosts' "$rq" preflight --hosts a,,b
says 64 'needs \{host\}' 'no host in --via' "$rq" preflight --hosts a --via 'ssh a rankquake'
says 64 'write numbers' 'no port' "$rq" preflight --ports 29400,x
says 64 'hosts are named by --hosts' 'a word' "$rq" preflight n0
"$rq" preflight --probe limits --format json | grep -q '"name":"limits","status":"pass"' || fail 'json'

echo '{"fio version":"fio-3.33","jobs":[{"jobname":"ckpt","error":28}]}' >"$dir/fio.json"
says 1 'fio fio.json job ckpt ended with error 28' "another program's result" "$rq" preflight --probe limits --results "$dir/fio.json"
says 64 'it is no result that is known' 'no result' "$rq" preflight --results tests/live/preflight.sh

# GPUs, as a driver's library that is made up tells of them, and a kernel's log.
RANKQUAKE_NVML=$(realpath "$OUT/tests/fakes/nvml/libnvidia-ml.so.1")
[ -e "$RANKQUAKE_NVML" ] || { echo "$RANKQUAKE_NVML is not built: make test-programs"; exit 1; }
gpus() { # gpus CODE PATTERN WHAT LINE...: two that are well, and that
    printf '%s\n' 'driver 570.86.15' 'device GPU-a 143771 0 0 NVIDIA H200' 'device GPU-b 143771 0 0 NVIDIA H200' 'health 0 ecc 0' \
        'health 1 links_up 18' 'health 1 links_down 0' 'health 1 lanes 16' 'health 1 lanes_max 16' 'health 1 slowed 1' "${@:4}" >"$dir/nvml"
    says "$1" "gpus +$2" "GPUs: $3" env RANKQUAKE_NVML="$RANKQUAKE_NVML" RANKQUAKE_FAKE_NVML="$dir/nvml" RANKQUAKE_KMSG="$dir/kmsg" "$rq" preflight --probe gpus
}
echo '6,1,1,-;NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.86.15' >"$dir/kmsg"
gpus 0 '2 x NVIDIA H200, 143771 MB on each, idle, without errors' 'well'
gpus 1 '.*: GPU 0 has had 2 memory errors that could not be corrected' 'memory' 'health 0 ecc 2'
gpus 1 '.*: GPU 1 is slowed down by its hardware .reasons 0x40' 'heat' 'health 1 slowed 64'
gpus 1 '.*: GPU 1 has 2 NVLink.s. down' 'links' 'health 1 links_up 16' 'health 1 links_down 2'
gpus 1 '.*: GPU 0 waits for a reset' 'rows' 'health 0 remap_pending 1' 'health 0 remap_failed 0'
gpus 1 '.*: GPU 0 has bad rows of memory that it cannot replace' 'bad rows' 'health 0 remap_pending 1' 'health 0 remap_failed 1'
gpus 1 '.*: GPU 1 has 8 of 16 PCIe lanes' 'lanes' 'health 1 lanes 8'
gpus 1 '.*: GPU 0 is used by 1 process' 'used' 'process 0 4711 500'
gpus 1 '.*: GPU 0 does not answer: .*GPU is lost' 'lost' 'error DeviceGetUUID 15'
gpus 1 '.*it hangs: what is asked there was not done in time' 'hangs' 'hang DeviceGetTotalEccErrors'
echo '4,2,2,-;NVRM: Xid (PCI:0000:3b:00): 31, pid=7, name=train, Ch 0, MMU Fault' >>"$dir/kmsg"
gpus 0 '2 x NVIDIA H200' "a program's mistake"
printf '%s\n' '4,3,3,-;NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.' '4,4,4,-;NVRM: Xid (PCI:0000:3b:00): 79, x' >>"$dir/kmsg"
gpus 1 '.*: its kernel has logged Xid 79 of PCI:0000:3b:00, 2 time' 'Xid'
rm "$dir/kmsg"
gpus 0 '2 x NVIDIA H200' 'a log that nobody may read'

# The answers of a host that is not as it should be: what goes in or comes out of its outpost is changed.
cat >"$dir/via" <<END
#!/usr/bin/env bash
host=\$1; shift
real=(ssh -F $bed/ssh_config "\$host" $rq "\$@")
plant=\$(cat $dir/plant 2>/dev/null)
[ "\$host" = n1 ] || exec "\${real[@]}"
case \$plant in
clock) "\${real[@]}" | sed -u 's/"ns":1/"ns":2/' ;;
library) "\${real[@]}" | sed -u 's/"libc":"/"libc":"9./' ;;
files) exec ssh -F $bed/ssh_config "\$host" "ulimit -n 100; exec $rq \$*" ;;
neighbours) "\${real[@]}" | sed -u 's/"neighbours":-*[0-9]*/"neighbours":3/' ;;
mtu) "\${real[@]}" | sed -u 's/"mtu":/"mtu":9/' ;;
sums) sed -u 's/"rank":0/"rank":Z/; s/"rank":1/"rank":0/; s/"rank":Z/"rank":1/; s/"rank":2/"rank":Z/; s/"rank":3/"rank":2/; s/"rank":Z/"rank":3/' | "\${real[@]}" ;;
hangs) exec sleep 1000 ;;
shell) echo 'Welcome to n1!'; exec "\${real[@]}" ;;
old) sed -u 's/"do":"look"/"do":"gaze"/' | "\${real[@]}" ;;
*) exec "\${real[@]}" ;;
esac
END
chmod +x "$dir/via"
tests/clusters/ssh up "$bed" 4 >"$dir/said" 2>&1
rc=$?
[ $rc != 77 ] || { tail -n 1 "$dir/said"; exit $((bad ? 1 : 77)); }
[ $rc = 0 ] || { fail 'the hosts did not come up'; exit 1; }
trap 'tests/clusters/ssh down "$bed"' EXIT
mkdir "$bed/shared"
ask() { # ask CODE PATTERN WHAT OPTION...
    local code=$1 pattern=$2 what=$3
    shift 3
    says "$code" "$pattern" "$what" tests/clusters/ssh in "$bed" ctl "$rq" preflight --hosts n0,n1,n2,n3 --via "$dir/via {host}" "$@"
}
planted() { # planted NAME PROBE PATTERN
    echo "$1" >"$dir/plant"
    ask 1 "$2 +$3" "planted: $1" --probe "$2"
    rm "$dir/plant"
}
# Leftovers are looked for in all of /proc that a host sees, and speed is not what a busy machine is asked.
ask 0 'reach +all 12 ways between 4 hosts' 'all is well' --shared "$bed/shared" --ports 29400,29401 --without bandwidth --space 1
grep -q 'allreduce *65536 numbers of 4 hosts were added up rightly' "$dir/said" || fail 'no sums'
grep -q "shared *$bed/shared: what one host writes is read by all others" "$dir/said" || fail 'not shared'
[ -z "$(ls -A "$bed/shared")" ] || fail 'tokens are left'
planted clock clock 'n1: its clock is off by '
planted library versions 'n1: libc is 9\..* on n0 and others'
planted files limits 'n1: nofile is 100'
planted neighbours limits 'n1: its kernel remembers 3 neighbours, of 4 hosts: raise net.ipv4.neigh.default.gc_thresh3'
planted mtu nics 'n1: the MTU of its cards is 9'
planted sums allreduce 'n1 spoils it: without it the sums are right'
planted hangs limits 'n1: no answer in time'
planted shell limits 'n1: what it answers is no JSON: is a shell there chatty'
planted old limits 'n1: this version of rankquake does not know the question'
ask 1 "n1 does not see in $bed/local what n0 and 2 more have written there: it is not shared" 'not shared' --probe shared --shared "$bed/local"
ask 1 'write .*none.*No such file' 'no directory' --probe shared --shared "$bed/none"
ask 1 'below|have [0-9]+ MB/s, and 100000000 is the floor' 'too slow' --probe bandwidth --floor 100000000
says 1 'n9: the program there ended: ssh: Could not resolve' 'no such host' tests/clusters/ssh in "$bed" ctl "$rq" preflight \
    --hosts n0,n9 --via "ssh -F $bed/ssh_config {host} $rq" --probe limits
printf '# two\nn0 slots=2\n\nn2\n' >"$dir/hosts"
says 0 'reach +all 2 ways between 2 hosts' 'a file of hosts' tests/clusters/ssh in "$bed" ctl "$rq" preflight \
    --hostfile "$dir/hosts" --via "$dir/via {host}" --probe reach
# A port that somebody has, and a host that is cut off.
if tests/clusters/ssh in "$bed" n2 tc qdisc add dev eth0 root tbf rate 20mbit burst 64kb latency 50ms 2>/dev/null; then
    ask 1 'bandwidth +.*n2: it has [0-9]+ MB/s with its peers' 'a slow link' --probe bandwidth
    tests/clusters/ssh in "$bed" n2 tc qdisc del dev eth0 root
fi
exit $bad
