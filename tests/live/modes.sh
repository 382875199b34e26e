#!/usr/bin/env bash
# ranktrain's modes, a few steps of each, by ranks that the program starts itself: one model, also across modes and world sizes
# when it goes on from a checkpoint; a network that is too large for one device in ddp and not in fsdp, by its own count and by
# the kernel's; ranks that end with the one that failed, and with who started them. Many worlds, kills and both backends:
# tests/soak/modes.sh.
set -u
failed=0 port=29600
say() { echo "$1" && failed=1; }
train() { # train ARG...: with a port of its own
    port=$((port + 1))
    MASTER_PORT=$port timeout 300 "$BIN/ranktrain" "$@" 2>"$TMPDIR/err"
}
model() { grep -oE '^model [0-9a-f]{64}$' | cut -c7-; }
step="--samples=192 --epochs=1"

want=$(train $step | model)
for run in '--mode=zero --spawn 3' '--mode=fsdp --spawn 3' '--mode=ps --spawn 3' '--overlap --spawn 2'; do
    got=$(train $step $run | model)
    [ -n "$want" ] && [ "$got" = "$want" ] || say "$run: model ${got:-none} and not $want: $(cat "$TMPDIR/err")"
done

# A batch of 16 over 4 devices of one process.
want=$(train --samples=160 --epochs=1 --batch-size=16 | model)
got=$(train --samples=160 --epochs=1 --batch-size=16 --mode=dp --devices=4 | model)
[ "$got" = "$want" ] || say "dp over 4 devices: model ${got:-none} and not $want: $(cat "$TMPDIR/err")"

# Begun by three ranks that hold parts, ended by two that hold other parts, with what Adam keeps.
long="--samples=192 --optimizer=adam"
want=$(train $long --steps=4 | model)
train $long --steps=2 --mode=fsdp --spawn 3 --checkpoint-dir="$TMPDIR/ckpt" >/dev/null || say "fsdp: $(cat "$TMPDIR/err")"
train $long --steps=4 --mode=zero --spawn=2 --checkpoint-dir="$TMPDIR/ckpt" >"$TMPDIR/out"
grep -q '^resumed step 2 ' "$TMPDIR/out" || say "zero does not go on from what fsdp has saved"
got=$(model <"$TMPDIR/out")
[ "$got" = "$want" ] || say "resumed: model ${got:-none} and not $want: $(cat "$TMPDIR/err")"

# A quarter of everything and one layer fit where the whole does not.
large="--samples=16 --steps=1 --network=vgg11 --width=32 --shards=4 --batch-size=8"
train $large --spawn=4 --device-memory=40000000 >/dev/null && say "ddp fits into 40 MB"
grep -q "the device's memory is full: .*--device-memory=40000000" "$TMPDIR/err" || say "no word of the device's memory: $(cat "$TMPDIR/err")"
train $large --spawn=4 --device-memory=40000000 --mode=fsdp >"$TMPDIR/out" || say "fsdp: $(cat "$TMPDIR/err")"
got=$(model <"$TMPDIR/out") want=$(train $large | model) # with the running statistics of its norms
[ -n "$want" ] && [ "$got" = "$want" ] || say "fsdp of vgg11: model ${got:-none} and not $want"
parts=$(grep -oE 'optimizer state [0-9]+' "$TMPDIR/out" | awk '{ n += $3 } END { print n }')
[ "$parts" = $((2309610 * 4)) ] || say "the ranks' parts of the optimizer's state are $parts bytes together"

# Half of what Adam keeps, and all else, fits where all does not.
train $large --optimizer=adam --spawn=2 --device-memory=57000000 >/dev/null && say "ddp with Adam fits into 57 MB"
grep -q "the device's memory is full: .*--device-memory=57000000" "$TMPDIR/err" || say "no word of the device's memory: $(cat "$TMPDIR/err")"
train $large --optimizer=adam --spawn=2 --device-memory=57000000 --use-zero >"$TMPDIR/out" || say "zero: $(cat "$TMPDIR/err")"
got=$(model <"$TMPDIR/out") want=$(train $large --optimizer=adam | model)
[ -n "$want" ] && [ "$got" = "$want" ] || say "zero of vgg11: model ${got:-none} and not $want"

# The same by the kernel: less address space than ddp takes. (A sanitizer takes more of it than there is.)
peak_of() { # peak_of ARG...: KiB of a run alone, at its first step
    local pid line
    coproc ddp { exec "$BIN/ranktrain" "$@" --steps=99999999 --log-every=1 2>&1; }
    pid=$ddp_PID
    while read -r line <&"${ddp[0]}" && [[ $line != step* ]]; do :; done
    awk '$1 == "VmPeak:" { print $2 }' /proc/"$pid"/status
    kill -KILL "$pid"
    wait "$pid" 2>/dev/null
}
under() { # under KIB MODE RANKS ARG...: ddp alone dies, that many ranks of MODE finish
    (ulimit -v "$1" && train $large "${@:4}" >/dev/null) 2>/dev/null && say "ddp runs in less than it takes"
    (ulimit -v "$1" && train $large "${@:4}" --spawn="$3" --mode="$2" >/dev/null) || say "$2 under ulimit -v: $(cat "$TMPDIR/err")"
}
if [ "$BUILD" != asan ] && [ "$BUILD" != tsan ]; then
    peak=$(peak_of $large)
    under $((peak - 12288)) fsdp 4
    peak=$(peak_of $large --optimizer=adam)
    under $((peak - 6144)) zero 4 --optimizer=adam
fi

# The first failure is everybody's, and nobody outlives who started them.
train --samples=192 --lr=500 --epochs=9 --spawn=3 --mode=fsdp >/dev/null
rc=$?
[ $rc = 1 ] && grep -q 'step [0-9]*: training has diverged: of shard [0-9]*, the .* of layer [0-9]* (' "$TMPDIR/err" ||
    say "a loss that is no number: exit $rc: $(cat "$TMPDIR/err")"
coproc spawned { MASTER_PORT=29599 exec "$BIN/ranktrain" --spawn=3 --log-every=1 --compute-ms=50 2>&1; }
pid=$spawned_PID
while read -r line <&"${spawned[0]}" && [[ $line != 'step 2'* ]]; do :; done
mapfile -t ranks < <(cat /proc/$pid/task/*/children | tr ' ' '\n' | grep .)
[ ${#ranks[@]} = 3 ] || say "--spawn=3 has ${#ranks[@]} children"
kill -KILL "${ranks[1]}"
wait $pid
rc=$?
[ $rc = 137 ] || say "a rank was killed and --spawn ended with $rc"
for rank in "${ranks[@]}"; do
    [ -e /proc/"$rank" ] && say "rank process $rank is still there"
done

WORLD_SIZE=13 RANK=0 MASTER_ADDR=localhost MASTER_PORT=29598 train --samples=192
[ $? = 64 ] && grep -q 'at most 12 workers, for the batch has 12 shards' "$TMPDIR/err" || say "13 workers: $(cat "$TMPDIR/err")"
exit $failed
