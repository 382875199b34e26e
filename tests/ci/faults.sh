#!/usr/bin/env bash
# What CONTRIBUTING.md's "Adding a fault" asks for is there for every fault: its line in the table, the arguments that its
# test tries, a live row, a scenario, and the page of the language. Each step that was forgotten is named with its file.
set -u
table=faults/faults.h
wrong=0
forgotten() { # forgotten STEP FILE WHAT
    echo "$2: $3 (CONTRIBUTING.md, \"Adding a fault\", step $1)"
    wrong=1
}

# What was not built anew would be judged as it was.
stale() { # stale SOURCE PROGRAM
    [ "$1" -ot "$2" ] && return 1
    echo "$1 is newer than $2: make all test-programs"
}
unit=tests/faults/test_faults
stale $unit.c "$OUT/$unit" && exit 1
for source in faults/*.[ch] faults/*/*.[ch]; do
    stale "$source" "$BIN/rankquake" && exit 1
    stale "$source" "$OUT/$unit" && exit 1
done

# What it does is shown live: felt and gone again, and without effect, on every isolation that it has; one that only
# namespaces have is refused elsewhere, by bad_faults.sh.
rows=tests/live/rows.txt
rows_text=$'\n'$(<$rows)
table_text=$("$BIN/rankquake" list faults --table | sed -n 's/^| `\(.*\) |$/\1/p')
has_row() { # has_row FAULT ISOLATION ROW
    local line=$'\n'"$1 $2 (root|user) ([a-z,]+,)?$3[, ]"
    [[ $rows_text =~ $line ]]
}
rows_of_fault() { # rows_of_fault FAULT
    local isolation row
    for isolation in $(sed -n "s/^$1\`.* | //p" <<<"$table_text" | tr -d ,); do
        for row in felt gone; do
            has_row "$1" $isolation $row || forgotten 3 $rows "no script shows \"$row\" of $1 on $isolation"
        done
    done
    has_row "$1" '[a-z]+' open || forgotten 3 $rows "no script shows $1 without effect, where the run is inconclusive"
}
while read -r script; do
    [ -e "tests/$script.sh" ] || forgotten 3 $rows "there is no tests/$script.sh: ci/rows"
done < <(sed -n 's/^[^#].* //p' $rows | sort -u)
while read -r fault; do
    forgotten 3 $rows "there is no $fault: ci/rows"
done < <(sed -n 's/^\([a-z][a-z-]*\) .*/\1/p' $rows | sort -u | grep -vxF "$(cut -d '`' -f 1 <<<"$table_text")")
for family in $(cut -d '|' -f 2 <<<"$table_text" | sort -u); do
    [ "$family" != scheduler ] || continue # a scheduler of its own needs root
    names=$(sed -n "s/^\([a-z-]*\)\` | $family |.*/\1/p" <<<"$table_text" | tr '\n' '|')
    grep -qE "^(${names%|}) [a-z]+ user felt,gone" $rows ||
        forgotten 3 $rows "no script shows a fault of the family $family by an ordinary user"
done

known=$("$BIN/rankquake" list faults | cut -d' ' -f1)
for file in $(grep -lE '^const struct fault fault_' faults/*.c faults/*/*.c); do
    id=$(basename "$file" .c) name=$(sed -n 's/^ *\.name = "\(.*\)",.*/\1/p' "$file")
    grep -q "^const struct fault fault_$id = {" "$file" || forgotten 1 "$file" "it does not end in \`const struct fault fault_$id\`"
    [ "$name" = "${id//_/-}" ] || forgotten 1 "$file" "\`.name\` is not \"${id//_/-}\""
    grep -qx "X($id)" $table || { forgotten 2 $table "the line X($id) is missing, so nobody knows $file" && continue; }
    grep -qx -- "$name" <<<"$known" || forgotten 2 $table "$BIN/rankquake does not know $name"
    scenarios=$(grep -rlE --include='*.yaml' "\bfault: *$name\b" scenarios)
    [ -n "$scenarios" ] || forgotten 4 scenarios/ "no scenario uses $name"
    rows_of_fault "$name"
done
for id in $(sed -n 's/^X(\(.*\))$/\1/p' $table); do
    compgen -G "faults/$id.c" >/dev/null || compgen -G "faults/*/$id.c" >/dev/null || forgotten 1 "faults/$id.c" 'it is in the table and is not there'
done

for page in docs/scenario-language.md docs/faults.md; do
    cp $page "$TMPDIR/page.md"
    "$BIN/rankquake" schema --fill "$TMPDIR/page.md" | grep -q 'is what the tables say' ||
        forgotten 5 $page "it is not what the tables say: $BIN/rankquake schema --fill $page"
done
exit $wrong
