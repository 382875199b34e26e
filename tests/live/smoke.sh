#!/usr/bin/env bash
# The suite: every scenario of scenarios/smoke.yaml passes, and one control run serves all of them.
# deadline: 300 s
set -u
for needed in "$BIN"/{rankquake,rankrun,rankprobe,ranktrain}; do
    [ -e "$needed" ] || { echo "$needed is not there yet"; exit 77; }
done
cd "$(dirname "$0")/../.." || exit 1
export XDG_CACHE_HOME=$TMPDIR/cache
mkdir "$XDG_CACHE_HOME"
"$BIN/rankquake" run scenarios/smoke.yaml --out "$TMPDIR/out" >"$TMPDIR/said" 2>&1
rc=$?
[ $rc = 4 ] && { tail -n 1 "$TMPDIR/said"; exit 77; }
controls=$(ls -d "$TMPDIR"/out/*/control | wc -l)
[ $rc = 0 ] && [ "$controls" = 1 ] && exit 0
echo "exit $rc, $controls control runs"
cat "$TMPDIR/said"
exit 1
