#!/usr/bin/env bash
# Both judges of simulated runs, the simulator's and the one of live runs, on ten thousand seeds of each kind
# and on the cores with planted bugs: nothing that the live judge calls broken may be well in the eyes of the
# other, nor anything that the machines show escape the live one.
# SEEDS=N tries so many of each kind, MUTANTS="NAME ..." only these, "" none; EXPECT=N is how many of a mutant's
# runs both must call broken, at least.
# deadline: 3600 s
set -u
root=$PWD
seeds=${SEEDS:-10000}
flags=$(cat "$OUT/.flags") # the version is in quotes there, which the file has lost; nothing here asks for it
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

# Links the program with a core in which a patch has planted a bug.
build() { # build NAME COPY
    local patch=$root/tests/mutants/core/$1.patch copy=$2 objects=() source
    mkdir -p "$copy/agent" && cp -R agent/core "$copy/agent/" || return 1
    (cd "$copy" && GIT_CEILING_DIRECTORIES=${copy%/*} git apply -C1 "$patch") || return 1
    mapfile -t touched < <(sed -n 's,^+++ b/,,p' "$patch")
    if [[ "${touched[*]}" == *.h* ]]; then mapfile -t touched < <(cd "$copy" && ls agent/core/*.c); fi
    for source in "${touched[@]}"; do
        objects+=("$copy/$(basename "$source" .c).o")
        (cd "$copy" && $flags -w -I"$root" -c -o "$(basename "$source" .c).o" "$source") || return 1
    done
    $flags -w -o "$copy/judges" "$OUT/tests/harness/sim/spawn_judges.o" "${objects[@]}" -Wl,--start-group \
        "$OUT"/lib{reports,harness,faults,agent,base}.a -Wl,--end-group -lfyaml -levent_core -levent_extra -lz -ldl -lm
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
    if ! build "$name" "$copy"; then
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
