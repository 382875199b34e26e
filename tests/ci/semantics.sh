#!/usr/bin/env bash
# Every numbered statement of docs/semantics.md has its check, with the sources that the check really reads, and the
# check has been seen to fail: a case in tests/harness/judge/checks/cases makes it fail, and where a dialect promises something
# else, a case there asks the check under it. The table of checks in turn has a statement for each.
set -u
page=docs/semantics.md cases=tests/harness/judge/checks/cases
wrong=0
say() {
    echo "$*"
    wrong=1
}

declare -A check_of
while IFS='|' read -r _ number _ check sees _; do
    number=${number// /} check=${check//[ \`]/} sees=${sees//,/}
    [ -z "${check_of[$number]-}" ] || say "$page: $number stands there twice"
    check_of[$number]=$check
    grep -q '^fail ' "$cases/$check.txt" 2>/dev/null ||
        say "$page: $number ($check): no case in $cases/$check.txt makes that check fail"
    [ -x "$BIN/rankquake" ] || continue
    if ! "$BIN/rankquake" explain "$check" >"$TMPDIR/told" 2>&1; then
        say "$page: $number: there is no check $check"
        continue
    fi
    reads=$(sed -n 's/.*; reads //p' "$TMPDIR/told" | tr ' ' '\n' | sort | paste -sd' ')
    [[ $number == R* || $reads == *harness* ]] && continue
    sees=$(tr ' ' '\n' <<<"$sees" | grep . | sort | paste -sd' ')
    [ "$sees" = "$reads" ] || say "$page: $number: $check reads $reads, not $sees"
done < <(sed '/^## Under `semantics: torchrun`/,$d' $page | grep -E '^\| [PER][0-9]+ \|')

for kind in P E R; do
    last=$(printf '%s\n' "${!check_of[@]}" | sed -n "s/^$kind//p" | sort -n | tail -n 1)
    for ((i = 1; i <= ${last:-0}; i++)); do [ -n "${check_of[$kind$i]-}" ] || say "$page: there is no $kind$i"; done
done
[ "${#check_of[@]}" -gt 30 ] || say "$page: only ${#check_of[@]} statements were found"

[ -x "$BIN/rankquake" ] && for check in $("$BIN/rankquake" list checks | cut -d' ' -f1); do
    [[ " ${check_of[*]} " == *" $check "* ]] || say "$page: misses $check"
done

# The dialects: the rows of one table, the sentence of the other.
asked() { # asked DIALECT NUMBER
    local check=${check_of[$2]-}
    [ -n "$check" ] || { say "$page: $1: there is no $2"; return; }
    grep -qx "under $1" "$cases/$check.txt" || say "$page: $2 ($check): $cases/$check.txt has no case under $1"
}
for number in $(sed -n '/^## Under `semantics: torchrun`/,/^## Of a template/p' $page |
    sed -n 's/^| \([PE][0-9PE, ]*\) |.*/\1/p' | tr -d ','); do asked torchrun "$number"; done
for number in $(sed -n '/^## Of a template/,$p' $page | grep -oE '\b[PE][0-9]+\b' | sort -u); do asked template "$number"; done
exit $wrong
