#!/usr/bin/env bash
# Every test that docs/mutants.md names for a verdict that was wrong is there.
set -u
wrong=0 rows=0
say() {
    echo "docs/mutants.md: $*"
    wrong=1
}
while read -r name; do
    rows=$((rows + 1))
    file=${name%%: *} what=${name#*: }
    case $file in
    cases/*) grep -qxF "case $what" "tests/harness/judge/checks/$file.txt" || say "no case: $name" ;;
    *.sh) [ -f "tests/$file" ] || say "no script: $name" ;;
    *) grep -q "static void test_$(sed "s/[^a-z0-9]\+/_/g" <<<"$what")(" "tests/$file.c" || say "no test: $name" ;;
    esac
done < <(sed -n '/^## Verdicts that were wrong/,/^## [^V]/s/^|.*| \(`.*`\) |$/\1/p' docs/mutants.md | grep -oE '`[^`]+`' | tr -d '`')
[ $rows -gt 15 ] || say "only $rows tests are named"
exit $wrong
