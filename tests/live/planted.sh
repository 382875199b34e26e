#!/usr/bin/env bash
# Set-ups that suites for hardware pass, and in which jobs do not survive: each is planted here, and named by who must name it. Those of
# hosts without a scheduler are in preflight.sh, those that need runs under Slurm in tests/soak/slurm_faults.sh; docs/certify.md lists all.
# deadline: 300 s
set -u
BIN=$(realpath "$BIN")
PATH=$BIN:$PATH
rq=$BIN/rankquake slurm=$PWD/tests/clusters/slurm bed=$TMPDIR/slurm dir=$TMPDIR
bad=0
fail() { echo "planted: $*"; cat "$dir/said"; bad=1; }
says() { # says CODE PATTERN WHAT CMD...
    local code=$1 pattern=$2 what=$3 rc
    shift 3
    "$@" >"$dir/said" 2>&1 </dev/null
    rc=$?
    [ $rc = "$code" ] || fail "$what: $rc, not $code"
    tr -s '\n ' '  ' <"$dir/said" | grep -qE -- "$pattern" || fail "$what: did not say: $pattern"
}

# ---- a killed process that lingers: it writes to a storage that stands still ----

lingers() {
    unshare -m bash -c '
        set -e
        truncate -s 16M "$1/disk" && mkfs.ext4 -q "$1/disk" && mkdir "$1/mount" && mount -o loop "$1/disk" "$1/mount"
        exec 3<>"$1/mount/file"
        fsfreeze -f "$1/mount"
        sh -c "echo x >&3" & writer=$!
        until grep -q "^State:.D" /proc/$writer/status; do :; done # the kernel tells nobody that it waits
        kill -KILL $writer
        set +e
        "$2" preflight --probe leftovers >"$1/lingers" 2>&1
        echo "exit $?" >>"$1/lingers"
        fsfreeze -u "$1/mount"
        wait $writer
        exec 3>&-
        umount "$1/mount"' lingers "$dir" "$rq"
}
if [ "$(id -u)" = 0 ] && command -v fsfreeze mkfs.ext4 >/dev/null && lingers 2>"$dir/said"; then
    cp "$dir/lingers" "$dir/said"
    grep -q 'leftovers .*: process [0-9]* ([a-z]*) was killed and lingers in the kernel' "$dir/said" || fail 'a killed process that lingers is not named'
    grep -q '^exit 1' "$dir/said" || fail 'a killed process that lingers is no failure'
    "$rq" preflight --probe leftovers >"$dir/said" 2>&1
    grep -q lingers "$dir/said" && fail 'what has ended is taken for lingering'
else
    echo "no storage can be frozen here: $(tail -n 1 "$dir/said" 2>/dev/null)"
fi

# ---- another job on the host: one that an operator has forgotten ----

mkfifo "$dir/works"
exec 7<>"$dir/works"
rankrun --nnodes 1 --rdzv-id forgotten --no-python sh -c "echo works >$dir/works; exec sleep infinity" >"$dir/said" 2>&1 &
agent=$!
read -r -t 60 -u 7 line || fail 'the other job does not run'
says 1 'leftovers .*: job forgotten is at work there \(process [0-9]+, (sh|sleep)\): two jobs on a host' 'another job on the host' "$rq" preflight --probe leftovers
kill "$agent"
wait "$agent"
exec 7>&-
"$rq" preflight --probe leftovers >"$dir/said" 2>&1
grep -q 'job forgotten' "$dir/said" && fail 'a job that has ended is taken for one at work'

# ---- --no-kill is missing in a script ----

sed 's/ --no-kill//; /^#SBATCH *$/d' scenarios/slurm/train.sbatch >"$dir/kills.sbatch"
says 1 'script +.*kills.sbatch: srun in line [0-9]+ is without --no-kill: when a node fails Slurm ends the step' 'srun without --no-kill' \
    "$rq" preflight --probe script --script "$dir/kills.sbatch"
grep -q 'it has no #SBATCH --no-kill' "$dir/said" || fail 'sbatch without --no-kill is not named'
says 0 'script +no line of the script ends a job' 'with --no-kill' "$rq" preflight --probe script --script scenarios/slurm/train.sbatch
says 1 'script +.*none.sbatch: No such file' 'no script' "$rq" preflight --probe script --script "$dir/none.sbatch"
says 0 'script +no script for sbatch is named' 'no script asked for' "$rq" preflight --probe script

# ---- the store on a node of the job ----

cat >"$dir/store.yaml" <<'END'
cluster: {nodes: 3, store: {on: n0}}
job:
  nnodes: "2:3"
  rdzv_conf: {profile: fast}
  run: [ranktrain, --steps=80, --compute-ms=10, --checkpoint-every=10, "--checkpoint-dir={shared}/saves"]
timeline: [{id: dark, when: {step: 37}, fault: node-kill, on: n0}]
limits: {total: 2m, stall: 15s}
END
says 1 '(✗|x) liveness +no step for 15 s \(limits.stall\): dark \(node-kill\) took the store' 'the store on a node of the job' \
    "$rq" run "$dir/store.yaml" --out "$dir/store"
grep -q 'the store at n0:[0-9]* has not answered for' "$dir"/store/*/logs/n[12]/agent.log || fail 'nobody said that the store is gone'

# ---- a host without Slurm, and one whose controller does not answer ----

mkdir "$dir/fake"
says 0 'slurm +no host has Slurm.s scontrol' 'no Slurm' env PATH="$dir/fake" SLURM_CONF="$dir/fake/slurm.conf" "$rq" preflight --probe slurm
[ -e /etc/slurm/slurm.conf ] || says 0 'slurm +no host has Slurm.s scontrol and a slurm.conf' 'no configuration' "$rq" preflight --probe slurm
printf '#!/bin/sh\necho "slurm_load_ctl_conf error: Unable to contact slurm controller (connect failure)"\nexit 1\n' >"$dir/fake/scontrol"
chmod +x "$dir/fake/scontrol"
says 1 'slurm .*scontrol show config: slurm_load_ctl_conf error: Unable to contact' 'no controller' env PATH="$dir/fake:/usr/bin:/bin" SLURM_CONF="$dir/fake/slurm.conf" "$rq" preflight --probe slurm
printf '#!/bin/sh\nexec sleep 100\n' >"$dir/fake/scontrol"
says 1 'slurm .*scontrol show config: no answer within 10 s' 'a controller that hangs' env PATH="$dir/fake:/usr/bin:/bin" SLURM_CONF="$dir/fake/slurm.conf" "$rq" preflight --probe slurm
says 64 '--grace' 'a grace that is no number' "$rq" preflight --probe slurm --grace long

# ---- a Slurm whose settings betray a job ----

$slurm up "$bed" 2 JobRequeue=0 ReturnToService=0 ResumeProgram=/bin/true SuspendProgram=/bin/true ResumeTimeout=60 \
    "PartitionName=slow Nodes=ALL GraceTime=7 PriorityTier=1 PreemptMode=REQUEUE" \
    "PartitionName=lost Nodes=ALL PriorityTier=1 PreemptMode=CANCEL" >"$dir/said" 2>&1 ||
    { rc=$?; [ $rc = 77 ] && { cat "$dir/said"; exit $((bad ? 1 : 77)); }; fail "$slurm up: $rc"; exit 1; }
trap '$slurm down "$bed"' EXIT
control() { timeout 120 "$slurm" in "$bed" ctl "$@"; }
ask() { control "$rq" preflight --probe slurm "$@"; }
says 1 'KillWait is 5 s: .* is killed, and a save may take 30 s' 'KillWait' ask
for said in 'JobRequeue is 0: a job whose node fails or that is preempted is over' \
    'ReturnToService is 0: a node that was down stays so' \
    'ProctrackType is proctrack/linuxproc: a worker whose agent has died first is not ended with its step' \
    'UnkillableStepTimeout is 30 s: .* set 50 or more' \
    'ResumeTimeout is 60 s: a node that is not up again by then is taken for down' \
    'TaskPlugin is task/none: nothing keeps a job to its own memory' \
    'PrologFlags lack Contain' \
    'GraceTime of partition slow is 7 s: a job that ends within it' \
    'PreemptMode of partition lost is CANCEL'; do
    tr -s '\n ' '  ' <"$dir/said" | grep -qE -- "$said" || fail "did not say: $said"
done
ask --grace 4 >"$dir/said" 2>&1
grep -q KillWait "$dir/said" && fail 'a save of 4 s fits into a KillWait of 5 s'
ask --format json >"$dir/said" 2>&1
grep -q '"betray":\["KillWait is 5 s' "$dir/said" || fail 'no figures'

# ---- what rankrun itself says ----

says 64 'ntasks-per-node=1' 'another rankrun on a host' control srun -N 2 -n 4 rankrun true
says 0 "KillWait is 5 s" 'a grace above KillWait' control srun -N 2 rankrun ranktrain --steps 3
exit $bad
