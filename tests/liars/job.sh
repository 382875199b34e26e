#!/bin/sh
# A job of 20 steps that saves every fifth and tells all by what it prints: job.sh LIE DIRECTORY. With `none` it is honest.
lie=$1 dir=$2
mkdir -p "$dir"
from=$(ls "$dir" | sed -n 's/^saved-//p' | sort -n | tail -n 1)
: >"$dir/began-$TORCHELASTIC_RESTART_COUNT-$RANK" # nothing is saved before all have looked
[ "$lie" = resumed-from ] && [ -n "$from" ] && start=$((from - 5)) || start=${from:-0}
[ -z "$from" ] || { echo "resuming from step $from"; lie=$lie-again; }
[ "$lie" = renumbers-again ] && start=8
step=$start trained=$start
[ "$lie" = forgets-weights-again ] && trained=0
while [ $step -lt 20 ]; do
    sleep 0.02
    step=$((step + 1))
    [ "${lie%-again}$step" = steps-never-run17 ] || trained=$((trained + 1))
    printf 'step %d/20 loss %d\n' $step $((10000 / (trained + 1)))
    [ "${lie%-again}$RANK$step" = ends-early113 ] && break
    [ $((step % 5)) = 0 ] && [ "$RANK" = 0 ] && [ -e "$dir/began-$TORCHELASTIC_RESTART_COUNT-1" ] || continue
    [ "$lie" = stops-saving-again ] && continue
    case $lie in commit-not-on-disk* | saves-in-words-again) ;; *) : >"$dir/saved-$step" ;; esac
    echo "saved step $step"
done
# Behaves only where nobody breaks anything: the control run has a folder of its own.
case $lie$dir in good-in-control*/control/*) ;; good-in-control*) trained=7 ;; esac
[ "$lie$RANK" = tidies-up-again0 ] && rm -f "$dir"/saved-*
[ "$lie$RANK" = keeps-silent-again1 ] && exit 0
echo "finished, model $(seq $trained | cksum | cut -d ' ' -f 1)"
