# What a run must not leave, and how it is found; read by the scripts that kill harnesses. $out is where
# their runs go, $BIN where the programs lie.

# Every process of a run carries the run directory or our programs' folder in its command line or is a
# descendant in the run's session; a mark in the environment finds them all.
export RANKQUAKE_TEST_MARK=killed-$$-$RANDOM
marked() {
    grep -lsa "RANKQUAKE_TEST_MARK=$RANKQUAKE_TEST_MARK" /proc/[0-9]*/environ 2>/dev/null |
        cut -d/ -f3 | grep -vxE "$$|$BASHPID" | while read -r pid; do
        exe=$(readlink "/proc/$pid/exe") || continue
        case $exe in "$BIN"/* | */ranktrain | */rankprobe | */rankrun | */rankquake) echo "$pid $exe" ;; esac
    done
}
# The namespaces that processes of the run live in, and whether any process still lives in one of them. They are held open: the
# number of one that has gone is given to the next, which may be another run's.
spaces=()
held=()
note_spaces() {
    local own pid exe space fd
    own=$(readlink /proc/self/ns/net)
    for fd in ${held[@]+"${held[@]}"}; do exec {fd}<&-; done
    spaces=() held=()
    while read -r pid exe; do
        { exec {fd}<"/proc/$pid/ns/net"; } 2>/dev/null || continue
        space=$(readlink "/proc/self/fd/$fd")
        if [ "$space" = "$own" ] || [[ " ${spaces[*]-} " == *" $space "* ]]; then
            exec {fd}<&-
        else
            spaces+=("$space") held+=("$fd")
        fi
    done < <(marked)
    [ ${#spaces[@]} -gt 0 ] || { echo 'no namespaces were seen while it ran'; return 1; }
}
inhabited() {
    local space
    for space in ${spaces[@]+"${spaces[@]}"}; do
        for p in /proc/[0-9]*/ns/net; do [ "$(readlink "$p" 2>/dev/null)" = "$space" ] && echo "$space $p"; done
    done
}
# Control groups below our own in which nobody is: one in which somebody is belongs to a process that is found, or to another
# harness of this host.
empty_cgroups() {
    local controllers path dir
    while IFS=: read -r _ controllers path; do
        find "/sys/fs/cgroup/${controllers:-unified}$path" -mindepth 1 -maxdepth 1 -type d -name 'rank*' 2>/dev/null
    done </proc/self/cgroup | while read -r dir; do
        [ -n "$(find "$dir" -name cgroup.procs -exec cat {} + 2>/dev/null)" ] || echo "cgroup $dir"
    done
}
# Waits for a condition that the kernel brings about; 10 s at most.
nothing_left() {
    local end=$((SECONDS + 10)) left
    while left=$(marked; empty_cgroups) && [ -n "$left" ]; do
        [ $SECONDS -lt $end ] || { echo "still there: $left"; return 1; }
        read -rt 0.05 <> <(:) || :
    done
    left=$(inhabited)
    [ -z "$left" ] || { echo "still inhabited: $left"; return 1; }
    ! grep -F "$out" /proc/self/mountinfo || { echo "a mount is left"; return 1; }
    ! ls -d /dev/shm/*rank* 2>/dev/null || { echo "shared memory is left"; return 1; }
}
