/* Compares early with late rounds: how long a recovery takes, and what is held (holding.c); and early with late steps
 * of a round (growth.c). */
#include "harness/judge/checks/check.h"
#include "harness/judge/checks/lags.h"
#include "harness/judge/checks/recovery/growth.h"
#include "harness/judge/checks/recovery/holding.h"

#include "base/str.h"

static const char broken[] = "Drift: the last of many failures costs what the first did.";

/* Fewer say nothing of a trend; what is smaller than that is noise. */
enum { TIMES_MIN = 6 };
static const int64_t TIME_NOISE_NS = 1000000000;

/* ---- time: of the recoveries from one entry of the timeline ---- */

static bool judge_times(const struct trial *t, struct finding *f, const char *id,
                        struct readings *r) {
    int64_t from_ns = 0, to_ns = 0;
    r->n = 0;
    for (size_t i = 0; i < t->incidents->n; i++) {
        const struct incident *in = t->incidents->v[i];
        if (!str_eq(in->id, id) || !in->ended_round || in->recover_ns < 0)
            continue;
        readings_add(r, in->recover_ns, in->force_seq);
        from_ns = from_ns ? from_ns : in->t0_ns;
        to_ns = in->t0_ns + in->recover_ns;
    }
    if (r->n < TIMES_MIN)
        return true;
    size_t third = r->n / 3;
    int64_t more = readings_growth(r), first = readings_highest(r->v, third);
    int64_t last = readings_lowest(r->v + r->n - third, third);
    int64_t lag = lags_most_ns(t->lags, from_ns, to_ns);
    if (more < TIME_NOISE_NS || last < 2 * first)
        return true;
    if (lag > more / 5)
        finding_unknown(f, broken,
                        "recovery from %s went from %.0f to %.0f ms, but the harness itself was "
                        "late by %.0f ms",
                        id, (double)first / 1e6, (double)last / 1e6, (double)lag / 1e6);
    else
        finding_fail(f, broken, "recovery takes as long the last time as the first",
                     "recovery from %s took %.0f ms at most the first %zu times and %.0f ms at "
                     "least the last %zu",
                     id, (double)first / 1e6, third, (double)last / 1e6, third);
    readings_prove(f, r);
    return false;
}

/* ---- all of it ---- */

static bool is_first_firing(const struct incidents *is, size_t at) {
    for (size_t i = 0; i < at; i++)
        if (str_eq(is->v[i]->id, is->v[at]->id))
            return false;
    return true;
}

static bool judge_all(const struct trial *t, struct finding *f, struct readings *r) {
    int series = 0, agents = 0, workers = 0;
    for (size_t i = 0; i < t->incidents->n; i++) {
        if (!is_first_firing(t->incidents, i))
            continue;
        if (!judge_times(t, f, t->incidents->v[i]->id, r))
            return false;
        series += r->n >= TIMES_MIN;
    }
    if (!holding_judge(t, f, r, &agents) || !growth_judge(t, f, r, &workers))
        return false;
    if (series || agents || workers)
        return finding_pass(
            f,
            "no trend in the recoveries of %d entr%s of the timeline, nor in the memory "
            "and descriptors of %d agent%s, nor in what %d worker%s held in a long round",
            series, series == 1 ? "y" : "ies", agents, agents == 1 ? "" : "s", workers,
            workers == 1 ? "" : "s");
    return finding_skip(f, "nothing was repeated %d times, so no trend can be seen", TIMES_MIN);
}

static bool judge(const struct trial *t, struct finding *f) {
    return judge_all(t, f, arena_new(t->arena, struct readings));
}

const struct check check_drift = {
    .name = "drift",
    .summary = "after many faults recovery takes no longer, and nothing piles up",
    .text =
        "Of an entry of the timeline that ends six rounds or more, every one of the last third of "
        "the recoveries must not take twice as long as every one of the first, and a second more. "
        "What agents, the helpers they start besides workers, the store and the workers of each "
        "rank hold is read in every round, by what it is: sockets, pipes, files, pidfds, epolls "
        "and timers, threads, processes, memory. Of rounds as large as the last, nothing may get "
        "more in each: one in every round in six looks or more, or in three to five where a new "
        "coordinator does not explain it (not sockets and threads; of workers as much more each "
        "time); memory half as much again and "
        "8 MB, or in every look and 32 kB a round. Nor may the keys of a job in rankrun's store, "
        "what is unfinished in the directory of checkpoints, or complete checkpoints beyond those "
        "that the control run keeps. While a round goes on its first sixteen workers are looked at "
        "again "
        "and again, farther and farther apart: of six looks or more none may have more open, or "
        "more "
        "threads, in each but the first, and eight more in all. What processes, ports and files "
        "are left in the end is "
        "judged by leftovers.",
    .example = "rankquake run scenarios/restart/nine-rounds.yaml",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(KERNEL) | SOURCES(PROBE) | SOURCES(WIRE) | SOURCES(DISK) | SOURCES(JOB) |
               SOURCES(LAUNCHER),
    .judge = judge,
};
