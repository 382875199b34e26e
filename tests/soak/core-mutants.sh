#!/usr/bin/env bash
# Every bug planted in agent/core (tests/mutants/core) is found by the simulation, within 10,000 seeds and
# as what it is, while the undisturbed run still passes with it. Prints the table of docs/mutants.md.
# MUTANTS="NAME ..." tries only these, SEEDS=N tries as many seeds at most.
# deadline: 3600 s
set -u
root=$PWD
seeds=${SEEDS:-10000}
calm=${CALM:-200}

field() { # field NAME PATCH
    sed -n "1,/^diff /s/^$1: *//p" "$2" | head -n 1
}

# Compiles what the patch touches in a copy of the core, and links it before what was built of the rest.
build() { # build PATCH COPY
    local copy=$2 objects=() source
    mkdir -p "$copy"/{agent,harness} && cp -R agent/core "$copy/agent/" && cp -R harness/sim "$copy/harness/" || return 1
    (cd "$copy" && GIT_CEILING_DIRECTORIES=${copy%/*} git apply -C1 "$root/$1") || return 1
    mapfile -t touched < <(sed -n 's,^+++ b/,,p' "$1")
    if [[ "${touched[*]}" == *.h* ]]; then mapfile -t touched < <(cd "$copy" && ls agent/core/*.c); fi
    for source in "${touched[@]}"; do
        objects+=("$copy/$(basename "$source" .c).o")
        (cd "$copy" && $flags -w -I"$root" -c -o "$(basename "$source" .c).o" "$source") || return 1
    done
    $flags -w -o "$copy/seeds" "$OUT/tests/agent/core/spawn_seeds.o" "${objects[@]}" -Wl,--start-group \
        "$OUT"/lib{reports,harness,faults,agent,base}.a -Wl,--end-group -lfyaml -levent_core -levent_extra -lz -ldl -lm
}

# Leaves "seeds|seen as|text" or "escaped|why" in $TMPDIR/NAME.found.
try() { # try NAME
    local patch=tests/mutants/core/$1.patch copy=$TMPDIR/$1 said
    exec 2>&1
    if [ ! -f "$patch" ]; then
        echo "escaped|there is no $patch"
    elif ! said=$(build "$patch" "$copy"); then
        echo "escaped|does not apply or does not build: $(tail -n 1 <<<"$said")"
    elif ! said=$(timeout 300 "$copy/seeds" calm "$calm"); then
        echo "escaped|the undisturbed run does not pass with it: $said"
    elif ! said=$(timeout 1800 "$copy/seeds" "$seeds" "$(field Seen "$patch")" $(field With "$patch")); then
        echo "escaped|not found in $seeds seeds as $(field Seen "$patch"): $(tail -n 1 <<<"$said")"
    else
        said=$(tail -n 1 <<<"$said")
        echo "${said%% *}|$(sed 's/^[0-9]* \([^:]*\).*/\1/' <<<"$said")|${said#* }"
    fi >"$TMPDIR/$1.found"
    rm -rf "$copy"
}

# The version is in quotes there, which the file has lost; nothing of the core asks for it.
flags=$(cat "$OUT/.flags")
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
    patch=tests/mutants/core/$name.patch
    IFS='|' read -r seed seen text <"$TMPDIR/$name.found"
    [ "$seed" = escaped ] && escaped=$((escaped + 1)) && continue
    echo "| $name: $(field Plants "$patch") | $seed | $seen | $(field With "$patch") | $(field Known "$patch") |"
    [ -n "${V-}" ] && echo "    $text"
done
echo "$((${#names[@]} - escaped)) of ${#names[@]} planted bugs found"
for name in "${names[@]}"; do
    IFS='|' read -r seed seen text <"$TMPDIR/$name.found"
    [ "$seed" = escaped ] && echo "$name: $seen"
done
[ $escaped = 0 ]
