# rows: what recorded runs show of each of their faults, held against tests/live/rows.txt, in which the rows of every fault
# stand: FAULT ISOLATION USER ROW[,ROW...] SCRIPT. USER is root or user, and a ROW is one of
#   felt   evidence was found after it had come in force
#   gone   what lasts is undone; a job that was struck once has ended well
#   open   it was tried and had no effect, and the run is inconclusive
# To be sourced at the root of the tree. A script that sources runs.bash need not call anything here.

rows_script=${0#tests/} rows_script=${rows_script%.sh}
rows_seen=${OUT:-build/release}/rows/${rows_script//\//.}

# rows_of RUN-DIRECTORY EXIT-CODE: a line FAULT ISOLATION USER ROW for each that the run shows.
rows_of() {
    local isolation user=root
    [ "$(stat -c %u "$1/history.jsonl")" = 0 ] || user=user
    isolation=$(sed -n 's/.*"isolation":"\([a-z]*\)".*/\1/p' "$1/plan.json")
    {
        grep -oE '"id":"[^"]*","when":"([^"\\]|\\.)*","fault":"[a-z-]*"' "$1/plan.json"
        cat "$1/history.jsonl"
    } | awk -v code="$2" -v where="$isolation $user" '
        function text(key) { return match($0, "\"" key "\":\"[^\"]*\"") ? substr($0, RSTART + length(key) + 4, RLENGTH - length(key) - 5) : "" }
        /^"id"/ { fault[text("id")] = text("fault"); next }
        !/"kind":"fault-/ { next }
        { id = text("id") }
        /"kind":"fault-evidence"/ { felt[id] = 1 }
        /"kind":"fault-(unfelt|failed)"/ || /"kind":"fault-not-fired".*"why":"its target/ { open[id] = 1 }
        /"kind":"fault-recovered"/ { undone[id] = !/"error"/ }
        END {
            for (id in fault) {
                if (felt[id] && !open[id]) print fault[id], where, "felt"
                if (felt[id] && !open[id] && (undone[id] || code == 0)) print fault[id], where, "gone"
                if (open[id] && code == 2) print fault[id], where, "open"
            }
        }'
}

rows_note() { # rows_note RUN-DIRECTORY EXIT-CODE
    [ ! -e "$1/history.jsonl" ] || rows_of "$1" "$2" >>"$rows_seen"
}

# At the end of a script: it has shown what the table says that it shows. What a host lacks is in $lacking, as names of faults.
rows_check() {
    local code=$? user=root fault isolation whose rows script row
    [ $code = 0 ] || return $code
    [ "$(id -u)" = 0 ] || user=user
    while read -r fault isolation whose rows script; do
        [ "$script" = "$rows_script" ] || continue
        [ "$whose" = user ] || [ $user = root ] || continue
        [[ " ${lacking-} " != *" $fault "* ]] || continue
        for row in ${rows//,/ }; do
            grep -qx "$fault $isolation $whose $row" "$rows_seen" && continue
            echo "tests/live/rows.txt: no run showed \"$row\" of $fault ($isolation, $whose)"
            code=1
        done
    done < <(grep -v '^#' tests/live/rows.txt)
    return $code
}
mkdir -p "${rows_seen%/*}" && : >"$rows_seen"
trap 'rows_check; exit $?' EXIT
