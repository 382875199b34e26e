#!/usr/bin/env bash
# What AFL++ begins with goes once through each target of tests/fuzz, built by clang with its sanitizers: nothing of it does
# harm. gcc's sanitizers see less (a null pointer plus zero is none of theirs); what the seeds do without any of them
# tests/ci/fuzz_seeds.sh sees.
# deadline: 900 s
set -u
failed=0
fail() {
    echo "$*"
    failed=1
}
for name in clang-14 clang; do
    command -v $name >/dev/null && clang=$name && break
done
echo 'int main(void) { return 0; }' >"$TMPDIR/empty.c"
if [ -z "${clang-}" ] || ! $clang -fsanitize=address,undefined -o "$TMPDIR/empty" "$TMPDIR/empty.c" 2>/dev/null; then
    echo 'clang with its sanitizers is missing (Debian: clang libclang-rt-dev)'
    exit 77
fi
# The flags of the make that called us are not for this one; what was built before is built no more.
flags='-O0 -fsanitize=address,undefined -fno-sanitize-recover=all -w'
make -s NVCC= MAKEFLAGS= -j2 BUILD=asan CC=$clang "CFLAGS.asan=$flags" OUT=build/fuzz-clang fuzz-programs >"$TMPDIR/make" 2>&1 ||
    { tail -n 20 "$TMPDIR/make" && exit 1; }
. tests/fuzz/seeds.bash
play_seeds build/fuzz-clang
exit $failed
