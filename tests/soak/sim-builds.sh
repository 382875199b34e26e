#!/usr/bin/env bash
# The same seed is the same run to the byte, whichever compiler made the simulator and whether it was made
# for speed or for debugging: rankquake is built by gcc and by clang, optimized and not, and their traces compared.
# deadline: 2700 s
set -u
cd "$(dirname "$0")/../.." || exit 1
type clang gcc >/dev/null 2>&1 || { echo 'needs both gcc and clang'; exit 77; }
failed=0

traces() { # traces RANKQUAKE: what seeds of several kinds print, but for the times and the build
    local seed
    for seed in 1 2 3 4 5 6 7 8; do
        "$1" sim --seed $seed
        "$1" sim --seed $seed --agents 0 --time 0s --swarm
    done | grep -v -e '^seeds ' -e '^sim, ' -e '^recorded '
    "$1" sim --seeds 1:500 --time 0s --agents 0 --no-shrink | grep -v -e '^seeds ' -e '^sim, '
}

for made in gcc:release gcc:debug clang:release clang:debug; do
    cc=${made%:*} build=${made#*:}
    out=$TMPDIR/$cc-$build
    make -j2 NVCC= CC="$cc" BUILD="$build" OUT="$out" BIN="$out/bin" "$out/bin/rankquake" >"$out.log" 2>&1 ||
        { echo "$cc $build: not built"; tail -n 5 "$out.log"; exit 1; }
    traces "$out/bin/rankquake" >"$out.traces"
    [ -s "$TMPDIR/first" ] || cp "$out.traces" "$TMPDIR/first"
    cmp "$TMPDIR/first" "$out.traces" || { echo "$cc $build is another simulator"; failed=1; }
done
[ "$(wc -l <"$TMPDIR/first")" -gt 1000 ] || { echo 'the seeds print nothing'; failed=1; }
exit $failed
