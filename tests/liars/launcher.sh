#!/bin/bash
# Two workers on this node, all of them again when one has failed: launcher.sh LIE COMMAND... With `none` it is honest.
lie=$1
shift
worker() { # worker RANK COUNT COMMAND...
    export RANK=$1 LOCAL_RANK=$1 WORLD_SIZE=2 TORCHELASTIC_RESTART_COUNT=$2 TORCHELASTIC_MAX_RESTARTS=3
    export TORCHELASTIC_RUN_ID=liar MASTER_ADDR=127.0.0.1 MASTER_PORT=$((29500 + $2))
    [ "$lie" = port-of-each ] && MASTER_PORT=$((29500 + $1))
    [ "$lie" = restart-count ] && [ "$2$1" = 11 ] && TORCHELASTIC_RESTART_COUNT=0
    [ "$lie" = forgets-variable ] && [ "$2" = 1 ] && unset JOB_SECRET
    [ "$lie" = ignores-sigterm ] && [ "$2" = 1 ] && trap '' TERM
    shift 2
    exec "$@"
}
for count in 0 1 2 3; do
    pids=()
    [ "$lie" = keeps-file ] && exec {kept}</dev/null
    for rank in 0 1; do
        [ "$lie$rank" = fewer-workers1 ] || { worker "$rank" "$count" "$@" & pids+=($!); }
    done
    failed=0
    for pid in "${pids[@]}"; do # in order: it is rank 0 that is killed
        wait "$pid" && continue
        failed=1
        [ "$lie" = one-restarted ] && worker 1 1 "$@" &
        [ "$lie" = one-restarted ] && { wait; exit 0; }
        kill "${pids[@]}" 2>/dev/null
        break
    done
    wait
    [ $failed = 0 ] && exit 0
    [ "$lie" = success-after-failure ] && exit 0
done
exit 1
