#!/usr/bin/env bash
# crashpoints finds nothing in ranktrain, alone and as two workers under rankrun, and finds what is planted into it: a
# checkpoint that is renamed before it is on the disk.
# deadline: 1800 s
set -u
. tests/live/says.bash
dir=$TMPDIR/crashpoints
mkdir -p "$dir/tree" "$dir/desk" || exit 1
rq=$(realpath "$BIN")/rankquake
export NO_COLOR=1
here=$PWD
job=(--steps=20 --checkpoint-every=10 --checkpoint-dir=ckpt --checkpoint-keep=2 --samples=256)
tries() { # tries CODE PATTERN WHAT COMMAND...
    local code=$1 pattern=$2 what=$3
    "$rq" crashpoints --max-states "${STATES:-300}" --dir ckpt -- "${@:4}" >"$dir/said" 2>&1
    local rc=$?
    [ $rc = 4 ] && { tail -n 1 "$dir/said"; exit 77; }
    [ $rc = "$code" ] || fail "$what: exit $rc, wanted $code"
    grep -qE -- "$pattern" "$dir/said" || fail "$what: did not say $pattern"
    echo "$what: $(sed -n 's/.* \([0-9]* tried in .*\)/\1/p' "$dir/said")"
}
git ls-files -z | xargs -0 cp --parents -t "$dir/tree" || exit 1
(cd "$dir/tree" && git init -q && git apply "$here/tests/mutants/ranktrain/not-synced.patch" &&
    make -s -j2 build/bin/ranktrain) >"$dir/said" 2>&1 || { echo 'the bug could not be planted'; cat "$dir/said"; exit 1; }
cd "$dir/desk" || exit 1
tries 0 'nothing was found' 'ranktrain alone' ranktrain "${job[@]}"
tries 0 'nothing was found' 'two workers' rankrun --standalone --nproc-per-node=2 ranktrain "${job[@]}"
tries 1 'no fsync of .*weights.f32 between the write' 'not synced' "$dir/tree/build/bin/ranktrain" "${job[@]}"
exit $bad
