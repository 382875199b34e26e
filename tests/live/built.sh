#!/usr/bin/env bash
# job.build: built once, kept under its key, put into place again, taken to another runner; what is wrong with it.
set -u
. tests/live/runs.bash
command -v make >/dev/null || { echo 'make is not installed'; exit 77; }
rq=$(realpath "$BIN")/rankquake
mkdir "$dir/project" && cd "$dir/project" || exit 1
# How often the command is run is counted by what it appends; a shell script is all that is built.
cat >Makefile <<'END'
train: train.in
	{ echo '#!/bin/sh'; cat train.in; } >train
	chmod +x train
END
echo 'for i in 1 2 3; do echo "step $i"; done' >train.in
export COUNT=$dir/count
cat >built.yaml <<'END'
scenario: built
cluster: {nodes: 1}
job:
  build: {run: [sh, -c, 'echo built >>"$COUNT"; exec make -s train'], inputs: ["*.in", Makefile], outputs: [train]}
  run: [./train]
END
: >"$COUNT"
asked() { # asked CODE WORDS COMMAND...
    timeout 200 "${@:3}" >"$dir/said" 2>&1 </dev/null
    local rc=$?
    [ $rc = "$1" ] || fail "${*:3}: exit $rc, not $1"
    grep -qF -- "$2" "$dir/said" || fail "${*:3}: did not say: $2"
}
times() { [ "$(wc -l <"$COUNT")" = "$1" ] || fail "$2: built $(wc -l <"$COUNT") times, not $1"; }

# ---- once, and kept
key=$("$rq" cache key built.yaml)
each=$("$rq" cache key --each built.yaml | awk '/build of built/ { print $1 }')
[ ${#each} = 64 ] || fail 'cache key --each has no line of the build'
times 0 'a key is told without building'
asked 0 'job.build' "$rq" plan built.yaml
times 0 'a plan builds nothing'
asked 0 "build      made in" "$rq" run built.yaml --out "$dir/out"
times 1 'the first run'
[ "$key" = "$("$rq" cache key built.yaml)" ] || fail 'the key is another once it is built'
asked 0 "build      kept as ${each:0:12}" "$rq" run built.yaml --out "$dir/out"
grep -q 'control run: kept' "$dir/said" || fail 'the control run was made again'
rm train
asked 0 'build      kept as' "$rq" run built.yaml --out "$dir/out"
times 1 'a checkout without the program'
echo 'exit 9' >train
asked 0 'build      kept as' "$rq" run built.yaml --out "$dir/out"
[ -x train ] || fail 'what another has put there was left there'
asked 0 '2 runs: 2 passed' "$rq" run built.yaml --out "$dir/out" --repeat 2 --jobs 2
times 1 'side by side'
asked 0 'build      made in' "$rq" run built.yaml --out "$dir/out" --fresh
times 2 '--fresh'

# ---- an input is another: another key, and back again nothing is built
cp train.in was
echo 'echo "step 4"' >>train.in
[ "$key" != "$("$rq" cache key built.yaml)" ] || fail 'another input has the same key'
asked 0 'build      made in' "$rq" run built.yaml --out "$dir/out"
times 3 'another input'
mv was train.in
asked 0 "build      kept as ${each:0:12}" "$rq" run built.yaml --out "$dir/out"
times 3 'the input of before'

# ---- another runner: the cache is exported, taken in, and nothing is built there
asked 0 'wrote' "$rq" cache export "$dir/kept.jsonl"
"$rq" cache list | grep -q "^built/$each/built.json$" || fail 'the list has no build'
mkdir "$dir/elsewhere" && cp built.yaml Makefile train.in "$dir/elsewhere" && cd "$dir/elsewhere" || exit 1
export XDG_CACHE_HOME=$dir/elsewhere/cache
asked 0 'took in' "$rq" cache import "$dir/kept.jsonl"
asked 0 "build      kept as ${each:0:12}" "$rq" run built.yaml --out "$dir/out"
times 3 'another runner'
# One that was changed there counts as none.
echo '#!/bin/false' >"$XDG_CACHE_HOME/rankquake/built/$each/0"
rm train
asked 0 'build      made in' "$rq" run built.yaml --out "$dir/out"
times 4 'a cache that is not what it was'

# ---- only what a change concerns: an input that is named, and one that has changed without being named
git init -q . && printf '%s\n' cache train >.gitignore && git add -A && git -c user.name=x -c user.email=x@example.com commit -qm begin
asked 0 '1 of 1 scenarios run' "$rq" run built.yaml --out "$dir/out" --changed Makefile
touch unused
asked 0 '0 of 1 scenarios run' "$rq" run built.yaml --out "$dir/out" --changed README
rm train
asked 0 '0 of 1 scenarios run' "$rq" run built.yaml --out "$dir/out" --changed README
echo '# more' >>train.in
asked 0 'is to be built anew: an input of job.build is another' "$rq" run built.yaml --out "$dir/out" --changed README

# ---- what is wrong
spoil() { sed "s|build: .*|build: $1|" built.yaml >bad.yaml; }
spoil '{run: [make, nothing], inputs: [Makefile], outputs: [train]}'
asked 3 'job.build.run: make ended with exit code 2' "$rq" run bad.yaml --out "$dir/out"
grep -q "No rule to make target 'nothing'" "$dir/said" || fail 'what the command printed is not told'
mkfifo "$dir/never"
spoil "{run: [sh, -c, 'echo begun; cat $dir/never; true'], inputs: [Makefile], outputs: [train], within: 100ms}"
asked 3 'job.build.run: sh had not ended after 0.1 s (job.build.within) and was killed; its last words: begun' "$rq" run bad.yaml --out "$dir/out"
grep -lszF "cat$(printf '\0')$dir/never" /proc/[0-9]*/cmdline && fail 'what the command had started is left'
spoil '{run: [./no-such-program], inputs: [Makefile], outputs: [train]}'
asked 3 'job.build.run' "$rq" run bad.yaml --out "$dir/out"
spoil '{run: ["true"], inputs: [Makefile], outputs: [never]}'
asked 3 'job.build.outputs: the command has not made never' "$rq" run bad.yaml --out "$dir/out"
spoil '{run: [sh, -c, "echo >>Makefile"], inputs: [Makefile], outputs: [train]}'
asked 3 'has changed what it is built of' "$rq" run bad.yaml --out "$dir/out"
spoil '{run: [make], inputs: ["*.none"], outputs: [train]}'
asked 64 'job.build.inputs: there is no file *.none' "$rq" run bad.yaml --out "$dir/out"
spoil '{run: [make], inputs: [Makefile], outputs: [../train]}'
asked 64 'does not lie below the directory' "$rq" run bad.yaml --out "$dir/out"
spoil '{run: [make], inputs: [Makefile]}'
asked 64 'build needs "outputs"' "$rq" lint bad.yaml
spoil '{run: [make, "{out}"], inputs: [], outputs: [train]}'
asked 64 'nothing is filled in here' "$rq" lint bad.yaml
grep -q 'inputs is empty' "$dir/said" || fail 'no inputs are let pass'
asked 64 'job.build: --untrusted starts nothing outside of the nodes' "$rq" run built.yaml --untrusted --rootfs / --out "$dir/out"
exit $failed
