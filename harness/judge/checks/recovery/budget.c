/* Counts the rounds that cost a restart, and compares them with max_restarts. */
#include "harness/judge/checks/check.h"
#include "harness/judge/checks/recovery/attempts.h"

#include "base/str.h"

static const char broken[] = "Budget: a job is restarted max_restarts times, then it fails.";

static bool judge_worker(const struct trial *t, struct finding *f, const struct worker *w) {
    int max = t->scenario->job.max_restarts;
    if (w->max_restarts == max && w->restart_count <= max)
        return true;
    finding_prove(f, w->start_seq);
    if (w->max_restarts != max)
        return finding_fail(f, broken, finding_expected(f, "TORCHELASTIC_MAX_RESTARTS=%d", max),
                            "rank %d on %s of round %d was given %s", w->rank, w->node, w->round,
                            json_get_string(w->env, "TORCHELASTIC_MAX_RESTARTS", "(nothing)"));
    return finding_fail(f, broken, finding_expected(f, "no round after restart %d", max),
                        "round %d was started with restart count %d", w->round, w->restart_count);
}

/* The highest count that any worker was told: a round that never became complete may have failed.
 */
static int restarts_seen(const struct rounds *rs) {
    int highest = 0;
    for (size_t i = 0; i < rs->workers_n; i++)
        if (rs->workers[i]->restart_count > highest)
            highest = rs->workers[i]->restart_count;
    return highest;
}

/* rankrun --on-node-loss=gang: the loss of a node ends the job, whatever is left. */
static bool is_gang(const struct job_spec *job) {
    return str_eq(job_launcher_told(job, "--on-node-loss"), "gang");
}

/* rankrun --rdzv-conf max_free_rounds_per_hour: a job whose nodes only come and go is given up. */
static bool begins_too_often(const struct trial *t) {
    const char *said = job_rdzv_conf(&t->scenario->job, "max_free_rounds_per_hour");
    int64_t most = 500;
    if (said)
        str_to_i64(said, 0, INT64_MAX, &most);
    return most && (int64_t)t->rounds->n - 1 - restarts_seen(t->rounds) >= most;
}

/* The other direction: giving up while there is budget left and enough nodes to go on. */
static bool judge_end(const struct trial *t, struct finding *f) {
    const struct round *last = rounds_last_complete(t->rounds);
    size_t n;
    const struct agent_end *agents = check_agents(t, &n);
    int failed = 0, left = last ? t->scenario->job.max_restarts - restarts_seen(t->rounds) : 0;
    for (size_t i = 0; i < n; i++) {
        if (agents[i].fault_id || !agents[i].exit_ns || agents[i].signal || agents[i].code != 1)
            continue;
        failed++;
        finding_prove(f, agents[i].seq);
    }
    if (left <= 0 || failed < t->scenario->job.min_nodes || t->scenario->torchrun_semantics ||
        is_gang(&t->scenario->job) || begins_too_often(t)) {
        f->evidence[0] = 0;
        return true;
    }
    return finding_fail(f, broken,
                        "the job goes on while restarts are left and enough nodes are there",
                        "%d agent%s gave up after round %d with %d of %d restarts left", failed,
                        failed == 1 ? "" : "s", last->number, left, t->scenario->job.max_restarts);
}

static const char *idle(const struct scenario *s) {
    return str_eq(s->job.launcher, "template") && !s->cluster.scheduler
               ? "a template restarts by rules of its own"
               : NULL;
}

static bool judge(const struct trial *t, struct finding *f) {
    if (!check_sees_rounds(t, f))
        return false;
    if (t->scenario->cluster.scheduler)
        return attempts_judge(t, f, broken);
    for (size_t i = 0; i < t->rounds->workers_n; i++)
        if (!judge_worker(t, f, t->rounds->workers[i]))
            return false;
    return judge_end(t, f) &&
           finding_pass(f, "never above max_restarts, %d", t->scenario->job.max_restarts);
}

const struct check check_budget = {
    .name = "budget",
    .summary = "the job never exceeds max_restarts, and does not fail while restarts are left",
    .text =
        "Every worker is told the same TORCHELASTIC_MAX_RESTARTS, which is the one asked for; "
        "no round starts with a restart count above it; and the job does not fail while "
        "restarts are left and enough agents are there to go on, unless it was told to with the "
        "loss of a node (--on-node-loss=gang) or after so many rounds that cost no restart "
        "(max_free_rounds_per_hour). Under a scheduler this holds "
        "in each attempt of the job: one that is requeued has all its restarts again, for that "
        "is no failure of it; and what has failed with all of them used is not started again.",
    .example = "rankquake run scenarios/restart/worker-fails-until-budget.yaml",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(PROBE) | SOURCES(KERNEL),
    .not_applicable = idle,
    .judge = judge,
};
