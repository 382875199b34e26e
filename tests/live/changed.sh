#!/usr/bin/env bash
# run --changed: a change to one script runs its scenario, one to a module those that import it, one to what nobody reads none; what is
# not known runs. For root and for an ordinary user, on nodes in namespaces and on nodes that are processes.
# deadline: 180 s
set -u
command -v python3 >/dev/null || { echo 'python3 is missing'; exit 77; }
. tests/live/runs.bash
bin=$(cd "$BIN" && pwd) quake=$bin/rankquake
tree=$PWD
cd "$dir" || exit 1
: >said

make_tree() { # in the directory at hand: a and b import common, which imports lib.inner; c imports nothing
    mkdir .git lib
    echo 'from lib import inner' >common.py
    echo 'X = 1' >lib/inner.py
    echo 'words' >notes.txt
    local name
    for name in a b c; do
        [ $name = c ] || echo 'import common' >$name.py
        # The loop ends by its count; the line is what the scenario reads.
        printf 'import time\nfor i in range(1, 7):\n    print("step", i, flush=True)\n    time.sleep(0.02)\n' >>$name.py
        cat >$name.yaml <<END
scenario: $name
cluster: {nodes: 2}
job: {run: [python3, $name.py]}
observe: {step: 'step ([0-9]+)'}
expect: {outcome: succeeded}
END
    done
}
changed() { # changed CODE ARGUMENT...: what ran is left in $ran, and what was left out in $left
    local code=$1 rc
    ${as[@]+"${as[@]}"} timeout 120 "$quake" run "${files[@]}" --out out "${@:2}" >"$dir/said" 2>&1 </dev/null
    rc=$?
    [ $rc = 4 ] && { tail -n 1 "$dir/said"; exit 77; }
    [ $rc = "$code" ] || fail "${*:2}: exit $rc, not $code"
    ran=$(grep -oE '^  runs [abc]' "$dir/said" | cut -c 8- | paste -sd' ')
    left=$(grep -oE '^  left out [abc]' "$dir/said" | cut -c 12- | paste -sd' ')
}
want() { # want WHAT RAN LEFT
    [ "$ran" = "$2" ] && [ "$left" = "$3" ] || fail "$1: \"$ran\" ran and \"$left\" did not, wanted \"$2\" and \"$3\""
}

files=(a.yaml b.yaml c.yaml)
mkdir tree && cd tree && make_tree || exit 1
changed 0 --changed notes.txt
want 'without a record' 'a b c' ''
grep -q 'runs a (a.yaml): nobody has seen yet what its job reads' "$dir/said" || fail 'it is not said that nothing is known'
runs_so_far=$(ls out | wc -l)
changed 0 --changed notes.txt
want 'what nobody reads' '' 'a b c'
[ "$(ls out | wc -l)" = "$runs_so_far" ] || fail 'something was run'
grep -q 'left out b (b.yaml): nothing that it reads has changed' "$dir/said" || fail 'it is not said why'
grep -q -- '--changed: 0 of 3 scenarios run, 3 are left out; 1 name was given' "$dir/said" || fail 'it is not said that none runs'

echo '# more' >>b.py
changed 0 --changed b.py
want 'one script' b 'a c'
echo 'Y = 1' >>lib/inner.py
changed 0 --changed lib/inner.py
want 'a module of two' 'a b' c
[ "$(grep -c 'control run: once' "$dir/said")" = 2 ] || fail 'the control runs were not made anew'
changed 0 --changed notes.txt
want 'known again' '' 'a b c'
changed 0 --changed c.yaml
want 'the file of a scenario' c 'a b'

# ---- Python's bytecode is read in place of a module; and what has changed unnamed is seen ----
PYTHONDONTWRITEBYTECODE= python3 -c 'import common' && [ -d lib/__pycache__ ] || fail 'there is no bytecode'
files=(b.yaml c.yaml)
changed 0 --changed b.yaml --fresh # with bytecode
changed 0 --changed lib/inner.py
want 'a module that was read as bytecode' b c
echo 'Z = 1' >>lib/inner.py
changed 0 --changed notes.txt
want 'what has changed since, unnamed' b c

# ---- names as git prints them; what is gone; what has come ----
printf '"b.py"\nnotes.txt\n' >names
timeout 120 "$quake" run "${files[@]}" --out out --changed - >"$dir/said" 2>&1 <names || fail 'names from standard input'
grep -q -- '1 of 2 scenarios run, 1 are left out; 2 names were given' "$dir/said" || fail 'names from standard input choose otherwise'
rm lib/inner.py && echo >lib/__init__.py && echo 'X = 2' >lib/other.py && echo 'from lib import other' >common.py
changed 0 --changed lib/inner.py
want 'a module that is gone' b c
grep -q 'lib/inner.py is not there: it counts as deleted' "$dir/said" || fail 'what is gone is not named'
echo 'X = 3' >lib/new.py
changed 0 --changed lib/new.py
want 'a module that has come' b c
changed 0 --changed lib/new.py --ci --format tap
want 'a module that nobody imports' '' 'b c'
grep -q 'left out: nothing that it reads has changed' out/junit.xml || fail 'the report does not have what was left out'

# ---- side by side: each record is of its own job alone, scenarios of one job have one control run, and nothing else is left ----
mkdir "$dir/beside" && cd "$dir/beside" && make_tree || exit 1
for name in a b c; do sed -i 's/range(1, 7)/range(1, 40)/' $name.py; done # they would meet
sed 's/scenario: c/scenario: d/' c.yaml >d.yaml
files=(a.yaml b.yaml c.yaml d.yaml)
changed 0 --jobs 4
[ "$(ls out | wc -l)" = 4 ] || fail 'other directories than those of four runs are left'
grep -h '"kind":"control"' out/*/history.jsonl >"$dir/controls"
[ "$(grep -c '"cached":true' "$dir/controls")" = 4 ] || fail 'a control run was made beside others'
changed 0 --changed c.py
want 'the script of one job, recorded side by side' 'c' 'a b'
changed 0 --changed a.py
want 'another script, recorded side by side' 'a' 'b c'
changed 0 --changed a.py --jobs 4 --fresh
changed 0 --changed notes.txt
want 'what nobody reads, recorded side by side' '' 'a b c'
cd "$dir/tree" || exit 1

# ---- what cannot be seen ----
files=(c.yaml)
changed 0 --changed /etc/hostname
want 'what lies elsewhere' c ''
changed 0 --changed notes.txt --set job.writes=undone
want 'writes that are undone' c ''
grep -q 'through a layer (writes: undone)' "$dir/said" || fail 'the layer is not named'

# ---- refused ----
changed 64 --changed ''
changed 64 --changed - --changed -
changed 64 --changed - --interactive
changed 192 --changed notes.txt --bisect # 64, as git bisect is told it
printf '"open' >names
timeout 60 "$quake" run a.yaml --changed - >"$dir/said" 2>&1 <names
[ $? = 64 ] || fail 'a quote that is left open was taken'
grep -q 'standard input:1: "open is no name as git quotes it' "$dir/said" || fail 'the bad line is not named'

# ---- an ordinary user, on nodes that are processes ----
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    export XDG_CACHE_HOME=$dir/theirs
    mkdir "$dir/theirs" "$dir/desk" && cp -R "$bin" "$dir/bin" && chmod a+x "$TMPDIR" || exit 1
    quake=$dir/bin/rankquake
    cd "$dir/desk" && make_tree && chmod -R a+rwX "$dir" || exit 1
    files=(b.yaml c.yaml)
    changed 0 --changed notes.txt --isolation processes
    want 'a user without a record' 'b c' ''
    changed 0 --changed notes.txt --isolation processes
    want "a user's notes" '' 'b c'
    changed 0 --changed lib/inner.py --isolation processes
    want "a user's module" b c
fi
cd "$tree" || exit 1
exit $failed
