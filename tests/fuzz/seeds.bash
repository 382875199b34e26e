# seeds: what a fuzzer begins with, once through each target. To be sourced at the root of the tree; fail is the caller's.

export ASAN_OPTIONS=detect_leaks=0
play_seeds() { # play_seeds FOLDER-WITH-THE-TARGETS
    local name seed seeds
    for name in $(sed -n 's/^FUZZED := //p' Makefile); do
        seeds=$TMPDIR/$name
        mkdir "$seeds"
        if [ "$name" = schedule ]; then # a world, and some faults, as tests/soak/fuzz.sh has them
            awk 'BEGIN { for (i = 1; i < 30; i++) printf "%c", (37 * i * i + 11 * i) % 126 + 1 }' >"$seeds/0"
        else
            "$1/fuzz-$name" --seeds "$seeds" || fail "$name: no seeds"
        fi
        for seed in "$seeds"/*; do
            MALLOC_PERTURB_=165 "$1/fuzz-$name" "$seed" >"$TMPDIR/said" 2>&1 ||
                { fail "$name: seed ${seed##*/} does harm:"; tail -n 15 "$TMPDIR/said"; }
        done
    done
}
