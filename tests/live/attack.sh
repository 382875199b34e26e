#!/usr/bin/env bash
# A store that strangers attack while a job runs beside it: twelve unread answers of all there is, 9,000 unread watches
# and ten puts, 1,500 half-open connections where 1,024 files may be open, 204 megabytes of keys, and a web page. The
# job keeps its round, its beats are taken, and the store keeps within what it promises. ATTACKS='fill pages' is for
# some of them. The attacker comes from the agents' own address.
# deadline: 300 s
set -u
. tests/live/patience.bash
. tests/live/attack.bash
begin_attacked "$patient"
for name in ${ATTACKS:-fill answers watches half-open large keys deletion pages}; do
    attack "$name" 1
done
end_attacked
for what in 'refused a write' 'ended a connection' 'web page'; do
    [ -n "${ATTACKS-}" ] || [ "$(grep -c "$what" said.store)" = 1 ] || fail "'$what' is not told once"
done

# The same with a token, of those who know none.
export RANKRUN_STORE_TOKEN=s3cret ATTACK_TOKEN=
ATTACK_TOKEN=s3cret begin_attacked "$patient"
if [ -z "${ATTACKS-}" ]; then
    timeout 60 "$attacker" "$port" half-open 1 7>&- 8>&- >said.attack-strangers 2>&1 || fail 'half-open without a token'
    ATTACK_TOKEN=s3cret attack half-open 1
fi
end_attacked
exit 0
