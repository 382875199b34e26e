#!/usr/bin/env bash
# What the job says of its work, held against what the wire carried: a step of W workers with P
# parameters takes 2(W-1)/W x 8 x P bytes out of every node (ranks are contiguous, so one edge of the
# ring leaves a node). Counted outside, within 10 %; and the ledger names every shard of every step once.
set -u
unset RANKTRAIN_OPTIONS # the numbers are those of the whole network
. tests/live/patience.bash
steps=60 parameters=61706 shards=12
cat >"$TMPDIR/ring.yaml" <<E2
scenario: ring
cluster: {nodes: 3}
job:
  nnodes: "3:3"
  workers_per_node: 2
  rdzv_conf: $patient_map
  run: [ranktrain, --steps=$steps]
E2
"$BIN/rankquake" run --isolation namespaces "$TMPDIR/ring.yaml" --out "$TMPDIR/out" >"$TMPDIR/said" 2>&1
rc=$?
[ $rc = 4 ] && { tail -n 1 "$TMPDIR/said"; exit 77; }
[ $rc = 0 ] || { cat "$TMPDIR/said"; exit 1; }
history=$(echo "$TMPDIR"/out/*/history.jsonl)

field() { # field NAME < line
    grep -oE "\"$1\":-?[0-9]+" | head -n 1 | cut -d: -f2
}
bad=0
expected=$((2 * 5 * 8 * parameters * steps / 6))
for node in n0 n1 n2; do
    bytes=$(grep '"kind":"wire"' "$history" | grep "\"node\":\"$node\"" | tail -n 1 | field data_bytes_out)
    echo "$node sent $bytes bytes of data in $steps steps, the ring needs $expected"
    if [ -z "$bytes" ] || [ $((bytes * 10)) -lt $((expected * 9)) ] || [ $((bytes * 10)) -gt $((expected * 11)) ]; then
        bad=1
    fi
done
# step, shard pairs, each once: steps x shards lines, all different.
pairs=$(grep '"kind":"step"' "$history" | sed -nE 's/.*"step":([0-9]+).*"shards":\[([0-9,]*)\].*/\1 \2/p' |
    awk '{ n = split($2, s, ","); for (i = 1; i <= n; i++) print $1, s[i] }')
all=$(echo "$pairs" | wc -l) different=$(echo "$pairs" | sort -u | wc -l)
echo "the ledger has $all entries, $different different, of $((steps * shards))"
[ "$all" = $((steps * shards)) ] && [ "$different" = "$all" ] || bad=1
exit $bad
