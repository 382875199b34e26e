#!/usr/bin/env bash
# One run through every moment at which a fault can hold somebody. At each the kernel says that who waits still stood there when
# the fault had come in force, and what it says or does next comes after that; of two faults at one moment, after both.
# deadline: 120 s
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/live/patience.bash
. tests/live/runs.bash

agent='fault: net-delay, on: n1, for: 300ms'
length='fault: worker-file-size, with: {bytes: 1000000000}, for: 20ms, on: rank 0'
memory='fault: worker-memory, with: {more: 1000}, for: 20ms, on: rank 0'
forks='fault: worker-processes, for: 20ms, on: rank 0'
moment() { # moment ID WHEN FAULT
    echo "  - {id: $1, when: {$2}, $3}"
}
{
    cat <<END
cluster: {nodes: 2}
job:
  nnodes: "2:3"
  rdzv_conf: {last_call_timeout: 300ms, admit: 50ms}
  run: [ranktrain, --steps=12, --checkpoint-every=5, "--checkpoint-dir={shared}/ckpt"]
limits: {total: 240s}
timeline:
END
    moment join 'phase: join' "$agent"
    moment last-call 'phase: last-call' "${agent/on: n1/with: {groups: \"n0,n1|store\"\}}"
    moment ack 'phase: ack' "$agent"
    moment start 'phase: start' "$length"
    moment first-collective 'phase: first-collective' "$memory"
    moment beside 'step: 3' "${agent/on: n1/on: node of rank 0}" # in force long before its neighbour
    moment step 'step: 3' "$forks"
    moment begin 'event: checkpoint-begin' "$length"
    moment write 'event: checkpoint-write' "$memory"
    moment commit 'event: checkpoint-commit' "${agent/on: n1/on: node of rank 0}"
    moment exit-barrier 'phase: exit-barrier' "$length"
} >"$dir/moments.yaml"
runs 'every moment' 0 "$dir/moments.yaml"
python3 - "$dir"/out/*/history.jsonl <<'END' || failed=1
import json, sys
moments = 'join last-call ack start first-collective exit-barrier beside step begin write commit'.split()
records = [json.loads(line) for line in open(sys.argv[1])]
bad = slept = 0
for id in moments:
    of = [r for r in records if r.get('id') == id]
    fired = [r for r in of if r['kind'] == 'fault-fired']
    force = [r for r in of if r['kind'] == 'fault-in-force']
    held = [r for r in of if r['kind'] == 'held']
    felt = [r for r in of if r['kind'] == 'fault-evidence' and r['source'] in ('kernel', 'wire')]
    healed = [r for r in of if r['kind'] == 'fault-recovered']
    ok = len(fired) == len(force) == len(held) == len(felt) == len(healed) == 1 and fired[0]['held']
    if ok:
        # It stood in the call that reads the byte which lets it go on, or where no processor was free was still on its way
        # there from the call that had sent the event; and it had said nothing since its moment.
        h = held[0]
        waits = h['state'] == 'S' and h.get('name') in ('recvfrom', 'read')
        slept += waits
        ok = h['source'] == 'kernel' and (waits or h['state'] == 'R')
        moment = max(r['seq'] for r in records if r['seq'] < fired[0]['seq'] and r.get('pid') == h['pid'] and
                     r.get('job_seq') is not None)
        ok = ok and not [r for r in records if moment < r['seq'] < force[0]['seq'] and r.get('pid') == h['pid'] and
                         r['source'] in ('job', 'launcher', 'probe')]
    if not ok:
        bad = 1
        print('at %s:' % id)
        for r in of:
            print('   ', json.dumps(r))
if slept < 3:
    bad = 1
    print('only %d of %d slept' % (slept, len(moments)))
sys.exit(bad)
END
exit $failed
