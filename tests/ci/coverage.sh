#!/usr/bin/env bash
# shellcheck disable=SC2016
# ci/coverage on what gcov would say of a made-up core: a place that nothing reaches must be named, with what is there.
set -u
cd "$(dirname "$0")/../.." || exit 1
tree=$TMPDIR/tree said=$TMPDIR/said failed=0
mkdir -p "$tree/ci" "$tree/agent/core" "$tree/tests/harness/sim" "$tree/gcov"
cp ci/coverage "$tree/ci/"
list=$tree/tests/harness/sim/unreached.txt

cat >"$tree/agent/core/made.c" <<'C'
int first(int a, char *p) {
    if (!p)
        abort();
    assert(a > 0);
    if (a > 7 || !*p)
        return 1;
    return 2;
}
C
cat >"$tree/gcov/made.c.gcov" <<'C'
        -:    0:Source:agent/core/made.c
function first called 3 returned 100% blocks executed 80%
        3:    1:int first(int a, char *p) {
        3:    2:    if (!p)
branch  0 taken 0 (fallthrough)
branch  1 taken 3
    #####:    3:        abort();
call    0 never executed
        3:    4:    assert(a > 0);
branch  0 taken 3 (fallthrough)
branch  1 taken 0
        3:    5:    if (a > 7 || !*p)
branch  0 taken 3 (fallthrough)
branch  1 taken 0
branch  2 taken 1
branch  3 taken 2
    #####:    6:        return 1;
        3:    7:    return 2;
        -:    8:}
C

expect() { # expect RC WORDS: what ci/coverage ends with and says
    bash "$tree/ci/coverage" "$tree/gcov" >"$said" 2>&1
    local rc=$?
    [ $rc = "$1" ] && grep -qF -- "$2" "$said" && return
    echo "not exit $1 with \"$2\" but $rc with:"
    cat "$said"
    failed=1
}

printf '# what is not reached\n\n@ too large a number (test_made)\nmade.c first: if (a > 7 || !*p)\n' >"$list"
expect 0 '| too large a number (test_made) | 1 | `made.c first` |'
# Neither the assertion nor the branch to abort() counts, nor the line of that.
expect 0 '| agent/core/made.c | 6 | 83.3 % | 4 | 75.0 % |'
printf '' >"$list"
expect 1 'made.c first: if (a > 7 || !*p)'
expect 1 'reached by nothing and not named'
printf '@ why (test_made)\nmade.c first: if (a > 7 || !*p)\nmade.c first: if (a > 9)\n' >"$list"
expect 1 'names what is not in agent/core/made.c: if (a > 9)'
mv "$tree/gcov/made.c.gcov" "$tree/gcov/other.c.gcov"
expect 1 'agent/core/made.c was never run'
exit $failed
