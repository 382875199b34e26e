#!/usr/bin/env bash
# The verb sim while it runs: on a terminal one line that is written over, elsewhere whole lines; interrupted,
# it sums up what was done, ends 130 and leaves nothing running.
# deadline: 120 s
set -u
rq=$BIN/rankquake
dir=$TMPDIR/bar
mkdir "$dir"
failed=0

fail() {
    echo "$*"
    failed=1
}

# Its processes are known by a directory that nobody else names.
running() { grep -lsa -- "$dir/foun[d]" /proc/[0-9]*/cmdline; }

ended_well() { # ended_well WHERE RC: of one that was interrupted, whose words are in $dir/WHERE
    [ "$2" = 130 ] || fail "$1: interrupted, it ends with $2, not 130"
    grep -q '^outcomes .* 0 seeds violate an invariant' "$dir/$1" || fail "$1: no summary of what was done: $(cat "$dir/$1")"
    grep -q '^marks' "$dir/$1" || fail "$1: no marks"
    [ -z "$(running)" ] || fail "$1: something runs on: $(running)"
    [ ! -e "$dir/found" ] || fail "$1: the directory is left, with nothing in it"
}

coproc plain { exec "$rq" sim --seeds 1:2000000000 --jobs 2 --out "$dir/found" 2>&1; }
pid=$plain_PID
exec {said}<&"${plain[0]}"
read -r -t 180 -u "$said" line || fail 'it says nothing'
[[ $line == 'sim, seeds 1:2000000000, '* ]] || fail "the seeds do not stand first: $line"
kill -INT "$pid"
timeout 300 cat <&"$said" >"$dir/plain"
wait "$pid"
ended_well plain $?
! grep -q $'\r' "$dir/plain" || fail 'a bar is drawn where there is no terminal'

# script(1) makes a terminal; what is typed there is ^C, once the bar has been drawn.
if ! command -v script >/dev/null; then
    [ $failed = 1 ] && exit 1
    echo 'script is missing (bsdutils), which makes a terminal'
    exit 77
fi
export TERM=xterm
coproc bar { exec script -qec "stty cols 200; exec '$rq' sim --seeds 1:2000000000 --jobs 2 --out '$dir/found'" /dev/null 2>&1; }
pid=$bar_PID
exec {said}<&"${bar[0]}" {typed}>&"${bar[1]}"
drawn=
until [[ $drawn == *' an hour  '*'marks '*' violations 0'* ]]; do
    read -r -t 180 -d $'\r' -u "$said" drawn || break
done
[[ $drawn == *" violations 0" ]] || fail "no bar is drawn: $drawn"
printf '\003' >&"$typed"
timeout 300 cat <&"$said" | tr -d '\r' >"$dir/bar"
wait "$pid"
ended_well bar $?
exit $failed
