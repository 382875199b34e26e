#!/usr/bin/env bash
# A suite is certified: nothing is done that was not accepted or is not permitted; the certificate is signed, judged again
# elsewhere with the same verdicts, and refused, with what was changed, when any byte of it, of its signature or of a history
# is another one; expired, cut, of a stranger, of another inventory: each its sentence and exit code.
# deadline: 480 s
set -u
command -v ssh-keygen >/dev/null || { echo 'no ssh-keygen here (Debian: openssh-client)'; exit 77; }
dir=$TMPDIR/certify
mkdir "$dir"
. tests/live/patience.bash
. tests/live/says.bash
rq=$(cd "$BIN" && pwd)/rankquake
export RANKQUAKE_LOCK=$dir/lock
cd "$dir" || exit 1

job() { # job NAME FAULT ON MORE
    cat >"$1.yaml" <<END
scenario: $1
cluster: {nodes: 2, racks: [[n0], [n1]]}
job: {nnodes: "1:2", max_restarts: 3, rdzv_conf: $watchful_map, run: [ranktrain, --steps=30, --checkpoint-every=5, "--checkpoint-dir={shared}/ckpt"]}
timeline: [{id: hit, when: {step: 12}, fault: $2, on: $3}]
expect: {outcome: succeeded$4}
limits: {total: 4m}
END
}
job worker worker-kill n1/0 ''
job node node-kill n1 ''
job wrong worker-kill n1/0 ', restarts: 3'
echo 'suite: [worker.yaml]' >one.yaml
echo 'suite: [worker.yaml, node.yaml]' >two.yaml
ssh-keygen -q -t ed25519 -N '' -C '' -f key && ssh-keygen -q -t ed25519 -N '' -C '' -f other || exit 1
echo "ops@example $(cat key.pub)" >signers
echo "somebody $(cat other.pub)" >others
echo "ops@example namespaces=\"file\" $(cat key.pub)" >files_only

# Before anything is done.
says 64 'name one suite' 'no suite' "$rq" certify
says 64 'accept it with --yes' 'nobody accepts' "$rq" certify one.yaml
says 64 'node-kill \(hit\) is of class node.*--allow node' 'not permitted' "$rq" certify two.yaml --yes
says 64 'two needs what is not permitted; nothing was done' 'not permitted' "$rq" certify two.yaml --yes
says 64 'on the list of what nothing may be done on, by host=\*' 'denied host' "$rq" certify one.yaml --deny 'host=*' --yes
echo 'user=nobody-at-all
# loopback
address=127.0.0.0/8' >deny
says 64 'by address=127.0.0.0/8' 'denied address' "$rq" certify one.yaml --deny-file deny --yes
says 64 'write host=NAME' 'bad deny' "$rq" certify one.yaml --deny db --yes
says 64 'write job, node or shared' 'bad class' "$rq" certify one.yaml --allow all
says 64 'as in 22:00-06:00' 'bad window' "$rq" certify one.yaml --window noon --plan
says 64 'no such probe' 'no probe' "$rq" certify one.yaml --without weather --yes
says 64 'there is no such file; ssh-keygen' 'no key' "$rq" certify one.yaml --key none --yes
ssh-keygen -q -t ed25519 -N secret -C '' -f locked || exit 1
says 64 '--key locked: .*nothing was done' 'a key with a passphrase' setsid -w "$rq" certify one.yaml --key locked --yes
closed=$(date -d '+2 hours' +%H:%M)-$(date -d '+3 hours' +%H:%M)
says 4 'no --window is open' 'closed window' "$rq" certify one.yaml --window "$closed" --yes
says 0 'node    node-kill on n1' 'the plan' "$rq" certify two.yaml --allow node --plan
[ ! -e certificates ] || fail 'something was done'
exec 8>>lock && flock 8
says 4 'this host is being certified by' 'locked' "$rq" certify one.yaml --yes
exec 8>&-

# Certified.
says 0 'one: passed' 'certified' "$rq" certify one.yaml --key key --operator ops@example --yes --quiet --without leftovers
grep -qE '^  n1 +1 of 1 run passed, recovered in' said && grep -qE '^  rack 1 +1 of 1 run passed, recovered in' said ||
    fail "node and rack are not told: $(cat said)"
cert=$(echo certificates/*)
mv "$cert" good
verify() { # verify CODE PATTERN WHAT OPTION...
    local code=$1 pattern=$2 what=$3
    shift 3
    says "$code" "$pattern" "$what" "$rq" certify verify "$@"
}
verify 0 'signed      by ops@example' 'by whom' good --signers signers
verify 0 'judged      1 run again, with the same verdicts' 'judged again' good/certificate.json --signers signers
verify 0 'inventory   that of this host' 'here' good --signers signers --here
for act in accepted preflight run fault run-ended certificate; do
    grep -q "\"act\":\"$act\"" good/acts.jsonl || fail "acts.jsonl does not tell of $act"
done
grep -q '@media print' good/certificate.html && grep -q 'one: passed' good/certificate.html || fail 'the page'
verify 64 'who may sign' 'no signers' good
verify 64 'Name its directory' 'no directory' --signers signers
verify 64 'write a date' 'no date' good --signers signers --at tomorrow
verify 64 'No such file' 'no such signers' good --signers none
verify 12 'is nobody.s in others' 'a stranger' good --signers others
verify 12 'may not sign it by files_only' 'a key for other things' good --signers files_only
verify 13 'it has expired: it held until' 'expired' good --signers signers --at 2100-01-01
verify 13 'yet to come' 'not yet' good --signers signers --at 2001-01-01

# Changed: a copy of which some bytes are others, the same ones each time.
RANDOM=1
history=$(cd good && echo runs/001/*/history.jsonl)
scenario=${history%/*}/scenario.yaml
changed=0
change() { # change FILE OFFSET: whatever byte is there, it is another now
    local byte
    byte=$(od -An -tu1 -j "$2" -N 1 "good/$1")
    printf "\\x$(printf %x $((byte ^ (1 << (RANDOM % 7)))))" | dd of="bad/$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
    "$rq" certify verify bad --signers signers >said 2>&1
    local rc=$?
    case $rc in 10 | 11) ;; *) fail "byte $2 of $1 was changed: exit $rc: $(cat said)" ;; esac
    grep -q "${3:-$1}" said || fail "byte $2 of $1 was changed, and it is not named: $(cat said)"
    printf "\\x$(printf %x "$byte")" | dd of="bad/$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
    changed=$((changed + 1))
}
cp -R good bad
size() { stat -c %s "good/$1"; }
for ((i = 0; i < $(size certificate.json); i += 13)); do change certificate.json $i certificate.json; done
for ((i = 0; i < $(size certificate.json.sig); i++)); do change certificate.json.sig $i; done
for ((i = 0; i < 20; i++)); do change "$history" $(((RANDOM * 32768 + RANDOM) % $(size "$history"))); done
for file in "$scenario" acts.jsonl certificate.html; do
    for ((i = 0; i < 5; i++)); do change "$file" $((RANDOM % $(size "$file"))); done
done
[ $changed -gt 400 ] || fail "only $changed bytes were changed"
verify 0 'judged' 'as it was' bad --signers signers
# Every value of it: a member's name, a text, a number, one after the other.
for ((cut = 0; cut < $(size certificate.json); cut += 97)); do
    head -c "$cut" good/certificate.json >bad/certificate.json
    verify 10 'is cut or was changed' "cut at $cut" bad --signers signers
done
cp good/certificate.json bad
rm bad/certificate.json.sig
verify 11 'there is no signature' 'unsigned' bad --signers signers
cp good/certificate.json.sig bad
echo >>"bad/$history"
verify 11 'history.jsonl was changed: its SHA-256 is' 'a longer history' bad --signers signers
rm "bad/$history"
verify 11 'history.jsonl cannot be hashed' 'no history' bad --signers signers
rm -R bad

# One who signs what is not so: verdicts are judged again.
forge() { # forge SED CODE PATTERN
    cp -R good forged
    sed -i "$1" forged/certificate.json
    cmp -s good/certificate.json forged/certificate.json && fail "$1 changes nothing"
    rm forged/certificate.json.sig
    ssh-keygen -q -Y sign -f key -n rankquake-certificate forged/certificate.json 2>/dev/null
    verify "$2" "$3" "forged: $1" forged --signers signers "${@:4}"
    rm -R forged
}
forge 's/"model":{"status":"pass"}/"model":{"status":"skip"}/' 15 'judged again: checks.model.status is pass, and skip was certified'
forge 's/"recover_us":[0-9]*,"recovered"/"recover_us":5,"recovered"/' 15 'recover_us is [0-9]*, and 5 was certified'
forge 's/"name":"rack 1",/"name":"rack 0",/' 15 'racks, judged again: rack 1 is .*, and nothing was certified'
forge 's/"result":"passed"/"result":"failed"/' 15 'failed'
forge 's/"name":"limits",\([^}]*\)"status":"pass"/"name":"limits",\1"status":"fail"/' 15 'its runs and probes together come to "failed", and "passed" was certified'
forge 's/"kernel":"/"kernel":"0/' 14 'another inventory: kernel was 0' --here
forge 's/"host":"/"host":"x/; s/"name":"\([^"]*\)"}\],"issued/"name":"x\1"}],"issued/' 14 'another inventory: host .* is not in it' --here
forge 's,rankquake-certificate/1,rankquake-certificate/2,' 10 'no certificate of this format'

# What fails is certified as failed.
says 1 'wrong *failed' 'a failure' "$rq" certify wrong.yaml --key key --yes --quiet --without leftovers
mv certificates/wrong-* failed
verify 1 'certified   wrong: failed' 'a certificate of a failure' failed --signers signers

# A probe of preflight that fails is a failure, though all runs pass.
says 1 'preflight +limits: .*nofile is 1000' 'a probe' bash -c 'ulimit -n 1000; exec "$0" "$@"' "$rq" certify one.yaml --key key --yes --quiet --without leftovers
grep -q 'one: failed' said || fail 'a probe that failed is not certified'
rm -R certificates

# A host that a provider reaches is lost when the plan has been accepted: it is no pass, though all else passes.
cat >reach <<END
#!/bin/sh
[ "\$1" != b ] || [ "\$2" = --outpost ] || { echo "connect to host b: No route to host" >&2; exit 255; }
shift
exec $(dirname "$rq")/rankquake-node "\$@"
END
chmod +x reach
sed "s,cluster: .*,cluster: {nodes: 2\, provider: exec\, hosts: ['$dir/reach a'\, '$dir/reach b']}," worker.yaml >hosts.yaml
sed -i 's/^scenario: .*/scenario: hosts/' hosts.yaml
echo 'suite: [worker.yaml, hosts.yaml]' >lost.yaml
says 2 'lost: inconclusive' 'a host is lost' "$rq" certify lost.yaml --key key --operator ops@example --yes --quiet --without leftovers
grep -q "hosts       $dir/reach a, by exec: node n0" said && grep -q "$dir/reach b, by exec: node n1" said || fail 'hosts are not in the plan'
grep -qE 'hosts +inconclusive' said || fail 'the run is not told of'
mv certificates/lost-* lost
grep -q 'No route to host' lost/certificate.json || fail 'the certificate does not say which host was lost'
verify 2 'certified   lost: inconclusive' 'a certificate of a lost host' lost --signers signers
rm -R certificates

# Differences.
says 0 'nothing has changed' 'itself' "$rq" certify diff good good
says 1 'wrong' 'two of them' "$rq" certify diff good failed
says 64 'diff which two' 'one of them' "$rq" certify diff good
sed 's/"libc":"[^"]*"/"libc":"2.99"/; s/"outcome":{"status":"pass"}/"outcome":{"status":"fail"}/' good/certificate.json >newer.json
mkdir newer && mv newer.json newer/certificate.json
says 1 'inventory.libc: [0-9.]+ -> 2.99' 'a newer library' "$rq" certify diff good newer
says 1 'checks.outcome.status: pass -> fail' 'a verdict' "$rq" certify diff good newer
sed -E 's/("name":"rack 1","passed":)1(,"recover_least_us":)[0-9]+/\10\290000000/' good/certificate.json >newer/certificate.json
says 1 'rack 1.passed: 1 -> 0' 'a rack' "$rq" certify diff good newer
grep -qE 'rack 1.recover_least_us: [0-9]+ -> 90000000' said || fail "the time of a rack is not told: $(cat said)"

# Each node once, and what there is no time for.
says 0 'worker on n0 *passed' 'each node' "$rq" certify worker.yaml --every-node --yes --quiet --without leftovers --operator x
grep -q 'worker on n1 *passed' said || fail 'n1 was no victim'
grep -q 'it is not signed; sign it by: ssh-keygen' said || fail 'nobody says how to sign it'
says 4 'left out: worker: it would end later than --max-time' 'no time' "$rq" certify worker.yaml --max-time 1ms --yes --quiet --without leftovers
exit $bad
