#!/usr/bin/env bash
# rankrun under a real Slurm: srun needs no more than the program; a job on three nodes goes on with two when one is lost;
# one that is requeued goes on from its checkpoint as another attempt; what Slurm would end too early is said.
# deadline: 300 s
set -u
BIN=$(realpath "$BIN")
PATH=$BIN:$PATH
slurm=$PWD/tests/clusters/slurm bed=$TMPDIR/slurm
fails=0
fail() { echo "slurm: $*"; fails=$((fails + 1)); }
# KillWait is shorter than rankrun's grace, on purpose; GraceTime is of partition low.
$slurm up "$bed" 3 KillWait=9 "PartitionName=slow Nodes=ALL GraceTime=7 PriorityTier=1 PreemptMode=REQUEUE" ||
    { rc=$?; [ $rc = 77 ] && exit 77; fail "$slurm up: $rc"; exit 1; }
trap '$slurm down "$bed"' EXIT
cd "$TMPDIR" || exit 1
control() { $slurm in "$bed" ctl "$@"; }
mkfifo told
exec 3<>told
until_line() { # until_line PATTERN: reads what the job says until there is such a line, and keeps all of it in `said`
    local line
    said=
    while IFS= read -r -t 180 -u 3 line; do
        said+=$line$'\n'
        [[ $line =~ $1 ]] && return
    done
    fail "no line '$1' in: $said"
    return 1
}
has() { grep -q -- "$1" <<<"$said" || fail "no '$1' in: $said"; }
job() { # job FILE LINES: a batch script whose output is read above
    printf '#!/bin/bash\nexec >%s 2>&1\n%s\necho "the script ends with $?"\n' "$TMPDIR/told" "$2" >"$1"
}

# The whole command.
said=$(control srun -N 3 rankrun ranktrain --steps 5 2>&1) || fail "srun ends with $?: $said"
has 'of Slurm: --nnodes=3 --rdzv-endpoint=n0:2[0-9]* --rdzv-id='
has 'world 3, round 1'
grep -q 'KillWait is 9 s' <<<"$said" || fail "nobody told of KillWait: $said"
control srun -N 2 -n 4 rankrun true 2>&1 | grep -q -- '--ntasks-per-node=1' || fail "two agents on a node are not refused"

# A node is lost. Slurm ends srun when it has noticed, so the script's end is not waited for to see the job go on.
train='ranktrain --compute-ms=20 --log-every=10'
job lost.sh "rankrun outcome srun --no-kill rankrun --nnodes 2:3 --rdzv-conf profile=fast $train --steps=150"
control sbatch -N 3 --no-kill lost.sh >/dev/null
until_line '^step 30 ' && $slurm kill "$bed" n2
until_line 'the script ends with'
has 'world 2, round'
has 'the script ends with 0'
grep -q -- '--no-kill' <<<"$said" && fail "it was told of --no-kill: $said"
$slurm start "$bed" n2

# An agent is lost: srun says 137, the job's outcome is another.
job agent.sh "rankrun outcome srun --no-kill rankrun --nnodes 2:3 --rdzv-conf profile=fast $train --steps=150"
control sbatch -N 3 --no-kill agent.sh >/dev/null
until_line '^step 30 '
$slurm in "$bed" n1 pkill -KILL -o -x rankrun
until_line 'the script ends with'
has 'srun exited with 137, but the job succeeded'
has 'the script ends with 0'

# Requeued: another attempt of the same run, which goes on where the first one saved last.
job again.sh "echo attempt \${SLURM_RESTART_COUNT:-0}
srun rankrun --nnodes 2:3 $train --steps=400 --checkpoint-every=20 --checkpoint-dir=$TMPDIR/saves"
id=$(control sbatch --parsable -N 3 -p slow again.sh)
until_line '^step 60 '
has 'srun was started without --no-kill'
has 'has GraceTime=7 s'
control scontrol requeue "$id"
until_line '^attempt 1'
until_line 'resumed step'
resumed=$(sed -n 's/.*resumed step \([0-9]*\) .*/\1/p' <<<"$said")
[ "${resumed:-0}" -ge 40 ] || fail "it began at step ${resumed:-none}, not where it had saved: $said"
has '--rdzv-id='"$id"'$'
until_line 'the script ends with'
has 'the script ends with 0'
exit $((fails > 0))
