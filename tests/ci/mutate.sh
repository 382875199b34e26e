#!/usr/bin/env bash
# The mutator on a small source: each operator plants what it says, one seed draws one draw, and ci/mutate refuses what it does
# not understand.
set -u
compgen -G '/usr/lib/llvm-*/lib/libclang.so' >/dev/null || { echo 'libclang is missing (libclang-dev)'; exit 77; }
failed=0
fail() { echo "$*"; failed=1; }
make -s BUILD="$BUILD" OUT="$OUT" DEPS=0 "$OUT/mutate" || exit 1
mutate=$(realpath "$OUT/mutate") root=$PWD
for arguments in '--sample 0' '--sample x' '--seed' '--room kitchen' '--oracles tea' '--files nothing' '--items' 'unknown'; do
    # shellcheck disable=SC2086
    ci/mutate $arguments >/dev/null 2>&1
    rc=$?
    [ $rc = 64 ] || fail "ci/mutate $arguments: exit $rc, not 64"
done

for files in 'agent/legacy/*' agent/legacy/document.c; do
    ci/mutate --files "$files" --list | cut -f 2 >"$TMPDIR/points"
    grep -q '^agent/legacy/document.c:' "$TMPDIR/points" || fail "--files $files: not of document.c"
    grep -v '^agent/legacy/' "$TMPDIR/points" && fail "--files $files: of others too"
done

# A unit test ends with the number of those that have failed: four of them are no test that is skipped.
eval "$(sed -n '/^answer_of()/,/^}/p' ci/mutate)"
for answer in 'unit 0 passed' 'unit 4 killed' 'unit 77 killed' 'memory 4 killed' 'suite 4 killed' 'suite 77 passed' 'scenarios 4 passed' 'scenarios 2 open' 'scenarios 1 killed' 'sim 1 killed'; do
    read -r oracle code wanted <<<"$answer"
    [ "$(answer_of "$oracle" "$code")" = "$wanted" ] || fail "$oracle that ends with $code: $(answer_of "$oracle" "$code"), not $wanted"
done

cd "$TMPDIR" || exit 1
cat >small.c <<'C'
#include <stdbool.h>
#include <signal.h>
#include <unistd.h>
#define MORE(a) ((a) < 3)
int small(int a, int b);
int small(int a, int b) {
    int r = small(a, b);
    if (r < 0)
        return r;
    if (a < b && MORE(b))
        kill(a, SIGTERM);
    close(b);
    return 5;
}
C
plants() { # plants OPERATOR LINE: some point of the operator leaves this line
    local identity
    while read -r identity; do
        "$mutate" apply "$identity" | diff small.c - | sed -n 's/^> *//p' | grep -qxF -- "$2" && return
    done < <("$mutate" list small.c -- | cut -f 2 | grep -F ":$1:")
    fail "$1 plants no: $2"
}
plants arguments-swapped 'int r = small(b, a);'
plants comparison-off-by-one 'if (a <= b && MORE(b))'
plants condition-false 'if (0)'
plants condition-negated 'if (!(a < b && MORE(b)))'
plants condition-true 'if (a < b && 1)'
plants constant-changed 'return (5 + 1);'
plants early-return 'return 0; close(b);'
plants error-ignored 'int r = (small(a, b), 0);'
plants flag-exchanged 'kill(a, SIGKILL);'
plants release-dropped ';'
plants statement-dropped ';'
"$mutate" list small.c | grep -q 'small.c:4' && fail 'a point within a macro'
[ "$("$mutate" operators | wc -l)" = 11 ] || fail 'an operator that is not tried here'

# Two that are asked only if they are equal are the same the other way round.
cat >equal.c <<'C'
#include <string.h>
int equal(const char *a, const char *b);
int equal(const char *a, const char *b) {
    return strcmp(a, b) == 0 || !strcmp(a, b) || strcmp(b, a) > 0;
}
C
[ "$("$mutate" list equal.c -- | grep -c ':arguments-swapped:')" = 1 ] || fail 'what is asked for equality alone is swapped'
# Of two that are equal either is the larger, but not of two others.
cat >larger.c <<'C'
int larger(int a, int b);
int larger(int a, int b) {
    int c = a < b ? b : (a);
    if (c > b)
        c = b;
    if (c > a)
        b = c;
    return a < b ? c : b;
}
C
[ "$("$mutate" list larger.c -- | grep ':comparison-off-by-one:' | cut -f 1 | tr '\n' ' ')" = 'larger.c:6 larger.c:8 ' ] || fail 'which of two that are equal is taken is asked, or which of two others is not'
# A number of several digits has one too many. How much room an array has to spare is nobody's to see: one that is shorter is a bug.
cat >long.c <<'C'
enum size { SMALL, LARGE, MIDDLE };
struct room { char name[4096]; char wide[LARGE]; char narrow[MIDDLE]; };
int longer(const char name[64]);
int longer(const char name[64]) {
    static const int list[8] = {7, 70};
    int n = 9 + 0644;
    return n + 250 + list[0] + name[0];
}
C
planted() { # planted FILE: what it has on the lines that points leave
    "$mutate" list "$1" -- | cut -f 2 | grep -E "$2" | while read -r identity; do "$mutate" apply "$identity" | diff "$1" - | sed -n 's/^> *//p'; done | sort
}
planted long.c ':constant-changed:' >all
grep -qF 'static const int list[8] = {7, (70 * 10)};' all && grep -qF 'static const int list[8] = {(7 + 1), 70};' all && grep -qF 'return n + (250 * 10)' all &&
    grep -qF 'int n = (9 + 1) + 0644;' all && grep -qF 'int n = 9 + (0644 + 1);' all || fail "constants are changed otherwise: $(cat all)"
grep -qE '\[\((4096|64|8|LARGE)' all && fail "an array is longer: $(cat all)"
[ "$(planted long.c ':flag-exchanged:')" = 'struct room { char name[4096]; char wide[LARGE]; char narrow[SMALL]; };' ] || fail "the lengths of arrays are exchanged otherwise: $(planted long.c ':flag-exchanged:')"
# Nobody runs out of memory.
cat >none.c <<'C'
#include <stdlib.h>
int none(int a, const char *b);
int none(int a, const char *b) {
    if (!b)
        abort();
    if (a)
        return 1;
    return 2;
}
C
[ "$("$mutate" list none.c -- | grep -E ':(condition-false|statement-dropped):' | cut -f 1 | tr '\n' ' ')" = 'none.c:6 ' ] || fail 'what ends in abort() is a point'
# No clock that runs shows two moments in one nanosecond.
mkdir -p agent/core agent/shell
cat >agent/core/late.c <<'C'
int late(long now_ns, long until_ns, int n, long (*clock_ns)(void));
int late(long now_ns, long until_ns, int n, long (*clock_ns)(void)) {
    if (now_ns > until_ns)
        return n > 3;
    if (clock_ns() >= n)
        return 2;
    return now_ns < 0;
}
C
cp agent/core/late.c agent/shell/late.c
[ "$("$mutate" list agent/core/late.c -- | grep -c ':comparison-off-by-one:')" = 4 ] || fail 'the core does not tell which of two moments comes first'
[ "$("$mutate" list agent/shell/late.c -- | grep ':comparison-off-by-one:' | cut -f 1 | tr '\n' ' ')" = 'agent/shell/late.c:4 agent/shell/late.c:7 ' ] || fail 'two moments are told apart by a nanosecond'

# Names survive what is changed elsewhere, draws repeat.
"$mutate" list small.c | cut -f 2 >before
sed -i '1i /* another line */' small.c
"$mutate" list small.c | cut -f 2 | cmp -s before - || fail 'a line elsewhere gives points other names'
"$mutate" draw 7 4 - small.c >one && "$mutate" draw 7 4 - small.c | cmp -s one - || fail 'one seed, two draws'
"$mutate" draw 8 4 - small.c | cmp -s one - && fail 'two seeds, one draw'
"$mutate" apply small.c:small:early-return:00000000:1 >/dev/null 2>&1 && fail 'a point that is not there is taken'

# What has run is noted also of a program that is killed.
cat >traced.c <<'C'
#include <signal.h>
#include <unistd.h>
void runs(void);
void does_not(void);
static void same(void) { kill(getpid(), SIGKILL); }
void runs(void) { same(); }
void does_not(void) {}
int main(int n, char **v) { n > 1 ? does_not() : runs(); }
C
echo 'void other(void); static void same(void) { other(); } void other(void) { same(); }' >other.c
cc -O0 -finstrument-functions -o traced traced.c other.c "$root/tests/mutate/executed/executed.c" -D_GNU_SOURCE -I"$root" || fail 'executed.c is not built'
# shellcheck source=/dev/null
source "$root/tests/mutate/functions.bash"
mkdir noted
{ MUTATE_EXECUTED=$PWD/noted ./traced; } 2>/dev/null
functions_of traced >functions
mkdir noted-empty
MUTATE_EXECUTED=$PWD/noted-empty sh -c 'env -i sh -c "./traced; :"; :' 2>/dev/null
cmp -s noted/traced noted-empty/traced || fail 'whoever starts with an empty environment notes nothing'
env -i ./traced 2>/dev/null
[ "$(ls noted noted-empty | grep -c traced)" = 2 ] || fail 'who was told of no folder notes in one'
functions_of traced noted/traced | sort >ran
[ "$(tr '\n' ' ' <ran)" = ':main :runs traced.c:same ' ] || fail "noted as run: $(cat ran)"
names ran src/traced.c same && names ran src/traced.c runs || fail 'what ran is not found by its file'
names ran src/other.c same && fail 'a function of another file is taken for one that ran'
names functions src/other.c same && names functions src/traced.c does_not || fail 'a function that did not run is not known'

# A program is linked anew with one other object, and is the intact one again afterwards; other copies never see it.
mkdir -p intact/src intact/tests intact/build/release/tests && cd intact || exit 1
cat >src/told.c <<'C'
int told(void);
int told(void) { return 3; }
C
echo 'int told(void); int main(void) { return told(); }' >tests/test_told.c
{ echo '#include "src/told.c"'; echo 'int main(void) { return told(); }'; } >tests/test_whole.c
echo 'int main(void) { return 0; }' >tests/test_other.c
echo 'cc -std=c11 -g -O2 -I.' >build/release/.flags
cat >Makefile <<'M'
CC := cc
all:
test-programs: $(patsubst %,build/release/tests/test_%,told whole other)
build/release/tests/%: build/release/tests/%.o build/release/libsrc.a
	$(CC) -o $@ $< build/release/libsrc.a \
	  -lm
build/release/libsrc.a: build/release/src/told.o
	$(AR) rcs $@ $^
build/release/%.o: %.c
	@mkdir -p $(@D)
	$(CC) -std=c11 -g -O2 -I. -c -o $@ $<
.SECONDARY:
M
make -s test-programs || fail 'the small tree is not built'
cd .. && cp -a intact copy && rm -r copy/build && cp -al intact/build copy/
# shellcheck source=/dev/null
source "$root/tests/mutate/plant.bash"
plant_links intact >links && plant_symbols intact links >symbols
holders=$(plant_holders intact symbols src/told.c | tr '\n' ' ')
[ "$holders" = 'build/release/tests/test_told build/release/tests/test_whole ' ] || fail "holders of told.c: $holders"
# A function of which the processor chooses one.
if [ "$(uname -m)" = x86_64 ]; then
    echo '__attribute__((target_clones("avx2", "default"))) int chosen(int a); int chosen(int a) { return a; }' >intact/src/chosen.c
    echo 'int chosen(int a); int main(void) { return chosen(0); }' >chosen.c
    cc -c -o intact/build/release/src/chosen.o intact/src/chosen.c && cc -o intact/build/release/tests/test_chosen chosen.c intact/build/release/src/chosen.o || fail 'chosen.c is not built'
    printf 'build/release/tests/test_chosen\tcc\n' >chosen.links
    plant_symbols intact chosen.links >chosen.symbols
    [ "$(plant_holders intact chosen.symbols src/chosen.c)" = build/release/tests/test_chosen ] || fail 'who holds a function of which the processor chooses one is not found'
    rm intact/{src/chosen.c,build/release/src/chosen.o,build/release/tests/test_chosen}
fi
sed 's/3/4/' intact/src/told.c >bug.c
plant_compile "$PWD/intact" src/told.c "$PWD/bug.c" "$PWD/bug.o" || fail 'the bug is not compiled'
ends() { # ends TREE PROGRAM CODE
    "$1/build/release/tests/$2"
    local rc=$?
    [ $rc = "$3" ] || fail "$2 of $1 ends with $rc, not $3"
}
for program in test_told test_whole test_other; do
    plant_in "$PWD/copy" "$PWD/links" src/told.c "$PWD/bug.o" "$PWD/bug.c" build/release/tests/$program || { fail "not planted in $program:"; cat copy.link; }
done
ends copy test_told 4
ends copy test_whole 4
ends copy test_other 0
ends intact test_told 3
plant_undo "$PWD/intact" "$PWD/copy"
ends copy test_told 3
ends copy test_whole 3
[ -z "$(find copy -name '*.planted')" ] && [ ! -e copy.changed ] || fail 'something is left of the bug'

# Whoever keeps memory, a descriptor or a child passes its test, and not where that is watched.
cat >intact/src/kept.c <<'C'
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int kept(void);
int kept(void) {
    volatile char *memory = malloc(7);
    int fd = open("/dev/zero", 0), status = 1;
    pid_t pid = fork();
    if (!pid)
        _exit(0);
    waitpid(pid, &status, 0);
    memory[6] = 1;
    close(fd);
    free((void *)memory);
    return status;
}
C
echo 'int kept(void); int main(void) { return kept(); }' >intact/tests/test_kept.c
mkdir -p intact/tests/mutate intact/scenarios/watched intact/base && cp -r "$root/tests/mutate/held" intact/tests/mutate/ && cp "$root/base/arena.h" intact/base/ && cp "$root/scenarios/watched/bounds.c" intact/scenarios/watched/
sed -i 's/told whole other/told whole other kept/; s,^build/release/libsrc.a: .*,& build/release/src/kept.o,' intact/Makefile
make -s -C intact test-programs && rm -rf copy && cp -a intact copy && rm -r copy/build && cp -al intact/build copy/
plant_links intact >links
plant_compile_held "$PWD/intact" "$PWD/held.o" || fail 'held.c is not compiled'
is_watched() { # is_watched SED CODE: what the change makes of the plain test, which passes, and of the watched one
    sed "$1" intact/src/kept.c >kept.c
    plant_compile "$PWD/intact" src/kept.c "$PWD/kept.c" "$PWD/kept.o" && plant_in "$PWD/copy" "$PWD/links" src/kept.c "$PWD/kept.o" "$PWD/kept.c" build/release/tests/test_kept || fail "$1: not planted"
    plant_compile_watched "$PWD/intact" src/kept.c "$PWD/kept.c" "$PWD/kept.watched.o" &&
        plant_watcher "$PWD/copy" "$PWD/links" src/kept.c "$PWD/kept.watched.o" "$PWD/kept.c" build/release/tests/test_kept build/release/tests/test_kept.watched-kept "$PWD/held.o" || { fail "$1: not watched:"; cat copy.link; }
    ends copy test_kept 0
    copy/build/release/tests/test_kept.watched-kept >watched 2>&1
    local rc=$?
    [ "$2" = any ] && [ $rc != 0 ] || [ $rc = "$2" ] || fail "$1: the watched test ends with $rc: $(cat watched)"
}
is_watched '' 0
is_watched '/free(/d' any
is_watched 's/memory\[6\]/memory[7]/' any
is_watched '/close(/d' 1
grep -qx 'descriptor [0-9]* is still open: /dev/zero' watched || fail "it does not say what is open: $(cat watched)"
is_watched 's/close(fd)/if (fd > 0) &/' 1
grep -qx 'descriptor 0 is still open: /dev/zero' watched || fail "descriptor 0 is taken for none: $(cat watched)"
is_watched 's/volatile char/open("\/dev\/null", 0); &/' 0
is_watched 's/waitpid(pid, &status, 0)/status = 0/' 1
grep -q 'child' watched || fail "it does not say that a child is left: $(cat watched)"
plant_undo "$PWD/intact" "$PWD/copy"
[ ! -e copy/build/release/tests/test_kept.watched-kept ] || fail 'a watched test is left'

# Two bugs of two files in one program.
cat >intact/src/asked.c <<'C'
int asked(void);
int asked(void) { return 10; }
C
echo 'int told(void); int asked(void); int main(void) { return told() + asked(); }' >intact/tests/test_both.c
sed -i 's/told whole other kept/told whole other kept both/; s,^build/release/libsrc.a: .*,& build/release/src/asked.o,' intact/Makefile
make -s -C intact test-programs && rm -rf copy && cp -a intact copy && rm -r copy/build && cp -al intact/build copy/
plant_links intact >links
sed 's/10/20/' intact/src/asked.c >bug2.c
plant_compile "$PWD/intact" src/asked.c "$PWD/bug2.c" "$PWD/bug2.o" || fail 'the second bug is not compiled'
plant_objects "$PWD/copy" "$PWD/links" build/release/tests/test_both "$PWD/bug.o" "$PWD/bug2.o" || { fail 'two are not planted:'; cat copy.link; }
ends copy test_both 24
ends intact test_both 13
plant_undo "$PWD/intact" "$PWD/copy"
ends copy test_both 13

# Bugs go together eight at a time, two of one file never.
# shellcheck source=/dev/null
source "$root/tests/mutate/group.bash"
printf '%s\n' a.c:f:x:0:1 a.c:g:x:0:1 b.c:f:x:0:1 c.c:f:x:0:1 | group_up 2 >groups
[ "$(cat groups)" = "$(printf '%s\n' 'a.c:f:x:0:1 b.c:f:x:0:1' 'a.c:g:x:0:1 c.c:f:x:0:1')" ] || fail "groups: $(cat groups)"
exit $failed
