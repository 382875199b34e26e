#!/usr/bin/env bash
# Schedules bred by AFL++ for what of the core they reach: none may break an invariant. A minute of it;
# FUZZ_S=3600 does it for an hour (make fuzz). What it finds is written as schedules for `rankquake sim --scenario`.
# deadline: 86400 s
set -u
if ! command -v afl-fuzz >/dev/null || ! command -v afl-clang-fast >/dev/null; then
    echo 'AFL++ is missing (Debian: afl++)'
    exit 77
fi
seconds=${FUZZ_S:-60}
kept=$OUT/fuzz
target=build/fuzz/fuzz-schedule player=$OUT/fuzz-schedule
for build in "OUT=build/fuzz CC=afl-clang-fast $target" "OUT=$OUT $player"; do
    # Other flags of the make that called us are not for this one.
    # shellcheck disable=SC2086 # three words
    if ! AFL_QUIET=1 make -s NVCC= MAKEFLAGS= -j2 $build >"$TMPDIR/make" 2>&1; then
        tail -n 20 "$TMPDIR/make"
        exit 1
    fi
done
mkdir -p "$TMPDIR/in" && rm -rf "$kept" && mkdir -p "$kept"
for n in 8 29 50 99; do # a world, and some faults
    seq 1 "$n" | awk '{ printf "%c", (37 * $1 * $1 + 11 * $1) % 126 + 1 }' >"$TMPDIR/in/$n"
done
AFL_NO_UI=1 AFL_SKIP_CPUFREQ=1 AFL_NO_AFFINITY=1 AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1 \
    afl-fuzz -i "$TMPDIR/in" -o "$TMPDIR/out" -V "$seconds" -t 5000 -G 200 -- "$target" >"$TMPDIR/log" 2>&1
stats=$TMPDIR/out/default/fuzzer_stats
if [ ! -s "$stats" ]; then
    tail -n 20 "$TMPDIR/log"
    exit 1
fi
stat() { sed -n "s/^$1 *: *//p" "$stats"; }
crashes=0
for bytes in "$TMPDIR"/out/default/crashes/id* "$TMPDIR"/out/default/hangs/id*; do
    [ -f "$bytes" ] || continue
    crashes=$((crashes + 1))
    "$player" "$bytes" >"$kept/$crashes.yaml"
    echo "$kept/$crashes.yaml: $(sed -n 's/^found: //p' "$kept/$crashes.yaml")"
done
rm -rf "$kept/in"
cp -R "$TMPDIR/out/default/queue" "$kept/queue"
echo "$(stat execs_done) schedules in $(stat run_time) s, $(stat corpus_count) kept, $(stat bitmap_cvg) of the edges, $crashes break an invariant"
[ "$crashes" = 0 ]
