# says: a command, how it must end and what it must say. Of a script that has its own folder, $dir, and ends with $bad. To
# be sourced at the root of the tree.

bad=0
fail() {
    echo "$*"
    cat "$dir/said"
    bad=1
}
says() { # says CODE PATTERN WHAT COMMAND...
    local code=$1 pattern=$2 what=$3 rc
    shift 3
    timeout 300 "$@" >"$dir/said" 2>&1 </dev/null
    rc=$?
    [ $rc = "$code" ] || fail "$what: exit $rc, wanted $code"
    grep -qE -- "$pattern" "$dir/said" || fail "$what: did not say $pattern"
}
# A process as presence.json has it: its pid, and the moment it began.
note() { # note NAME PID
    local stat
    stat=$(cat "/proc/$2/stat") && read -ra stat <<<"${stat##*) }"
    echo "{\"name\":\"$1\",\"pid\":$2,\"start_ticks\":${stat[19]}}"
}
