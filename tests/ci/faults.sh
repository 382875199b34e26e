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

known=$("$BIN/rankquake" list faults | cut -d' ' -f1)
for file in $(grep -lE '^const struct fault fault_' faults/*.c faults/*/*.c); do
    id=$(basename "$file" .c) name=$(sed -n 's/^ *\.name = "\(.*\)",.*/\1/p' "$file")
    grep -q "^const struct fault fault_$id = {" "$file" || forgotten 1 "$file" "it does not end in \`const struct fault fault_$id\`"
    [ "$name" = "${id//_/-}" ] || forgotten 1 "$file" "\`.name\` is not \"${id//_/-}\""
    grep -qx "X($id)" $table || { forgotten 2 $table "the line X($id) is missing, so nobody knows $file" && continue; }
    grep -qx -- "$name" <<<"$known" || forgotten 2 $table "$BIN/rankquake does not know $name"
    scenarios=$(grep -rlE --include='*.yaml' "\bfault: *$name\b" scenarios)
    [ -n "$scenarios" ] || forgotten 4 scenarios/ "no scenario uses $name"
    # By its name, by a scenario that has it, or by one of the suite that smoke.sh runs.
    sed '/^ *#/d' tests/live/*.sh scenarios/smoke.yaml |
        grep -wF -e "$name" ${scenarios:+-e "${scenarios//scenarios\/}"} >/dev/null ||
        forgotten 3 tests/live/impaired.sh "no script of tests/live has a row in which $name is felt and gone again"
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
