# What bash makes of command lines: bash completed.bash FOLDER "WORD..."... prints "WORDS -> CANDIDATES" each, by the completions
# in FOLDER, as if TAB had been typed behind the last word. Words are parted by blanks; bash parts them at = too.
folder=$1
shift
compopt() { :; } # only of a line that is really typed
for typed; do
    read -ra COMP_WORDS <<<"${typed//=/ = }"
    [[ $typed != *' ' ]] || COMP_WORDS+=('')
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_LINE=$typed COMPREPLY=()
    # shellcheck disable=SC1090
    . "$folder/${COMP_WORDS[0]}"
    "$(complete -p "${COMP_WORDS[0]}" | sed 's/.*-F \([^ ]*\).*/\1/')"
    echo "$typed -> $(printf '%s\n' "${COMPREPLY[@]}" | sort -u | paste -sd' ')"
done
