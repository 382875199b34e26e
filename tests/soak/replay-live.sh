#!/usr/bin/env bash
# From a planted bug to a run on real nodes: the simulator finds a bug planted in agent/core, makes the
# schedule small, and `rankquake run` plays it: with a rankrun that has the bug it fails, as what the
# simulator said it is, with the one that has not it passes.
# deadline: 600 s
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

replay() { # replay NAME CHECK
    local dir=$TMPDIR/$1 said rc
    if ! mutant_build "$1" "$dir" >"$TMPDIR/make" 2>&1; then
        echo "$1: does not apply or does not build:"
        cat "$TMPDIR/make"
        failed=1
        return
    fi
    (cd "$dir" && ./rankquake sim --seeds 1:2000 --agents 0 --time 0s --faults worker-fail,node-cut --out found) >"$dir/said" 2>&1
    sed -n '/^shrunk/,$p' "$dir/said"
    live "$dir" "$dir/with"
    rc=$?
    [ $rc = 4 ] && tail -n 1 "$said" && exit 77
    if [ $rc != 1 ] || ! grep -q "✗ $2 " "$said"; then
        echo "$1: with the bug the run ends with $rc, and $2 does not see it:"
        cat "$said"
        failed=1
    fi
    live "$BIN" "$dir/without"
    rc=$?
    if [ $rc != 0 ]; then
        echo "$1: without the bug the run ends with $rc:"
        cat "$said"
        failed=1
    fi
}

replay cost-twice restart_count
replay acks-not-waited-for restart_count
[ $failed = 1 ] || echo 'two shrunk schedules were replayed live: they fail with the bug and pass without'
exit $failed
