#!/usr/bin/env bash
# ci/gpu without a GPU: it says so and exits 4; with the libraries of tests/fakes its quick parts come
# to the end and make tables of one shape, and what fails is a row, a line and an exit status.
# deadline: 240 s
set -u
unset RANKTRAIN_OPTIONS # one network is enough
[ "${BUILD:-release}" = release ] || { echo 'ci/gpu uses the programs of the release build'; exit 77; }
bad=0
fail() {
    echo "$*"
    cat "$TMPDIR/said"
    bad=1
}
mkdir "$TMPDIR/bin"
printf '%s\n' '#!/bin/sh' 'echo No devices were found >&2; exit 6' >"$TMPDIR/bin/nvidia-smi"
chmod +x "$TMPDIR/bin/nvidia-smi"

PATH=$TMPDIR/bin:$PATH ci/gpu >"$TMPDIR/said" 2>&1
[ $? = 4 ] && grep -q '^ci/gpu: skipped: no GPU here' "$TMPDIR/said" || fail 'without a GPU'

run() { # run RC PART...: the table in $TMPDIR/said, and in $TMPDIR/out/gpu.md
    local want=$1 rc
    shift
    rm -rf "$TMPDIR/out"
    OUT=$TMPDIR/out ci/gpu --fake "$@" >"$TMPDIR/said" 2>&1
    rc=$?
    [ $rc = "$want" ] || fail "ci/gpu --fake $*: exit $rc, not $want"
    cmp -s "$TMPDIR/said" "$TMPDIR/out/gpu.md" || fail "$*: OUT has another table"
    grep -q '^\*\*fake\*\*: ' "$TMPDIR/said" || fail "$*: the table does not say that it is made up"
    [ -z "$(grep '^|' "$TMPDIR/said" | sed 's/[^|]//g' | grep -vx '||||')" ] || fail "$*: a row has not three cells"
}

run 0 inventory kernels memory
[ "$(grep -c '^### ' "$TMPDIR/said")" = 3 ] || fail 'not one heading for each part'
grep -q '^| GPU | Fake GPU | ' "$TMPDIR/said" || fail 'no inventory'
grep -q '^| sums, bit for bit | same | ' "$TMPDIR/said" || fail 'no kernels'
grep -Eq '^\| killed: its memory gone after \| [0-9.]+ ms \| ' "$TMPDIR/said" || fail 'no memory'
[ "$(tail -n 1 "$TMPDIR/said")" = 'nothing is missing' ] || fail 'something is missing'

# A device that fails: the part after it begins all the same.
RANKTRAIN_FAKE_CUDA=sticky=700@launch:3 run 1 kernels speed
grep -q '^| kernels against CPU | \*\*failed\*\*: .*700' "$TMPDIR/said" || fail 'the failure is no row'
[ "$(tail -n 1 "$TMPDIR/said")" = 'failed: kernels against CPU; LeNet, a step' ] || fail 'the last line does not name both'
exit $bad
