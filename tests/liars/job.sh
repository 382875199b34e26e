#!/bin/sh
# A job of 20 steps that saves every fifth and tells all by what it prints: job.sh LIE DIRECTORY. With `none` it is honest.
lie=$1 dir=$2
mkdir -p "$dir"
from=$(ls "$dir" | sed -n 's/^saved-//p' | sort -n | tail -n 1)
: >"$dir/began-$TORCHELASTIC_RESTART_COUNT-$RANK" # nothing is saved before all have looked
[ "$lie" = resumed-from ] && [ -n "$from" ] && start=$((from - 5)) || start=${from:-0}
[ -z "$from" ] || echo "resuming from step $from"
step=$start trained=$start
[ "$lie" = forgets-weights ] && trained=0
while [ $step -lt 20 ]; do
    sleep 0.02
    step=$((step + 1))
    [ "$lie$step" = steps-never-run17 ] || trained=$((trained + 1))
    printf 'step %d/20 loss %d\n' $step $((10000 / (trained + 1)))
    [ "$lie$RANK$step" = ends-early113 ] && break
    [ $((step % 5)) = 0 ] && [ "$RANK" = 0 ] && [ -e "$dir/began-$TORCHELASTIC_RESTART_COUNT-1" ] || continue
    [ "$lie" = commit-not-on-disk ] || : >"$dir/saved-$step"
    echo "saved step $step"
done
# Behaves only where nobody breaks anything: the control run has a folder of its own.
case $lie$dir in good-in-control*/control/*) ;; good-in-control*) trained=7 ;; esac
echo "finished, model $(seq $trained | cksum | cut -d ' ' -f 1)"
