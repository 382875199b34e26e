#!/usr/bin/env bash
# ranktrain's modes at every world size from 1 to 24, a batch of 24 shards of one sample, four steps by ranks that --spawn has
# started: one model in all. Prints a table, a row for each mode. MODES="ddp fsdp" and WORLDS="13 24" play some of it.
# deadline: 3600 s
set -u
cd "$(dirname "$0")/../.." || exit 1
failed=0 want='' port=29400
common=(--network=lenet --width=1 --shards=24 --batch-size=24 --steps=4 --samples=96 --log-every=0)
printf '| mode | worlds | models | first digits |\n|---|---|---|---|\n'
for mode in ${MODES:-ddp dp fsdp manual ps zero}; do
    models='' bad=''
    for world in ${WORLDS:-$(seq 1 24)}; do
        ranks=(--spawn="$world")
        [ "$mode" = ps ] && ranks=(--spawn=$((world + 1)))
        [ "$mode" = dp ] && ranks=(--devices="$world")
        port=$((port + 1))
        got=$(MASTER_PORT=$port timeout 300 "$BIN/ranktrain" "${common[@]}" --mode="$mode" "${ranks[@]}" 2>"$TMPDIR/err" |
            grep -oE '^model [0-9a-f]{64}$' | cut -c7-)
        want=${want:-$got}
        models+="${got:-none} "
        [ -n "$got" ] && [ "$got" = "$want" ] || { bad+=" $world" failed=1; cat "$TMPDIR/err" >&2; }
    done
    n=$(wc -w <<<"$models")
    printf '| `%s` | %s | %s%s | %.8s |\n' "$mode" "$n" "$(tr ' ' '\n' <<<"$models" | grep . | sort -u | wc -l)" "${bad:+, others at$bad}" "$models"
done
exit $failed
