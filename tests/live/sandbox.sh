#!/usr/bin/env bash
# rankrun --sandbox: a worker that tries what no worker needs is refused, and training goes on as
# without.
# deadline: 60 s
set -u
bad=0
fail() {
    echo "$*"
    bad=1
}
said=$(timeout 30 "$BIN/rankrun" --sandbox --no-python chroot / true 2>&1)
[ $? = 1 ] && grep -q 'Operation not permitted' <<<"$said" || fail "chroot: $said"
outside=$(timeout 30 "$BIN/ranktrain" --steps=5 2>&1 | tail -n 1)
inside=$(timeout 30 "$BIN/rankrun" --sandbox --nproc-per-node 2 "$BIN/ranktrain" --steps=5 2>/dev/null | tail -n 1)
[ -n "$inside" ] && [ "$inside" = "$outside" ] || fail "ranktrain: \"$inside\", without \"$outside\""
exit $bad
