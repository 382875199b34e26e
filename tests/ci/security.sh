#!/usr/bin/env bash
# The table of docs/security.md that says what each verb executes, reads and writes has a row for every verb of the
# program, and none for what is no verb; those that only read execute nothing by it.
set -u
page=docs/security.md
wrong=0
say() {
    echo "$*"
    wrong=1
}
rows=$(sed -n '/^## What each verb/,/^## /p' $page | sed -n 's/^| `\([a-z]*\)[` ].*/\1/p' | sort -u)
verbs=$(sed -n 's/^ *X(\([a-z]*\)).*/\1/p' harness/verbs.h | sort)
[ "$(wc -l <<<"$verbs")" -gt 15 ] || say "harness/verbs.h: only these verbs were found: $verbs"
for verb in $verbs; do grep -qx "$verb" <<<"$rows" || say "$page has no row for $verb"; done
for row in $rows; do grep -qx "$row" <<<"$verbs" || say "$page has a row for $row, which is no verb"; done
for verb in lint plan explain schema report judge; do
    grep -qE "^\| \`$verb\` \| nothing[ ;:|]" $page || say "$page: $verb only reads, and executes something"
done
# And every question that a store is asked.
for word in $(sed -n 's/.*"inquire \([a-z|-]*\) .*/\1/p' harness/verbs/inquire.c | tr '|' ' '); do
    grep -qE "^\| \`inquire[^|]*[ \`]$word\`" $page || say "$page has no row for inquire $word"
done
# Every option that gives rights is there.
for option in $(sed -n 's/.*{"\(--programs\|--untrusted\)".*/\1/p' harness/verb.h harness/verbs/run.c); do
    grep -q -- "$option" $page || say "$page does not know $option"
done
exit $wrong
