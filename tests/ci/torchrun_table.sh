#!/usr/bin/env bash
# docs/torchrun.md: every row of a table with a column "tested by" names a test, and each of them is there and run;
# every option of rankrun --help stands in the page.
set -u
page=${PAGE:-docs/torchrun.md}
wrong=0
complain() {
    echo "$page: $*"
    wrong=1
}
# A test is there when its name stands in its file twice: as a function, and in the list of what is run.
declare -A run=()
while read -r times file name; do
    [ "$times" -lt 2 ] || run[$file $name]=1
done < <(grep -roE '\btest_[a-z0-9_]+\b' tests --include='test_*.c' | sed 's,^tests/,,; s,\.c:, ,' | sort | uniq -c)
# "agent/test_options: a sentence" is a test of that program, "live/x.sh" a script.
check_test() { # check_test NAME ROW
    local name=${1#*: }
    case $1 in
    *.sh) [ -f "tests/$1" ] || complain "there is no tests/$1: $2" ;;
    *': '*) [ -n "${run[${1%%:*} test_${name// /_}]-}" ] || complain "no test_${name// /_} is run by ${1%%:*}: $2" ;;
    *) complain "this names no test: $1: $2" ;;
    esac
}
rows=0 kind=''
while IFS= read -r line; do
    case $line in
    '| torchrun | | '*'| tested by |') kind=judged && continue ;;
    *'| tested by |') kind=told && continue ;;
    '|---'*) continue ;;
    '|'*) [ -n "$kind" ] || continue ;;
    *) kind='' && continue ;;
    esac
    rows=$((rows + 1)) row=${line:0:70}
    cell=${line% |} cell=${cell##* | }
    tests=${cell//[^\`]/}
    [ ${#tests} -ge 2 ] || complain "names no test: $row"
    while [[ $cell =~ \`([^\`]+)\`(.*) ]]; do
        cell=${BASH_REMATCH[2]}
        check_test "${BASH_REMATCH[1]}" "$row"
    done
    [ $kind = told ] || [[ $line =~ ' | '(same|better|not)' | ' ]] || complain "neither same, better nor not: $row"
done <"$page"
[ "$rows" -ge 100 ] || complain "only $rows rows"
for option in $("$BIN/rankrun" --help | sed '/^rankrun store:/,/^$/d' | grep -oE '^ +(-[a-zA-Z], )?--[a-z-]+' | grep -oE '\-\-[a-z-]+'); do
    case $option in --help | --version) continue ;; esac
    grep -q -- "$option\b" "$page" || complain "does not speak of $option"
done
# It sees what is wrong.
if [ -z "${PAGE-}" ]; then
    sed 's/^| `--role` .*/| `--role` | same | | `seeds\/no-such.sh` |/; s/: standalone wins over/: standalone loses to/
        s/^\(| `PYTHON_EXEC`.*|\) [^|]* |$/\1 - |/
        s/^\(| `--local-addr`.*\) | same |/\1 | |/' "$page" >"$TMPDIR/page.md"
    PAGE=$TMPDIR/page.md bash "$0" >"$TMPDIR/said" && complain 'a page with wrong rows is taken'
    for said in 'there is no tests/seeds/no-such.sh' 'no test_standalone_loses_to_every' 'names no test: | `PYTHON_EXEC`' \
        'neither same, better nor not: | `--local-addr`'; do
        grep -qF "$said" "$TMPDIR/said" || complain "of a page with wrong rows it is not said: $said"
    done
fi
exit $wrong
