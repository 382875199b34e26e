#!/usr/bin/env bash
# Savers that are not ours, under Debian's torch: how many of the states that a death could leave each in it does not survive,
# as the table of docs/crash-points.md (TABLE=FILE writes it). STATES bounds the states of each, ROWS
# chooses some.
# deadline: 3600 s
set -u
python=/usr/bin/python3
"$python" -c 'import torch' 2>/dev/null || { echo "$python has no torch (python3-torch)"; exit 77; }
dir=$TMPDIR/savers
mkdir "$dir" && cp tests/harness/crash/savers.py "$dir" || exit 1
rq=$(realpath "$BIN")/rankquake
cd "$dir" || exit 1
export NO_COLOR=1
table=${TABLE:-$dir/table}
bad=0
count() { # count VERDICT DEATH: trials of the last run
    cat "$run"/trials.jsonl | grep "\"death\":\"$2\"" | grep -c "\"verdict\":\"$1\""
}
row() { # row NAME WANTED COMMAND...: WANTED: the exit code
    local rc name=$1 wanted=$2 death cells=
    shift 2
    [[ $name =~ ${ROWS:-.} ]] || return 0
    "$rq" crashpoints --out "runs-$name" --max-states "${STATES:-200}" --deaths process,power --dir ckpt -- "$@" >"$dir/said" 2>&1
    rc=$?
    [ $rc = "$wanted" ] || { echo "$name: exit $rc, not $wanted"; cat "$dir/said"; bad=1; }
    run=$(echo "runs-$name"/*)
    for death in process power; do
        cells+=" $(count 'hard failure' $death) / $(count 'silent divergence' $death) / $(count 'lost work' $death), of $(grep -c "\"death\":\"$death\"" "$run/trials.jsonl") |"
    done
    echo "| $name |$cells $(sed -n 's/^ *what *//p' "$dir/said" | head -n 1 | tr '|' '/') |" >>"$table"
}
printf '%s\n' '| saver | process | power | first reason |' '|---|---|---|---|' >"$table"
row 'overwrite in place' 1 "$python" savers.py overwrite ckpt
row 'temporary file and os.replace' 1 "$python" savers.py replace ckpt
row 'the same with fsync of both' 0 "$python" savers.py fsync ckpt
row 'DDP, rank 0 replaces' 1 rankrun --standalone --nproc-per-node=2 "$python" savers.py ddp ckpt
cat "$table"
exit $bad
