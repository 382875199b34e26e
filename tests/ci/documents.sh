#!/usr/bin/env bash
# The documents keep up with the tree: every relative link leads somewhere, every scenario shown in
# one is valid, every package that is named is one that ci/deps installs, every page is in the index, and the
# glossary is short and in order.
set -u
wrong=0

for page in README.md CONTRIBUTING.md docs/*.md docs/decisions/*.md; do
    for link in $(grep -oE '\]\([^)#]+' "$page" | sed 's/^](//' | grep -v '^https\?:'); do
        [ -e "$(dirname "$page")/$link" ] || { echo "$page: the link to $link leads nowhere"; wrong=1; }
    done
    # The blocks in ```yaml fences, one file each.
    awk -v stem="$TMPDIR/$(echo "$page" | tr / -)" '
        /^```yaml$/ { inside = 1; file = stem "-" FNR ".yaml"; next }
        /^```$/ { inside = 0 }
        inside { print > file }' "$page"
done
for scenario in "$TMPDIR"/*.yaml; do
    [ -x "$BIN/rankquake" ] && [ -e "$scenario" ] || continue
    "$BIN/rankquake" lint "$scenario" >"$TMPDIR/said" 2>&1 || { cat "$TMPDIR/said"; wrong=1; }
done
for package in $(grep -oE 'dataset-[a-z-]+' README.md | sort -u); do
    ci/deps --list | grep -qx "$package" || { echo "README.md: $package is none of ci/deps --list"; wrong=1; }
done
# Every decision is in the index.
for page in docs/decisions/0*.md; do
    grep -qF "$(basename "$page")" docs/decisions/README.md || { echo "docs/decisions/README.md: misses $page"; wrong=1; }
done
# Every page is in the index; the README is a beginning, and not a manual.
for page in docs/*.md; do
    [ "$page" = docs/README.md ] || grep -qF "]($(basename "$page"))" docs/README.md || { echo "docs/README.md: misses $page"; wrong=1; }
done
[ "$(wc -l <README.md)" -le 150 ] || { echo 'README.md: more than 150 lines: what is it that belongs into docs/?'; wrong=1; }
# The glossary: at most 80 words, each once and in order.
words=$(awk -F ' *[|] *' '/^## /{exit} /^\| / && $2 != "word" { print $2 }' docs/glossary.md)
[ "$(echo "$words" | wc -l)" -le 80 ] || { echo 'docs/glossary.md: more than 80 words'; wrong=1; }
echo "$words" | LC_ALL=C sort -cu || { echo 'docs/glossary.md: out of order, or twice'; wrong=1; }
[ "$(wc -c <docs/report.svg)" -le 60000 ] || { echo 'docs/report.svg: larger than 60 kB'; wrong=1; }
exit $wrong
