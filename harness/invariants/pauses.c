/* Measures how far apart rounds begin that end at once and cost nothing. */
#include "harness/invariants/judge.h"

enum { AT_ONCE = 8, PAUSE_LEAST_MS = 100, PAUSE_MOST_MS = 5000 };

/* Of the round with that number in a row, from the begin of the one before it. */
static int64_t pause_ns(int brief_rounds) {
    int64_t ms = PAUSE_LEAST_MS;
    for (int i = AT_ONCE + 1; i < brief_rounds && ms < PAUSE_MOST_MS; i++)
        ms *= 2;
    return (ms < PAUSE_MOST_MS ? ms : PAUSE_MOST_MS) * JUDGE_MS;
}

static void on_head(struct judge *j, const struct head_change *h) {
    int n = h->to->brief_rounds;
    if (!j->times || h->to->phase != HEAD_RUN || !j->n_last || !j->job.max_free_rounds)
        return;
    if (n && n != j->head.brief_rounds + 1)
        invariant_broken(j, &invariant_pauses,
                         "the round is number %d of those that end at once, "
                         "after number %d",
                         n, j->head.brief_rounds);
    if (n <= AT_ONCE)
        return;
    judge_risk(j, INVARIANT_pauses);
    /* The clock of who decides may run 1 % fast. */
    if (j->now_ns - j->run_ns < pause_ns(n) / 100 * 98)
        invariant_broken(j, &invariant_pauses,
                         "round %lld is number %d in a row that ended at once, and begins %lld ms "
                         "after the last one",
                         (long long)h->to->round, n,
                         (long long)((j->now_ns - j->run_ns) / JUDGE_MS));
}

const struct invariant invariant_pauses = {
    .name = "pauses",
    .number = "I5",
    .summary = "rounds that cost nothing and end at once begin further and further apart",
    .text = "After eight rounds in a row that cost no restart and ended at once, the next begins "
            "100 ms after the last one did, then 200 ms, up to 5 s.",
    .on_head = on_head,
};
