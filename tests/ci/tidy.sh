#!/usr/bin/env bash
# ci/tidy can fail: in a copy of the sources one violation of each kind is planted, and each must be
# named. A rule that never fires is not a rule.
set -eu
copy=$TMPDIR/copy
mkdir "$copy"
# Of the objects that are judged only what is planted is compiled: the others are those of this tree, where they are newer.
cp -Rp Makefile VERSION .clang-format agent base ci "$copy"
for room in base agent/core agent/legacy; do
    [ ! -d build/release/$room ] || { mkdir -p "$copy/build/release/$room" && cp -p build/release/$room/*.[od] "$copy/build/release/$room"; }
done
[ ! -f build/release/.flags ] || cp -p build/release/.flags "$copy/build/release"
cd "$copy"
mkdir -p agent/core base agent/crowd/{full,throng}/m faults harness/judge/checks

repeat() { # repeat N TEXT
    yes "$2" | head -n "$1" || true
}

plants=0
expect=()
plant() { # plant "what tidy must say" FILE < TEXT
    mkdir -p "$(dirname "$2")"
    cat >"$2"
    plants=$((plants + 1))
    expect+=("$1")
}

plant 'agent/core/planted_up.c:1: agent/core may not include base/sys/clock.h' agent/core/planted_up.c <<'END'
#include "base/sys/clock.h"
END
plant 'harness/judge/checks/planted_accused.c:1: harness/judge/checks may not include agent/core/planted.h' harness/judge/checks/planted_accused.c <<'END'
#include "agent/core/planted.h"
END
touch agent/core/planted.h
plant 'base/planted_gone.h:1: includes base/nowhere.h, which is not there' base/planted_gone.h <<'END'
#include "base/nowhere.h"
END
plant 'reports/planted_yaml.c:1: <libfyaml.h> stays behind a header of ours' reports/planted_yaml.c <<'END'
#include <libfyaml.h>
END
plant 'cellar/planted.c: lies in no room' cellar/planted.c <<'END'
int planted;
END
plant 'agent/core/planted_clock.c: a pure room may not call clock_gettime' agent/core/planted_clock.c <<'END'
#include <time.h>
long planted_now(void);
long planted_now(void)
{
    struct timespec now;
    return clock_gettime(CLOCK_MONOTONIC, &now);
}
END
plant 'faults/planted_fault.c: has no line X(planted_fault) in faults/faults.h' faults/planted_fault.c <<'END'
const struct fault fault_planted_fault = {0};
END
plant 'faults/faults.h: the table is not in alphabetical order' faults/faults.h <<'END'
#define FAULTS(X) X(worker_kill) X(agent_kill)
X(planted_fault_named)
END
plant 'harness/judge/checks/planted_name.c:1: knows a fault by its name' harness/judge/checks/planted_name.c <<'END'
const char *planted_name = "planted-fault-named";
END
printf 'struct planted_twin {\n    int a;\n};\n' >faults/planted_first.h
plant 'reports/planted_twin.h:1: struct planted_twin has the name of a type of faults/planted_first.h' reports/planted_twin.h <<'END'
struct planted_twin {
    int a;
};
END
# Two archives of the build have a function of one name; what is static is nobody else's.
mkdir -p "$copy/build/release" "$TMPDIR/objects"
for archive in planted_one planted_other; do
    echo "int planted_both(void); int planted_both(void) { return 1; } static int planted_own(void) { return 2; }
int (*planted_$archive)(void) = planted_own;" >"$TMPDIR/objects/$archive.c"
    ${CC:-cc} -c -o "$TMPDIR/objects/$archive.o" "$TMPDIR/objects/$archive.c"
    ar rc "$copy/build/release/lib$archive.a" "$TMPDIR/objects/$archive.o"
done
plants=$((plants + 1))
expect+=('libplanted_other.a: planted_other.o defines planted_both, as planted_one.o of libplanted_one.a does')
plant 'faults/planted_silent.c:1: opens without a sentence' faults/planted_silent.c <<'END'
int planted_silent;
END
plant 'agent/crowd/utils.c: a file is named by its noun' agent/crowd/utils.c <<'END'
int planted_utils;
END
plant 'ci/planted:1: holds a word that does not belong' ci/planted < <(printf '# see /%s/main\n' work)
plant 'agent/crowd/planted_long.c:planted_long: a function of 71 lines' agent/crowd/planted_long.c < <(
    echo 'int planted_long(int n) {'
    repeat 69 '    n++;'
    echo '}'
)
plant 'advice: agent/crowd/planted_file.c: 501 lines' agent/crowd/planted_file.c < <(
    repeat 501 '/* a line */'
)
# The folder within a room lies, in order, between its files: they are counted together all the same.
for n in $(seq 13); do
    echo "int planted_a$n;" | tee agent/crowd/full/a$n.c >agent/crowd/throng/a$n.c
    echo "int planted_z$n;" | tee agent/crowd/full/z$n.h >agent/crowd/throng/z$n.h
done
rm agent/crowd/full/z13.h
echo 'int planted_m;' | tee agent/crowd/full/m/m.c >agent/crowd/throng/m/m.c
expect+=('advice: agent/crowd/throng: 26 nouns')
if clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
    plant 'base/planted_layout.c: not as clang-format lays it out' base/planted_layout.c <<'END'
int   planted_layout ;
END
fi

# The copy is no git checkout, also where the directory of temporary files lies in one.
if said=$(GIT_CEILING_DIRECTORIES=$TMPDIR ci/tidy 2>&1); then
    echo "ci/tidy found nothing in a tree with $plants violations"
    exit 1
fi
missed=0
for words in "${expect[@]}"; do
    grep -qF -- "tidy: $words" <<<"$said" || { echo "not caught: $words"; missed=1; }
done
if grep -F planted_own <<<"$said"; then
    echo 'a static function is no twin of another'
    missed=1
fi
if grep -F 'tidy: advice: agent/crowd/full: ' <<<"$said"; then
    echo 'that room has 25 nouns'
    missed=1
fi
[ $missed = 0 ] || { echo "--- ci/tidy said:"; echo "$said"; }
exit $missed
