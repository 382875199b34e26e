#!/bin/bash
# answers: asks a program what a table names, and says what was answered otherwise.
#
#   answers.sh TABLE DIR                 asks in DIR, which is made, without the variables of launcher and harness
#   answers.sh --write TABLE DIR         prints the table with what is answered now
#
# A table has blocks of a command, what it prints, in which * stands for anything, and its exit status:
#
#   $ ranktrain --steps=x
#   ranktrain: --steps=x: expected a whole number from 0 to 99999999
#   = 64
#
# A line that begins with ". " is shell that later commands need, and prints nothing; with "# ", a remark.
#
# SPDX-License-Identifier: Apache-2.0
set -u
write=''
[ "$1" != --write ] || { write=1; shift; }
table=$(realpath "$1") dir=$2
mkdir -p "$dir" || exit 1

ask() { # ask COMMAND: into $got and $code
    got=$(eval "$1" 2>&1 </dev/null)
    code=$?
}
show() {
    printf '$ %s\n' "$1"
    [ -z "$got" ] || printf '%s\n' "$got"
    echo "= $code"
}
compare() { # compare COMMAND TEXT CODE
    ask "$1"
    asked=$((asked + 1))
    local like=${2//\\/\\\\}
    like=${like//\[/\\[}
    like=${like//\?/\\?}
    # Of a glob's signs it has the star alone.
    # shellcheck disable=SC2053
    [[ $code = "$3" && $got == $like ]] && return
    others=$((others + 1))
    show "$1" | sed 's/^/otherwise: /'
}
ask_all() {
    local asked=0 others=0 command='' text='' line
    while IFS= read -r line; do
        case ${command:+in}$line in
        'in= '*)
            if [ "$write" ]; then ask "$command"; show "$command"; else compare "$command" "${text%$'\n'}" "${line#??}"; fi
            command=''
            ;;
        in*) text+=$line$'\n' ;;
        '$ '*) command=${line#??} text='' ;;
        '. '*) eval "${line#??}" ;;
        esac
        [ -z "$write" ] || case $line in '. '* | '#'* | '') [ "$command" ] || printf '%s\n' "$line" ;; esac
    done <"$table"
    [ "$write" ] || echo "$((asked - others)) of $asked answers are as they must be"
}

cd "$dir" || exit 1
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR RANKRUN_ROUND TORCHELASTIC_RESTART_COUNT TORCHELASTIC_RUN_ID RANKQUAKE_EVENTS RANKTRAIN_OPTIONS
export MASTER_PORT=29511
ask_all
