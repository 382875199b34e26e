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

static void tell_one(const struct seeds_tally *t, int mark, struct buf *out) {
    uint64_t n = t->marks[mark];
    double share = t->seeds ? (double)n * 100 / (double)t->seeds : 0;
    bool seldom = t->seeds >= MARKS_SHARE && n < t->seeds / MARKS_SHARE;
    buf_printf(out, "  %8" PRIu64 "  %6.2f %%  %s%s\n", n, share,
               sim_mark_text((enum sim_mark)mark), seldom ? " (below 1 of 1,000)" : "");
}

int marks_tell(const struct sim_config *config, const struct seeds_tally *t, struct buf *out) {
    int missed = 0;
    buf_puts(out, "marks\n");
    for (int i = 0; i < SIM_MARKS_N; i++) {
        missed += !t->marks[i];
        tell_one(t, i, out);
    }
    if (t->seeds < MARKS_SEEDS || !has_all_kinds(config) || !missed)
        return 0;
    buf_printf(out, "%d of them in none of %" PRIu64 " seeds: no schedule reaches it\n", missed,
               t->seeds);
    return missed;
}
