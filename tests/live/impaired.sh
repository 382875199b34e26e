#!/usr/bin/env bash
# A signal, a node that stands still and a network that is slow: each is felt and gone again when it is undone; and where
# nothing shows that it was felt the verdict is open, and says what may be the reason.
# deadline: 480 s
set -u
. tests/live/patience.bash
vforked=$(realpath "${OUT:-build/release}/tests/live/spawn_vforked")
cd "$(dirname "$0")/../.." || exit 1
. tests/live/runs.bash

# A worker of a few steps, and what its shell does before.
job() { # job FAULT SHELL
    printf 'cluster: {nodes: 1}\njob:\n  rdzv_conf: %s\n  run: [bash, -c, "%s"]\ntimeline:\n  - {id: it, when: {step: 5}, %s}\nlimits: {total: 240s}\n' \
        "$patient_map" "$2" "$1" >"$dir/job.yaml"
}

# ---- worker-signal ----

runs 'a signal without a handler' 0 scenarios/restart/worker-signalled.yaml
recorded 'a signal without a handler' '"kind":"worker-exit".*"signal":10'
recorded 'a signal without a handler' '"source":"kernel","kind":"fault-evidence","id":"usr1"'

usr1='fault: worker-signal, on: rank 0'
job "$usr1" 'trap : USR1; ranktrain --steps=20; exit $?'
runs 'a signal that is handled' 0 "$dir/job.yaml"
recorded 'a signal that is handled' '"source":"kernel","kind":"fault-evidence","id":"it"'

job "$usr1" "trap '' USR1; exec ranktrain --steps=20"
runs 'a signal that is ignored' 2 "$dir/job.yaml"
said 'a signal that is ignored' 'ignored SIGUSR1'
recorded 'a signal that is ignored' '"kind":"fault-unfelt","id":"it"'

job "$usr1, with: {signal: SIGURG}" 'exec ranktrain --steps=20'
runs 'a signal that nobody waits for' 2 "$dir/job.yaml"
said 'a signal that nobody waits for' 'it has no handler for the signal'

# ---- node-freeze ----

for isolation in namespaces processes; do
    runs "a frozen node, $isolation" 0 scenarios/membership/node-frozen.yaml --isolation $isolation
    recorded "a frozen node, $isolation" '"kind":"fault-evidence","id":"freeze".*stands still'
    recorded "a frozen node, $isolation" '"kind":"fault-recovered","id":"freeze"'
done

job 'fault: node-freeze, on: n0, for: 300ms' \
    "coproc V { $vforked; }; read -u \${V[0]}; ranktrain --steps=20; exit \$?"
runs 'a node that cannot be stopped' 2 "$dir/job.yaml"
said 'a node that cannot be stopped' 'not every thread of it was seen to stand still'

# ---- net-delay ----

runs 'a slow network' 0 scenarios/network/slow-link.yaml
recorded 'a slow network' '"source":"wire","kind":"fault-evidence","id":"slow".*"fewest":[1-9]'
# A step is several messages from node to node, one after another: slower while it lasts, and then as it was.
awk -F'"t":' '
    /"kind":"fault-in-force","id":"slow"/ { split($2, a, ","); from = a[1] }
    /"kind":"fault-recovered","id":"slow"/ { split($2, a, ","); to = a[1] }
    /"kind":"step"/ && match($0, /"step":[0-9]+/) {
        step = substr($0, RSTART + 7, RLENGTH - 7)
        split($2, a, ",")
        if (!(step in first)) { first[step] = a[1] + 0 }
    }
    END {
        for (s in first) if ((s + 1) in first) {
            took = first[s + 1] - first[s]
            if (first[s] > from && first[s + 1] < to && (!least || took < least)) least = took
            if (first[s] > to && (!after || took < after)) after = took
        }
        exit !(least > 20e6 && after < least)
    }' "$dir"/out/*/history.jsonl || fail 'a slow network: its steps are as quick as without'

sed 's/delay: 30ms, jitter: 10ms/delay: 30ms, planes: ssh/' scenarios/network/slow-link.yaml >"$dir/ssh.yaml"
runs 'a slow network that nobody uses' 2 "$dir/ssh.yaml"
said 'a slow network that nobody uses' 'frames were not late in every direction'

"$BIN/rankquake" run scenarios/network/slow-link.yaml --isolation processes --out "$dir/none" >"$dir/said" 2>&1
rc=$?
[ $rc = 4 ] || fail "a slow network without a wire: exit $rc, not 4"
said 'a slow network without a wire' 'there is no wire on which frames could be held back'
[ ! -e "$dir/none" ] || fail 'a slow network without a wire: something was begun'
exit $failed
