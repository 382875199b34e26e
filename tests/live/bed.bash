# bed: hosts of a test bed of tests/clusters, up for as long as the script runs, in $bed. It is skipped where there can be none. The
# script has a function fail. To be sourced at the root of the tree.

bed=$TMPDIR/bed
bed_up() { # bed_up ssh|slurm HOW-MANY
    local program=tests/clusters/$1
    "$program" up "$bed" "$2" >"$TMPDIR/up" 2>&1
    case $? in
    0) trap "$program"' down "$bed"' EXIT ;;
    77) cat "$TMPDIR/up"; exit 77 ;;
    *) fail "no hosts: $(cat "$TMPDIR/up")"; exit 1 ;;
    esac
}
