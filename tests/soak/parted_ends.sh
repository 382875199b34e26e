#!/usr/bin/env bash
# Two hosts that are cut off from each other lose their harness a hundred times in each way: it is killed, what carries the helper is (ssh,
# srun), the helper, its keeper, the card is taken off, the allocation is cancelled. Nothing of it is left, and others on these hosts speak
# with each other again within the time of silence and a second. A line is printed for each kind. Hosts by ssh as an ordinary user (by
# sockets) and as root (by a table), and hosts of Slurm both ways; what is not installed here is said, and left out.
#   ENDS=100             so many times in each way        ENDS_AT_ONCE=8   on so many pairs of hosts at the same time
#   ENDS_DEAD_MAN=3      seconds of silence               ENDS_WITHIN=     so many seconds to be over; a second more than that
#   ENDS_WAYS='harness card'   which ways: tests/live/parted_ends.py
# deadline: 7200 s
set -u
command -v python3 >/dev/null || { echo "python3 is not installed"; exit 77; }
bin=${BIN:-build/bin} times=${ENDS:-100} at_once=${ENDS_AT_ONCE:-8} slice=25
export ENDS_DEAD_MAN=${ENDS_DEAD_MAN:-3}
within=${ENDS_WITHIN:-$(awk "BEGIN { print $ENDS_DEAD_MAN + 1 }")}
chmod 711 "$TMPDIR" # an ordinary user is let in
cp tests/live/parted_job.py "$bin/rankquake-node" "$TMPDIR" && chmod 755 "$TMPDIR"/rankquake-node "$TMPDIR"/parted_job.py

ends() { # ends NUMBER CLUSTER USER HOW TIMES WAY...: on two hosts of their own
    local bed=$TMPDIR/bed.$1 config
    config=$bed/ssh_config
    [ "$2" = ssh ] || config=$bed/slurm.conf
    tests/clusters/"$2" up "$bed" 2 >"$TMPDIR/up.$1" 2>&1 || { cat "$TMPDIR/up.$1"; return 1; }
    ENDS=$5 tests/clusters/"$2" in "$bed" ctl python3 tests/live/parted_ends.py "ends-$$" "$config" "$3" "$TMPDIR" "$4" "${@:6}" \
        2>"$TMPDIR/stderr.$1"
    local rc=$?
    tests/clusters/"$2" down "$bed" || rc=1
    [ $rc = 0 ] || { echo "the end of what $2 said:"; tail -n 5 "$TMPDIR/stderr.$1"; }
    return $rc
}

declare -A ways=([ssh]="${ENDS_WAYS:-harness carrier helper keeper silent card}"
    [slurm]="${ENDS_WAYS:-harness carrier helper keeper silent card scancel scancel-kill}")
kinds=()
for cluster in ssh slurm; do
    tests/clusters/$cluster up "$TMPDIR/bed" 2 >"$TMPDIR/up" 2>&1
    case $? in
    0) tests/clusters/$cluster down "$TMPDIR/bed" ;;
    77) cat "$TMPDIR/up"; continue ;;
    *) echo "no hosts of $cluster: $(cat "$TMPDIR/up")"; exit 1 ;;
    esac
    if [ $cluster = ssh ]; then kinds+=("ssh worker sockets" "ssh root table"); else kinds+=("slurm root sockets" "slurm root table"); fi
done
[ ${#kinds[@]} -gt 0 ] || { tail -n 1 "$TMPDIR/up"; exit 77; }

fails=0 number=0
began=$SECONDS
for ((done = 0; done < times; done += slice)); do
    for kind in "${kinds[@]}"; do
        [ "$(jobs -rp | wc -l)" -lt "$at_once" ] || wait -n || fails=1
        number=$((number + 1))
        # shellcheck disable=SC2086
        ends $number $kind $((times - done < slice ? times - done : slice)) ${ways[${kind%% *}]} >"$TMPDIR/out.$number" 2>&1 &
    done
done
while [ -n "$(jobs -p)" ]; do wait -n || fails=1; done
cat "$TMPDIR"/out.* | grep -vE '^took ' && fails=1

# The table.
cat "$TMPDIR"/out.* | grep -E '^took ' | sort -k2,5 -k6,6n | awk -v within="$within" '
    function tell() {
        if (!n) return
        printf "%s: %d times, over after %.2f s, at most %.2f s%s\n", kind, n, of[int((n + 1) / 2)], of[n],
            late ? sprintf(", %d of them later than %.1f s", late, within) : ", nothing left"
        all_late += late
    }
    { if ($2 " " $3 " " $4 " " $5 != kind) { tell(); n = late = 0; kind = $2 " " $3 " " $4 " " $5 }
      of[++n] = $6; late += $6 > within }
    END { tell(); exit all_late > 0 }' || fails=1
echo "$((SECONDS - began)) s, ${ENDS_DEAD_MAN} s of silence, $at_once pairs of hosts at once, load $(cut -d' ' -f1 /proc/loadavg)"
exit $fails
