#!/usr/bin/env bash
# The documents keep up with the tree: every relative link leads somewhere, every scenario shown in
# one is valid, and every package that is named is one that ci/deps installs.
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
exit $wrong
