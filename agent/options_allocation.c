/* Settles what a scheduler's variables say of a job: where its agents meet, how many there are, and
 * what of the scheduler's own settings is against what the job was told. */
#include "agent/host_name.h"
#include "agent/hosts/allocation.h"
#include "agent/hosts/slurm_conf.h"
#include "agent/hosts/srun.h"
#include "agent/options_given.h"
#include "agent/outcome.h"
#include "base/str.h"
#include "base/sys/file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { CONF_MAX = 8 << 20 };

static bool is_said(const char *value) {
    return value && value[0];
}

/* Who names a store, a rank or one node has said how the agents meet. */
static bool says_where(const struct options_given *g) {
    return is_said(g->rdzv_endpoint) || g->rdzv_backend || g->standalone || g->node_rank ||
           g->master_addr || g->master_port;
}

static int check_beside(const struct options_given *g, struct err *err) {
    if (g->standalone)
        return err_say(err, -EINVAL, "--standalone is one node; leave it or --rdzv-backend %s out",
                       g->rdzv_backend);
    if (g->node_rank || g->master_addr || g->master_port)
        return err_say(err, -EINVAL,
                       "--rdzv-backend %s finds ranks and master itself; leave --node-rank, "
                       "--master-addr and --master-port out",
                       g->rdzv_backend);
    return 0;
}

/* Fills in what is not said, as if it had been typed. */
static void take(struct options_given *g, const struct allocation *al, const char *scheduler) {
    if (!g->nnodes)
        g->nnodes = arena_printf(g->arena, "%d", al->nodes);
    if (!is_said(g->rdzv_endpoint))
        g->rdzv_endpoint = arena_printf(g->arena, "%s:%d", al->first, al->port);
    if (!g->rdzv_id)
        g->rdzv_id = al->run_id;
    g->rdzv_backend = "embedded";
    g->place = al->node;
    if (al->node == 0)
        options_notice(g, "of %s: --nnodes=%s --rdzv-endpoint=%s --rdzv-id=%s", scheduler,
                       g->nnodes, g->rdzv_endpoint, g->rdzv_id);
}

static int check_nodes(const struct options_given *g, const struct allocation *al,
                       struct err *err) {
    int64_t min;
    const char *nnodes = g->nnodes ? g->nnodes : "";
    const char *first = arena_strndup(g->arena, nnodes, strcspn(nnodes, ":"));
    if (str_to_i64(first, 1, INT32_MAX, &min) && min > al->nodes)
        return err_say(err, -EINVAL, "--nnodes %s: but srun started this step on %d host%s",
                       g->nnodes, al->nodes, al->nodes == 1 ? "" : "s");
    return 0;
}

/* --nnodes=1 of a step on several hosts is as many jobs, as under torchrun. */
static int settle_slurm(struct options_given *g, bool asked, struct err *err) {
    struct allocation al;
    int found = allocation_of_step(g->arena, &al, err);
    if (found < 0)
        return found;
    if (!found && asked)
        return err_say(err, -EINVAL,
                       "--rdzv-backend slurm: this is no step of a Slurm job (no "
                       "SLURM_STEP_NODELIST in the environment); start it by srun");
    if (!found || (!asked && (al.nodes == 1 || str_eq(g->nnodes, "1"))))
        return 0;
    int code = check_nodes(g, &al, err);
    if (!code)
        take(g, &al, "Slurm");
    return code;
}

/* How many pods there are no variable tells. Many Indexed Jobs are as many jobs of one pod each, so
 * the number that is said makes the difference. */
static int settle_kubernetes(struct options_given *g, bool asked, struct err *err) {
    struct allocation al;
    if (!asked && (!g->nnodes || str_eq(g->nnodes, "1")))
        return 0;
    int found = allocation_of_pod(host_name_full(g->arena), g->arena, &al, err);
    if (found < 0)
        return found;
    if (!found && asked)
        return err_say(err, -EINVAL,
                       "--rdzv-backend kubernetes: this is no pod of an Indexed Job (no "
                       "JOB_COMPLETION_INDEX in the environment): completionMode: Indexed");
    if (found && !g->nnodes)
        return err_say(err, -EINVAL,
                       "--rdzv-backend kubernetes needs --nnodes, or PET_NNODES in the pod: no "
                       "variable of Kubernetes says how many pods the job has");
    if (found)
        take(g, &al, "Kubernetes");
    return 0;
}

int options_settle_allocation(struct options_given *g, struct err *err) {
    bool slurm = str_eq(g->rdzv_backend, "slurm"), pods = str_eq(g->rdzv_backend, "kubernetes");
    if (slurm || pods) {
        int code = check_beside(g, err);
        return code ? code : slurm ? settle_slurm(g, true, err) : settle_kubernetes(g, true, err);
    }
    if (says_where(g))
        return 0;
    int code = settle_slurm(g, false, err);
    return code || g->place >= 0 ? code : settle_kubernetes(g, false, err);
}

/* ---- what would end it too early ---- */

static bool read_conf(struct slurm_conf *ret) {
    static const char *const usual[] = {"/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf",
                                        "/etc/slurm-llnl/slurm.conf", NULL};
    const char *said = getenv("SLURM_CONF");
    const char *const one[] = {said, NULL};
    struct err err;
    for (const char *const *path = is_said(said) ? one : usual; *path; path++) {
        BUF_FINI struct buf text = {0};
        if (file_read_plain(*path, CONF_MAX, &text, &err) < 0)
            continue;
        slurm_conf_parse(buf_str(&text), text.len, getenv("SLURM_JOB_PARTITION"), ret);
        return true;
    }
    return false;
}

static void tell_kill(const struct options *o, struct options_given *g) {
    if (o->nodes_min < o->nodes_max && srun_find(getenv("SLURM_JOB_ID")) == SRUN_ENDS)
        options_notice(g,
                       "srun was started without --no-kill: when a node fails Slurm ends the step, "
                       "which %d of %d nodes could go on with; give it to srun, and to sbatch",
                       o->nodes_min, o->nodes_max);
}

int options_settle_betrayal(struct options *o, struct options_given *g, struct err *err) {
    struct slurm_conf c;
    const char *job = getenv("SLURM_JOB_ID");
    (void)err;
    if (g->place != 0 || !is_said(job))
        return 0;
    tell_kill(o, g);
    if (!read_conf(&c))
        return 0;
    if ((int64_t)c.kill_wait_s * 1000 < o->shutdown_timeout_ms)
        options_notice(g,
                       "Slurm's KillWait is %d s, workers have a grace of %" PRId64
                       " ms: when the job's time is over they are killed within it; raise "
                       "KillWait, or give a --shutdown-timeout below",
                       c.kill_wait_s, o->shutdown_timeout_ms);
    if (c.grace_s > 0 && c.requeues && str_eq(getenv("ENVIRONMENT"), "BATCH"))
        options_notice(g,
                       "a job that is preempted here has GraceTime=%d s: a batch script that ends "
                       "within it is not requeued, so let it wait: docs/clusters.md",
                       c.grace_s);
    return 0;
}

/* ---- rankrun outcome ---- */

int options_settle_outcome(struct options *o, struct options_given *g, struct err *err) {
    int code = options_settle_format(o, g, err);
    if (code)
        return code;
    if (!g->rest[0] || !g->rest[0][0])
        return err_say(err, -EINVAL,
                       "no command to run; rankrun outcome [--dir DIR] srun ... rankrun ...");
    o->command = (const char *const *)(void *)g->rest;
    o->outcome_dir = is_said(g->dir) ? g->dir : ".";
    return 0;
}

const char *options_take_outcome_file(struct options_given *g) {
    const char *path = getenv(OUTCOME_VARIABLE);
    const char *kept = is_said(path) ? arena_strdup(g->arena, path) : NULL;
    unsetenv(OUTCOME_VARIABLE);
    return kept;
}
