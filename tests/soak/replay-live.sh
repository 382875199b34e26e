#!/usr/bin/env bash
# From a planted bug to a run on real nodes: the simulator finds a bug planted in agent/core, makes the
# schedule small, and `rankquake run` plays it: with a rankrun that has the bug it fails, as what the
# simulator said it is, with the one that has not it passes. Prints the last table of docs/mutants.md.
# MUTANTS="NAME ..." tries only these, whichever check sees them.
# deadline: 1200 s
set -u
if ! command -v git >/dev/null; then
    echo 'git is missing, which applies the patches'
    exit 77
fi
BIN=$(cd "$BIN" && pwd) || exit 1
OUT=$(cd "$OUT" && pwd) || exit 1
. tests/soak/mutant.bash
failed=0

# live RUNNER DIR: what `rankquake run` of that folder of programs makes of the scenario; leaves $said.
live() {
    said=$2.said
    (cd "${2%/*}" && "$1/rankquake" run found/live.yaml --out "$2") >"$said" 2>&1
}

# Workers that take a while to end: what comes too soon is then too soon, however fast this machine is.
slow_workers() { # slow_workers FILE
    sed -i "s/^  run: \[sleep, \"\([0-9]*\)\"\]/  run: [sh, -c, \"trap 'kill \$!; sleep 0.4; exit 1' TERM; sleep \1 \& wait\"]/" "$1"
    grep -q 'run: \[sh' "$1"
}

# Failures that come one after the other with time for a round between them, on a busy machine too.
far_apart() { # far_apart FILE
    local n=0 line
    while IFS= read -r line; do
        [[ $line == *'when: {time: '* ]] && line="  - {when: {time: $((++n * 1500))ms}${line#*\}}"
        [[ $line == '  run: '* ]] && line='  run: [sleep, "12"]'
        printf '%s\n' "$line"
    done <"$1" >"$1.apart"
    mv "$1.apart" "$1"
}

replay() { # replay NAME CHECK [slow_workers|far_apart]: CHECK empty, any
    local dir=$TMPDIR/$1 said rc
    if ! mutant_build "$1" "$dir" >"$TMPDIR/make" 2>&1; then
        echo "$1: does not apply or does not build:"
        cat "$TMPDIR/make"
        failed=1
        return
    fi
    (cd "$dir" && ./rankquake sim --seeds 1:2000 --agents 0 --time 0s --faults worker-fail,node-cut --out found) >"$dir/said" 2>&1
    if [ ! -f "$dir/found/live.yaml" ]; then
        echo "$1: nothing was found that could be played: $(tail -n 1 "$dir/said")"
        failed=1
        return
    fi
    [ -z "${3-}" ] || "$3" "$dir/found/live.yaml" || failed=1
    live "$dir" "$dir/with"
    rc=$?
    [ $rc = 4 ] && tail -n 1 "$said" && exit 77
    if [ $rc != 1 ] || ! grep -q "^  ✗ $2" "$said"; then
        echo "$1: with the bug the run ends with $rc, and ${2:-no check} does not see it:"
        cat "$dir/found/live.yaml" "$said"
        failed=1
    fi
    printf '| `%s` | %s | %s | %s |\n' "$1" "$(sed -n 's/^breaks: //p' "$dir/found/shrunk.yaml")" \
        "$(sed -n 's/^  ✗ \([a-z_]*\).*/`\1`/p' "$said" | paste -sd' ')" \
        "$(sed -n 's/^  - {when: {time: \([0-9a-z.]*\)}, fault: \(.*\)}$/\2 at \1/p' "$dir/found/live.yaml" | paste -sd';')"
    live "$BIN" "$dir/without"
    rc=$?
    if [ $rc != 0 ]; then
        echo "$1: without the bug the run ends with $rc:"
        cat "$dir/found/live.yaml" "$said"
        failed=1
    fi
    rm -rf "$dir"
}

echo '| bug | breaks in the simulation | fails live | lines of its live.yaml |'
echo '|---|---|---|---|'
if [ -n "${MUTANTS-}" ]; then
    for name in $MUTANTS; do replay "$name" ''; done
    exit $failed
fi
# What is charged, when a round may begin, when the job is over, who is who, how it ends, what workers are told, with how few.
replay cost-twice restart_count
replay acks-not-waited-for restart_count slow_workers
replay budget-off-by-one budget far_apart
replay gang-for-all outcome
replay failure-exits-with-0 one_outcome far_apart
replay master-of-another master
replay rank-base-gap ranks
replay restart-count-per-agent agreement
replay below-min bounds
[ $failed = 1 ] || echo 'nine shrunk schedules were replayed live: they fail with the bug and pass without'
exit $failed
