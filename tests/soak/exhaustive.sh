#!/usr/bin/env bash
# sim --exhaustive: searches larger than those of make test, and planted bugs (tests/mutants/core), each found by
# one. Prints a line of each: what was searched, the verdict with its numbers. BOUNDS="..." searches only that,
# MUTANTS="..." looks for those bugs alone; MEMORY=MB.
# deadline: 14400 s
set -u
. tests/soak/mutant.bash
failed=0

search() { # search PROGRAM OPTION...
    local program=$1
    shift
    timeout 3600 "$program" sim --exhaustive --memory "${MEMORY:-4096}" "$@" >"$TMPDIR/out" 2>&1
}

# The smallest first. 2: more than the memory holds; which one it was is printed.
sizes() {
    while read -r -a options; do
        search "$BIN/rankquake" "${options[@]}"
        case $? in
        0 | 2) ;;
        *) failed=1 && cat "$TMPDIR/out" ;;
        esac
        echo "${options[*]}: $(grep -E '^(no violation|VIOLATED|interrupted)' "$TMPDIR/out")"
    done
}

bugs() {
    while IFS='|' read -r name options; do
        [[ -z ${MUTANTS-} || " $MUTANTS " == *" $name "* ]] || continue
        mkdir -p "$TMPDIR/$name"
        if ! mutant_build "$name" "$TMPDIR/$name" >"$TMPDIR/out" 2>&1; then
            echo "$name: does not apply or does not build: $(tail -n 1 "$TMPDIR/out")"
            failed=1
            continue
        fi
        # shellcheck disable=SC2086
        search "$TMPDIR/$name/rankquake" $options
        [ $? = 1 ] || failed=1
        echo "$name ($options): $(grep -E '^(no violation|VIOLATED|interrupted)' "$TMPDIR/out")" \
            "$(sed -n 's/^violated *//p' "$TMPDIR/out")"
        rm -rf "${TMPDIR:?}/$name"
    done
}

[ -n "${MUTANTS-}" ] || sizes <<<"${BOUNDS:---from-start --faults agent-kill=1
--faults agent-join=1,agent-kill=1,worker-fail=1
--faults agent-kill=2,agent-leave=1,answer-lost=1,watch-lost=1,worker-fail=2
--together 1 --faults watch-slow=1
--together 1 --faults agent-stop=1
--together 1 --faults node-stop=1
--together 1 --faults node-cut=1
--faults agent-kill=1,answer-slow=1,request-late=1
--free-watches --faults worker-fail=1
--agents 3 --faults agent-kill=2
--agents 3 --faults agent-join=1,agent-kill=1,agent-leave=1,request-late=1,worker-fail=1
--agents 3 --faults agent-kill=1,agent-leave=1
--agents 3 --faults agent-kill=1,worker-fail=1
--agents 3 --together 1 --faults agent-kill=1,agent-leave=1,answer-lost=1,request-late=1,watch-lost=1,worker-fail=1
--agents 3 --together 1 --rounds 1 --faults agent-stop=1
--agents 3 --together 1 --rounds 1 --faults node-stop=1
--agents 3 --together 1 --rounds 1 --faults node-cut=1}"
[ -n "${BOUNDS-}" ] && exit $failed

if ! command -v git >/dev/null; then
    echo 'git is missing, which applies the patches'
    exit $failed
fi
bugs <<'END'
acks-not-waited-for|
beat-not-compared|--faults agent-stop=1,watch-slow=1
certificate-not-waited-for|
cost-at-first-report|
cost-twice|
dead-taken-in|--faults agent-kill=1
deadline-from-answer|--faults answer-slow=1,node-cut=1
done-carried|
lead-not-compared|--faults agent-kill=1,request-late=1
leave-before-dead|--faults agent-leave=1
loss-not-noticed|--faults agent-kill=1
session-not-compared|--faults agent-stop=1,watch-slow=1
silence-from-before-takeover|--faults watch-lost=1
suspicion-at-the-fence|--faults agent-stop=1,watch-slow=1
END
exit $failed
