/* Compares the number of restarts with the one that the scenario expects. */
#include "harness/judge/checks/check.h"

#include "base/str.h"

/* torchrun counts by agent, so its number is the sum over the nodes. */
static int count_of(const struct trial *t, const struct round *r) {
    if (!t->scenario->torchrun_semantics)
        return r->workers[0]->restart_count;
    int sum = 0;
    for (size_t i = 0; i < r->n; i++) {
        bool first = true;
        for (size_t k = 0; k < i; k++)
            first &= !str_eq(r->workers[k]->node, r->workers[i]->node);
        if (first)
            sum += r->workers[i]->restart_count;
    }
    return sum;
}

static const char *idle(const struct scenario *s) {
    return !s->expect.has_restarts ? "the scenario does not ask for a number of restarts" : NULL;
}

static bool judge(const struct trial *t, struct finding *f) {
    const struct expect *e = &t->scenario->expect;
    const struct round *last = rounds_last_complete(t->rounds);
    if (!last)
        return finding_unknown(f, "Restarts: as many as the scenario expects.",
                               "no round was complete");
    int count = count_of(t, last);
    if (count >= e->restarts_min && count <= e->restarts_max)
        return finding_pass(f, "%d restart%s", count, count == 1 ? "" : "s");
    bool range = e->restarts_min != e->restarts_max;
    const char *expected = finding_expected(f, range ? "restarts: %d..%d" : "restarts: %d",
                                            e->restarts_min, e->restarts_max);
    finding_prove(f, last->workers[0]->start_seq);
    return finding_fail(f, "Restarts: as many as the scenario expects.", expected,
                        "%d in round %d, the last complete one", count, last->number);
}

const struct check check_restarts = {
    .name = "restarts",
    .summary = "the job was restarted as often as the scenario expects",
    .text = "expect.restarts: TORCHELASTIC_RESTART_COUNT of the last complete round (with "
            "semantics: torchrun the sum over the agents). A number, or a range like 0..2.",
    .example = "expect: {restarts: 1}",
    .class = CLASS_EXPECT,
    .sources = SOURCES(PROBE),
    .not_applicable = idle,
    .judge = judge,
};
