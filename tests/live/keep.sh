#!/usr/bin/env bash
# run --keep at a terminal: when the job has ended, or hangs, the cluster stays up and can be entered until
# somebody presses Enter; then the verdict is as without. Where nobody sits nothing waits.
set -u
dir=$TMPDIR/keep
mkdir "$dir"
bad=0
fail() {
    echo "$*"
    cat "$dir/said"
    bad=1
}
if ! command -v script >/dev/null; then
    echo 'script(1), which makes a terminal, is not installed'
    exit 77
fi
cat >"$dir/s.yaml" <<'END'
scenario: kept
cluster: {nodes: 1, store: none}
job: {run: [sh, -c, 'echo "step $((TORCHELASTIC_RESTART_COUNT + 1))"; case {out} in */control) ;; *) exec sleep 1000 ;; esac']}
observe: {step: 'step ([0-9]+)'}
timeline: [{when: {step: 1}, fault: worker-kill, on: workers}]
limits: {stall: 1s}
END
"$BIN/rankquake" run "$dir/s.yaml" --keep --out "$dir/alone" >"$dir/said" 2>&1 </dev/null
rc=$?
[ $rc = 4 ] && { tail -n 1 "$dir/said"; exit 77; }
[ $rc = 1 ] || fail "where nobody sits: exit $rc, wanted 1"
grep -q 'stays up' "$dir/said" && fail 'it waited where nobody sits'

stays() { # stays HOW-IT-IS-ENDED
    rm -rf "$dir/out"
    mkfifo "$dir/keys.$1" "$dir/shown.$1"
    script -qefc "$BIN/rankquake run $dir/s.yaml --keep --out $dir/out" /dev/null \
        <"$dir/keys.$1" >"$dir/shown.$1" 2>&1 &
    local terminal=$! line run rc
    exec 8>"$dir/keys.$1" 7<"$dir/shown.$1"
    : >"$dir/said"
    while IFS= read -r -t 180 -u 7 line; do
        echo "$line" >>"$dir/said"
        [[ $line == *'the cluster stays up'* ]] && break
    done
    [[ $line == *'the cluster stays up'* ]] || fail "$1: it did not stay up"
    run=$(echo "$dir"/out/*)
    "$BIN/rankquake" enter "$run" n0 -- cat /proc/net/dev >"$dir/entered" 2>&1 || fail "$1: it could not be entered: $(cat "$dir/entered")"
    if [ "$1" = halt ]; then "$BIN/rankquake" halt "$run" >/dev/null; else echo >&8; fi
    exec 8>&-
    cat <&7 >>"$dir/said"
    exec 7<&-
    wait $terminal
    rc=$?
    [ $rc = 1 ] || fail "$1: exit $rc, wanted 1"
    grep -q 'liveness (exit code 1)' "$dir/said" || fail "$1: no verdict"
    [ -d "$run/scratch" ] || fail "$1: the scratch was not kept"
}
stays enter
stays halt
exit $bad
