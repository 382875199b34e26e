#!/usr/bin/env bash
# The test beds of tests/clusters: hosts come up, die, return and fall silent as they are told, `down` leaves nothing of them,
# and what makes no sense is refused before anything is started.
set -u
fails=0
fail() { echo "clusters: $*"; fails=$((fails + 1)); }
refused() { # refused RC PATTERN CMD...
    local rc=$1 pattern=$2 said
    shift 2
    said=$("$@" 2>&1)
    [ $? = "$rc" ] && grep -q -- "$pattern" <<<"$said" || fail "$*: wanted $rc and '$pattern', got: $said"
}

gone() { # gone BED DIR: nothing of it is there any more
    [ ! -e "$2" ] || fail "$1 left $2: $(ls -A "$2")"
    local file
    for file in $(grep -lsaF -- "$2" /proc/[0-9]*/cmdline); do # grep itself is gone by now
        [ ! -e "$file" ] || fail "$1 left a process: $(tr '\0' ' ' <"$file")"
    done
    grep -qF -- "$2" /proc/self/mountinfo && fail "$1 left mounts"
    return 0
}

ssh=tests/clusters/ssh bed=$TMPDIR/ssh
refused 64 usage: $ssh
refused 64 'HOSTS is a number' $ssh up "$bed" none
mkdir "$TMPDIR/full" && echo mine >"$TMPDIR/full/file"
refused 64 'is not empty' $ssh up "$TMPDIR/full" 2
$ssh down "$TMPDIR/full"
[ -e "$TMPDIR/full/file" ] || fail "down removed a folder that is not its own"

$ssh up "$bed" 2 || { rc=$?; [ $rc = 77 ] && exit 77; fail "$ssh up: $rc"; exit 1; }
trap '$ssh down "$bed"' EXIT
on() { $ssh in "$bed" ctl ssh -F "$bed/ssh_config" "$@"; }
[ "$(on n0 'hostname; id -u')" = $'n0\n0' ] || fail "no root on n0"
[ "$(on worker@n1 'hostname; id -u; cd; pwd')" = $'n1\n1000\n/run/worker' ] || fail "no ordinary user on n1"
# A shell of root's runs nothing that the caller's home has for it, and no host has to learn where the others are.
[ "$(on n0 'cd; pwd')" = /run/root ] && [ "$($ssh in "$bed" n1 bash -lc 'echo ~; cd; ls -A')" = /run/root ] || fail "root is at home in $HOME"
learned=$($ssh in "$bed" n1 ip neigh; $ssh in "$bed" ctl ip neigh)
[ "$(grep -c PERMANENT <<<"$learned")" = 4 ] && ! grep -qvE 'PERMANENT|^$' <<<"$learned" || fail "hosts learn: $learned"
on n0 "touch $bed/local/mine"
on n1 "test -e $bed/local/mine" && fail "n1 sees a file of n0's own disk"
refused 64 'is up already' $ssh up "$bed" 2
refused 64 'has no host n7' $ssh kill "$bed" n7
refused 64 'n0 is on' $ssh start "$bed" n0
$ssh kill "$bed" n1
refused 1 'n1 is off' $ssh kill "$bed" n1
$ssh start "$bed" n1
[ "$(on n1 hostname)" = n1 ] || fail "n1 is not back"
$ssh silence "$bed" n1 on
on -o ConnectTimeout=1 n1 true 2>/dev/null && fail "n1 answers without a card"
$ssh silence "$bed" n1 off
on n1 true || fail "n1 is still silent"
exec 5< <(exec $ssh in "$bed" n1 sh -c 'echo here; exec sleep 1000') # whatever still runs there
read -r -u 5
$ssh down "$bed" || fail "$ssh down"
gone $ssh "$bed"
refused 1 'is not up' $ssh in "$bed" ctl true

slurm=tests/clusters/slurm bed=$TMPDIR/slurm
$slurm up "$bed" 2 KillWait=7 || { rc=$?; [ $rc = 77 ] && exit $((fails > 0 ? 1 : 77)); fail "$slurm up: $rc"; exit 1; }
trap '$slurm down "$bed"' EXIT
control() { $slurm in "$bed" ctl "$@"; }
[ "$(control srun -N 2 -l hostname | sort)" = $'0: n0\n1: n1' ] || fail "no job on both nodes"
[ "$(control srun --uid=1000 -w n1 id -u)" = 1000 ] || fail "no job of an ordinary user"
control scontrol show config | grep -q '^KillWait *= 7 sec' || fail "slurm.conf has not got its line"
$slurm kill "$bed" n1
$slurm start "$bed" n1
control srun -N 2 true || fail "n1 takes no job any more"
exec 5< <(exec $slurm in "$bed" ctl srun -N 2 sh -c 'echo here; exec sleep 1000' 2>&1)
read -r -u 5
$slurm down "$bed" || fail "$slurm down"
gone $slurm "$bed"
exit $((fails > 0))
