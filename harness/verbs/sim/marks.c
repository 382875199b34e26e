#include "harness/verbs/sim/marks.h"

#include <inttypes.h>

static bool has_all_kinds(const struct sim_config *c) {
    struct sim_config usual;
    sim_config_default(&usual);
    for (int i = 0; i < SIM_FAULTS_N; i++)
        if (!c->weights[i] && usual.weights[i])
            return false;
    return !c->frozen && !c->calm && !c->plain && (!c->agents || c->agents >= SIM_AGENTS_USUAL);
}

static void tell_one(const struct seeds_tally *t, uint64_t n, const char *text, struct buf *out) {
    double share = t->seeds ? (double)n * 100 / (double)t->seeds : 0;
    bool seldom = t->seeds >= MARKS_SHARE && n < t->seeds / MARKS_SHARE;
    buf_printf(out, "  %8" PRIu64 "  %6.2f %%  %s%s\n", n, share, text,
               seldom ? " (below 1 of 1,000)" : "");
}

int marks_tell(const struct sim_config *config, const struct seeds_tally *t, struct buf *out) {
    int missed = 0;
    buf_puts(out, "marks\n");
    for (int i = 0; i < SIM_MARKS_N; i++) {
        missed += !t->marks[i];
        tell_one(t, t->marks[i], sim_mark_text((enum sim_mark)i), out);
    }
    if (t->seeds < MARKS_SEEDS || !has_all_kinds(config) || !missed)
        return 0;
    buf_printf(out, "%d of them in none of %" PRIu64 " seeds: no schedule reaches it\n", missed,
               t->seeds);
    return missed;
}

void decisions_tell(const struct seeds_tally *t, struct buf *out) {
    int reached = 0, seldom = 0, once = 0;
    for (int i = 0; i < DECISIONS_N; i++) {
        reached += t->decisions[i] > 0;
        seldom += t->decisions[i] && t->decisions[i] < t->seeds / MARKS_SHARE;
        once += t->decisions[i] == 1;
    }
    buf_printf(out, "decisions  %d kinds (what head said, what the agent heard, what it did)",
               reached);
    if (t->seeds >= MARKS_SHARE)
        buf_printf(out, "; %d in fewer than 1 of 1,000 seeds, %d in one alone", seldom, once);
    buf_puts(out, "\n");
}

void risks_tell(const struct seeds_tally *t, struct buf *out) {
    buf_puts(out, "invariants, and the seeds that could have broken each\n");
    for (int i = 0; i < INVARIANTS_N; i++)
        tell_one(t, t->risked[i], invariants[i]->name, out);
}
