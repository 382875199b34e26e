#!/usr/bin/env bash
# Planted bugs of tests/mutants, one after the other: what of rankrun, ranktrain and the harness can be wrong without
# any check saying so. `make mutants` ends with the score. See tests/mutants/README.md.
#   MUTANTS='FILE ...'  those only          QUICK=1  the scenario alone, as make test does it
#   TABLE=FILE  writes docs/mutants.md's rows there
# deadline: 3600 s
set -u
root=$PWD
limit_s=${LIMIT_S:-150} # of one run; far above the limits in the scenarios
score_min=95
read -r -d '' -a mutants <<<"${MUTANTS:-$(echo tests/mutants/{rankrun,ranktrain,harness}/*.patch)}"
if ! command -v git >/dev/null; then
    echo 'git is missing, which applies the patches'
    exit 77
fi
source tests/soak/mutant_unit.bash
copy=$TMPDIR/copy said=$TMPDIR/said

field() { # field NAME PATCH [DEFAULT]
    local value
    value=$(sed -n "1,/^diff /s/^$1: *//p" "$2" | head -n 1)
    echo "${value:-${3-}}"
}

# One copy of the sources, and of what was built of them, serves all mutants, so that each rebuilds only
# what it touches.
prepare() {
    mkdir -p "$copy/build/release"
    cp -R "$BIN" "$TMPDIR/intact" && BIN=$TMPDIR/intact || return 1
    cp -a Makefile VERSION agent base faults harness reports scenarios tests "$copy" || return 1
    [ "${BUILD:-release}" = release ] || return 0
    tar -C "$OUT" --exclude=./tests --exclude=./logs --exclude=./soak -cf - . | tar -C "$copy/build/release" -xf -
}

# By the compiler that built the rest, so that the rest stays built.
CC=$(sed 's/ -std=.*//' "$OUT/.flags")
copy_make() { # copy_make TARGET...
    nice -n 10 make -s -C "$copy" -j"$(nproc)" CC="$CC" BUILD=release DEPS=0 NVCC= MAKEFLAGS= "$@" >"$TMPDIR/make" 2>&1 && return
    tail -n 30 "$TMPDIR/make"
    return 1
}

apply() { # apply PATCH [--reverse]
    (cd "$copy" && GIT_CEILING_DIRECTORIES=$TMPDIR git apply -C1 ${2:+"$2"} "$root/$1")
}

# Builds the mutant's program; leaves a folder of programs in $bin.
build() { # build PATCH PROGRAM
    apply "$1" || return 1
    copy_make "build/bin/$2" || return 1
    rm -rf "$bin" && cp -R "$BIN" "$bin" && cp -f "$copy/build/bin/$2" "$bin/$2"
}

# Leaves what was said in $said and the exit code in $rc. Every mutant has control runs of its own: what one with
# a bug has recorded must not be kept for the next.
run() { # run PROGRAMS SCENARIO CACHE
    rm -rf "$TMPDIR/run"
    XDG_CACHE_HOME=$3 timeout --kill-after=10 "$limit_s" "$1/rankquake" run "$2" --out "$TMPDIR/run" >"$said" 2>&1
    rc=$?
    [ $rc != 4 ] || skipped=$(tail -n 1 "$said") # this host cannot do it
}

blamed() { # the checks that say so, of the last run
    sed -nE 's/^  (x|✗|\?) +([a-z_]+) .*/\2/p' "$said" | sort -u | tr '\n' ' '
}

# What programs without the bug answer, once for each scenario: that is what a bug must change.
declare -A intact=()
intact_is() { # intact_is SCENARIO EXIT
    if [ -z "${intact[$1]-}" ]; then
        run "$BIN" "$1" "$TMPDIR/cache"
        intact[$1]=$rc
    fi
    [ "${intact[$1]}" = "$2" ] || [ "${intact[$1]}" = 4 ] && return
    echo "$1: ends with ${intact[$1]} without any bug, not with $2"
    sed 's/^/    /' "$said"
    return 1
}

# Whether it counts: nothing but its scenario may show it. Of launcher and job the control run of the scenario is judged
# before anything is broken, and one that fails ends it with 3; a harness with a bug is not asked about itself alone.
counts() { # counts PATCH
    unit_tests_pass "$1" || { verdict="does not count: $unit_failed"; return 1; }
    [[ $1 == */harness/* ]] || return 0
    run "$bin" tests/mutants/undisturbed.yaml "$cache"
    [ $rc = 0 ] && return
    verdict="does not count: a control run ends with $rc: $(blamed)"
    return 1
}

# Some are planted to be seen by unit tests, which come long before a scenario: they are no part of the score.
unit_only() { # unit_only PATCH
    local wanted
    wanted=$(field Unit "$1")
    [ -n "$wanted" ] || return
    verdict="survived: $wanted passes"
    apply "$1" && ! unit_tests_pass "$1" "$wanted" && [[ $unit_failed == *"$wanted"* ]] && verdict="seen by $wanted"
    return 0
}

# Leaves in $verdict what became of it.
try() { # try PATCH
    local scenario
    scenario=$(field Scenario "$1")
    bin=$TMPDIR/bin cache=$TMPDIR/cache-of-mutant verdict=
    rm -rf "$cache"
    unit_only "$1" && return
    intact_is "$scenario" "$(field Intact "$1" 0)" || { verdict='does not count: its scenario is wrong'; return; }
    [ "${intact[$scenario]}" = 4 ] && { verdict="skipped: $skipped"; return; }
    build "$1" "$(field Program "$1")" || { verdict='does not count: does not apply or does not build'; return; }
    [ -n "${QUICK-}" ] || counts "$1" || return
    run "$bin" "$scenario" "$cache"
    if [ $rc = "$(field Exit "$1" 1)" ] && grep -qE -- "$(field Says "$1")" "$said"; then
        verdict="killed by: $(blamed)"
        [ "$rc" != 0 ] || verdict="killed by: exit code 0, not $(field Intact "$1" 0)"
    elif [ $rc = 3 ]; then
        verdict='does not count: a control run fails with it'
        sed 's/^/    /' "$said"
    else
        verdict="survived: exit $rc: $(blamed)$(field Plan "$1" | sed 's/^/; planned: /')"
        sed 's/^/    /' "$said"
    fi
}

# A failure that was met elsewhere: its number in the catalogue, and where to read of it.
link() { # link "C01 owner/name#NUMBER"
    local id=${1%% *} where=${1#* }
    case $where in
    *#*) echo "[$id](https://github.com/${where%#*}/issues/${where#*#})" ;;
    *@*) echo "[$id](https://github.com/${where%@*}/commit/${where#*@})" ;;
    esac
}

row() { # row PATCH: as docs/mutants.md has it, in a table for each folder and one for those with Unit
    local name said scenario known
    name=$(basename "$1" .patch) scenario=$(basename "$(field Scenario "$1")" .yaml) known=$(link "$(field Known "$1")")
    case $verdict in
    seen*) echo "| \`$(basename "${1%/*}")/$name\` | $(field Plants "$1") | \`${verdict##* }\` | $known |"; return ;;
    'killed by: exit'*) said=${verdict#killed by: } ;;
    killed*) said=$(sed -E 's/([a-z_]+) */`\1`, /g; s/, $//' <<<"${verdict#killed by: }") ;;
    survived*) said='**survives**' ;;
    *) said=$verdict ;;
    esac
    echo "| \`$name\` | $(field Plants "$1") | \`$scenario\` | $said | $known |"
}

prepare || exit 1
killed=0 survived=0 seen=0 uncounted=0
for mutant in "${mutants[@]}"; do
    try "$mutant"
    # The next one needs the sources as they are.
    apply "$mutant" --reverse 2>/dev/null
    case $verdict in
    killed*) killed=$((killed + 1)) ;;
    survived*) survived=$((survived + 1)) ;;
    seen*) seen=$((seen + 1)) ;;
    skipped*) ;;
    *) uncounted=$((uncounted + 1)) ;;
    esac
    echo "$(basename "${mutant%/*}")/$(basename "$mutant" .patch): $(field Plants "$mutant"): $verdict"
    [ -z "${TABLE-}" ] || row "$mutant" >>"$TABLE"
done
counted=$((killed + survived))
[ $((counted + seen + uncounted)) = 0 ] && { echo "no scenario runs on this host: $skipped"; exit 77; }
[ $counted -gt 0 ] && score=$((100 * killed / counted)) || score=0
echo "$killed of $counted planted bugs killed: $score %; $seen more are seen by unit tests, $uncounted do not count"
[ $uncounted = 0 ] && [ "$score" -ge $score_min ]
