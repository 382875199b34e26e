#!/usr/bin/env bash
# What is typed, and what is answered: plays a transcript, in which each line that begins with "$ " is given to a shell, and
# the lines behind it are what it must print, on standard output and standard error together, and its exit code where that is
# not 0 ("exit 64"). Says what differs.
#
#   typed.sh TRANSCRIPT            "N lines were answered as they must be", or each that was not; exit 0 or 1
#   typed.sh --write TRANSCRIPT    puts behind each line what it answers now; to be read before it is believed
#
# A line begins in an empty folder, with rankrun in its PATH and no other variable of the caller's; $SCENARIOS, which is not exported, is the
# folder above this one. What stores leave for the next on this host lies in an empty folder, too: nodes share /run, also with those of other
# runs. What begins with ". " is shell that each line behind it has before it. What no two runs share stands as N, ID, TIME or HOST - in JSON
# where what it says in words is the same number -, and a line with nothing on it as ~. In which order the lines of an answer come is not compared.
set -u
export LC_ALL=C
write='' wrong=0 n=0 before=''
[ "${1-}" != --write ] || { write=1; shift; }
file=$1
[ -r "$file" ] || { echo "typed.sh: $file: there is no such transcript"; exit 64; }
place=$(mktemp -d /tmp/typed.XXXXXX) || exit 3
scenarios=$(cd "${0%/*}/.." && pwd)
trap 'rm -rf "$place"' EXIT

host=$(hostname)
without_chance() {
    sed -E "s,$place/?,,g; s/\b$host\b/HOST/g"';
        s/("stop_ms":)([0-9]+)\b(.*"text":".*; stop )\2 ms/\1N\3N ms/; s/("rendezvous_ms":)([0-9]+)\b(.*"text":".*, rendezvous )\2 ms/\1N\3N ms/
        s/("start_ms":)([0-9]+)\b(.*"text":".*, start )\2 ms/\1N\3N ms/; s/("pid":)([0-9]+)\b(.*"text":".*pid )\2\b/\1N\3N/
        /^\{"(time|host|level)"/! { s/\b(pid|process) [0-9]+/\1 N/g; s/\b(stop|rendezvous|start) [0-9]+ ms/\1 N ms/g; s/"pid":[0-9]+/"pid":N/g }
        s/("(timestamp|total_run_time)":)[0-9]+/\1N/g; s/"worker_id":"[0-9]+"/"worker_id":"N"/; s/\bwaits [0-9]+ ms/waits N ms/g
        s/20[0-9]{2}-[0-9]{2}-[0-9]{2}[ T][0-9:.]+( UTC|Z)/TIME/g
        s/\b([0-9a-f]{16}){1,2}\b/ID/g; s/\b(ID|kept|torchelastic|rankrun|r)_[A-Za-z0-9]{8}\b/\1_N/g; s/(outcome|reason)\.[A-Za-z0-9]{1,8}\b/\1.N/g; s/^$/~/'
}
answer_to() { # answer_to LINE
    local rc folder=$place/here
    rm -rf "$folder" "$place/runtime"
    mkdir "$folder" "$place/runtime"
    (cd "$folder" && exec env -i PATH="$PATH" HOME=/tmp TMPDIR="$folder" XDG_RUNTIME_DIR="$place/runtime" LC_ALL=C sh -c "SCENARIOS='$scenarios'"$'\n'"$before$1" </dev/null) >"$place/said" 2>&1
    rc=$?
    without_chance <"$place/said"
    [ $rc = 0 ] || echo "exit $rc"
}
settle() { # what stood behind a line, against what is answered
    [ -n "$line" ] || return 0
    n=$((n + 1))
    have=$(answer_to "$line")
    if [ -n "$write" ]; then
        printf '$ %s\n%s\n' "$line" "$have" | sed '${/^$/d}'
    elif [ "$(sort <<<"$have")" != "$(sort <<<"$want")" ]; then # workers and launcher write beside each other
        wrong=$((wrong + 1))
        printf 'answered otherwise: %s\n  %s\n  and not: %s\n' "$line" "${have//$'\n'/ | }" "${want//$'\n'/ | }"
    fi
}
line='' want=''
play() {
    while IFS= read -r text; do
        case $text in
        '$ '*) settle; line=${text#\$ } want='' ;;
        '. '*) settle; line='' want='' before=$before${text#. }$'\n'; [ -z "$write" ] || printf '%s\n' "$text" ;;
        '#'* | '') settle; line='' want=''; [ -z "$write" ] || printf '%s\n' "$text" ;;
        *) want=$want${want:+$'\n'}$text ;;
        esac
    done
    settle
}
if [ -n "$write" ]; then
    play <"$file" >"$place/new" && cp "$place/new" "$file"
    exit
fi
play <"$file"
[ $wrong = 0 ] || { echo "$wrong of $n lines were answered otherwise"; exit 1; }
echo "$n lines were answered as they must be"
