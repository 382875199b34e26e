# group: bugs that nobody has killed soon are shown to the rest of scenarios and scripts together, some of them in one build. What
# passes with all of them passes with each, but where one hides another: a score may come out too low by that, never too high. What
# does not pass is asked of each alone. To be sourced by ci/mutate.

# "ID ID ...": each with at most SIZE bugs, all in other files.
group_up() { # group_up SIZE: of the identities on the standard input
    awk -v size="$1" '{
        file = $0; sub(":.*", "", file)
        for (g = 1; n[g] == size || ((g, file) in has); g++);
        has[g, file]; members[g] = members[g] (n[g]++ ? " " : "") $0; if (g > groups) groups = g
    } END { for (g = 1; g <= groups; g++) print members[g] }'
}
# Whether an oracle has still to be asked about a bug.
group_awaits() { # group_awaits ORACLE IDENTITY
    local name=${2//\//%}
    case $1 in
    scenarios) grep -qs '^scenarios late ' "$verdicts_of/$name" ;;
    suite) ! grep -qs ' killed$' "$kept/asked/$name" && ! grep -qs '^suite [^l]' "$verdicts_of/$name" ;;
    esac
}
# What has not been asked about a bug and runs its function.
group_unasked() { # group_unasked ORACLE IDENTITY
    local item function=${2#*:} asked=$kept/asked/${2//\//%}
    function=${function%%:*}
    while read -r item; do
        case $item in *.yaml | *.sh) executes "$item" "${2%%:*}" "$function" || continue ;; esac
        echo "$item"
    done < <(items "$1" "${2%%:*}" "$(holders_of "${2%%:*}")" | awk -v oracle="$1" 'NR == FNR { if ($1 == oracle) asked[$2]; next } !($1 in asked)' <(cat "$asked" 2>/dev/null) -)
}
# The programs of all, and one that is asked; fails where one cannot be built with them.
group_plant() { # group_plant COPY ITEM IDENTITY...
    local copy=$1 item=$2 program identity objects programs=(build/bin/{rankrun,rankquake,ranktrain,rankprobe,rankquake-node})
    shift 2
    if [ "$group_planted" != "$*" ]; then
        plant_undo "$state/intact" "$copy"
        new_cache "$copy.cache" "$(printf '%s\n' "$@" | grep -m 1 '^scenarios/jobs/ranktrain/data/' || echo "$1")"
        group_planted=$*
    fi
    [[ $item == *.yaml || $item == *.sh ]] || programs+=("build/release/$item" $(unit_spawnees_of "$item.c" | sed 's,^,build/release/,;s/\.c$//'))
    for program in "${programs[@]}"; do
        objects=()
        for identity in "$@"; do
            [[ $(holders_of "${identity%%:*}") != *" $program "* ]] || objects+=("$kept/objects/${identity//\//%}.o")
            ! grep -qsF "#include \"${identity%%:*}\"" "$copy/${program/build\/release/.}.c" || return 1
        done
        [ ${#objects[@]} = 0 ] || grep -qsxF "$program" "$copy.changed" || plant_objects "$copy" "$kept/links" "$program" "${objects[@]}" || return 1
    done
}
# Asks one item about each of them; who is killed is noted in $gone.
group_part() { # group_part ORACLE COPY ITEM IDENTITY...
    local oracle=$1 copy=$2 item=$3 identity
    shift 3
    for identity in "$@"; do
        group_plant "$copy" "$item" "$identity" || continue
        ask_item "$oracle" "$copy" "$item"
        note_answer "$oracle" "$item" "$identity" "$said"
        [ "$said" != killed ] || gone[$identity]=1
    done
}
group_ask() { # group_ask ORACLE COPY IDENTITY...: leaves what passes in what has been asked
    local oracle=$1 copy=$2 item identity together
    local -A who=() gone=()
    shift 2
    for identity in "$@"; do
        group_awaits "$oracle" "$identity" || continue
        for item in $(group_unasked "$oracle" "$identity"); do who[$item]+=" $identity"; done
    done
    while read -r item; do
        together=()
        for identity in ${who[$item]-}; do [ -n "${gone[$identity]-}" ] || together+=("$identity"); done
        [ ${#together[@]} -gt 1 ] && group_plant "$copy" "$item" "${together[@]}" || continue
        run_item "$copy" "$item" "$(limit_of "$item")" "$copy.cache" "$copy.said"
        if [ "$(answer_of "$oracle" "$rc")" != passed ]; then
            group_part "$oracle" "$copy" "$item" "${together[@]}"
            continue
        fi
        for identity in "${together[@]}"; do note_answer "$oracle" "$item" "$identity" passed; done
    done < <(printf '%s\n' "${!who[@]}" | sed '/^$/d' | by_worth "$oracle")
}
# Then each is tried as any other, and what was asked is known.
group_try() { # group_try COPY IDENTITY...
    local copy=$1 oracle identity group_planted=
    shift
    for oracle in scenarios suite; do
        [[ ,$oracles, != *,$oracle,* ]] || group_ask "$oracle" "$copy" "$@"
    done
    plant_undo "$state/intact" "$copy"
    for identity in "$@"; do
        try "$copy" "$identity"
        say_tried "$identity"
    done
}
