#!/usr/bin/env bash
# Workers that are slow, deaf, short of something or held by one thread, and an agent that stands still or is sent a signal:
# each is felt by the kernel's word and over when it is healed; where nothing changes, the verdict is open and says so.
# deadline: 480 s
set -u
cd "$(dirname "$0")/../.." || exit 1
vforked=$(realpath "${OUT:-build/release}/tests/live/spawn_vforked") debugged=${vforked/vforked/debugged}
. tests/live/patience.bash
. tests/live/runs.bash

for file in restart/poor-worker.yaml restart/deaf-worker.yaml restart/thread-hangs.yaml restart/file-too-long.yaml \
    restart/loader-killed.yaml membership/agent-hangs.yaml membership/agent-hung-up.yaml; do
    runs "$file" 0 scenarios/$file
    ! grep -q '"kind":"fault-unfelt"' "$dir"/out/*/history.jsonl || fail "$file: something was not felt"
done
runs 'a hung agent on nodes that are processes' 0 scenarios/membership/agent-hangs.yaml --isolation processes

# A bit of memory: what is saved before it changes is sound, and what is trained after it is not.
# The bit is one of the whole network's.
RANKTRAIN_OPTIONS='' runs 'a flipped bit that is not saved' 0 scenarios/restart/weight-flipped.yaml
recorded 'a flipped bit that is not saved' '"kind":"fault-evidence","id":"flip".*"before":[0-9]+,"after":[0-9]+'
said 'a flipped bit that is not saved' 'weights differ from step 1[78] of round 1 on, and none of that is in the model: rank 1 \(n[0-9]\) has'
grep -v 'id: fail\|restarts:' scenarios/restart/weight-flipped.yaml >"$dir/flipped.yaml"
RANKTRAIN_OPTIONS='' runs 'a flipped bit that is trained with' 1 "$dir/flipped.yaml"
said 'a flipped bit that is trained with' 'failed: model'
said 'a flipped bit that is trained with' '(x|✗) weights +weights differ from step 1[78] of round 1 on: rank 1 \(n[0-9]\) has [0-9a-f]{16}, the other 2 [0-9a-f]{16}'
sed 's/region: weights, offset: 1003/region: gradients/' "$dir/flipped.yaml" >"$dir/region.yaml"
runs 'a region that nobody has announced' 2 "$dir/region.yaml"
said 'a region that nobody has announced' 'has announced no region "gradients"'

# Five workers on which it has no effect: 0 is deaf already, and its limits are as low; 1 cannot be stopped; 2 has a debugger,
# which leaves it to nobody else; 3 has no child; and 4 has ended. Rank 0 says when it is so with all of them.
cat >"$dir/job.sh" <<END
over() { grep -m 1 'fault-[a-z-]*","id":"last"' < <(tail -n +1 -f \$1/history.jsonl); }
mkfifo \$2/{1,2,3,4} 2>/dev/null
case \$1/\$RANK in
*/control/*) exit 0 ;;
*/0)
    exec {of}< <(over \$1) {one}<\$2/1 {two}>\$2/2 {three}>\$2/3
    read -r _ <&\$one
    read -r four <\$2/4
    tail --pid=\$four -s 0.02 -f /dev/null
    trap '' USR1
    ulimit -f 1000000 -v 1000000
    fd=0
    while [ -e /proc/\$\$/fd/\$fd ]; do fd=\$((fd + 1)); done
    ulimit -S -n \$fd
    echo gone
    read -r -u \$of _
    ;;
*/1) exec $vforked < <(over \$1) >\$2/1 ;;
*/2) exec $debugged cat \$2/2 ;;
*/3) exec cat \$2/3 ;;
*/4) echo \$\$ >\$2/4 ;;
esac
END
entry() { # entry RANK FAULT [WITH]
    echo "  - {id: f$((++entries)), when: {after: first}, fault: worker-$2, on: rank $1${3:+, $3}}"
}
{
    printf 'cluster: {nodes: 1}\njob:\n  workers_per_node: 5\n  rdzv_conf: %s\n  run: [bash, %s, "{out}", "{shared}"]\ntimeline:\n' \
        "$patient_map" "$dir/job.sh"
    entries=0
    echo '  - {id: first, when: {log: /gone/}, fault: worker-deaf, with: {signal: SIGUSR1}, on: rank 0}'
    entry 0 file-size 'with: {bytes: 1024000000}, for: 20ms'
    entry 0 memory 'with: {more: 1000}, for: 20ms'
    entry 0 fds 'for: 20ms'
    entry 1 hang 'for: 20ms'
    entry 1 slow 'for: 50ms'
    entry 2 exit
    entry 2 thread-hang
    entry 3 child-kill
    entry 4 kill
    echo '  - {id: agent, when: {after: first}, fault: agent-signal, with: {signal: SIGWINCH}, on: n0}'
    echo "  - {id: last, when: {after: first, plus: 200ms}, fault: worker-signal, with: {signal: SIGCONT}, on: rank 0}"
    echo 'limits: {total: 240s}'
} >"$dir/job.yaml"
runs 'workers on which it has no effect' 2 "$dir/job.yaml"
for why in 'ignores no signal that it did not ignore before' 'its limits are what they were' 'not every thread of it was seen to stand still' \
    'no handler for the signal, and neither ended nor stopped' 'not seen to stand still and then to run again' 'Operation not permitted' 'has no child' 'matched nothing that was alive'; do
    recorded 'workers on which it has no effect' "$why"
done
exit $failed
