#!/usr/bin/env bash
# Every fault of the table aimed at what is gone when its moment comes: the node is off, or with it the workers and the agent.
# None of them passes for done: each says that there was nothing to hit, and the verdict is open.
# deadline: 120 s
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/live/patience.bash
. tests/live/runs.bash

# What switches a node on has one that is off; what is about the store has it in another place; a scheduler's have none here.
table=$("$BIN/rankquake" list faults --table | tr -d '`' |
    awk -F' *[|] *' '$2 ~ /-/ && $2 !~ /---|^slurm-/ && $4 !~ /the store/ { print $2 "|" $4 }')
starts=' clock-boot clock-monotonic node-start '
list=$(cut -d'|' -f1 <<<"$table" | grep -vxF "$(tr ' ' '\n' <<<"$starts" | grep .)")
{
    cat <<END
cluster: {nodes: 3, racks: [[n0, n1], [n2]]}
job:
  nnodes: "1:3"
  max_restarts: 3
  rdzv_conf: $watchful_map
  run: [ranktrain, --steps=40, --checkpoint-every=10, "--checkpoint-dir={shared}/ckpt"]
limits: {total: 240s}
timeline:
  - {id: off, when: {step: 15}, fault: node-poweroff, on: n2}
END
    for fault in $list; do
        on=n2
        case $fault in
        node-reclaim) on='rack 1' ;;
        worker-kill) on='rank 2' ;; # there are two by then
        worker-hang) on=n2/0 ;;
        esac
        echo "  - {id: x-$fault, when: {round: 2}, fault: $fault, on: $on}"
    done
} >"$dir/gone.yaml"
runs 'all that is gone' 2 "$dir/gone.yaml"
for fault in $list; do
    recorded "$fault" '"kind":"fault-not-fired","id":"x-'"$fault"'","why":"its target [^"]*nothing that was alive'
    [ "$(grep -c '"kind":"fault-not-fired","id":"x-'"$fault"'"' "$dir"/out/*/history.jsonl)" = 1 ] || fail "$fault: told twice"
    ! grep -q '"kind":"fault-\(fired\|in-force\|evidence\)","id":"x-'"$fault"'"' "$dir"/out/*/history.jsonl || fail "$fault: it was done to somebody"
done
n=$(wc -w <<<"$list")
[ "$n" -gt 45 ] || fail "only $n faults"
said 'all that is gone' 'x-node-cpu[^|]*nothing that was alive when'

# What is aimed at a store whose program has died finds nobody, or nobody answers.
list=$("$BIN/rankquake" list faults --table | tr -d '`' | awk -F' *[|] *' '$4 == "the store" && $2 !~ /full/ { print $2 }')
{
    printf 'cluster: {nodes: 2}\njob:\n  rdzv_conf: %s\n  run: [ranktrain, --steps=40, --compute-ms=30]\nlimits: {total: 240s, stall: 20s}\n' "$watchful_map"
    printf 'timeline:\n  - {id: dead, when: {step: 5}, fault: store-kill, on: store}\n'
    for fault in $list; do echo "  - {id: x-$fault, when: {after: dead}, fault: $fault, on: store}"; done
} >"$dir/down.yaml"
# It stays down, and the job with it.
runs 'a store that is down' 1 "$dir/down.yaml"
said 'a store that is down' '(x|✗|[?]) fired'
for fault in $list; do
    recorded "$fault on a dead store" '"kind":"fault-(failed|unfelt)","id":"x-'"$fault"'"'
    ! grep -q '"kind":"fault-evidence","id":"x-'"$fault"'"' "$dir"/out/*/history.jsonl || fail "$fault: a dead store felt it"
done
[ "$(grep -c '"kind":"store-start"' "$dir"/out/*/history.jsonl)" = 1 ] || fail 'a store that was dead was started again'
n=$(wc -w <<<"$list")
[ "$n" -ge 7 ] || fail "only $n faults on the store"
exit $failed
