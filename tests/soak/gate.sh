#!/usr/bin/env bash
# What `rankquake history gate` says of 200 runs that are recorded in a row, of one code: on the machine as it is, and then while its
# speed is made to drift, as other programs compute beside some of them. False alarms, and how many are caught of those that are
# slower by 20 %.
# alone: it loads the machine, by plan
# deadline: 1800 s
set -u
cd "$(dirname "$0")/../.." || exit 1
command -v python3 >/dev/null || { echo 'there is no python3'; exit 77; }
dir=${TMPDIR:-/tmp}/gate
mkdir -p "$dir" || exit 1
load=()
trap '[ ${#load[@]} = 0 ] || kill "${load[@]}"' EXIT

record() { # record FILE BESIDE...: twenty runs for each BESIDE, beside so many programs
    local file=$1 beside rc i
    for beside in "${@:2}"; do
        for ((i = 0; i < beside; i++)); do
            (while :; do :; done) &
            load+=($!)
        done
        "$BIN/rankquake" run scenarios/membership/node-killed.yaml --repeat 20 --out "$file.runs" >"$dir/said" 2>&1
        rc=$?
        [ ${#load[@]} = 0 ] || kill "${load[@]}"
        load=()
        [ $rc -le 2 ] || { tail -n 20 "$dir/said"; exit 1; }
    done
    "$BIN/rankquake" history add "$file.runs"/*/ --file "$file" --commit same --branch main || exit 1
}
judge() { # judge FILE [ALL]: ALL, of all that are slower and not only of what was judged
    python3 tests/soak/gate.py "$1" "$BIN/rankquake" "$dir/scratch.jsonl" ${2:+"$2"} || failed=1
}

# Runs of one code need not be the newest: GATE_FILE is a trend file that was recorded elsewhere.
failed=0
if [ -n "${GATE_FILE-}" ]; then
    judge "$GATE_FILE"
    exit $failed
fi
record "$dir/quiet.jsonl" 0 0 0 0 0 0 0 0 0 0
judge "$dir/quiet.jsonl" all
record "$dir/drifting.jsonl" 0 0 0 1 1 0 0 2 1 0
judge "$dir/drifting.jsonl"
exit $failed
