#!/usr/bin/env bash
# Trouble that was never tried: the table of a recorded run, and the next five scenarios, which lint takes, run runs, and which strike
# what their names say while the job does what their names say.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/live/patience.bash
rq=$(realpath "${BIN:-build/bin}")/rankquake
dir=$TMPDIR/coverage
mkdir -p "$dir"
failed=0
fail() { echo "coverage: $*"; failed=1; }

"$rq" run scenarios/restart/worker-killed.yaml --out "$dir/runs" >"$dir/said" 2>&1
rc=$?
[ $rc -le 2 ] || { cat "$dir/said"; exit 1; }
run=$(echo "$dir"/runs/*/)
"$rq" coverage "$run" --write "$dir/next" >"$dir/said" 2>&1 || fail "it ends with $?: $(cat "$dir/said")"
grep -Eq '^  worker-kill +\. +\. +\. +(0|a) +\. ' "$dir/said" || fail "the table does not have the kill: $(cat "$dir/said")"
next=("$dir"/next/*.yaml)
[ ${#next[@]} = 5 ] || fail "${#next[@]} scenarios are written"
for family in network clock disk store; do
    grep -Eq "^  $family  .* while " "$dir/said" || fail "no fault of family $family comes next"
done
"$rq" lint "${next[@]}" >"$dir/linted" 2>&1 || fail "lint refuses one: $(cat "$dir/linted")"
for file in "${next[@]}"; do
    name=$(basename "$file" .yaml)
    "$rq" run "$file" --out "$dir/out" >"$dir/ran" 2>&1
    rc=$?
    case $rc in
    4) tail -n 1 "$dir/ran"; continue ;; # this host cannot do that fault
    64 | 3 | 130) fail "$name ends with $rc: $(tail -n 20 "$dir/ran")"; continue ;;
    esac
    phase=${name##*-}
    # A recovery may be over in a tenth of a second: what takes longer to come in force strikes those that have just started.
    case $phase in starting) at=3 ;; loading) at=4 ;; training) at=5 ;; saving) at=6 ;; recovering) at='7 3' ;; *) at= ;; esac
    fault=$(sed -n 's/.*fault: \([a-z-]*\),.*/\1/p' "$file")
    "$rq" coverage "$dir"/out/"$name"-*/ >"$dir/again" 2>&1
    # Of what is at rest until a worker is killed the first entry counts; both stand in the file.
    found=0
    for one in $fault; do
        for column in $at; do
            awk -v fault="$one" -v at="$column" '$1 == fault && $at != "." { found = 1 } END { exit !found }' "$dir/again" && found=1
        done
    done
    [ $found = 1 ] || fail "$name struck in another phase: $(cat "$dir/again")"
done
"$rq" coverage "$run" --write "$dir/next" >"$dir/said" 2>&1
rc=$?
[ $rc = 64 ] && grep -q 'is there already' "$dir/said" || fail "a scenario that is there is overwritten: $rc"
"$rq" coverage >"$dir/said" 2>&1
[ $? = 64 ] || fail 'no run at all is taken'
"$rq" coverage "$dir/none" >"$dir/said" 2>&1
rc=$?
[ $rc = 64 ] && grep -qF "$dir/none" "$dir/said" || fail "a run that is not there: $rc, $(cat "$dir/said")"
grep -q '<section id="trouble">' "$run/report.html" || fail 'the report has no section on trouble'
exit $failed
