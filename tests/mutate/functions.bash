# functions: which functions a program has, and which of them have run (executed/executed.c). To be sourced.

# "FILE:FUNCTION" of those that a program has, or of those whose first byte of code was noted; ":FUNCTION" of those that other files see.
# One that is there several times, for several processors, is left out: which of them runs is noted nowhere.
functions_of() { # functions_of PROGRAM [NOTES]
    [ -e "$1" ] || return
    local start
    start=$(nm -t d "$1" | sed -n 's/^0*\([0-9][0-9]*\) . __executable_start$/\1/p')
    awk -v start="$start" -v all="${2+no}" 'noted { ran[sprintf("%016x", $1 + start)]; next }
        $4 == "FILE" { file = $8 }
        $4 == "FUNC" && (all == "" || $2 in ran) { own = $8 ~ /\.arch_|\.(default|avx|resolver)/; sub(/\..*/, "", $8); if (!own) print ($5 == "LOCAL" ? file : "") ":" $8 }' \
        noted=1 <(grep -obUaP '\x01' "${2-/dev/null}" | cut -d : -f 1) noted= <(readelf -sW "$1")
}
# Whether a function of a file is among what such a list names.
names() { grep -sqxF -e "${2##*/}:$3" -e ":$3" "$1"; } # names LIST FILE FUNCTION
# Whether any function of a file is, as far as they can be told from those of others.
names_any() { grep -sq "^${2##*/}:" "$1"; } # names_any LIST FILE
