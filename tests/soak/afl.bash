# afl: a program of tests/fuzz and what AFL++ makes for it, for FUZZ_S seconds (60). To be sourced at the root of the
# tree; all of it goes below $TMPDIR, but what it found into $kept.

if ! command -v afl-fuzz >/dev/null || ! command -v afl-clang-fast >/dev/null; then
    echo 'AFL++ is missing (Debian: afl++)'
    exit 77
fi
seconds=${FUZZ_S:-60}

afl_make() { # afl_make WORD...
    # Other flags of the make that called us are not for this one.
    AFL_QUIET=1 make -s NVCC= MAKEFLAGS= -j2 "$@" >"$TMPDIR/make" 2>&1 && return
    tail -n 20 "$TMPDIR/make"
    exit 1
}

# Sets target, which is fuzzed, and player, which takes what came of it, and makes room for what that begins with and
# for what is found.
afl_build() { # afl_build PROGRAM FOLDER WORD...: how the target is built
    local program=$1 folder=$2
    shift 2
    target=$folder/$program player=$OUT/$program
    afl_make "OUT=$folder" CC=afl-clang-fast "$@" "$target"
    afl_make "BUILD=$BUILD" "OUT=$OUT" "$player"
    mkdir -p "$TMPDIR/in" && rm -rf "$kept" && mkdir -p "$kept" || exit 1
}

afl_fuzz() { # afl_fuzz OPTION...: of afl-fuzz
    AFL_NO_UI=1 AFL_SKIP_CPUFREQ=1 AFL_NO_AFFINITY=1 AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1 \
        ASAN_OPTIONS=abort_on_error=1:symbolize=0:detect_leaks=0 \
        afl-fuzz -i "$TMPDIR/in" -o "$TMPDIR/out" -V "$seconds" "$@" -- "$target" >"$TMPDIR/log" 2>&1
    [ -s "$TMPDIR/out/default/fuzzer_stats" ] && return
    tail -n 20 "$TMPDIR/log"
    exit 1
}

# The files of those inputs that did harm.
afl_harmful() {
    local bytes
    for bytes in "$TMPDIR"/out/default/crashes/id* "$TMPDIR"/out/default/hangs/id*; do
        [ -f "$bytes" ] && echo "$bytes"
    done
}

# The last line: how many inputs were made, and what came of it.
afl_tell() { # afl_tell WHAT HARM
    local stats=$TMPDIR/out/default/fuzzer_stats
    stat() { sed -n "s/^$1 *: *//p" "$stats"; }
    echo "$(stat execs_done) $1 in $(stat run_time) s, $(stat corpus_count) kept, $(stat bitmap_cvg) of the edges, $2"
}

# All of it for a program under sanitizers that writes its own seeds, with inputs of so many bytes at most.
afl_hunt() { # afl_hunt PROGRAM WHAT BYTES WORD...: how the target is built beyond that
    local bytes harm=0 kept=$OUT/$1.kept
    afl_build "$1" build/fuzz-asan BUILD=asan "${@:4}"
    "$player" --seeds "$TMPDIR/in" || exit 1
    afl_fuzz -t 2000 -m none -G "$3"
    while read -r bytes; do
        harm=$((harm + 1))
        cp "$bytes" "$kept/$harm"
        echo "$player $kept/$harm"
    done < <(afl_harmful)
    afl_tell "$2" "$harm do harm"
    [ "$harm" = 0 ]
}
