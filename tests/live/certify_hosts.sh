#!/usr/bin/env bash
# Hosts that ssh reaches are certified: all of them are asked first, each is one certification's at a time and named in the
# certificate with its inventory; what nothing may be done on, what is not there and what somebody else certifies is refused before
# anything is done; and somebody on any host can halt it.
# alone: helpers that wait for a processor stamp late, and checks are open then
# deadline: 480 s
set -u
command -v ssh-keygen >/dev/null || { echo 'no ssh-keygen here (Debian: openssh-client)'; exit 77; }
dir=$TMPDIR/certify
mkdir "$dir"
. tests/live/says.bash
. tests/live/bed.bash
. tests/live/pair.bash
rq=$(cd "$BIN" && pwd)/rankquake
bed_up ssh 3
ssh-keygen -q -t ed25519 -N '' -C '' -f "$dir/key" && echo "ops@example $(cat "$dir/key.pub")" >"$dir/signers" || exit 1
job() { # job NAME STEPS ENTRY
    pair "$@" >"$dir/$1.yaml"
}
job killed 40 '{id: hit, when: {step: 25}, fault: worker-kill, on: n1/0}'
job limited 40 '{id: slow, when: {step: 25}, fault: net-delay, with: {groups: "n0|n1", delay: 50ms}, for: 1s}'
job large 40 '{id: hit, when: {step: 25}, fault: worker-kill, on: n1/0}'
sed -i 's/nodes: 2/nodes: 4/' "$dir/large.yaml"
mkfifo "$dir/hold" "$dir/running"
cat >"$dir/long.yaml" <<END
scenario: long
cluster: {nodes: 2}
job: {nnodes: "2", run: [sh, -c, "echo runs >$dir/running; exec sleep infinity"]}
END
echo 'suite: [killed.yaml, limited.yaml, large.yaml]' >"$dir/all.yaml"

cat >"$dir/certify" <<END
#!/bin/sh
suite=\$1 hosts=\$2
shift 2
exec $PWD/tests/clusters/ssh in $bed ctl $rq certify $dir/\$suite --provider ssh --ssh 'ssh -F $bed/ssh_config' --hosts "\$hosts" --allow node \\
    --key $dir/key --operator ops@example --yes --quiet --out $dir/certificates --without leftovers --without bandwidth "\$@"
END
chmod +x "$dir/certify"

# Before anything is done.
says 64 'there are exec, slurm and ssh' 'no provider' "$dir/certify" killed.yaml n0,n1 --provider fax
says 64 'n1 is on the list of what nothing may be done on, by host=n1' 'a denied name' "$dir/certify" killed.yaml n0,n1 --deny 'host=n1'
says 64 'worker@n1 is on the list of .*, by user=worker' 'a denied user' "$dir/certify" killed.yaml n0,worker@n1 --deny 'user=worker'
says 64 'n1 is on the list of .*, by address=10.77.0.2/32' 'a denied address' "$dir/certify" killed.yaml n0,n1 --deny 'address=10.77.0.2/32'
says 4 'n9: the program there ended: ssh: Could not resolve hostname n9.*nothing was done' 'no such host' "$dir/certify" killed.yaml n0,n9
says 64 'every scenario has more nodes than there are hosts' 'too few hosts' "$dir/certify" killed.yaml n0
exec 6<>"$dir/hold" # opened at once, without the other end
exec 5< <(tests/clusters/ssh in "$bed" n1 flock /var/tmp/rankquake-certify-n1.lock sh -c 'echo held; read -r line' <"$dir/hold")
read -r -t 60 -u 5 line
says 4 'n1 is being certified by somebody else; nothing was done' 'a host that is held' "$dir/certify" killed.yaml n0,n1
echo >&6
tests/clusters/ssh in "$bed" n1 flock -w 60 /var/tmp/rankquake-certify-n1.lock true || fail 'the lock of n1 is not let go'
exec 6>&- 5<&-
[ ! -e "$dir/certificates" ] || fail 'something was done'

# Certified, as an ordinary user of the hosts: they share a directory where everybody may write.
mkdir -m 1777 "$dir/certificates"
chmod 711 "$TMPDIR" "$dir"
# Where helpers have to wait for a processor they stamp late, and a check may be open for that.
"$dir/certify" all.yaml worker@n0,worker@n1,worker@n2 >"$dir/said" 2>&1 </dev/null
code=$?
[ $code = 0 ] && result=passed || result=inconclusive
[ $code = 0 ] || [ $code = 2 ] || fail "certified: exit $code"
grep -q "^all: $result" "$dir/said" || fail "certified: not told as $result"
for said in 'hosts +worker@n0, by ssh: node n0' 'worker@n2, by ssh: asked, and no node' \
    'left out +large: it has 4 nodes, and there are 3 hosts' 'left out: limited: slow .* needs .*, which worker@n0 has not' \
    'left out: preflight: leftovers: by --without' "killed +$result"; do
    grep -qE "$said" "$dir/said" || fail "certify did not say: $said"
done
mv "$dir"/certificates/all-* "$dir/good"
for said in '"name":"worker@n2","node":null,"provider":"ssh"' '"inventory":{[^}]*' '"address":"10.77.0.2".*"host":"n1".*"node":"n1"' \
    'all 6 ways between 3 hosts' '65536 numbers of 3 hosts' 'what one host writes is read by all others'; do
    grep -qE "$said" "$dir/good/certificate.json" || fail "the certificate does not have $said"
done
says $code 'judged      1 run again, with the same verdicts' 'judged again' "$rq" certify verify "$dir/good" --signers "$dir/signers"
says $code 'inventory   that of this host, n1' 'on a host of it' tests/clusters/ssh in "$bed" n1 "$rq" certify verify "$dir/good" --signers "$dir/signers" --here
says 14 'host ctl is not in it' 'elsewhere' tests/clusters/ssh in "$bed" ctl "$rq" certify verify "$dir/good" --signers "$dir/signers" --here

# A directory that is none of the hosts' together fails a probe, and its runs break; a host that is certified is another's.
# The script that goes to sbatch is read.
printf '#SBATCH --nodes=2\nsrun rankrun --nnodes 1:2 train.py\n' >"$dir/kills.sbatch"
says 1 'which is not shared with who has it' 'not shared' "$dir/certify" killed.yaml n0,n1 --out "$bed/local" --script "$dir/kills.sbatch"
grep -qE 'preflight +script: .*kills.sbatch: srun in line 2 is without --no-kill' "$dir/said" || fail 'the script is not read'

# Somebody halts it, from a host that need not reach where it runs.
exec 7<>"$dir/running"
exec 5< <("$dir/certify" long.yaml n0,n1 2>&1 </dev/null; echo "rc $?")
read -r -t 180 -u 7 line || fail 'its job does not run'
rc=none
says 4 'n0 is being certified by ops@example \(process [0-9]+ of ctl\)' 'a second certification' "$dir/certify" killed.yaml n0,n1
says 0 'n1: ended, helper [0-9]+ of certify long of ops@example' 'halt' tests/clusters/ssh in "$bed" n0 "$rq" halt --ssh "ssh -F $bed/ssh_config" --hosts n1
while read -r -t 180 -u 5 line; do
    echo "$line" >>"$dir/halted"
    case $line in 'rc '*) rc=${line#rc } ;; esac
done
[ $rc = 130 ] && grep -q 'halted on n1; nothing is certified' "$dir/halted" || fail "halted: $rc, $(tail -n 5 "$dir/halted")"
for host in n0 n1; do
    tests/clusters/ssh in "$bed" $host flock -w 60 /var/tmp/rankquake-certify-$host.lock true || fail "$host is not let go"
done
exit $bad
