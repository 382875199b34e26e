/* Compares the last loss with that of the control run. */
#include "harness/judge/checks/check.h"

#include <math.h>

static const char broken[] = "Loss: the run ends about where the control run does.";

/* The last step that was told, and the mean of the losses that were told with it. */
struct end {
    int64_t step, seq;
    double sum;
    int n;
};

/* Of the last round only: whoever was there before has been left behind. */
static struct end end_of(const struct trial *t) {
    struct end e = {.step = -1};
    int last = t->rounds->n ? t->rounds->v[t->rounds->n - 1]->number : 0;
    history_each(r, t->history) {
        const struct worker *w = r->pid ? rounds_worker_at(t->rounds, r->pid, r->t_ns) : NULL;
        const struct json *loss = record_get(r, "loss");
        int64_t step = record_i64(r, "step", -1);
        if (r->source != SOURCE_JOB || !record_is(r, "step") || !loss || !w || w->round != last ||
            step < e.step)
            continue;
        if (step > e.step)
            e = (struct end){.step = step, .seq = r->seq};
        e.sum += json_number(loss, NAN);
        e.n++;
    }
    return e;
}

static const char *idle(const struct scenario *s) {
    return !s->expect.loss_within ? "the scenario sets no loss_within" : NULL;
}

static bool judge(const struct trial *t, struct finding *f) {
    const struct record *control = history_newest(t->history, SOURCE_HARNESS, "control");
    const struct json *theirs = control ? record_get(control, "loss") : NULL;
    struct end e = end_of(t);
    if (!theirs)
        return finding_unknown(f, broken, "the control run reported no loss");
    if (!e.n)
        return finding_unknown(f, broken, "no worker of the last round told a loss");
    double of_control = json_number(theirs, 0), loss = e.sum / e.n;
    double off = 100 * fabs(loss - of_control) / (fabs(of_control) > 0 ? fabs(of_control) : 1);
    finding_prove(f, control->seq, e.seq);
    if (!round_ended_well(t->rounds->v[t->rounds->n - 1]))
        return finding_fail(f, broken, "a last round that ends well",
                            "the last round did not, so its loss of %.4g counts for nothing", loss);
    if (isfinite(loss) && off <= t->scenario->expect.loss_within) {
        f->evidence[0] = 0;
        return finding_pass(f, "%.4g after step %lld, %.1f %% from the %.4g of the control run",
                            loss, (long long)e.step, off, of_control);
    }
    const char *expected = finding_expected(f, "loss_within: %d%% of %.4g",
                                            t->scenario->expect.loss_within, of_control);
    return finding_fail(f, broken, expected, "%.4g after step %lld", loss, (long long)e.step);
}

const struct check check_loss = {
    .name = "loss",
    .summary = "the last loss is close to that of the control run",
    .text = "expect.loss_within, for jobs whose weights are not the same bit by bit in every run: "
            "the mean of the losses told with the last step must be so close to that of the "
            "control run, and the workers must have ended well. It is a band, not a proof: "
            "where weights are the same, compare models.",
    .example = "expect: {loss_within: 5%}",
    .class = CLASS_EXPECT,
    .sources = SOURCES(JOB) | SOURCES(KERNEL) | SOURCES(PROBE),
    .needs_events = NEEDS_STEPS,
    .not_applicable = idle,
    .judge = judge,
};
