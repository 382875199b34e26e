# mutant_unit: the unit tests of what a patch of tests/mutants touches, built and run in the copy that has it. To be
# sourced.

# Those of a file: test_NAME of the folder that mirrors its own, and whoever includes the header that declares what is
# in it, which a file includes first; of what they start or share (spawn_NAME.c, NAME_fixture.h) test_NAME. Some have
# none: what they do is seen in whole runs only.
unit_tests_of() { # unit_tests_of FILE
    local header found name
    header=$(sed -n 's/^#include \("[^"]*"\).*/\1/p' "$1" | head -n 1)
    ls "tests/${1%/*}/test_$(basename "${1%.*}").c" 2>/dev/null
    [[ "\"${1%/*}/" == "${header%/*}"/* ]] || return 0
    for found in $(grep -rlF --include='*.[ch]' "#include $header" tests); do
        name=$(basename "${found%.*}")
        name=${name#spawn_} name=${name%_fixture}
        ls "${found%/*}/test_${name#test_}.c" 2>/dev/null
    done
}

# What they start lies beside them.
unit_spawnees_of() { # unit_spawnees_of TEST...
    local test
    for test; do ls "${test%/*}"/spawn_*.c; done 2>/dev/null | sort -u
}

# Leaves in $unit_failed what did not pass, of them or of one test.
unit_tests_pass() { # unit_tests_pass PATCH [TEST]
    local touched tests test targets file
    mapfile -t touched < <(sed -n 's,^+++ b/,,p' "$root/$1")
    mapfile -t tests < <([ -n "${2-}" ] && find tests -name "$2.c" || for file in "${touched[@]}"; do unit_tests_of "$file"; done | sort -u | sed '/^$/d')
    mapfile -t targets < <({ printf '%s\n' "${tests[@]}"; unit_spawnees_of "${tests[@]}"; } | sed -nE 's,^(tests/.*)\.c$,build/release/\1,p')
    unit_failed=
    [ ${#targets[@]} = 0 ] && return
    copy_make "${targets[@]}" build/bin/rankrun build/bin/rankquake build/bin/rankprobe build/bin/ranktrain ||
        { unit_failed='its unit tests do not build'; return 1; }
    for test in "${tests[@]}"; do
        test=${test%.c}
        mkdir -p "$TMPDIR/unit"
        (cd "$copy" && BUILD=release OUT=build/release BIN=build/bin TMPDIR=$TMPDIR/unit XDG_RUNTIME_DIR=$TMPDIR/unit \
            timeout --kill-after=10 120 "build/release/$test") >"$TMPDIR/unit.log" 2>&1 </dev/null || unit_failed+="$test "
        rm -rf "$TMPDIR/unit"
    done
    unit_failed=${unit_failed:+its unit tests fail: $unit_failed}
    [ -z "$unit_failed" ]
}
