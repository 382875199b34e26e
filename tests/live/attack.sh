#!/usr/bin/env bash
# A store that strangers attack while a job runs beside it: 204 megabytes of keys, twelve unread answers of all there is,
# 9,000 unread watches and ten puts, 1,500 half-open connections where 1,024 files may be open, and a web page. The job
# keeps its round, its beats are taken, who comes is answered, and the store keeps within what it promises. The attacker
# comes from the agents' own address. ATTACKS='fill pages' does some of it.
# deadline: 300 s
set -u
. tests/live/patience.bash
. tests/live/attack.bash
begin_attacked "$patient"
for name in ${ATTACKS:-load answers fill watches half-open large leases keys deletion pages}; do
    attack "$name"
done
end_attacked
[ -z "${ATTACKS-}" ] || exit 0
for what in 'refused a write' 'ended a connection' 'web page'; do
    [ "$(grep -c "$what" said.store)" = 1 ] || fail "'$what' is not told once"
done

# With a token, by who does not know it: the newcomers do.
export RANKRUN_STORE_TOKEN=s3cret ATTACK_TOKEN=s3cret
begin_attacked "$patient"
for name in half-open slow storm; do
    attack "$name"
done
end_attacked
exit 0
