#!/usr/bin/env bash
# What `rankquake history gate` says of 200 runs that are recorded in a row, of one code, while the speed of the machine is made to
# drift: other programs compute beside some of them. False alarms, and how many are caught of those that are slower by 20 %.
# alone: it loads the machine, by plan
# deadline: 1800 s
set -u
cd "$(dirname "$0")/../.." || exit 1
command -v python3 >/dev/null || { echo 'there is no python3'; exit 77; }
dir=${TMPDIR:-/tmp}/gate
mkdir -p "$dir" || exit 1
load=()
trap '[ ${#load[@]} = 0 ] || kill "${load[@]}"' EXIT

# Runs of one code need not be the newest: GATE_FILE is a trend file that was recorded elsewhere.
file=${GATE_FILE-}
if [ -z "$file" ]; then
    file=$dir/trend.jsonl
    for beside in 0 0 0 1 1 0 0 2 1 0; do
        for ((i = 0; i < beside; i++)); do
            (while :; do :; done) &
            load+=($!)
        done
        "$BIN/rankquake" run scenarios/membership/node-killed.yaml --repeat 20 --out "$dir/runs" >"$dir/said" 2>&1
        rc=$?
        [ ${#load[@]} = 0 ] || kill "${load[@]}"
        load=()
        [ $rc -le 2 ] || { tail -n 20 "$dir/said"; exit 1; }
    done
    "$BIN/rankquake" history add "$dir"/runs/*/ --file "$file" --commit same --branch main || exit 1
fi
python3 tests/soak/gate.py "$file" "$BIN/rankquake" "$dir/scratch.jsonl"
