#!/usr/bin/env bash
# Schedules fuzzed by AFL++ for what of the core they reach: none may break an invariant. A minute of it;
# FUZZ_S=3600 does it for an hour (make fuzz). What it finds is written as schedules for `rankquake sim --scenario`.
# deadline: 86400 s
set -u
kept=$OUT/fuzz
. tests/soak/afl.bash
afl_build fuzz-schedule build/fuzz
for n in 8 29 50 99; do # a world, and some faults
    seq 1 "$n" | awk '{ printf "%c", (37 * $1 * $1 + 11 * $1) % 126 + 1 }' >"$TMPDIR/in/$n"
done
afl_fuzz -t 5000 -G 200
crashes=0
while read -r bytes; do
    crashes=$((crashes + 1))
    "$player" "$bytes" >"$kept/$crashes.yaml"
    echo "$kept/$crashes.yaml: $(sed -n 's/^found: //p' "$kept/$crashes.yaml")"
done < <(afl_harmful)
rm -rf "$kept/in"
cp -R "$TMPDIR/out/default/queue" "$kept/queue"
afl_tell schedules "$crashes break an invariant"
[ "$crashes" = 0 ]
