#!/usr/bin/env bash
# `certify quick` from nothing to a signed certificate that is verified, on three hosts by ssh and on three of a Slurm
# allocation: prints the seconds of each, from the first word to the verified certificate. More than LIMIT_S (300) is a failure.
# Slurm's settings are those of the test bed, which betray a job and are found: they are left out of the certificate by name.
# deadline: 1800 s
set -u
cd "$(dirname "$0")/../.." || exit 1
command -v ssh-keygen >/dev/null || { echo 'no ssh-keygen here (Debian: openssh-client)'; exit 77; }
dir=$TMPDIR/hosts limit=${LIMIT_S:-300} bad=0 ran=0
rq=$(cd "$BIN" && pwd)/rankquake
mkdir -m 711 "$dir" && mkdir -m 1777 "$dir/certificates"
trap 'for bed in ssh slurm; do tests/clusters/$bed down "$dir/$bed"; done' EXIT
ssh-keygen -q -t ed25519 -N '' -C '' -f "$dir/key" && echo "ops@example $(cat "$dir/key.pub")" >"$dir/signers" || exit 1

certify() { # certify BED WORDS... -- OPTION...: WORDS stand before the program
    local bed=$1 words=() begin took rc
    shift
    while [ "$1" != -- ]; do words+=("$1"); shift; done
    shift
    tests/clusters/$bed up "$dir/$bed" 3 >"$dir/up" 2>&1
    case $? in
    0) ;;
    77) echo "$bed: $(tail -n 1 "$dir/up")"; return ;;
    *) echo "$bed: no hosts: $(cat "$dir/up")"; bad=1; return ;;
    esac
    ran=1 begin=$SECONDS
    tests/clusters/$bed in "$dir/$bed" ctl "${words[@]}" "$rq" certify quick --allow node --key "$dir/key" \
        --operator ops@example --yes --quiet --out "$dir/certificates/$bed" --without leftovers "$@" >"$dir/said" 2>&1
    rc=$?
    "$rq" certify verify "$dir/certificates/$bed"/* --signers "$dir/signers" >"$dir/verified" 2>&1
    [ $? = $rc ] && grep -qE 'judged +8 runs again, with the same verdicts' "$dir/verified" || { echo "$bed: judged otherwise"; cat "$dir/verified"; bad=1; }
    took=$((SECONDS - begin))
    echo "certify quick on 3 hosts by $bed: exit $rc, $took s, load $(cut -d' ' -f1 /proc/loadavg), $(nproc) processors"
    [ $rc = 0 ] || { cat "$dir/said"; bad=1; }
    [ $took -le "$limit" ] || { echo "$bed: more than $limit s"; bad=1; }
    tests/clusters/$bed down "$dir/$bed"
}
certify ssh -- --provider ssh --hosts n0,n1,n2 --ssh "ssh -F $dir/ssh/ssh_config"
certify slurm salloc -Q --no-kill -N 3 -- --provider slurm --without slurm
[ $ran = 1 ] || exit 77
exit $bad
