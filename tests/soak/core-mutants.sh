#!/usr/bin/env bash
# Every bug planted in agent/core (tests/mutants/core) is found by the simulation, within 10,000 seeds and
# as what it is, while the control run still passes with it. Prints the table of docs/mutants.md.
# MUTANTS="NAME ..." tries only these, SEEDS=N tries as many seeds at most.
# deadline: 3600 s
set -u
. tests/soak/mutant.bash
seeds=${SEEDS:-10000}
calm=${CALM:-200}

# Leaves "seeds|seen as|text" or "escaped|why" in $TMPDIR/NAME.found.
try() { # try NAME
    local patch=tests/mutants/core/$1.patch copy=$TMPDIR/$1 said
    exec 2>&1
    if [ ! -f "$patch" ]; then
        echo "escaped|there is no $patch"
    elif ! said=$(mutant_link tests/agent/core/spawn_seeds "$1" "$copy" "$copy/seeds"); then
        echo "escaped|does not apply or does not build: $(tail -n 1 <<<"$said")"
    elif ! said=$(timeout 300 "$copy/seeds" calm "$calm"); then
        echo "escaped|the control run does not pass with it: $said"
    elif ! said=$(timeout 1800 "$copy/seeds" "$seeds" "$(mutant_field "$1" Seen)" $(mutant_field "$1" With)); then
        echo "escaped|not found in $seeds seeds as $(mutant_field "$1" Seen): $(tail -n 1 <<<"$said")"
    else
        said=$(tail -n 1 <<<"$said")
        echo "${said%% *}|$(sed 's/^[0-9]* \([^:]*\).*/\1/' <<<"$said")|${said#* }"
    fi >"$TMPDIR/$1.found"
    rm -rf "$copy"
}

if [ "${1-}" = --one ]; then
    try "$2"
    exit
fi
if ! command -v git >/dev/null; then
    echo 'git is missing, which applies the patches'
    exit 77
fi
read -r -d '' -a names <<<"${MUTANTS:-$(cd tests/mutants/core && echo *.patch | sed 's/\.patch//g')}"
printf '%s\0' "${names[@]}" | xargs -0 -n 1 -P "${JOBS:-$(nproc)}" bash "$0" --one

escaped=0
echo '| bug | seeds | seen as | with | known from |'
echo '|---|---|---|---|---|'
for name in "${names[@]}"; do
    IFS='|' read -r seed seen text <"$TMPDIR/$name.found"
    [ "$seed" = escaped ] && escaped=$((escaped + 1)) && continue
    echo "| $name: $(mutant_field "$name" Plants) | $seed | $seen | $(mutant_field "$name" With) | $(mutant_field "$name" Known) |"
    [ -n "${V-}" ] && echo "    $text"
done
echo "$((${#names[@]} - escaped)) of ${#names[@]} planted bugs found"
for name in "${names[@]}"; do
    IFS='|' read -r seed seen text <"$TMPDIR/$name.found"
    [ "$seed" = escaped ] && echo "$name: $seen"
done
[ $escaped = 0 ]
