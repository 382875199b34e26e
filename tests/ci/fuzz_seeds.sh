#!/usr/bin/env bash
# What AFL++ begins with goes once through each target of tests/fuzz, as this build has it: nothing of it does harm, what the
# target says must hold does, and every file of tests/fuzz is a target of make fuzz. tests/soak/fuzz-seeds.sh does the same under
# the sanitizers of clang, and BUILD=asan under those of gcc.
# deadline: 240 s
set -u
failed=0
fail() {
    echo "$*"
    failed=1
}
for file in tests/fuzz/*.c; do
    name=$(basename "$file" .c)
    grep -Eq "^FUZZED := (.* )?$name( |$)" Makefile || fail "$file is no target of FUZZED in the Makefile"
    [ "$name" = schedule ] || [ -f "tests/soak/fuzz-$name.sh" ] || fail "$file has no tests/soak/fuzz-$name.sh"
    grep -q "^### $name" tests/fuzz/README.md || fail "tests/fuzz/README.md says nothing of $name"
done
. tests/fuzz/seeds.bash
play_seeds "$OUT"
exit $failed
