#!/usr/bin/env bash
# Both judges of simulated runs, the simulator's and the one of live runs, on ten thousand seeds of each kind
# and on the cores with planted bugs: nothing that the live judge calls broken may be well in the eyes of the
# other, nor anything that the machines show escape the live one.
# SEEDS=N tries so many of each kind, MUTANTS="NAME ..." only these, "" none; EXPECT=N is how many of a mutant's
# runs both must call broken, at least.
# deadline: 3600 s
set -u
. tests/soak/mutant.bash
seeds=${SEEDS:-10000}
failed=0

# both PROGRAM NAME FIRST LAST [OPTION...]: prints what they said last, and where they differ.
both() {
    local program=$1 name=$2 said
    shift 2
    said=$("$program" "$@") || failed=1
    echo "$name: $(tail -n 1 <<<"$said")"
    grep DIFFER <<<"$said" | head -n 5
    last=$(tail -n 1 <<<"$said")
}

if [ "$seeds" != 0 ]; then
    both "$OUT/tests/harness/sim/spawn_judges" 'usual' 1 "$seeds"
    both "$OUT/tests/harness/sim/spawn_judges" 'swarm' 1 "$seeds" swarm
    both "$OUT/tests/harness/sim/spawn_judges" 'long' 1 "$((seeds / 4))" agents=5 time=20 rate=12
fi
if ! command -v git >/dev/null; then
    echo 'git is missing, which applies the patches'
    exit $((failed ? 1 : 77))
fi
for name in ${MUTANTS-acks-not-waited-for certificate-not-waited-for cost-twice session-not-compared}; do
    copy=$TMPDIR/$name
    if ! mutant_link tests/harness/sim/spawn_judges "$name" "$copy" "$copy/judges"; then
        echo "$name: does not apply or does not build"
        failed=1
        continue
    fi
    both "$copy/judges" "$name" 1 "${RUNS:-200}"
    agreed=$(sed 's/.*all is well, \([0-9]*\) agree that it is not.*/\1/' <<<"$last")
    if [ "$agreed" -lt "${EXPECT:-1}" ]; then
        echo "$name: the live judge saw nothing of it"
        failed=1
    fi
    rm -rf "$copy"
done
exit $failed
