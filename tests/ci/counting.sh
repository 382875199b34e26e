#!/usr/bin/env bash
# ci/test counts what passed, failed and was skipped, and notices tests that die, hang, run nothing
# or were never built. The "binaries" here are scripts that say what cmocka would say.
set -eu
runner=$PWD/ci/test
mkdir -p "$TMPDIR/tree/tests/room" "$TMPDIR/tree/tests/live" "$TMPDIR/tree/out/tests/room"
cd "$TMPDIR/tree"

binary() { # binary NAME < SCRIPT
    : >"tests/room/$1.c"
    { echo '#!/bin/sh'; cat; } >"out/tests/room/$1"
    chmod +x "out/tests/room/$1"
}

judge() { # judge RC LINE
    local rc=0 said
    said=$(env -u MAKEFLAGS BUILD=release OUT=out BIN=out DEADLINE_S=2 "$runner" 2>&1) || rc=$?
    if [ "$rc" != "$1" ] || [ "$(tail -n 1 <<<"$said")" != "$2" ]; then
        echo "wanted exit $1 and \"$2\", got exit $rc and:"
        echo "$said"
        exit 1
    fi
    heard=$said
}

heard() {
    grep -qE -- "$1" <<<"$heard" || { echo "nowhere: $1"; echo "$heard"; exit 1; }
}

judge 1 '0 passed, 0 failed, 0 skipped' # a suite of nothing is no success

binary test_two_groups <<'END'
echo '[  PASSED  ] 3 test(s).'
echo '[  PASSED  ] 4 test(s).'
echo '[  SKIPPED ] 1 test(s), listed below:'
END
echo 'exit 0' >tests/live/good.sh
echo 'echo "this host has no moon"; exit 77' >tests/live/moon.sh
judge 0 '8 passed, 0 failed, 2 skipped'
heard '^ok .* tests/room/test_two_groups \(8 tests, cpu [0-9.]+s\)$'
heard '^skip .* tests/live/moon.sh \(this host has no moon, cpu [0-9.]+s\)$'

binary test_red <<'END'
echo '[  PASSED  ] 2 test(s).'
echo '[  FAILED  ] 1 test(s), listed below:'
exit 1
END
binary test_dies <<'END'
echo '[       OK ] one'
kill -SEGV $$
END
binary test_hangs <<'END'
exec sleep 60
END
binary test_of_nothing </dev/null
: >tests/room/test_unbuilt.c
echo 'echo "why it failed"; exit 1' >tests/live/bad.sh
judge 1 '11 passed, 6 failed, 2 skipped'
heard '^failed: tests/live/bad.sh$'
heard '^FAIL .* tests/room/test_dies \(died on signal 11, cpu [0-9.]+s\)$'
heard '^FAIL .* tests/room/test_hangs \(stopped after 2 s, cpu [0-9.]+s\)$'
heard '^    \| why it failed$'
