#!/usr/bin/env bash
# crashpoints finds nothing in what ranktrain saves in any of its modes: whole and in parts, beside the training, per epoch, on disks
# of their own, and when it is asked to end. Prints the table of docs/checkpoints.md.
#   ROWS='fsdp zero-*'  those alone, by their names       STATES=N  so many states of each, instead of 40
# deadline: 7200 s
set -u
. tests/live/says.bash
dir=$TMPDIR/crashpoints_modes
mkdir -p "$dir/desk" && cp -R "$BIN" "$dir/bin" && rq=$(realpath "$dir/bin/rankquake") || exit 1
PATH=$(realpath "$dir/bin"):$PATH
export NO_COLOR=1
common=(--steps=6 --checkpoint-every=2 --checkpoint-keep=2 --samples=192 --width=2 --log-every=1)

# Asked to end at step 3, and started again, which is no other word of where the job went on.
cat >"$dir/desk/asked.sh" <<'END'
asked=
coproc job { exec ranktrain "$@"; }
pid=$job_PID
while IFS= read -r line <&"${job[0]}"; do
    echo "$line"
    [[ $line != 'step 3 '* ]] || { kill -TERM $pid && asked=1; }
done
wait $pid
rc=$?
[ -n "$asked" ] || exit $rc
set -o pipefail
env -u RANKQUAKE_EVENTS ranktrain "$@" | grep -v '^resumed'
END

read -ra rows <<<"${ROWS-*}"
wanted() { # wanted NAME
    local pattern
    for pattern in "${rows[@]}"; do
        # shellcheck disable=SC2053
        [[ $1 == $pattern ]] && return 0
    done
    return 1
}
told() { # told NAME WHAT RC: a row of the table
    local tried found=nothing
    tried=$(sed -n 's/.* \([0-9]*\) tried in .*/\1/p' "$dir/said")
    [ "$3" = 4 ] && { tail -n 1 "$dir/said"; exit 77; }
    if [ "$3" != 0 ]; then
        found="exit $3" bad=1
        cp "$dir/said" "$dir/found-$1"
    fi
    printf '| %s | %s | %s | %s |\n' "$1" "$2" "${tried:-none}" "$found"
}
tries() { # tries NAME COMMAND...
    wanted "$1" || return 0
    (cd "$dir/desk" && exec "$rq" crashpoints --max-states "${STATES:-40}" --budget 10m --dir ckpt -- "${@:2}" "${common[@]}" \
        --checkpoint-dir=ckpt) >"$dir/said" 2>&1
    told "$1" "\`${*:2}\`" $?
}
nodes() { # nodes NAME OPTION...: two nodes, and a disk of each
    wanted "$1" || return 0
    local words
    words=$(printf '%s, ' "${@:2}" "${common[@]}")
    cat >"$dir/desk/nodes.yaml" <<END
cluster: {nodes: 2}
job:
  nnodes: 2
  run: [ranktrain, $words"--checkpoint-dir={disk}/ckpt"]
  checkpoint: {max_states: ${STATES:-40}, budget: 10m}
END
    (cd "$dir/desk" && exec "$rq" crashpoints nodes.yaml) >"$dir/said" 2>&1
    told "$1" "\`${*:2}\` on two nodes, a disk of each" $?
}

echo '| | | states | found |'
echo '|---|---|---|---|'
tries ddp ranktrain --spawn=2
tries ddp-async ranktrain --spawn=2 --checkpoint-async
tries ddp-sharded ranktrain --spawn=2 --checkpoint-sharded
tries ddp-sharded-async ranktrain --spawn=2 --checkpoint-sharded --checkpoint-async
tries ddp-asked bash asked.sh --spawn=2
tries dp ranktrain --mode=dp --devices=2
tries dp-async ranktrain --mode=dp --devices=2 --checkpoint-async
tries manual ranktrain --mode=manual --spawn=2
tries zero ranktrain --mode=zero --spawn=2
tries zero-async ranktrain --mode=zero --spawn=2 --checkpoint-async
tries zero-sharded ranktrain --mode=zero --spawn=2 --checkpoint-sharded
tries zero-asked bash asked.sh --mode=zero --spawn=2
tries fsdp ranktrain --mode=fsdp --spawn=2
tries fsdp-sharded ranktrain --mode=fsdp --spawn=2 --checkpoint-sharded
tries fsdp-sharded-async ranktrain --mode=fsdp --spawn=2 --checkpoint-sharded --checkpoint-async
tries fsdp-asked bash asked.sh --mode=fsdp --spawn=2 --checkpoint-sharded
tries ps ranktrain --mode=ps --spawn=3
tries ps-async ranktrain --mode=ps --ps-async --spawn=3
tries ps-asked bash asked.sh --mode=ps --spawn=3
nodes ddp-nodes --mode=ddp
nodes zero-nodes --mode=zero
nodes fsdp-nodes --mode=fsdp --checkpoint-sharded
nodes ps-nodes --mode=ps
nodes ps-async-nodes --mode=ps --ps-async
common=("${common[@]/--checkpoint-every=2/--checkpoint-every=1ep}")
tries ddp-epochs ranktrain --spawn=2
tries fsdp-epochs ranktrain --mode=fsdp --spawn=2 --checkpoint-sharded
for f in "$dir"/found-*; do
    [ -e "$f" ] && echo "--- $f" && cat "$f"
done
exit $bad
