#!/usr/bin/env bash
# Names of nodes that are not found, or wrongly: whoever asks by the C library is told so while the fault lasts and the right
# address afterwards; the name server on the wire counts what it said; where nobody asks, the verdict is open and says so.
# deadline: 120 s
set -u
cd "$(dirname "$0")/../.." || exit 1
command -v python3 >/dev/null || { echo 'python3 is missing, which asks for names'; exit 77; }
. tests/live/patience.bash
. tests/live/runs.bash

# Rank 1 tells the harness that it is about to ask, and is held until the fault of that question is in force, or over.
cat >"$dir/ask.py" <<EOF
import os, socket, sys
sys.path.insert(0, '$PWD/scenarios/jobs')
import rankquake
def ask():
    try:
        return socket.getaddrinfo('store', 7, socket.AF_INET)[0][4][0]
    except socket.gaierror as e:
        return {socket.EAI_AGAIN: 'again', socket.EAI_NONAME: 'no name'}.get(e.errno, str(e))
if os.environ['RANK'] == '1':
    q = rankquake.Client()
    for n in range(1, 12):
        q.event('other', said='asks', n=n)
        if n < 11:
            print('asked', ask(), flush=True)
    print('back', socket.gethostbyaddr('198.18.0.2')[0], flush=True)
EOF
{
    printf 'cluster: {nodes: 2}\njob:\n  rdzv_conf: %s\n  env: {RES_OPTIONS: "timeout:1 attempts:1"}\n' "$patient_map"
    printf '  run: [python3, %s]\nlimits: {total: 60s}\ntimeline:\n' "$dir/ask.py"
    printf '  - {id: %s, when: {event: other, nth: %d}, fault: net-dns-%s, on: node of rank %d}\n  - {id: %s-over, when: {event: other, nth: %d}, heal: %s}\n' \
        failed 1 fail 1 failed 2 failed wrong 3 'wrong, with: {address: 198.18.0.77}' 1 wrong 4 wrong \
        silent 5 'fail, with: {answer: none}' 1 silent 6 silent unknown 7 'fail, with: {answer: nxdomain, names: store}' 1 unknown 8 unknown \
        elsewhere 9 'fail, with: {names: store}' 0 elsewhere 10 elsewhere idle 11 wrong 1 idle 11 idle
} | grep -v 'id: idle-over' >"$dir/names.yaml"
runs 'names that are not found' 2 "$dir/names.yaml"
printed=$(grep -rh '^asked\|^back' "$dir"/out/*/logs | tr '\n' ' ')
right=198.18.0.2
want="again $right 198.18.0.77 $right again $right no name $right $right $right back store "
[ "${printed//asked /}" = "$want" ] || fail "names that are not found: $printed"
for id in failed wrong silent unknown; do
    recorded "names: $id" '"source":"wire","kind":"fault-evidence","id":"'$id'".*"count":[1-9]'
    recorded "names: $id" '"kind":"fault-recovered","id":"'$id'"'
done
for id in elsewhere idle; do
    recorded "names: $id" '"kind":"fault-unfelt","id":"'$id'"'
done
said 'names that nobody asks for' 'nobody there asked the resolver for such a name meanwhile'

"$BIN/rankquake" run scenarios/network/names-lost.yaml --isolation processes --out "$dir/none" >"$dir/said" 2>&1
rc=$?
[ $rc = 4 ] || fail "names without a wire: exit $rc, not 4"
said 'names without a wire' 'nodes that are processes of this host ask its own name server'
[ ! -e "$dir/none" ] || fail 'names without a wire: something was begun'
exit $failed
