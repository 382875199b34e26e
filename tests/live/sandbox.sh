#!/usr/bin/env bash
# rankrun --sandbox: whatever tests/live/spawn_escape.c tries is refused, and what jobs do goes on: as root, as an
# ordinary user, as root of a user namespace, below a guard that took the place of a dead one, and where the kernel
# has less, which is said. Without it the same can be done, so the attempts are worth something.
# deadline: 120 s
set -u
. tests/live/patience.bash
here=$(realpath "${OUT:-build/release}/tests/live")
bad=0
fail() {
    echo "$*"
    bad=1
}

dir=$TMPDIR/sandbox
mkdir "$dir" && cp "$BIN/rankrun" "$BIN/ranktrain" "$here/spawn_escape" "$here/spawn_refused" "$dir" || exit 1
chmod a+x "$TMPDIR" && chmod 0777 "$dir"
ordinary=()
as_root=
if [ "$(id -u)" = 0 ]; then
    as_root=yes
    ordinary=(setpriv --reuid=65534 --regid=65534 --clear-groups)
fi
# Where a setting lies: it is also tried by the name that it has there.
settings=/proc/sys/kernel

# ---- escapes ----

# said_by PREFIX... -- OPTION...: what the attempts of a worker print, into $dir/said. PREFIX starts rankrun and a
# process of the same user that is none of the job's.
said_by() {
    local -a prefix=()
    while [ "$1" != -- ]; do
        prefix+=("$1")
        shift
    done
    shift
    coproc outsider { exec "${prefix[@]}" "$dir/spawn_escape" outsider; }
    local pid hold=${outsider[1]} there=$outsider_PID
    read -r -u "${outsider[0]}" pid || fail "no process outside: ${prefix[*]}"
    (cd $settings && TMPDIR=$dir timeout 300 "${prefix[@]}" "$dir/rankrun" "$@" --no-python \
        "${attempt[@]}" "$dir/spawn_escape" "$pid" "$dir") >"$dir/said" 2>&1 </dev/null || fail "$* ended with $?: $(cat "$dir/said")"
    exec {hold}>&-
    wait "$there" 2>/dev/null
}
attempt=()

# expect_held WHAT PATTERN: every attempt was refused, but those of the pattern, and all else works.
expect_held() {
    grep -q '^closed ' "$dir/said" && grep -q '^works ' "$dir/said" || fail "$1: nothing was tried: $(cat "$dir/said")"
    grep -E '^(open|broken) ' "$dir/said" | grep -vE "^open ($2)\$" && fail "$1: that was not refused, or does not work"
}

# What this kernel or this container leaves open, and rankrun says.
known_gap() {
    local gap=nothing
    grep -q 'no Landlock' "$dir/said" && gap+='|outsider_.*|agent_signal'
    grep -q 'early Landlock' "$dir/said" && gap+='|.*_signal|outsider_socket'
    grep -q 'as root the workers may write' "$dir/said" && gap+='|.*setting.*|interrupts|disk|kernel_log'
    echo "$gap"
}

said_by "${ordinary[@]}" --
for name in clone3_plain type_into_terminal type_into_terminal_wide guard_limits agent_signal outsider_signal; do
    grep -qx "open $name" "$dir/said" || fail "an ordinary user without --sandbox: $name is refused already: $(cat "$dir/said")"
done
grep '^broken ' "$dir/said" && fail 'that does not work without --sandbox either'
said_by "${ordinary[@]}" -- --sandbox
expect_held 'an ordinary user' "$(known_gap)"
if [ "$as_root" ]; then
    said_by -- --sandbox
    expect_held root "$(known_gap)"
fi
if "${ordinary[@]}" unshare --user --map-root-user true 2>/dev/null; then
    said_by "${ordinary[@]}" unshare --user --map-root-user -- --sandbox
    expect_held 'root of a user namespace' "$(known_gap)"
fi

# The first time it kills its guard; a new one, executed and no fork, looks after what follows.
# shellcheck disable=SC2016 # the worker's words
attempt=(sh -c 'if mkdir "$2/was-here" 2>/dev/null; then kill -9 $PPID; sleep 60; fi; exec "$0" "$@"')
said_by "${ordinary[@]}" -- --sandbox --max-restarts=3
expect_held 'below a new guard' "$(known_gap)"
[ -d "$dir/was-here" ] || fail 'no guard was killed'
attempt=()

# Agent, guard and worker, as everybody may read of them: filtered, and with no power but that over files.
# shellcheck disable=SC2016 # the worker's words
said=$(timeout 300 "$dir/rankrun" --sandbox --no-python sh -c 'agent=$(sed -n "s/^PPid:\t*//p" "/proc/$PPID/status")
    for pid in $agent $PPID self; do sed -nE "s/^(CapPrm|CapBnd|NoNewPrivs|Seccomp):\t*/\1 /p" "/proc/$pid/status"; done' 2>&1)
for word in 'NoNewPrivs 1' 'Seccomp 2'; do
    [ "$(grep -cx "$word" <<<"$said")" = 3 ] || fail "agent, guard and worker: not three times $word: $said"
done
files=0x401b # CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_IPC_LOCK
while read -r set bits; do
    if [ "$set" = CapPrm ] || { [ "$set" = CapBnd ] && [ "$as_root" ]; }; then
        [ $((0x$bits & ~files)) = 0 ] || fail "capabilities are left: $set $bits"
    fi
done <<<"$said"

# ---- a kernel that has less ----

said_by "${ordinary[@]}" "$dir/spawn_refused" landlock -- --sandbox
expect_held 'without Landlock' "$(known_gap)"
[ "$(grep -c 'no Landlock here' "$dir/said")" = 1 ] || fail "without Landlock: it is not said once: $(cat "$dir/said")"
if [ "$as_root" ] && [ -w $settings/core_pattern ]; then
    said_by "$dir/spawn_refused" namespaces -- --sandbox
    expect_held 'root without namespaces' "$(known_gap)"
    grep -q 'as root the workers may write' "$dir/said" || fail "as root without namespaces: it is not said: $(cat "$dir/said")"
fi

# ---- jobs ----

for who in "${ordinary[*]}" ''; do
    # shellcheck disable=SC2086 # words
    outside=$(cd "$dir" && timeout 300 $who ./ranktrain --steps=5 2>&1 | tail -n 1)
    # shellcheck disable=SC2086
    inside=$(cd "$dir" && TMPDIR=$dir timeout 300 $who ./rankrun --sandbox --nproc-per-node 2 ./ranktrain --steps=5 2>"$dir/err" | tail -n 1)
    [ -n "$inside" ] && [ "$inside" = "$outside" ] ||
        fail "ranktrain: \"$inside\", without \"$outside\": $(cat "$dir/err")"
done
said=$(timeout 300 "$dir/rankrun" --sandbox --no-python chroot / true 2>&1)
[ $? = 1 ] && grep -q 'Operation not permitted' <<<"$said" || fail "chroot: $said"

# Data loaders: processes made each way, shared memory, a pool.
cat >"$dir/loaders.py" <<'PY'
import multiprocessing as mp, os, subprocess
from multiprocessing import shared_memory

def square(x):
    return x * x

if __name__ == "__main__":
    for way in mp.get_all_start_methods():
        with mp.get_context(way).Pool(2) as pool:
            assert pool.map(square, range(4)) == [0, 1, 4, 9], way
    block = shared_memory.SharedMemory(create=True, size=4096)
    block.close()
    block.unlink()
    subprocess.run(["true"], check=True)
    os.sched_setaffinity(0, os.sched_getaffinity(0))
    print("loaded", flush=True)
PY
if python3 -c 'from multiprocessing import shared_memory' 2>/dev/null; then
    said=$(cd "$dir" && timeout 300 ./rankrun --sandbox --nproc-per-node 2 loaders.py 2>&1)
    [ "$(grep -c '^loaded$' <<<"$said")" = 2 ] || fail "Python: $said"
fi
exit $bad
