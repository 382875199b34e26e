#!/usr/bin/env bash
# ci/peers: what it lists, what it refuses, and that a tree which could not be finished is never taken for one.
# Nothing is fetched: debootstrap is one of the test's own.
set -u
cd "$(dirname "$0")/../.." || exit 1
export PEERS=$TMPDIR/peers MIRROR=http://127.0.0.1:9/none
bad=0
fail() {
    echo "$*"
    cat "$TMPDIR/said"
    bad=1
}
peers() { # peers CODE ARGUMENT...
    local code=$1 rc
    shift
    ci/peers "$@" >"$TMPDIR/said" 2>&1 </dev/null
    rc=$?
    [ $rc = "$code" ] || fail "ci/peers $*: exit $rc, wanted $code"
}
says() { grep -qF -- "$1" "$TMPDIR/said" || fail "it did not say: $1"; }

peers 64 --nonsense
says 'ci/peers [SUITE...]'
peers 0 --list
[ -s "$TMPDIR/said" ] && fail 'it lists what is not there'
for tree in whole half.part copied.copy replaced.old; do
    mkdir -p "$PEERS/$tree/etc"
    echo "$tree: torch 9" >"$PEERS/$tree/etc/rankquake-peer"
done
peers 0 --list
[ "$(wc -l <"$TMPDIR/said")" = 1 ] || fail 'it takes what is not finished for a tree'
says 'whole: torch 9'

if [ "$(id -u)" != 0 ]; then
    peers 3 whole
    says 'needs root and debootstrap'
    exit $bad
fi
mkdir "$TMPDIR/bin"
printf '#!/bin/sh\necho "no such release"\nmkdir -p "$3/bin"\nexit 1\n' >"$TMPDIR/bin/debootstrap"
chmod +x "$TMPDIR/bin/debootstrap"
PATH=$TMPDIR/bin:$PATH
peers 0 whole # it is there: nothing is done
peers 3 none
says 'none: not built'
says 'no such release'
[ -e "$PEERS/none" ] && fail 'half a tree was put in place'
[ -d "$PEERS/replaced" ] && [ ! -e "$PEERS/replaced.old" ] || fail 'an interrupted replacement was not undone'
[ -e "$PEERS/copied.copy" ] && fail 'a half copy was left'
exit $bad
