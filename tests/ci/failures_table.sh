#!/usr/bin/env bash
# docs/torchrun.md, "Failures": every scenario that a row names is there, loads, and uses the fault that the row names; no feature
# about failure is left out, and no row stands there twice.
set -u
page=${PAGE:-docs/torchrun.md}
wrong=0 rows=0
complain() {
    echo "$page: $*"
    wrong=1
}
declare -A features=() pairs=()
while IFS='|' read -r _ feature what fault scenario _; do
    feature=${feature// /} fault=${fault//[ \`]/} scenario=${scenario//[ \`]/}
    row="$feature,$what"
    rows=$((rows + 1))
    features[$feature]=1
    [ -z "${pairs[$feature $scenario]-}" ] || complain "$scenario stands twice beside $feature"
    pairs[$feature $scenario]=1
    file=scenarios/$scenario
    [ -f "$file" ] || { complain "there is no $file:$row"; continue; }
    grep -qE "fault: $fault[,} ]" "$file" || complain "$file does not use $fault:$row"
    [ ! -x "$BIN/rankquake" ] || "$BIN/rankquake" lint "$file" >"$TMPDIR/said" 2>&1 ||
        complain "$file does not load: $(head -n 1 "$TMPDIR/said")"
done < <(sed -n '/^## Failures$/,/^## /p' "$page" | grep -E '^\| [0-9]+\.[0-9]+ \|')
for feature in 1.1 1.2 1.3 1.10 1.11 1.12 1.13 1.14 1.15; do
    [ -n "${features[$feature]-}" ] || complain "no row for $feature"
done
[ $rows -ge 9 ] || complain "only $rows rows were found"
[ $wrong = 0 ] || exit 1
# It fails where it should: a scenario that is not there, and one without the fault.
[ -n "${PAGE-}" ] && exit 0
for edit in 's,restart/two-at-once.yaml,restart/three-at-once.yaml,' 's,`node-leave` | `membership,`node-kill` | `membership,'; do
    sed "$edit" "$page" >"$TMPDIR/page.md"
    PAGE=$TMPDIR/page.md "$BASH" "$0" >"$TMPDIR/said.page" 2>&1 && { echo "a page changed by $edit passes"; exit 1; }
done
exit 0
