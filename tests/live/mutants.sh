#!/usr/bin/env bash
# Planted bugs of tests/mutants are caught by the checks that are there for them: one in each program
# and in what the harness believes of itself; MUTANTS='FILE ...' tries others, make soak all.
# See tests/mutants/README.md.
# deadline: 480 s
set -u
root=$PWD
read -r -d '' -a mutants <<<"${MUTANTS:-$(echo tests/mutants/{fault-does-nothing,restart-count-off-by-one,resume-one-too-old}.patch)}"
if ! command -v git >/dev/null; then
    echo 'git is missing, which applies the patches'
    exit 77
fi

field() { # field NAME PATCH
    sed -n "1,/^diff /s/^$1: *//p" "$2" | head -n 1
}

BIN=$(cd "$BIN" && pwd) || exit 1

# One copy of the sources, and of what was built of them, serves all mutants, so that each rebuilds only
# what it touches.
copy=$TMPDIR/copy
mkdir -p "$copy/build/release"
cp -a Makefile VERSION agent faults harness reports scenarios "$copy" || exit 1
if [ "${BUILD:-release}" = release ]; then
    tar -C "$OUT" --exclude=./tests --exclude=./logs --exclude=./soak -cf - . | tar -C "$copy/build/release" -xf - || exit 1
fi

# Builds the mutant's program; leaves a folder of programs in $bin.
build() { # build PATCH PROGRAM
    (cd "$copy" && git apply "$root/$1") || return 1
    make -s -C "$copy" -j"$(nproc)" BUILD=release DEPS=0 MAKEFLAGS= "build/bin/$2" >"$TMPDIR/make" 2>&1
    local rc=$?
    bin=$TMPDIR/bin
    rm -rf "$bin" && cp -R "$BIN" "$bin" && cp -f "$copy/build/bin/$2" "$bin/$2" || rc=1
    (cd "$copy" && git apply --reverse "$root/$1") || rc=1
    [ $rc = 0 ] || cat "$TMPDIR/make"
    return $rc
}

escaped=0
for mutant in "${mutants[@]}"; do
    program=$(field Program "$mutant")
    if ! build "$mutant" "$program"; then
        echo "$mutant: does not apply or does not build"
        escaped=1
        continue
    fi
    "$bin/rankquake" run "$(field Scenario "$mutant")" --out "$TMPDIR/run" >"$TMPDIR/said" 2>&1
    rc=$?
    if [ $rc = 4 ]; then
        tail -n 1 "$TMPDIR/said"
        exit 77
    fi
    if [ $rc != "$(field Exit "$mutant")" ] || ! grep -qE -- "$(field Says "$mutant")" "$TMPDIR/said"; then
        echo "$mutant: $(field Plants "$mutant"): not caught. Wanted exit $(field Exit "$mutant")" \
            "and /$(field Says "$mutant")/, got exit $rc and:"
        sed 's/^/    /' "$TMPDIR/said"
        escaped=1
    fi
    rm -rf "$TMPDIR/run"
done
exit $escaped
