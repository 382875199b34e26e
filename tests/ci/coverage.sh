#!/usr/bin/env bash
# ci/coverage on what gcov would say of a made-up core: a place that nothing reaches must be named, by what it is and not
# by how it is written, and a place that is named must not be reached.
set -u
cd "$(dirname "$0")/../.." || exit 1
tree=$TMPDIR/tree said=$TMPDIR/said failed=0
mkdir -p "$tree/ci" "$tree/agent/core" "$tree/tests/harness/sim" "$tree/gcov"
cp ci/coverage ci/coverage.awk "$tree/ci/"
touch "$tree/agent/core/made.c"
list=$tree/tests/harness/sim/unreached.txt

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
cp "$tree/gcov/made.c.gcov" "$TMPDIR/first.gcov"

expect() { # expect RC WORDS: what ci/coverage ends with and says
    bash "$tree/ci/coverage" "$tree/gcov" >"$said" 2>&1
    local rc=$?
    [ $rc = "$1" ] && grep -qF -- "$2" "$said" && return
    echo "not exit $1 with \"$2\" but $rc with:"
    cat "$said"
    failed=1
}

name() { printf '# what is not reached\n\n@ too large a number (test_made)\n' && printf 'made.c %s\n' "$@"; }

name 'first: if 2' >"$list"
expect 0 '| too large a number (test_made) | 1 | `made.c first` |'
# Neither the assertion nor the branch to abort() counts, nor the line of that.
expect 0 '| agent/core/made.c | 6 | 83.3 % | 4 | 75.0 % |'
printf '' >"$list"
expect 1 'made.c first: if 2'
expect 1 'reached by nothing and not named'
name 'first: if 2' 'first: if 9' >"$list"
expect 1 'made.c first: if 9'
expect 1 'are reached or not there any more'
name 'first: if 2' 'first: if 1' >"$list"
expect 1 'made.c first: if 1'

# The same in another layout and with other names.
name 'first: if 2' >"$list"
sed 's/a > 7 || !\*p)/count > MOST ||/; /branch  1 taken 0/{n
/branch  2/i\        3:    5:        !*text)
}' "$TMPDIR/first.gcov" >"$tree/gcov/made.c.gcov"
grep -q '!\*text' "$tree/gcov/made.c.gcov" || failed=1
expect 0 '| agent/core/made.c | 7 | 85.7 % | 4 | 75.0 % |'
# It is reached now.
sed 's/branch  1 taken 0/branch  1 taken 1/' "$TMPDIR/first.gcov" >"$tree/gcov/made.c.gcov"
expect 1 'made.c first: if 2'
expect 1 'are reached or not there any more'

# Every kind of statement, whatever stands in its texts, comments and braces.
cat >"$tree/gcov/made.c.gcov" <<'C'
        -:    0:Source:agent/core/made.c
        -:    1:#define MOST(a) ((a) ? 1 : 2)
        -:    2:static const int sizes[] = {[0] = 1, [1] = sizeof(int)};
function second called 3 returned 100% blocks executed 80%
        3:    3:static int second(struct list *all,
        -:    4:                  int a) {
        3:    5:    int b = a ? 1 : 2, c = 0; /* if (this) were
        -:    6:     * a statement; */
        3:    7:    struct made m = {.text = "if (a) { ? ';", .n = a && b};
branch  0 taken 3 (fallthrough)
branch  1 taken 0
        3:    8:    for (int i = 0; i < a; i++) {
        3:    9:        switch (a) {
branch  0 taken 3
branch  1 taken 0
        3:   10:        case '?':
        3:   11:            b = 3;
        3:   12:            break;
        -:   13:        default:
        3:   14:            c = a || b;
branch  0 never executed
        -:   15:        }
        -:   16:    }
        3:   17:    list_each(it, all)
        3:   18:        while (a--)
branch  0 taken 0 (fallthrough)
        3:   19:            b++;
        3:   20:    if (b)
        3:   21:        return 1;
        3:   22:    else if (c)
branch  0 taken 0 (fallthrough)
        3:   23:        return 2;
        3:   24:    do {
        3:   25:        c++;
        3:   26:    } while (c < 3);
branch  0 taken 0 (fallthrough)
        3:   27:    return c
        3:   28:               ? (struct made){.n = b}.n
branch  0 taken 0 (fallthrough)
        3:   29:               : m.n;
        -:   30:}
function third called 3 returned 100% blocks executed 80%
        3:   31:int third(int a) {
        3:   32:    if (a)
branch  0 taken 0 (fallthrough)
        3:   33:        return 1;
        3:   34:    return 2;
        -:   35:}
C
name 'second: choice 2' 'second: switch 1' 'second: choice 3' 'second: while 1' 'second: if 2' 'second: while 2' \
    'second: return 3' 'third: if 1' >"$list"
expect 0 '| too large a number (test_made) | 8 |'

mv "$tree/gcov/made.c.gcov" "$tree/gcov/other.c.gcov"
expect 1 'agent/core/made.c was never run'
exit $failed
