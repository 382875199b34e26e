#!/usr/bin/env bash
# docs/seeds.md: every script and scenario that a row names is there and says what it is about, scenarios load, no row stands twice,
# and no feature of the five systems is left out without a reason. No script of tests/seeds/ is without a row.
set -u
page=${PAGE:-docs/seeds.md}
wrong=0 rows=0
complain() {
    echo "$page: $*"
    wrong=1
}
declare -A features=() scripts=() files=() heads=()
while IFS='|' read -r _ feature what by judged _; do
    feature=${feature// /} rows=$((rows + 1))
    [ -z "${features[$feature]-}" ] || complain "$feature stands twice"
    features[$feature]=1
    for script in ${by//[\`,]/ }; do
        scripts[$script]=1
        [ -f "tests/seeds/$script" ] || complain "there is no tests/seeds/$script:$what"
        : "${heads[$script]:=$(sed -n '/^# /p' "tests/seeds/$script" 2>&1)}"
        about="(^|[ ,])S${feature%.*}[ :]"
        [[ ${heads[$script]} =~ $about ]] || complain "$script does not say that it is about S${feature%.*}:$what"
    done
    for scenario in ${judged//[\`,]/ }; do
        files[scenarios/$scenario]=1
        [ -f "scenarios/$scenario" ] || complain "there is no scenarios/$scenario:$what"
    done
    [ -n "${by// /}" ] && [ -n "${judged// /}" ] || complain "a row without a script or a scenario:$what"
done < <(grep -E '^\| [0-9]+\.[0-9]+b? \|' "$page")
[ -n "${PAGE-}" ] || "$BIN/rankquake" lint "${!files[@]}" >"$TMPDIR/said" 2>&1 || complain "$(grep -v ': valid$' "$TMPDIR/said" | head -n 1)"
for feature in 1.{1..16} 2.{1..6} 2.2b 3.{1..7} 4.{1..4} 5.{1..9}; do
    [ -n "${features[$feature]-}" ] || complain "no row for $feature"
done
for script in tests/seeds/*.sh; do
    [ -n "${scripts[${script##*/}]-}" ] || complain "no row names $script"
done
[ $wrong = 0 ] || exit 1
# It fails where it should.
[ -n "${PAGE-}" ] && exit 0
for edit in 's,`modes/spawn.yaml`,`modes/none.yaml`,' '/^| 5.8 /d' 's,`roles.sh`,`ddl.sh`,' 's,^| 4.2 |,| 4.1 |,'; do
    sed "$edit" "$page" >"$TMPDIR/page.md"
    PAGE=$TMPDIR/page.md "$BASH" "$0" >"$TMPDIR/said.page" 2>&1 && { echo "a page changed by $edit passes"; exit 1; }
done
exit 0
