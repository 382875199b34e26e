#!/usr/bin/env bash
# Each scenario of scenarios/smoke.yaml, or each that is named, on nodes in namespaces, on four hosts by ssh as an ordinary user and on four
# hosts of a Slurm allocation: the verdicts are the same, except what a host cannot have, which is skipped with its reason. The table is
# printed. A verdict that is open for nothing but stamps that were late, on a machine that others use, is "late", and no difference.
#   SMOKE='restart/worker-killed.yaml'   which scenarios
# deadline: 2400 s
set -u
unset RANKTRAIN_OPTIONS # as users have it
cd "$(dirname "$0")/../.." || exit 1
. tests/live/patience.bash
bin=$(realpath "${BIN:-build/bin}") fails=0
trap 'for bed in "$TMPDIR"/ssh "$TMPDIR"/slurm; do [ ! -e "$bed/lock" ] || tests/clusters/"${bed##*/}" down "$bed"; done' EXIT
chmod 711 "$TMPDIR" # an ordinary user of a host is let in

places=(namespaces)
for cluster in ssh slurm; do
    tests/clusters/$cluster up "$TMPDIR/$cluster" 4 >"$TMPDIR/up" 2>&1
    case $? in
    0) places+=($cluster) ;;
    77) cat "$TMPDIR/up" ;;
    *) echo "no hosts of $cluster: $(cat "$TMPDIR/up")"; exit 1 ;;
    esac
done
[ ${#places[@]} -gt 1 ] || { tail -n 1 "$TMPDIR/up"; exit 77; }

play() { # play PLACE SCENARIO
    local run=("$bin/rankquake" run "scenarios/$2" --out "$TMPDIR/runs.$1") bed=$TMPDIR/$1
    case $1 in
    namespaces) "${run[@]}" --isolation namespaces ;;
    ssh) tests/clusters/ssh in "$bed" ctl "${run[@]}" --provider ssh --hosts worker@n0,worker@n1,worker@n2,worker@n3 --ssh "ssh -F $bed/ssh_config" ;;
    slurm) tests/clusters/slurm in "$bed" ctl salloc -Q --no-kill -N 4 "${run[@]}" --provider slurm ;;
    esac >"$TMPDIR/said" 2>&1 </dev/null
}
verdict() { # verdict EXIT_CODE
    case $1 in
    0) echo passed ;;
    1) echo failed ;;
    2) if only_hosts_were_late "$TMPDIR/said"; then echo late; else echo inconclusive; fi ;;
    4) echo skipped ;;
    *) echo "exit $1" ;;
    esac
}

read -ra chosen <<<"${SMOKE:-$(sed -n 's/^  - //p' scenarios/smoke.yaml | tr '\n' ' ')}"
printf '%-40s' scenario
printf '%-14s' "${places[@]}"
echo
for scenario in "${chosen[@]}"; do
    printf '%-40s' "$scenario"
    here='' notes=()
    for place in "${places[@]}"; do
        play "$place" "$scenario"
        got=$(verdict $?)
        printf '%-14s' "$got"
        [ "$place" != namespaces ] || here=$got
        case $got in
        "$here" | late) ;;
        skipped) notes+=("$place: $(grep 'rankquake run: ' "$TMPDIR/said" | tail -n 1)") ;;
        *) [ "$here" = late ] && [ "$got" = passed ] || { fails=$((fails + 1)); notes+=("$place: $(tail -n 40 "$TMPDIR/said")"); } ;;
        esac
    done
    echo
    [ ${#notes[@]} = 0 ] || printf '  %s\n' "${notes[@]}"
done
for cluster in "${places[@]:1}"; do
    for host in n0 n1 n2 n3; do
        # shellcheck disable=SC2009
        tests/clusters/"$cluster" in "$TMPDIR/$cluster" $host ps -eo args | grep -E '^[^ ]*(rankquake-node|rankrun|rankprobe|ranktrain)' &&
            { echo "left on $host of $cluster"; fails=$((fails + 1)); }
    done
done
echo "${#chosen[@]} scenarios on ${places[*]}: $fails differences, load $(cut -d' ' -f1 /proc/loadavg)"
[ $fails = 0 ]
