#!/usr/bin/env bash
# The demo passes, and so does its scenario with the timeline and the expectations about it taken
# out: what it shows is caused by the faults alone.
set -u
. tests/live/patience.bash
run() { # run WHAT FILE
    "$BIN/rankquake" run "$2" --out "$TMPDIR/$1" >"$TMPDIR/said" 2>&1
    local rc=$?
    if [ $rc = 4 ]; then
        tail -n 1 "$TMPDIR/said"
        exit 77
    fi
    [ $rc = 0 ] && return
    [ $rc = 2 ] && only_harness_was_late "$TMPDIR/said" && { echo "$1: this machine stood still for too long to judge times"; exit 77; }
    echo "$1: exit $rc"
    cat "$TMPDIR/said"
    exit 1
}

# How quick it is, is not asked here: a machine that stands still cannot be.
sed '/_within:/d' scenarios/tour.yaml >"$TMPDIR/tour.yaml"
run demo "$TMPDIR/tour.yaml"
# Everything from one of these keys in column 1 to the next key.
awk '/^[^ #]/ { drop = /^(timeline|expect):/ } !drop' scenarios/tour.yaml >"$TMPDIR/quiet.yaml"
run undisturbed "$TMPDIR/quiet.yaml"
