#!/usr/bin/env bash
# scenarios/jobs/README.md names every script and every room of ranktrain, with about as many lines as they have.
set -u
wrong=0
page=scenarios/jobs/README.md
lines_of() { # lines_of FILE|FOLDER: of a folder, without what is below it
    if [ -d "$1" ]; then find "$1" -maxdepth 1 -type f \( -name '*.[ch]' -o -name '*.cu' \) -exec cat {} +; else cat "$1"; fi | wc -l
}
check() { # check SAID PATH...
    local said=$1 have=0 path
    shift
    for path; do have=$((have + $(lines_of "scenarios/jobs/$path"))); done
    [ $((have * 4)) -ge $((said * 3)) ] && [ $((have * 3)) -le $((said * 4)) ] && return
    echo "$page: $* has $have lines, not about $said"
    wrong=1
}
while IFS='|' read -r _ names lines _; do
    mapfile -t paths < <(grep -oE '\]\([^)]+' <<<"$names" | cut -c3-)
    [ "${#paths[@]}" -gt 0 ] && check "${lines// /}" "${paths[@]}"
done < <(grep '^| \[' $page)
for path in scenarios/jobs/*.py scenarios/jobs/*.h scenarios/jobs/pytorch/*.py scenarios/jobs/ranktrain/*/; do
    path=${path#scenarios/jobs/}
    grep -qF "](${path%/})" $page || { echo "$page: misses $path"; wrong=1; }
done
exit $wrong
