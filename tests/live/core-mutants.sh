#!/usr/bin/env bash
# Every bug planted in agent/core still applies, and a handful of them, one for each invariant, is found.
# tests/soak/core-mutants.sh tries all.
# deadline: 240 s
set -u
if ! command -v git >/dev/null; then
    echo 'git is missing, which applies the patches'
    exit 77
fi
stale=0
mkdir -p "$TMPDIR"/copy/{agent,harness} && cp -R agent/core "$TMPDIR/copy/agent/" && cp -R harness/sim "$TMPDIR/copy/harness/" || exit 1
for patch in tests/mutants/core/*.patch; do
    GIT_CEILING_DIRECTORIES=$TMPDIR git -C "$TMPDIR/copy" apply --check -C1 "$PWD/$patch" && continue
    echo "$patch: does not apply any more: fix it together with what it is about"
    stale=1
done
MUTANTS='acks-not-waited-for cost-at-first-report done-carried give-up-without-need group-rank-gap joiner-undoes-done
    last-call-skipped lead-not-compared leave-before-dead master-of-another rank-order-unstable
    session-not-compared surplus-taken' SEEDS=2000 CALM=50 bash tests/soak/core-mutants.sh || exit 1
exit $stale
