# runs: a scenario is run, and then asked what came of it. $dir is the script's own folder, the run is in $dir/out, and what
# it said in $dir/said; the script ends with $failed. By "${as[@]}", if that is set; with $on_hosts on hosts, which may stamp
# late. To be sourced at the root of the tree.

. tests/live/rows.bash
export XDG_CACHE_HOME=$TMPDIR/cache
dir=$TMPDIR/runs
mkdir "$dir"
failed=0

fail() {
    echo "$*"
    cat "$dir/said"
    failed=1
}
runs() { # runs WHAT CODE FILE [ARGUMENT...]
    local what=$1 code=$2 rc run
    rm -rf "$dir/out"
    timeout 300 ${as[@]+"${as[@]}"} "$BIN/rankquake" run "$3" --out "$dir/out" "${@:4}" >"$dir/said" 2>&1 </dev/null
    rc=$?
    [ "$rc$code" = 20 ] && [ -n "${on_hosts-}" ] && only_hosts_were_late "$dir/said" && rc=0 # of patience.bash
    [ $rc = 4 ] && { tail -n 1 "$dir/said"; exit 77; }
    for run in "$dir"/out/*/; do rows_note "$run" $rc; done
    [ $rc = "$code" ] || fail "$what: exit $rc, not $code"
}
recorded() { # recorded WHAT PATTERN
    grep -qE -- "$2" "$dir"/out/*/history.jsonl || fail "$1: its history has no $2"
}
said() { # said WHAT PATTERN
    tr -s '\n ' '  ' <"$dir/said" | grep -qE -- "$2" || fail "$1: did not say: $2"
}
