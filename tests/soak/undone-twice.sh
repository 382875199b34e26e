#!/usr/bin/env bash
# Every fault that lasts, all in force in one cluster, is undone twice there: by who hears nothing from the harness
# (limits.dead_man), and by the harness when it goes on. The job goes on to its end in between, and the second time does
# nothing and says nothing false.
# deadline: 300 s
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/live/patience.bash
. tests/live/runs.bash
command -v etcd >/dev/null || { echo 'etcd is missing (Debian: etcd-server)'; exit 77; }

# What is left out: two of three that move the clock, as a node has one; what comes back by itself; what only Python has.
not_here='clock-drift clock-strobe node-flap node-reboot worker-gil-hang'
# On whom and with what; those that would do the same to the same frames are on n0, and no frame of the job is meant.
entry() { # entry FAULT
    case $1 in
    store-full) echo 'on: store, with: {most: 32}' ;;
    store-*) echo 'on: store' ;;
    net-half-open) echo 'on: n1, with: {planes: ssh}' ;;
    net-corrupt-silent | net-block | net-flap) echo 'on: n0, with: {planes: ssh}' ;;
    net-dns-wrong) echo 'on: n0' ;;
    net-dns-fail) echo 'on: n1' ;;
    net-*) echo 'on: n1, with: {planes: ssh}' ;;
    node-memory) echo 'on: n1, with: {more: 2000}' ;;
    node-pids) echo 'on: n1, with: {more: 500}' ;;
    worker-memory) echo 'on: rank 0, with: {more: 2000}' ;;
    worker-file-size) echo 'on: rank 0, with: {bytes: 1000000000}' ;;
    worker-hang) echo 'on: rank 1' ;;
    worker-*) echo 'on: rank 0' ;;
    *) echo 'on: n1' ;;
    esac
}
faults() { # faults ISOLATION: those that last, store-full before what stops the store, late what others could not come through
    "$BIN/rankquake" list faults --table | tr -d '`' | awk -F' *[|] *' -v isolation="$1" -v without=" $not_here " '
        $2 ~ /-/ && $2 !~ /---/ && $7 !~ /^nothing to undo/ && $8 ~ isolation && !index(without, " " $2 " ") {
            print ($2 == "store-full" ? 1 : $2 ~ /^(worker-fds|worker-thread-hang|net-partition)$/ ? 3 : $2 == "worker-slow" ? 4 : $2 == "node-freeze" ? 5 : 2), $2
        }' | sort -s -n -k 1,1 | cut -d' ' -f2
}
until_true() { # until_true WHAT COMMAND...: what processes bring about that nobody here is told of
    local end=$((SECONDS + 60))
    until "${@:2}"; do
        [ $SECONDS -lt $end ] || { fail "$1: not within 60 s"; return 1; }
        read -rt 0.1 <> <(:) || :
    done
}
counts() { [ "$(cat $3 2>/dev/null | grep -c "$2")" -ge "$1" ]; } # counts N PATTERN FILES

for isolation in namespaces processes; do
    [ $isolation = processes ] && not_here+=' worker-processes' # beside a cut at the sockets, which watches calls too
    list=$(faults $isolation)
    cat >"$dir/job.yaml" <<END
cluster: {nodes: 2, isolation: $isolation, store: etcd, store_quota_mb: 16}
job:
  rdzv_conf: $patient_map
  run: [sh, -c, "ranktrain --steps=60 --compute-ms=5 --collective-timeout=60 && echo done >>{shared}/done"]
limits: {dead_man: 3s, total: 100s, stall: 90s}
timeline:
END
    before='when: {step: 20}'
    for fault in $list; do
        echo "  - {id: $fault, $before, fault: $fault, $(entry $fault)}"
        before="when: {after: $fault}"
    done >>"$dir/job.yaml"
    rm -rf "$dir/out"
    "$BIN/rankquake" run "$dir/job.yaml" --out "$dir/out" >"$dir/said" 2>&1 </dev/null &
    harness=$!
    n=$(wc -w <<<"$list")
    until_true "$isolation: all $n in force" counts "$n" '"kind":"fault-in-force"' "$dir/out/*/history.jsonl" || {
        grep -hE '"kind":"fault-(failed|not-fired)"' "$dir"/out/*/history.jsonl
        kill -KILL $harness
        break
    }
    kill -STOP $harness
    until_true "$isolation: the job ends while the harness stands still" counts 2 done "$dir/out/*/scratch/shared/done"
    kill -CONT $harness
    wait $harness
    rc=$?
    [ $rc = 2 ] || fail "$isolation: exit $rc, not 2"
    for fault in $list; do
        [ "$(grep -c '"kind":"fault-recovered","id":"'$fault'"' "$dir"/out/*/history.jsonl)" = 1 ] || fail "$isolation: $fault"
        recorded "$isolation: $fault" '"kind":"fault-recovered","id":"'$fault'","n":1}'
    done
    grep -h '"kind":"dead-man"' "$dir"/out/*/history.jsonl | grep '"error":"' && fail "$isolation: what was not undone the first time"
    echo "$isolation: $n faults undone twice"
done
exit $failed
