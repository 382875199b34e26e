/* Measures how long the job stood still, and compares it with the limits of the scenario. */
#include "harness/judge/checks/check.h"

#include "base/str.h"

/* A worker or agent that was made to stand still, for as long as nobody ends that; NULL: none. */
static const struct incident *hang_of(const struct trial *t, int64_t t_ns) {
    for (size_t i = 0; i < t->incidents->n; i++) {
        const struct incident *in = t->incidents->v[i];
        bool over = in->recovered && in->recovered_ns <= t_ns;
        if (in->in_force && in->t0_ns <= t_ns && !over && str_ends(in->fault, "-hang"))
            return in;
    }
    return NULL;
}

/* A fault that took what serves the store, which has not come back; NULL: none did. */
static const struct incident *store_taken(const struct trial *t, int64_t t_ns) {
    for (size_t i = 0; i < t->incidents->n; i++) {
        const struct incident *in = t->incidents->v[i];
        bool over = in->recovered && in->recovered_ns <= t_ns;
        if (in->in_force && in->t0_ns <= t_ns && !over && check_took_store(t, in))
            return in;
    }
    return NULL;
}

static void fail_without_store(struct finding *f, const struct incident *in, double s) {
    finding_fail(f, "Liveness: the job goes on when a node is lost.", "the next step in time",
                 "no step for %g s (limits.stall): %.40s (%.40s) took the store, and nobody agrees "
                 "on a round without it; serve it where no node of the job does, or by an etcd of "
                 "three members",
                 s, in->id, in->fault);
    finding_prove(f, in->force_seq);
}

static void fail_stall(const struct trial *t, struct finding *f, const struct record *limit,
                       double s) {
    const struct incident *in = hang_of(t, limit->t_ns);
    if (in) {
        finding_fail(f, "Liveness: the job goes on, whoever stands still.", "the next step in time",
                     "no step for %g s (limits.stall), and %s (%s) was not over: for: would end "
                     "it, or a timeout of the job",
                     s, in->id, in->fault);
        finding_prove(f, in->force_seq);
        return;
    }
    const struct incident *taken = store_taken(t, limit->t_ns);
    if (taken) {
        fail_without_store(f, taken, s);
        return;
    }
    finding_fail(f, "Liveness: the job goes on when nothing is broken.", "the next step in time",
                 "no step for %g s (limits.stall)%s", s,
                 scenario_observes(t->scenario, "step")
                     ? ", as far as its output tells; raise it where a job prints less often"
                     : "");
}

static bool judge(const struct trial *t, struct finding *f) {
    const struct record *limit = history_newest(t->history, SOURCE_HARNESS, "limit");
    if (!limit && history_newest(t->history, SOURCE_HARNESS, "interrupted"))
        return finding_skip(f, "the run was interrupted before it came to an end");
    if (!limit)
        return finding_pass(f, "the job kept going and came to an end");
    const char *name = record_text(limit, "name");
    double s = (double)record_i64(limit, "ns", 0) / 1e9;
    if (str_eq(name, "start"))
        finding_fail(f, "Liveness: the job gets going.", "the first step of all workers in time",
                     "no first step of all workers within limits.start, %g s", s);
    else if (str_eq(name, "stall"))
        fail_stall(t, f, limit, s);
    else
        finding_fail(f, "Liveness: the job comes to an end.", "the end of the job in time",
                     "it was still running after %g s (limits.%s)", s, name);
    if (*record_text(limit, "hang"))
        str_copy(f->where, sizeof(f->where), "hang/");
    finding_prove(f, limit->seq);
    return false;
}

const struct check check_liveness = {
    .name = "liveness",
    .summary = "the job never stands still for longer than its limits",
    .text = "limits.start bounds the first step of all workers, limits.stall the time without a "
            "step although nothing is broken, limits.total the whole run. A run that passes one of "
            "them is stopped, and the stacks of its processes are kept in the run directory.",
    .example = "rankquake run scenarios/restart/worker-hangs.yaml",
    .class = CLASS_INVARIANT,
    .leads = true,
    .sources = 0,
    .judge = judge,
};
