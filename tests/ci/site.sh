#!/usr/bin/env bash
# The documents build into a site that needs nobody: every page is in it, every link leads somewhere, nothing is fetched; and
# a link to a file or a heading that is not there is named, and leaves the site that was there alone.
set -u
out=$TMPDIR/site
wrong=0
fail() {
    echo "$*"
    wrong=1
}
command -v python3 >/dev/null || { echo 'python3 is missing, which ci/site is written in'; exit 77; }
ci/site "$out" >"$TMPDIR/said" 2>&1
rc=$?
[ $rc = 77 ] && { cat "$TMPDIR/said"; exit 77; }
[ $rc = 0 ] || { cat "$TMPDIR/said"; exit 1; }
grep -q ' pages, every link leads somewhere' "$TMPDIR/said" || fail "it does not say what it has done: $(cat "$TMPDIR/said")"
for page in docs/*.md; do
    name=$(basename "$page" .md)
    [ "$name" = README ] && name=documents
    [ -s "$out/$name.html" ] || fail "the site has no page for $page"
    grep -q "href=\"$name.html\"" "$out/index.html" || fail "the navigation misses $name"
done
grep -q '<img [^>]*src="report.svg"' "$out/index.html" || fail 'home does not show the picture of the report'
cmp -s "$out/report.svg" docs/report.svg || fail 'the picture is not the one of the documents'
grep -rhoE '(src|href)="https?://[^"]*\.(js|css|woff2?)"' "$out" | sort -u | grep . && fail 'that would be fetched'

# The failing direction, in a tree of its own.
tree=$TMPDIR/tree
mkdir "$tree"
for name in *; do [ "$name" = docs ] || [ "$name" = build ] || ln -s "$PWD/$name" "$tree/$name"; done
breaks() { # breaks LINE TEXT: that line in a document, and what is said of it
    rm -rf "$tree/docs"
    cp -a docs "$tree/docs"
    echo "$1" >>"$tree/docs/exit-codes.md"
    ci/site --from "$tree" "$out" >"$TMPDIR/said" 2>&1
    [ $? = 1 ] || fail "$1: not exit 1"
    grep -qF -- "$2" "$TMPDIR/said" || fail "$1: $(cat "$TMPDIR/said")"
    [ -s "$out/index.html" ] || fail "$1: the site that was there is gone"
}
breaks '[dead](nowhere.md)' 'docs/exit-codes.md: the link to nowhere.md leads nowhere'
breaks '[dead](../harness/nowhere.h)' 'the link to ../harness/nowhere.h leads nowhere'
breaks '[out](../../etc/passwd)' 'the link to ../../etc/passwd leads nowhere'
breaks '[dead](faults.md#no-such-heading)' 'exit-codes.html: there is no heading for faults.html#no-such-heading'
for arguments in '--what' 'a b' "--from $TMPDIR/none x"; do
    # shellcheck disable=SC2086
    ci/site $arguments >"$TMPDIR/said" 2>&1
    [ $? = 64 ] || fail "ci/site $arguments: not exit 64"
done
exit $wrong
