#!/usr/bin/env bash
# What is well is certified as well, again and again: `certify quick` on emulated nodes CERTIFICATIONS times (50), each signed
# and verified. A certificate of a failure is an alarm; so is one whose runs are judged otherwise the second time. One that leaves
# a question open, as where the harness itself was held up, is no alarm, and is counted by itself. None of both is asked for.
# deadline: 14400 s
set -u
cd "$(dirname "$0")/../.." || exit 1
command -v ssh-keygen >/dev/null || { echo 'no ssh-keygen here (Debian: openssh-client)'; exit 77; }
dir=$TMPDIR/clean n=${CERTIFICATIONS:-50}
[[ $n =~ ^[1-9][0-9]*$ ]] || { echo "CERTIFICATIONS is a number from 1, not $n"; exit 64; }
mkdir "$dir"
rq=$(cd "$BIN" && pwd)/rankquake
export RANKQUAKE_LOCK=$dir/lock
cd "$dir" || exit 1
ssh-keygen -q -t ed25519 -N '' -C '' -f key && echo "ops@example $(cat key.pub)" >signers || exit 1

clean=0 open=0 alarms=0 slowest=0
certify() { # certify N: prints what came of it
    # Workers of earlier jobs of this host are another's, and looked for on what an operator hands over.
    "$rq" certify quick --allow node --key key --operator ops@example --yes --quiet --seed "$1" --out "c$1" --without leftovers >"said-$1" 2>&1
    local code=$?
    "$rq" certify verify "c$1"/* --signers signers >"verified-$1" 2>&1
    [ $? = $code ] && grep -qE 'judged +8 runs again, with the same verdicts' "verified-$1" || code=judged-otherwise
    case $code in
    0) echo clean ;;
    2) echo open ;;
    *) echo "alarm ($code)" ;;
    esac
}
for ((i = 1; i <= n; i++)); do
    begin=$SECONDS
    came=$(certify "$i")
    took=$((SECONDS - begin))
    slowest=$((took > slowest ? took : slowest))
    echo "certification $i: $came, $took s, load $(cut -d' ' -f1 /proc/loadavg)"
    case $came in
    clean) clean=$((clean + 1)) && rm -rf "c$i" ;;
    open) open=$((open + 1)) && cat "said-$i" ;;
    *) alarms=$((alarms + 1)) && cat "said-$i" "verified-$i" ;;
    esac
done
echo "of $n certifications $clean were clean, $open left open, $alarms alarms; the slowest took $slowest s, on $(nproc) processors"
[ $((open + alarms)) = 0 ]
