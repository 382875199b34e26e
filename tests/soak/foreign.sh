#!/usr/bin/env bash
# A script that nobody here wrote, as it is: nanoGPT's train.py resumes with the batches of its beginning
# (karpathy/nanoGPT#467). The job succeeds, and the check `model` says that it should not have. NANOGPT=DIR is a clone of
# it; nothing is fetched.
# deadline: 600 s
set -u
cd "$(dirname "$0")/../.." || exit 1
if [ ! -e "${NANOGPT-}/train.py" ]; then
    echo 'NANOGPT names no clone of github.com/karpathy/nanoGPT'
    exit 77
fi
export XDG_CACHE_HOME=$TMPDIR/cache
failed=0
try() { # try WHAT CODE PATTERN OPTION...
    local what=$1 code=$2 pattern=$3 rc
    shift 3
    timeout 300 "$BIN/rankquake" run scenarios/foreign/nanogpt.yaml --set "vars.nanogpt=$(realpath "$NANOGPT")" \
        --out "$TMPDIR/out" "$@" >"$TMPDIR/said" 2>&1 </dev/null
    rc=$?
    [ $rc = 4 ] && tail -n 1 "$TMPDIR/said" && exit 77
    [ $rc = "$code" ] && tr -s '\n ' '  ' <"$TMPDIR/said" | grep -qE -- "$pattern" && return
    echo "$what: exit $rc, not $code, or it did not say: $pattern"
    cat "$TMPDIR/said"
    failed=1
}
try 'killed and resumed' 1 'failed: model .*model [0-9a-f]{64}'
try 'left alone' 0 'as in the control run' --set 'timeline=[]' --set 'expect.world_sizes=[1]' --set expect.restarts=0
exit $failed
