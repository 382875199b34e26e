#!/usr/bin/env bash
# The suite: every scenario of scenarios/smoke.yaml passes, as whoever runs this and, where that is root,
# as an ordinary user as well; one control run serves all of them.
# deadline: 300 s
set -u
cd "$(dirname "$0")/../.." || exit 1
failed=0

suite() { # suite WHO [COMMAND...]: COMMAND runs the rest of its line as that user
    local who=$1 dir=$TMPDIR/$1 rc controls
    shift
    mkdir "$dir" && cp -R "$BIN" "$dir/bin" && cp -R scenarios "$dir" && chmod -R a+rwX "$dir"
    (cd "$dir" && XDG_CACHE_HOME=$dir "$@" bin/rankquake run scenarios/smoke.yaml --out out) >"$TMPDIR/said" 2>&1
    rc=$?
    [ $rc = 4 ] && { tail -n 1 "$TMPDIR/said"; return 4; }
    controls=$(ls -d "$dir"/out/*/control | wc -l)
    [ $rc = 0 ] && [ "$controls" = 1 ] && return
    echo "as $who: exit $rc, $controls control runs"
    cat "$TMPDIR/said"
    failed=1
}

suite caller || exit 77
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    chmod a+x "$TMPDIR"
    suite user setpriv --reuid=65534 --regid=65534 --clear-groups # a host may allow root alone: that is no failure
fi
exit $failed
