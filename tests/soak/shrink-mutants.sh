#!/usr/bin/env bash
# The first seed that fails with each bug planted in agent/core, made small: it must still fail in the same
# way when it is played from its file, and must not without the bug. Prints the second table of docs/mutants.md.
# MUTANTS="NAME ..." tries only these. CORPUS=DIR keeps the schedules there: tests/harness/sim/corpus is made so.
# deadline: 3600 s
set -u
if ! command -v git >/dev/null; then
    echo 'git is missing, which applies the patches'
    exit 77
fi
BIN=$(cd "$BIN" && pwd) || exit 1
OUT=$(cd "$OUT" && pwd) || exit 1
. tests/soak/mutant.bash
seeds=${SEEDS:-10000}

# Leaves a line of the table in $TMPDIR/NAME.row, or why there is none in $TMPDIR/NAME.why.
try() { # try NAME
    local dir=$TMPDIR/$1 small=$TMPDIR/$1/found/shrunk.yaml said with
    if ! said=$(mutant_build "$1" "$dir" 2>&1); then
        echo "does not apply or does not build: $(tail -n 1 <<<"$said")" >"$dir.why"
        return
    fi
    read -r -a with < <(mutant_field "$1" With | sed 's/\([a-z]*\)=/--\1=/g; s/frozen/--frozen/; s/\(--time=[0-9]*\)/\1s/')
    (cd "$dir" && exec ./rankquake sim --seeds "1:$seeds" --agents 0 --time 0s --rate 5 "${with[@]}" --out found) >"$dir.said" 2>&1
    if [ ! -f "$small" ]; then
        echo "no seed of $seeds fails" >"$dir.why"
    elif ! "$dir/rankquake" sim --scenario "$small" | tail -n 1 | grep -q '^as the file says$'; then
        echo 'the file does not fail as the schedule did' >"$dir.why"
    elif ! "$BIN/rankquake" sim --scenario "$small" >/dev/null; then
        echo 'what is left fails without the bug too' >"$dir.why"
    else
        awk -v name="$1" -v seed="$(sed -n 's/^simulation: seed-//p' "$small")" -v breaks="$(sed -n 's/^breaks: //p' "$small")" \
            '/^shrunk / { printf "| %s | %s | %s | %s to %s | %s to %s | %s |\n", name, seed, breaks, $2, $5 + 0, $6, $9 + 0, $11 }' \
            "$dir.said" >"$dir.row"
        [ -z "${CORPUS-}" ] || sed "/^simulation:/a planted: $1" "$small" | sed '1,2d' >"$CORPUS/$1.yaml"
    fi
    rm -rf "$dir"
}

if [ "${1-}" = --one ]; then
    try "$2"
    exit
fi
read -r -a names <<<"${MUTANTS:-$(cd tests/mutants/core && echo *.patch | sed 's/\.patch//g')}"
printf '%s\0' "${names[@]}" | xargs -0 -n 1 -P "$(nproc)" bash "$0" --one
echo '| bug | seed | breaks | faults | agents | runs |'
echo '|---|---|---|---|---|---|'
bad=0
for name in "${names[@]}"; do
    [ -f "$TMPDIR/$name.row" ] && cat "$TMPDIR/$name.row"
done
for name in "${names[@]}"; do
    [ -f "$TMPDIR/$name.why" ] && echo "$name: $(cat "$TMPDIR/$name.why")" && bad=1
done
exit $bad
