/* Compares the answers to the scenario's probes with their tolerance. */
#include "harness/judge/checks/check.h"

#include "base/str.h"

static const char broken[] =
    "Probe: the answers to the scenario's probes are within their tolerance.";

/* From the first fault to the last recovery nothing is expected, unless always is. */
struct probe_span {
    int64_t first_ns, whole_ns; /* no fault: both INT64_MAX, all is before */
    int64_t over_ns;            /* the job was done: what is asked later is not judged */
};

static int64_t whole_again(const struct incident *i) {
    if (i->ended_round)
        return i->recover_ns >= 0 ? i->t0_ns + i->recover_ns : INT64_MAX;
    return i->recovered ? i->recovered_ns : i->t0_ns;
}

static struct probe_span span_of(const struct trial *t) {
    struct probe_span s = {INT64_MAX, INT64_MAX, INT64_MAX};
    const struct round *last = rounds_last_complete(t->rounds);
    for (size_t k = 0; k < t->incidents->n; k++) {
        const struct incident *i = t->incidents->v[k];
        if (!i->fired)
            continue;
        int64_t whole = whole_again(i);
        s.whole_ns = s.first_ns == INT64_MAX || whole > s.whole_ns ? whole : s.whole_ns;
        s.first_ns = i->fired_ns < s.first_ns ? i->fired_ns : s.first_ns;
    }
    for (size_t k = 0; last && k < last->n; k++)
        if (worker_ended_well(last->workers[k]) && last->workers[k]->exit_ns < s.over_ns)
            s.over_ns = last->workers[k]->exit_ns;
    return s;
}

struct answers {
    int before, during, after;
};

static bool is_answer(const struct record *r, const struct probe_expect *x) {
    return r->source == SOURCE_USER && record_is(r, "answer") &&
           str_eq(record_text(r, "probe"), x->name);
}

/* False when an answer is not as it should be, with the finding filled. */
static bool judge_answer(struct finding *f, const struct record *r, const struct probe_expect *x,
                         const struct probe_span *s, struct answers *n) {
    int64_t took = record_i64(r, "took_ns", 0);
    int64_t asked = r->t_ns - (took > 0 && took < r->t_ns ? took : 0);
    int64_t settled =
        x->settle_ns < INT64_MAX - s->whole_ns ? s->whole_ns + x->settle_ns : INT64_MAX;
    bool before = r->t_ns < s->first_ns, after = !before && asked >= settled;
    if (r->t_ns >= s->over_ns)
        return true;
    *(before ? &n->before : after ? &n->after : &n->during) += 1;
    if (json_get_bool(r->fields, "ok", false) || (!before && !after && !x->always))
        return true;
    const char *expected = finding_expected(f, "every answer %s within its tolerance",
                                            x->always ? "from steady state to the end"
                                                      : "before the faults and after them");
    const char *error = record_text(r, "error"), *value = record_text(r, "value");
    finding_prove(f, r->seq);
    return finding_fail(f, broken, expected, "%s, %s%s%s%s%.100s", x->name,
                        before  ? "before the first fault"
                        : after ? "after the last recovery"
                                : "while a fault lasted",
                        *error ? ": " : "", error, *value ? ": " : "", value);
}

static bool judge_probe(const struct trial *t, struct finding *f, const struct probe_expect *x,
                        struct answers *sum) {
    const struct probe_span s = span_of(t);
    struct answers n = {0};
    history_each(r, t->history) {
        if (is_answer(r, x) && !judge_answer(f, r, x, &s, &n))
            return false;
    }
    bool faults = s.first_ns != INT64_MAX;
    if (!n.before || (faults && !n.after))
        return finding_unknown(f, broken, "%s was not answered %s", x->name,
                               !n.before ? "before the first fault"
                                         : "after the last recovery, while the job ran");
    sum->before += n.before;
    sum->during += n.during;
    sum->after += n.after;
    return true;
}

static const char *idle(const struct scenario *s) {
    return !s->expect.probes_n ? "the scenario expects nothing of its probes" : NULL;
}

static bool judge(const struct trial *t, struct finding *f) {
    const struct expect *e = &t->scenario->expect;
    struct answers sum = {0};
    if (!check_sees_rounds(t, f))
        return false;
    for (size_t i = 0; i < e->probes_n; i++)
        if (!judge_probe(t, f, &e->probes[i], &sum))
            return false;
    return finding_pass(f, "%d answers before, %d while faults lasted, %d after, as they should be",
                        sum.before, sum.during, sum.after);
}

const struct check check_probe = {
    .name = "probe",
    .summary = "the answers to the scenario's probes are within their tolerance",
    .text =
        "expect.probe, the steady-state hypothesis: every answer to a probe is within its "
        "tolerance before the first fault fires, and again after the last of them is recovered "
        "from (the last worker's first step; for a fault that ended no round, its end), by so much "
        "time as is given; with always also in between. What is asked after the first worker of "
        "the last round has finished does not count. No answer at all before, or after, is "
        "unknown. The answers are claims of the user's own command, and no other check reads them.",
    .example = "expect: {probe: {served: steady}}",
    .class = CLASS_EXPECT,
    .sources = SOURCES(USER) | SOURCES(PROBE) | SOURCES(KERNEL) | SOURCES(WIRE) | SOURCES(JOB),
    .needs_events = NEEDS_STEPS,
    .not_applicable = idle,
    .judge = judge,
};
