/* Compares the last loss with that of the control run, and the losses of steps with what is known of
 * them. */
#include "harness/judge/checks/check.h"

#include <math.h>
#include <stdio.h>

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
    return !s->expect.loss_within && !s->expect.losses_n
               ? "the scenario sets neither loss_within nor losses"
               : NULL;
}

/* ---- as they are known ---- */

/* The step in one round, by all ranks together. */
struct loss_told {
    double sum, samples, plain;
    size_t n; /* ranks that told it */
    int64_t seq;
};

static struct loss_told loss_in(const struct trial *t, const struct round *round, int64_t step) {
    struct loss_told l = {0};
    history_each(r, t->history) {
        if (r->source != SOURCE_JOB || !record_is(r, "step") || record_i64(r, "step", -1) != step ||
            !record_get(r, "loss"))
            continue;
        const struct worker *w = rounds_worker_at(t->rounds, r->pid, r->t_ns);
        if (!w || w->round != round->number)
            continue;
        double loss = json_number(record_get(r, "loss"), NAN);
        double samples = (double)record_i64(r, "samples", 0);
        l.sum += samples > 0 ? loss * samples : 0;
        l.samples += samples;
        l.plain += loss;
        l.seq = r->seq;
        l.n++;
    }
    return l;
}

/* Of all rounds: also a step that was made again later was made of the same. What only some ranks have
 * told says nothing of the step, for each has samples of its own. */
static bool judge_known(const struct trial *t, struct finding *f, const struct loss_expect *known) {
    size_t told = 0;
    for (size_t i = 0; i < t->rounds->n; i++) {
        const struct round *round = t->rounds->v[i];
        struct loss_told l = loss_in(t, round, known->step);
        char loss[32];
        if (!l.n || l.n < round->n)
            continue;
        snprintf(loss, sizeof(loss), "%.9g",
                 l.samples > 0 ? l.sum / l.samples : l.plain / (double)l.n);
        told++;
        if (tolerance_fits(known->tolerance, loss))
            continue;
        const char *expected = finding_expected(f, "losses: %s at step %lld", known->tolerance,
                                                (long long)known->step);
        finding_prove(f, l.seq);
        return finding_fail(f, "Loss: a step has the loss that is known of it.", expected,
                            "%s at step %lld of round %d, the mean of %zu ranks", loss,
                            (long long)known->step, round->number, l.n);
    }
    return told || finding_unknown(f, broken,
                                   "there is no round of which all ranks told a loss of step %lld",
                                   (long long)known->step);
}

/* ---- as the control run's ---- */

static bool judge_end(const struct trial *t, struct finding *f) {
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

static bool judge(const struct trial *t, struct finding *f) {
    const struct expect *e = &t->scenario->expect;
    for (size_t i = 0; i < e->losses_n; i++)
        if (!judge_known(t, f, &e->losses[i]))
            return false;
    return e->loss_within
               ? judge_end(t, f)
               : finding_pass(f, "%zu steps have the losses that are known of them", e->losses_n);
}

const struct check check_loss = {
    .name = "loss",
    .summary =
        "the last loss is close to the control run's, and steps have the losses that are known",
    .text =
        "expect.loss_within, for jobs whose weights are not the same bit by bit in every run: "
        "the mean of the losses told with the last step must be so close to that of the "
        "control run, and the workers must have ended well. It is a band, not a proof: "
        "where weights are the same, compare models. expect.losses names steps and the losses "
        "that are known of them: from a paper, from another program, from a run that somebody "
        "has looked at. Whatever is wrong with and without faults alike, such as pictures that "
        "are not what lies in the data set or an option that is not heard, is seen there "
        "alone: beside a control run that has the same mistake everything is the same. Judged is "
        "the mean of all samples of the step, in every round of which all ranks told it.",
    .example = "expect: {losses: {1: 2.30..2.31, 40: '<= 0.9'}}",
    .class = CLASS_EXPECT,
    .sources = SOURCES(JOB) | SOURCES(KERNEL) | SOURCES(PROBE),
    .needs_events = NEEDS_STEPS,
    .not_applicable = idle,
    .judge = judge,
};
