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
import os, shutil, socket, subprocess, sys
sys.path.insert(0, '$PWD/scenarios/jobs')
import rankquake
def ask():
    try:
        return socket.getaddrinfo('store', 7, socket.AF_INET)[0][4][0]
    except socket.gaierror as e:
        return {socket.EAI_AGAIN: 'again', socket.EAI_NONAME: 'no name'}.get(e.errno, str(e))
if os.environ['RANK'] == '1':
    q = rankquake.Client()
    for n in range(1, 11):
        q.event('other', said='asks', n=n)
        if n < 9:
            print('asked', ask(), flush=True)
        if n == 3 and shutil.which('busybox'): # linked statically: it asks by itself, without the C library's resolver
            said = subprocess.run(['busybox', 'nslookup', 'store'], stdout=subprocess.PIPE).stdout
            print('static', b'198.18.0.77' in said, flush=True)
        if n == 8:
            print('back', socket.gethostbyaddr('198.18.0.2')[0], flush=True)
EOF
{
    printf 'cluster: {nodes: 2}\njob:\n  rdzv_conf: %s\n  env: {RES_OPTIONS: "timeout:1 attempts:1"}\n' "$patient_map"
    printf '  run: [python3, %s]\nlimits: {total: 240s}\ntimeline:\n' "$dir/ask.py"
    printf '  - {id: %s, when: {event: other, nth: %d}, fault: net-dns-%s, on: node of rank 1}\n  - {id: %s-over, when: {event: other, nth: %d}, heal: %s}\n' \
        failed 1 fail failed 2 failed wrong 3 'wrong, with: {address: 198.18.0.77}' wrong 4 wrong \
        silent 5 'fail, with: {answer: none}' silent 6 silent unknown 7 'fail, with: {answer: nxdomain, names: store}' unknown 8 unknown \
        idle 9 wrong idle 10 idle quiet 10 fail quiet 10 quiet
} | grep -v 'id: quiet-over' >"$dir/names.yaml"
runs 'names that are not found' 2 "$dir/names.yaml" --pcap
printed=$(grep -rh '^asked\|^back' "$dir"/out/*/logs | tr '\n' ' ')
right=198.18.0.2
want="again $right 198.18.0.77 $right again $right no name $right back store "
[ "${printed//asked /}" = "$want" ] || fail "names that are not found: $printed"
! grep -rhq '^static False' "$dir"/out/*/logs || fail 'a static program was told the right address'
for id in failed wrong silent unknown; do
    recorded "names: $id" '"source":"wire","kind":"fault-evidence","id":"'$id'".*"count":[1-9]'
    recorded "names: $id" '"kind":"fault-recovered","id":"'$id'"'
done
for id in idle quiet; do
    recorded "names: $id" '"kind":"fault-unfelt","id":"'$id'"'
done
said 'names that nobody asks for' 'nobody there asked the resolver for such a name meanwhile'

# The frames of the node that asked: whole blocks, its questions and the answers, and a comment on those that a fault met.
cat >"$dir/frames.py" <<EOF
import struct, sys
data, at, seen = open(sys.argv[1], 'rb').read(), 0, {}
while at < len(data):
    kind, size = struct.unpack_from('<II', data, at)
    assert size % 4 == 0 and struct.unpack_from('<I', data, at + size - 4)[0] == size
    if kind == 6:
        kept, = struct.unpack_from('<I', data, at + 20)
        frame, option = data[at + 28:at + 28 + kept], at + 28 + (kept + 3 & ~3)
        said, way = '', 0
        while True:
            code, n = struct.unpack_from('<HH', data, option)
            if code == 1:
                said = data[option + 4:option + 4 + n].decode()
            if code == 2:
                way, = struct.unpack_from('<I', data, option + 4)
            if code == 0:
                break
            option += 4 + (n + 3 & ~3)
        if frame[12:14] == b'\x08\0' and frame[23] == 17 and 53 in struct.unpack_from('>HH', frame, 34):
            seen.setdefault((way, said), 0)
            seen[way, said] += 1
    at += size
for wanted in [(2, ''), (1, ''), (2, 'fault: no answer'), (1, 'fault: no address'), (1, 'fault: a wrong address')]:
    if wanted not in seen:
        print('no', wanted, 'in', sys.argv[1], seen)
        sys.exit(1)
EOF
asked=$(grep -rl '^asked' "$dir"/out/*/logs | head -n 1)
asked=$(basename "$(dirname "$asked")")
python3 "$dir/frames.py" "$dir"/out/*/pcap/"$asked.pcapng" || fail 'the frames of the node that asked'
if command -v tcpdump >/dev/null; then
    tcpdump -r "$dir"/out/*/pcap/"$asked.pcapng" 2>/dev/null | grep -q 'A? store' || fail 'tcpdump does not read its frames'
fi
if command -v tshark >/dev/null; then
    marked() { tshark -r "$dir"/out/*/pcap/"$asked.pcapng" -Y "$1" 2>/dev/null | wc -l; }
    [ "$(marked 'frame.comment contains "fault: a wrong address"')" -gt 0 ] || fail 'tshark sees no comment'
    [ "$(marked _ws.malformed)" = 0 ] || fail 'tshark calls a frame malformed'
fi

"$BIN/rankquake" run scenarios/network/names-lost.yaml --isolation processes --out "$dir/none" >"$dir/said" 2>&1
rc=$?
[ $rc = 4 ] || fail "names without a wire: exit $rc, not 4"
said 'names without a wire' 'nodes that are processes of this host ask its own name server'
"$BIN/rankquake" run scenarios/smoke.yaml --isolation processes --pcap --out "$dir/none" >"$dir/said" 2>&1
rc=$?
[ $rc = 4 ] || fail "frames without a wire: exit $rc, not 4"
said 'frames without a wire' 'there is no wire whose frames could be written down'
[ ! -e "$dir/none" ] || fail 'without a wire something was begun'
exit $failed
