#!/usr/bin/env bash
# The suite: every scenario of scenarios/smoke.yaml passes, and four control runs serve all of them: as an ordinary user
# where root runs this and may become one. As root each of them is played by tests/soak/wrong-expectations.sh, which judges it
# with what it expects as well.
# deadline: 480 s
set -u
unset RANKTRAIN_OPTIONS # as users have it
cd "$(dirname "$0")/../.." || exit 1
. tests/live/patience.bash
. tests/live/rows.bash
dir=$TMPDIR/suite said=$TMPDIR/said
mkdir "$dir" && cp -R "$BIN" "$dir/bin" && cp -R scenarios "$dir" && chmod -R a+rwX "$dir" "$TMPDIR/cache" || exit 1

# How quick it is, is not asked here: a machine that stands still cannot be.
sed -i '/_within:/d' "$dir"/scenarios/*/*.yaml

suite() { # suite [COMMAND...]: COMMAND runs the rest of its line as somebody else; returns the exit code
    rm -rf "$dir/out"
    (cd "$dir" && XDG_CACHE_HOME=$TMPDIR/cache "$@" bin/rankquake run scenarios/smoke.yaml --out out) >"$said" 2>&1
}

rc=4
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    chmod a+x "$TMPDIR"
    suite setpriv --reuid=65534 --regid=65534 --clear-groups
    rc=$?
fi
[ $rc != 4 ] || { suite env; rc=$?; } # a host may allow root alone: that is no failure
for run in "$dir"/out/*/; do [ $rc != 0 ] || rows_note "$run" 0; done
case $rc in
0) ;;
4) tail -n 1 "$said" && exit 77 ;;
2) only_harness_was_late "$said" && echo 'this machine stood still for too long to judge times' && exit 77 ;;
esac
controls=$(ls -d "$dir"/out/*/control | wc -l)
[ $rc = 0 ] && [ "$controls" = 4 ] && exit 0
echo "exit $rc, $controls control runs"
cat "$said"
whats_wrong "$said"
exit 1
