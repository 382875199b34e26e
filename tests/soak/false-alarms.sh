#!/usr/bin/env bash
# No false alarms: runs of a right rankrun and a right job, undisturbed and through every common kind of trouble, on a
# quiet host (CLEAN=200 of them) and on one that is not (NOISE=200): all processors busy, frames 5 ms late on average, a
# disk that others sync. Every check passes or is skipped; what failed, was left open or broke is printed with its
# directory, which is kept in $OUT/false-alarms. Run i has seed i. In pieces: FIRST=51 COUNT=50.
# deadline: 7200 s
set -u
BIN=$(cd "$BIN" && pwd) || exit 1
OUT=$(cd "$OUT" && pwd) || exit 1
cd "$(dirname "$0")/../.." || exit 1
first=${FIRST:-1} count=${COUNT:-1000000}
kept=$OUT/false-alarms
export XDG_CACHE_HOME=$TMPDIR/cache
mkdir -p "$kept" "$TMPDIR/scenarios"

# Their own budgets of time are for the fast profile and a host with nothing else to do; a judge is tried here.
scenarios=(restart/worker-killed restart/worker-hangs restart/agent-killed restart/printed-steps membership/node-killed
    membership/node-powered-off membership/node-leaves membership/node-joins network/partition-and-heal)
# Where a node comes (back) while the job runs the job is ten times as long: the limits of the default profile are.
for scenario in "${scenarios[@]}"; do
    plain='' longer=''
    grep -q 'fence:' "scenarios/$scenario.yaml" && plain=', hb: ~, fence: ~, hard: ~, suspect: ~'
    case $scenario in
    *-joins | *-heal)
        longer=$(grep -o 'run: \[.*\]' "scenarios/$scenario.yaml")
        plain="$plain, last_call_timeout: 2s" longer=", ${longer/--steps=80,/--steps=800,}"
        ;;
    esac
    printf 'include: %s\njob: {rdzv_conf: {profile: default%s}%s}\nexpect: {detect_within: 60s, recover_within: 90s}\n' \
        "$PWD/scenarios/$scenario.yaml" "$plain" "$longer" >"$TMPDIR/scenarios/${scenario##*/}.yaml"
done
printf 'include: %s\ntimeline: ~\nexpect: {world_sizes: [3], restarts: 0, detect_within: ~, recover_within: ~}\n' \
    "$TMPDIR/scenarios/worker-killed.yaml" >"$TMPDIR/scenarios/undisturbed.yaml"
files=("$TMPDIR"/scenarios/*.yaml)
noises=(busy late disk all)

# ---- noise: processes of this script, each ended by its number ----
makers=()
busy() {
    local i
    for ((i = $(nproc); i > 0; i--)); do
        while :; do :; done &
        makers+=($!)
    done
}
disk() {
    (while :; do dd if=/dev/zero "of=$TMPDIR/noise" bs=1M count=32 conv=fsync 2>/dev/null; done) &
    makers+=($!)
}
wire_below() { # wire_below PID: the process of the run that carries its frames
    local pid name
    for pid in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do
        name=$(tr "\0" " " 2>/dev/null <"/proc/$pid/cmdline")
        [[ $name == *' wire '* ]] && echo "$pid" && return
        wire_below "$pid"
    done
}
# The kernel may have no netem: the switch stands still for ten milliseconds of eleven.
late() { # late RUN
    (
        exec 9<> <(:)
        wire='' name=''
        while [ -e "/proc/$1" ]; do
            [ -n "$wire" ] && read -r name 2>/dev/null <"/proc/$wire/comm" && [ "$name" = rankquake ] || wire=$(wire_below "$1")
            [ -n "$wire" ] && kill -STOP "$wire" 2>/dev/null
            read -r -t 0.01 -u 9
            [ -n "$wire" ] && kill -CONT "$wire" 2>/dev/null
            read -r -t 0.001 -u 9
        done
    ) &
    makers+=($!)
}
quiet() {
    local pid
    for pid in "${makers[@]}"; do
        kill "$pid" && wait "$pid"
    done 2>/dev/null
    makers=()
    rm -f "$TMPDIR/noise"
}
trap quiet EXIT

# ---- runs ----
runs=0 alarms=0
try() { # try NUMBER NOISE
    local file=${files[$1 % ${#files[@]}]} dir=$kept/$2-$1 rc run
    [[ $2 == busy || $2 == all ]] && busy
    [[ $2 == disk || $2 == all ]] && disk
    timeout 600 "$BIN/rankquake" run "$file" --seed "$1" --out "$dir" >"$dir.log" 2>&1 </dev/null &
    run=$!
    [[ $2 == late || $2 == all ]] && late "$run"
    wait "$run"
    rc=$?
    quiet
    [ $rc = 4 ] && tail -n 1 "$dir.log" && exit 77
    [ $rc = 64 ] && cat "$dir.log" && exit 1
    runs=$((runs + 1))
    if [ $rc = 0 ]; then
        rm -rf "$dir" "$dir.log"
        return
    fi
    alarms=$((alarms + 1))
    echo "$2 $1, $(basename "$file" .yaml): exit $rc, $dir"
    grep -E '^ *(✗|x|\?) |failed:' "$dir.log" | head -n 5
}
for ((i = first; i < first + count && i <= ${CLEAN:-200}; i++)); do try "$i" quiet; done
for ((i = first; i < first + count && i <= ${NOISE:-200}; i++)); do try "$i" "${noises[i / ${#files[@]} % 4]}"; done

# Wilson's interval, as rankquake run --repeat tells it.
awk -v n="$runs" -v k="$alarms" 'BEGIN {
    if (!n) exit
    z = 1.959964; p = k / n; s = 1 + z * z / n; m = (p + z * z / (2 * n)) / s
    h = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / s
    printf "%d runs, %d false alarms: %.1f %%, between %.1f %% and %.1f %% (95 %% confidence)\n", n, k, 100 * p, \
        k ? 100 * (m - h) : 0, k < n ? 100 * (m + h) : 100 }'
[ $alarms = 0 ]
