/* Compares early with late rounds: how long a recovery takes, and what each agent holds. */
#include "harness/judge/checks/check.h"
#include "harness/judge/checks/lags.h"

#include "base/str.h"

static const char broken[] = "Drift: the last of many failures costs what the first did.";

/* Fewer say nothing of a trend; what is smaller than these is noise. */
enum { TIMES_MIN = 6, LOOKS_MIN = 6, READINGS_MAX = 4096 };
static const int64_t TIME_NOISE_NS = 1000000000, MEMORY_NOISE = 8 << 20;

/* One thing measured again and again. */
struct readings {
    int64_t v[READINGS_MAX], seq[READINGS_MAX];
    size_t n;
};

static void add(struct readings *r, int64_t value, int64_t seq) {
    if (r->n == READINGS_MAX || value < 0)
        return;
    r->v[r->n] = value;
    r->seq[r->n++] = seq;
}

static int64_t lowest(const int64_t *v, size_t n) {
    int64_t low = v[0];
    for (size_t i = 1; i < n; i++)
        low = v[i] < low ? v[i] : low;
    return low;
}

static int64_t highest(const int64_t *v, size_t n) {
    int64_t high = v[0];
    for (size_t i = 1; i < n; i++)
        high = v[i] > high ? v[i] : high;
    return high;
}

/* Every one of the last third lies above every one of the first by so much: 0, if not. */
static int64_t growth(const struct readings *r) {
    size_t third = r->n / 3;
    int64_t before = highest(r->v, third), after = lowest(r->v + r->n - third, third);
    return after > before ? after - before : 0;
}

static void prove(struct finding *f, const struct readings *r) {
    finding_prove(f, r->seq[0], r->seq[r->n / 2], r->seq[r->n - 1]);
}

/* ---- time: of the recoveries from one entry of the timeline ---- */

static bool judge_times(const struct trial *t, struct finding *f, const char *id,
                        struct readings *r) {
    int64_t from_ns = 0, to_ns = 0;
    r->n = 0;
    for (size_t i = 0; i < t->incidents->n; i++) {
        const struct incident *in = t->incidents->v[i];
        if (!str_eq(in->id, id) || !in->ended_round || in->recover_ns < 0)
            continue;
        add(r, in->recover_ns, in->force_seq);
        from_ns = from_ns ? from_ns : in->t0_ns;
        to_ns = in->t0_ns + in->recover_ns;
    }
    if (r->n < TIMES_MIN)
        return true;
    size_t third = r->n / 3;
    int64_t more = growth(r), first = highest(r->v, third);
    int64_t last = lowest(r->v + r->n - third, third);
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
    prove(f, r);
    return false;
}

/* ---- memory and descriptors of an agent ---- */

static void read_usage(const struct history *h, const struct record *of, const char *what,
                       struct readings *r) {
    r->n = 0;
    history_each(u, h) {
        if (u->source == SOURCE_KERNEL && record_is(u, "usage") && u->pid == of->pid &&
            str_eq(u->node, of->node))
            add(r, record_i64(u, what, -1), u->seq);
    }
}

static bool judge_agent(const struct trial *t, struct finding *f, const struct record *agent,
                        struct readings *r, int *judged) {
    read_usage(t->history, agent, "fds", r);
    /* One in every round is a leak. A few at the beginning are not, nor are the two connections
     * more of an agent that leads from now on. */
    if (r->n >= LOOKS_MIN && growth(r) > (int64_t)r->n / 3) {
        finding_fail(f, broken, "an agent has as many descriptors open in the last round as before",
                     "the agent of %s had %lld open in the first of %zu looks and %lld in the last",
                     agent->node, (long long)r->v[0], r->n, (long long)r->v[r->n - 1]);
        prove(f, r);
        return false;
    }
    *judged += r->n >= LOOKS_MIN;
    read_usage(t->history, agent, "rss", r);
    if (r->n >= LOOKS_MIN && growth(r) > MEMORY_NOISE && growth(r) > r->v[0] / 2) {
        finding_fail(f, broken, "an agent needs as much memory in the last round as before",
                     "the agent of %s had %lld kB in the first of %zu looks and %lld kB in the "
                     "last",
                     agent->node, (long long)r->v[0] >> 10, r->n, (long long)r->v[r->n - 1] >> 10);
        prove(f, r);
        return false;
    }
    return true;
}

/* ---- all of it ---- */

static bool is_first_firing(const struct incidents *is, size_t at) {
    for (size_t i = 0; i < at; i++)
        if (str_eq(is->v[i]->id, is->v[at]->id))
            return false;
    return true;
}

static bool judge_all(const struct trial *t, struct finding *f, struct readings *r) {
    int series = 0, agents = 0;
    for (size_t i = 0; i < t->incidents->n; i++) {
        if (!is_first_firing(t->incidents, i))
            continue;
        if (!judge_times(t, f, t->incidents->v[i]->id, r))
            return false;
        series += r->n >= TIMES_MIN;
    }
    history_each(a, t->history) {
        if (a->source == SOURCE_KERNEL && record_is(a, "agent-start") &&
            !judge_agent(t, f, a, r, &agents))
            return false;
    }
    if (series || agents)
        return finding_pass(
            f,
            "no trend in the recoveries of %d entr%s of the timeline, nor in the memory "
            "and descriptors of %d agent%s",
            series, series == 1 ? "y" : "ies", agents, agents == 1 ? "" : "s");
    return finding_skip(f, "nothing was repeated %d times, so no trend can be seen", TIMES_MIN);
}

static bool judge(const struct trial *t, struct finding *f) {
    return judge_all(t, f, arena_new(t->arena, struct readings));
}

const struct check check_drift = {
    .name = "drift",
    .summary = "after many faults recovery takes no longer, and nothing piles up in the agents",
    .text =
        "Of an entry of the timeline that ends six rounds or more, every one of the last third of "
        "the recoveries must not take twice as long as every one of the first, and a second more. "
        "Of an agent that lives through six rounds or more, neither descriptors (one in each "
        "round) nor resident memory (half as much again, and 8 MB) may pile up: they are read "
        "when a round is complete. What processes, ports and files are left is judged by "
        "leftovers.",
    .example = "rankquake run scenarios/tour.yaml",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(KERNEL) | SOURCES(PROBE) | SOURCES(WIRE) | SOURCES(JOB),
    .judge = judge,
};
