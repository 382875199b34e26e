#!/usr/bin/env bash
# What AFL++ begins with goes once through each target of tests/fuzz, built by clang with its sanitizers: nothing of it does
# harm, and every file of tests/fuzz is a target of make fuzz. gcc's sanitizers see less (a null pointer plus
# zero is none of theirs).
# deadline: 900 s
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
for name in clang-14 clang; do
    command -v $name >/dev/null && clang=$name && break
done
echo 'int main(void) { return 0; }' >"$TMPDIR/empty.c"
if [ -z "${clang-}" ] || ! $clang -fsanitize=address,undefined -o "$TMPDIR/empty" "$TMPDIR/empty.c" 2>/dev/null; then
    [ $failed = 1 ] && exit 1
    echo 'clang with its sanitizers is missing (Debian: clang libclang-rt-dev)'
    exit 77
fi
# The flags of the make that called us are not for this one; what was built before is built no more.
flags='-O0 -fsanitize=address,undefined -fno-sanitize-recover=all -w'
make -s NVCC= MAKEFLAGS= -j2 BUILD=asan CC=$clang "CFLAGS.asan=$flags" OUT=build/fuzz-clang fuzz-programs >"$TMPDIR/make" 2>&1 ||
    { tail -n 20 "$TMPDIR/make" && exit 1; }
export ASAN_OPTIONS=detect_leaks=0
for name in $(sed -n 's/^FUZZED := //p' Makefile); do
    seeds=$TMPDIR/$name
    mkdir "$seeds"
    if [ $name = schedule ]; then # a world, and some faults, as tests/soak/fuzz.sh has them
        awk 'BEGIN { for (i = 1; i < 30; i++) printf "%c", (37 * i * i + 11 * i) % 126 + 1 }' >"$seeds/0"
    else
        build/fuzz-clang/fuzz-$name --seeds "$seeds" || fail "$name: no seeds"
    fi
    for seed in "$seeds"/*; do
        build/fuzz-clang/fuzz-$name "$seed" >"$TMPDIR/said" 2>&1 ||
            { fail "$name: seed ${seed##*/} does harm:"; tail -n 15 "$TMPDIR/said"; }
    done
done
exit $failed
