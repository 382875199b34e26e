#!/usr/bin/env bash
# A directory that somebody sent cannot make clean end a process or remove a file of somebody else's, nor
# judge, report, enter or halt write, read or act outside of it. Nor can a job that shares it.
# deadline: 240 s
set -u
dir=$TMPDIR/hostile
mkdir -p "$dir"
export XDG_CACHE_HOME=$TMPDIR/cache
. tests/live/says.bash
untouched() { # untouched WHAT
    [ "$(cat "$dir/home/mine")" = mine ] || fail "$1: a file outside was written to"
    [ "$(ls -A "$dir/home")" = "$(printf 'data\nmine')" ] || fail "$1: something was made or removed outside"
    [ -e "$dir/home/data/kept" ] || fail "$1: a file outside was removed"
    rm -rf "$dir/home" && mkdir -p "$dir/home/data" && touch "$dir/home/data/kept" && echo mine >"$dir/home/mine"
}
BIN=$(cd "$BIN" && pwd)
mkdir -p "$dir/home/data" && touch "$dir/home/data/kept" && echo mine >"$dir/home/mine"
boot=$(cat /proc/sys/kernel/random/boot_id) space=$(readlink /proc/self/ns/pid)
dead='{"name":"harness","pid":4194303,"start_ticks":1}'

# A process of the operator's own, with its temporary files where the sent directory's links lead.
env TMPDIR="$dir/home/data/tmp" sleep 1000 &
innocent=$!
sent=$dir/sent/run
mkdir -p "$sent"
ln -s ../../home/data "$sent/scratch"
for b in "00000000-0000-0000-0000-000000000000" "$boot"; do
    for mark in '' "RANKQUAKE_MARK=$(printf 'a%.0s' {1..32}).${space//[!0-9]/}.4194303.1"; do
        echo "{\"v\":1,\"boot\":\"$b\",\"space\":\"$space\",\"mark\":\"$mark\",\"keep\":false,\"harness\":$dead,\"nodes\":[$(note n0 $innocent)]}" \
            >"$sent/presence.json"
        says 5 "^rankquake clean: .*/run/scratch is a symbolic link" 'clean, a linked scratch' "$BIN/rankquake" clean "$dir/sent"
        kill -0 $innocent 2>/dev/null || { fail 'clean ended a process that is nobody'"'"'s business'; break 2; }
        untouched clean
    done
done
rm "$sent/scratch"
ln -s ../../home "$sent/control"
mv "$sent/presence.json" "$dir/note"
ln -s ../../note "$sent/presence.json"
says 5 '/run/presence.json is a symbolic link' 'clean, a linked note' "$BIN/rankquake" clean "$dir/sent"
rm "$sent/presence.json"
mkfifo "$sent/presence.json"
says 5 '/run/presence.json is a FIFO' 'clean, a FIFO' "$BIN/rankquake" clean "$dir/sent"
rm "$sent/presence.json" "$sent/control"
ln -s ../home "$dir/sent/elsewhere"
mkdir "$dir/home/data/scratch"
cp "$dir/note" "$dir/home/data/presence.json"
ln -s ../home/data "$dir/sent/other"
says 0 '^nothing to clean$' 'clean, linked runs' "$BIN/rankquake" clean "$dir/sent"
[ -d "$dir/home/data/scratch" ] || fail 'clean followed a link to another run'
echo 'job: {}' >"$dir/wrong.yaml"
says 64 'job needs "run"' 'run, linked runs' "$BIN/rankquake" run "$dir/wrong.yaml" --out "$dir/sent"
grep -q 'was killed' "$dir/said" && fail 'run followed a link to another run'
rm -r "$dir/home/data/scratch" "$dir/home/data/presence.json" "$dir/sent/other" "$dir/sent/elsewhere"

# A living process that is named as harness and node: nobody's shell is ended, or gone into.
: >"$sent/scenario.yaml"
echo "{\"v\":1,\"boot\":\"$boot\",\"space\":\"$space\",\"keep\":false,\"harness\":$(note harness $innocent),\"nodes\":[$(note n0 $innocent)]}" \
    >"$sent/presence.json"
says 3 "process $innocent does not answer to the mark" halt "$BIN/rankquake" halt "$sent"
says 3 "process $innocent does not carry the mark" enter "$BIN/rankquake" enter "$sent" n0 -- true
kill -0 $innocent 2>/dev/null || fail 'halt ended a process that a file names'
kill $innocent 2>/dev/null
wait $innocent 2>/dev/null
untouched 'halt and enter'
rm -r "$dir/sent"

# A recorded run whose reports are links.
cat >"$dir/s.yaml" <<'END'
scenario: short
cluster: {nodes: 1, store: none}
job: {run: [true]}
END
"$BIN/rankquake" run --isolation processes "$dir/s.yaml" --out "$dir/out" >"$dir/said" 2>&1 || { cat "$dir/said"; exit 1; }
run=$(echo "$dir"/out/*)
for name in report.html junit.xml report.json verdict.json; do
    cp -r "$run" "$dir/copy"
    ln -sf ../home/mine "$dir/copy/$name"
    says 0 "/copy/$name is a symbolic link, and none is followed" "judge, a linked $name" \
        "$BIN/rankquake" judge --no-programs "$dir/copy"
    untouched "judge, a linked $name"
    [ -L "$dir/copy/$name" ] || fail "judge took the link $name away"
    says 0 'short passed' "report, a linked $name" "$BIN/rankquake" report --no-programs "$dir/copy"
    untouched "report, a linked $name"
    rm -r "$dir/copy"
done
# The user's own link to a run is followed; its files are made anew, also where another name leads to them.
cp -r "$run" "$dir/copy"
ln "$dir/copy/report.html" "$dir/second"
echo old >"$dir/second"
ln -s copy "$dir/latest"
says 0 'short passed' 'judge by a link of my own' "$BIN/rankquake" judge --no-programs "$dir/latest"
[ "$(cat "$dir/second")" = old ] || fail 'judge wrote into a file with a second name elsewhere'
grep -q '<html' "$dir/copy/report.html" || fail 'judge wrote no page'
rm -r "$dir/copy" "$dir/latest" "$dir/second"
# What is read is in the directory, too, and no FIFO or device.
for name in history.jsonl scenario.yaml; do
    for verb in judge report; do
        cp -r "$run" "$dir/copy"
        cp "$dir/copy/$name" "$dir/elsewhere"
        ln -sf ../elsewhere "$dir/copy/$name"
        says 64 "/copy/$name is a symbolic link" "$verb, a linked $name" "$BIN/rankquake" $verb --no-programs "$dir/copy"
        rm "$dir/copy/$name"
        mkfifo "$dir/copy/$name"
        says 64 "/copy/$name is a FIFO and no plain file" "$verb, a FIFO" "$BIN/rankquake" $verb --no-programs "$dir/copy"
        rm -r "$dir/copy" "$dir/elsewhere"
    done
done
untouched reading

# A job that puts links where the harness writes and reads, in the disturbed run and not before it. In a
# root file system of its own it does not even see what the links lead to.
tree=$dir/tree
mkdir -p "$tree"/{bin,etc,home}
for file in $(type -P bash ln mv true); do
    cp -L "$file" "$tree/bin/"
    for library in $(ldd "$file" 2>/dev/null | grep -o '/[^ ]*'); do
        mkdir -p "$tree${library%/*}" && cp -Ln "$library" "$tree$library"
    done
done
ln -s bash "$tree/bin/sh"
job() { # job NAME SCRIPT: into $dir/NAME.yaml
    cat >"$dir/$1.yaml" <<END
scenario: $1
cluster: {nodes: 1, store: none}
job: {run: [sh, -c, '[ ! -d "\$OUT/control" ] || { $2; }'], env: {OUT: "{out}", MINE: "$dir/home/mine"}}
END
}
job report 'ln -s "$MINE" "$OUT/report.html"; ln -s "$MINE" "$OUT/junit.xml"'
job verdict 'ln -s "$MINE" "$OUT/verdict.json"'
job note 'ln -sf "$MINE" "$OUT/presence.json"'
job scratch 'mv "$OUT/scratch" "$OUT/aside"; ln -s "${MINE%/*}/data" "$OUT/scratch"'
job logs 'mv "$OUT/logs" "$OUT/aside"; ln -s "${MINE%/*}" "$OUT/logs"; exit 1'
job moved 'cd "$OUT/.." && mv "$OUT" "$OUT.aside" && ln -s "${MINE%/*}" "$OUT"; true'
ways=processes
"$BIN/rankquake" run --isolation namespaces "$dir/s.yaml" --out "$dir/try" >/dev/null 2>&1 &&
    ways='processes namespaces rootfs'
for way in $ways; do
    how=(--isolation "$way")
    [ $way = rootfs ] && how=(--set "cluster.rootfs=$tree")
    for name in report verdict note scratch logs moved; do
        timeout 300 "$BIN/rankquake" run "${how[@]}" "$dir/$name.yaml" --out "$dir/$way" >"$dir/said" 2>&1 </dev/null
        rc=$?
        untouched "a job that replaces $name, $way"
        case $name in
        report | verdict)
            [ $rc = 3 ] || fail "$name, $way: exit $rc, wanted 3"
            grep -q "$name.* is a symbolic link, and none is followed" "$dir/said" || fail "$name, $way: the link is not named" ;;
        scratch)
            [ $rc = 5 ] || fail "$name, $way: exit $rc, wanted 5"
            grep -q 'scratch is a symbolic link' "$dir/said" || fail "$name, $way: the link is not named" ;;
        *) [ $rc -le 1 ] || [ $rc = 3 ] || fail "$name, $way: exit $rc" ;;
        esac
    done
done
exit $bad
