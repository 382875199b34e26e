/* A node of a Slurm of the job's own: its daemons run as long as the job does, n0's controller is
 * given the script. */
#include "base/str.h"
#include "harness/launch/launchers.h"
#include "harness/launch/words.h"

/* What its first arguments are stands in agent_argv; the others are the job's command. Daemons are
 * waited for by what they say of themselves: munged goes into the background when it answers, sbatch
 * waits for the controller. Of each end of a job, also one that it comes back from, the controller
 * tells by jobcomp/script, when it begins to end; one more job on all nodes starts when nothing is
 * left of it there. Then the other nodes are told, each by a FIFO in the shared directory. The
 * controller ends last, for what ends tells it so; a daemon that does not end within 20 s is killed.
 * The key of MUNGE is no secret: nobody else is in the nodes' network.
 *
 * USR1 starts a daemon again that has ended. */
static const char script[] =
    "set -u\n"
    "node=$1 nodes=$2 bin=$3 disk=$4/slurm shared=$5/slurm conf=" LAUNCHER_SLURM_CONF "\n"
    "at=${conf%/*}\n"
    "shift 5\n"
    "export SLURM_CONF=$conf PATH=$PATH:/usr/sbin:/sbin "
    "RANKRUN_BEFORE_WORKER=$bin/rankprobe\n"
    "fail() { echo \"n$node: $*\"; tail -n 5 $at/*.log 2>/dev/null; exit 3; }\n"
    "mkdir -p $at/munge $at/spool \"$disk/state\" \"$shared\" && chmod 755 $at/munge\n"
    "head -c 1024 /dev/zero >$at/key && chmod 400 $at/key\n"
    "printf '#!/bin/bash\\necho \"$JOBID $JOBSTATE\" >%s/told\\n' $at >$at/ended\n"
    "chmod 755 $at/ended\n"
    "cat >$SLURM_CONF <<CONF\n"
    "ClusterName=rankquake\n"
    "SlurmctldHost=n0\n"
    "SlurmUser=root\n"
    "AuthType=auth/munge\n"
    "AuthInfo=cred_expire=5,socket=$at/munge/socket\n"
    "StateSaveLocation=$disk/state\n"
    "SlurmdSpoolDir=$at/spool\n"
    "SlurmctldPidFile=$at/slurmctld.pid\n"
    "SlurmdPidFile=$at/slurmd.pid\n"
    "ProctrackType=proctrack/linuxproc\n"
    "TaskPlugin=task/none\n"
    "JobAcctGatherType=jobacct_gather/none\n"
    "JobCompType=jobcomp/script\n"
    "JobCompLoc=$at/ended\n"
    "SwitchType=switch/none\n"
    "MpiDefault=none\n"
    "SelectType=select/cons_tres\n"
    "SelectTypeParameters=CR_CPU\n"
    "SlurmdParameters=config_overrides\n"
    "SchedulerType=sched/backfill\n"
    "SchedulerParameters=batch_sched_delay=0,bf_interval=1,sched_min_interval=10000\n"
    "ReturnToService=2\n"
    "SlurmdTimeout=10\n"
    "SlurmctldTimeout=10\n"
    "KillWait=5\n"
    "InactiveLimit=0\n"
    "TCPTimeout=2\n"
    "BatchStartTimeout=10\n"
    "UnkillableStepTimeout=30\n"
    "PreemptType=preempt/partition_prio\n"
    "PreemptMode=REQUEUE\n"
    "NodeName=n[0-$((nodes - 1))] CPUs=64 RealMemory=512 State=UNKNOWN\n"
    "PartitionName=low Nodes=ALL Default=YES MaxTime=60 State=UP PriorityTier=1\n"
    "PartitionName=high Nodes=ALL MaxTime=60 State=UP PriorityTier=10 PreemptMode=OFF\n"
    "CONF\n"
    "munged --key-file=$at/key --socket=$at/munge/socket --pid-file=$at/munge/pid \\\n"
    "    --seed-file=$at/seed --log-file=$at/munged.log || fail 'munged does not start'\n"
    "controller= daemon= waiting= told=\n"
    "start() {\n"
    "    if [ $node = 0 ] && ! kill -0 $controller 2>/dev/null; then\n"
    "        slurmctld -D >>$at/slurmctld.log 2>&1 & controller=$!\n"
    "    fi\n"
    "    if ! kill -0 $daemon 2>/dev/null; then slurmd -D -N n$node >>$at/slurmd.log 2>&1 & "
    "daemon=$!; fi\n"
    "}\n"
    "trap start USR1\n"
    "trap 'kill $controller $daemon $waiting 2>/dev/null; ended=143' TERM\n"
    "ended=\n"
    "start\n"
    "if [ $node = 0 ]; then\n"
    "    mkfifo $at/told && exec 5<>$at/told\n"
    "    if [ ! -e \"$disk/submitted\" ]; then\n"
    "        sbatch -Q --requeue --open-mode=append -o \"$shared/output\" \"$@\" || fail "
    "'sbatch took no job'\n"
    "        : >\"$disk/submitted\"\n"
    "    fi\n"
    "    while [ -z \"$ended\" ]; do\n"
    "        IFS=' ' read -r -u 5 job state || continue\n"
    "        echo \"slurm: job $job: $state\"\n"
    "        [ $job = 1 ] || continue\n"
    "        case $state in\n"
    "        COMPLETED) ended=0 ;;\n"
    "        FAILED | CANCELLED* | TIMEOUT | NODE_FAIL | BOOT_FAIL | DEADLINE | OUT_OF_MEMORY) "
    "ended=1 ;;\n"
    "        esac\n"
    "    done\n"
    "    cat \"$shared/output\" 2>/dev/null\n"
    "    echo ${ended:-0} >\"$shared/ended\"\n"
    "    scontrol update NodeName=n[0-$((nodes - 1))] State=RESUME >/dev/null 2>&1\n"
    "    timeout 30 salloc -Q -N $nodes --exclusive true\n"
    "    mkfifo \"$shared/gone\" && exec 6<>\"$shared/gone\"\n"
    "    for other in \"$shared\"/over.*; do\n"
    "        [ -p \"$other\" ] && exec {fd}<>\"$other\" && echo over >&$fd && told+=.\n"
    "    done\n"
    "else\n"
    "    mkfifo \"$shared/over.$node\" 2>/dev/null\n"
    "    read -r _ <\"$shared/over.$node\" & waiting=$!\n"
    "    while kill -0 $waiting 2>/dev/null; do wait $waiting; done\n"
    "fi\n"
    "end() {\n"
    "    local guard\n"
    "    kill $1 2>/dev/null\n"
    "    sleep 20 & guard=$!\n"
    "    while kill -0 $1 2>/dev/null; do\n"
    "        wait -n $1 $guard\n"
    "        kill -0 $guard 2>/dev/null || kill -KILL $1 2>/dev/null\n"
    "    done\n"
    "    kill $guard 2>/dev/null\n"
    "    wait $guard\n"
    "}\n"
    "end $daemon\n"
    "if [ $node = 0 ]; then\n"
    "    for ((i = 0; i < ${#told}; i++)); do read -r -t 30 -u 6 _ || break; done\n"
    "    end $controller\n"
    "elif [ -p \"$shared/gone\" ]; then\n"
    "    exec 7<>\"$shared/gone\" && echo gone >&7\n"
    "fi\n"
    "munged --stop --socket=$at/munge/socket >/dev/null 2>&1\n"
    "[ -n \"$ended\" ] || read -r ended 2>/dev/null <\"$shared/ended\"\n"
    "exit ${ended:-0}\n";

static const char *const *agent_argv(struct arena *a, const struct launch *l) {
    struct words w = {.arena = a};
    words_add(&w, "bash");
    words_add(&w, "-c");
    words_add(&w, script);
    words_add(&w, "slurm");
    words_put(&w, "%d", l->node->index);
    words_put(&w, "%d", l->plan->scenario->cluster.nodes);
    words_add(&w, l->bin);
    words_add(&w, l->disk);
    words_add(&w, l->shared);
    words_add_all(&w, l->run);
    return w.v;
}

static const char *const *agent_env(struct arena *a, const struct launch *l) {
    return NULL;
}

const struct launcher launcher_slurm = {
    .name = "slurm",
    .text = "a real Slurm in the nodes (cluster.scheduler), which is given a script",
    .agent_argv = agent_argv,
    .agent_env = agent_env,
};
