#!/usr/bin/env bash
# Histories that nobody has recorded, bred by AFL++ under sanitizers out of those of tests/histories: each is refused or
# judged, and none passes that does not show how all of it ended. A minute of it; FUZZ_S=3600 does it for an hour (make fuzz).
# deadline: 86400 s
set -u
if ! command -v afl-fuzz >/dev/null || ! command -v afl-clang-fast >/dev/null; then
    echo 'AFL++ is missing (Debian: afl++)'
    exit 77
fi
seconds=${FUZZ_S:-60}
kept=$OUT/fuzz-history.kept
target=build/fuzz-asan/fuzz-history player=$OUT/fuzz-history
for build in "BUILD=asan OUT=build/fuzz-asan CC=afl-clang-fast $target" "BUILD=$BUILD OUT=$OUT $player"; do
    # Other flags of the make that called us are not for this one.
    # shellcheck disable=SC2086 # some words
    if ! AFL_QUIET=1 make -s NVCC= MAKEFLAGS= -j2 $build >"$TMPDIR/make" 2>&1; then
        tail -n 20 "$TMPDIR/make"
        exit 1
    fi
done
mkdir -p "$TMPDIR/in" && rm -rf "$kept" && mkdir -p "$kept" && "$player" --seeds "$TMPDIR/in" || exit 1
AFL_NO_UI=1 AFL_SKIP_CPUFREQ=1 AFL_NO_AFFINITY=1 AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1 ASAN_OPTIONS=abort_on_error=1:symbolize=0:detect_leaks=0 \
    afl-fuzz -i "$TMPDIR/in" -o "$TMPDIR/out" -V "$seconds" -t 2000 -m none -G 40000 -- "$target" >"$TMPDIR/log" 2>&1
stats=$TMPDIR/out/default/fuzzer_stats
if [ ! -s "$stats" ]; then
    tail -n 20 "$TMPDIR/log"
    exit 1
fi
stat() { sed -n "s/^$1 *: *//p" "$stats"; }
harm=0
for bytes in "$TMPDIR"/out/default/crashes/id* "$TMPDIR"/out/default/hangs/id*; do
    [ -f "$bytes" ] || continue
    harm=$((harm + 1))
    cp "$bytes" "$kept/$harm"
    echo "$player $kept/$harm"
done
echo "$(stat execs_done) histories in $(stat run_time) s, $(stat corpus_count) kept, $(stat bitmap_cvg) of the edges, $harm do harm"
[ "$harm" = 0 ]
