/* Compares what the launcher's programs take of the processors with what they could take, while nothing happens. */
#include "harness/judge/checks/check.h"

#include "base/str.h"

static const char broken[] =
    "Idle: who has nothing to do waits, and leaves the processors to the job.";

/* An agent that waits takes about a millisecond of a second. Less than that shows nothing. */
static const int64_t RAN_LEAST_NS = 50000000, QUIET_LEAST_NS = 250000000;

/* The look at the beginning of the quiet time that this one ends; NULL: there was none at that process. */
static const struct record *begin_of(const struct history *h, size_t at) {
    const struct record *end = h->records[at];
    for (size_t i = at; i-- > 0;) {
        const struct record *r = h->records[i];
        if (record_is(r, "processor") && r->pid == end->pid && str_eq(r->node, end->node))
            return str_eq(record_text(r, "moment"), "begins") ? r : NULL;
    }
    return NULL;
}

struct share {
    int64_t ran_ns, slept_ns, quiet_ns;
};

/* What of a time is left without a part of it. */
static int64_t rest_ns(int64_t ns, int64_t part_ns) {
    return part_ns < 0 ? ns : ns > part_ns ? ns - part_ns : 0;
}

/* By how much a reading has grown. */
static int64_t grown_ns(const struct record *begin, const struct record *end, const char *key) {
    int64_t ns = record_i64(end, key, 0);
    return ns < 0 ? 0 : rest_ns(ns, record_i64(begin, key, 0));
}

/* While others ran it could not: a host that is busy makes nobody look idle, and nobody busy. */
static struct share share_of(const struct record *begin, const struct record *end) {
    struct share s = {.quiet_ns = end->t_ns - begin->t_ns};
    s.ran_ns = grown_ns(begin, end, "ran_ns");
    s.slept_ns = rest_ns(rest_ns(s.quiet_ns, s.ran_ns), grown_ns(begin, end, "waited_ns"));
    return s;
}

static bool is_loop(const struct share *s) {
    return s->ran_ns >= RAN_LEAST_NS && s->ran_ns > s->slept_ns;
}

static const char *name_of(const struct record *r) {
    const char *who = record_text(r, "who");
    return str_eq(who, "store")    ? "the store on"
           : str_eq(who, "helper") ? "a helper of the agent of"
                                   : "the agent of";
}

static bool judge(const struct trial *t, struct finding *f) {
    int64_t longest = 0;
    int looks = 0;
    history_each(end, t->history) {
        if (end->source != SOURCE_KERNEL || !record_is(end, "processor") ||
            !str_eq(record_text(end, "moment"), "ends") || rounds_worker(t->rounds, end->pid))
            continue;
        const struct record *begin = begin_of(t->history, end_i);
        struct share s = begin ? share_of(begin, end) : (struct share){0};
        if (s.quiet_ns < QUIET_LEAST_NS)
            continue;
        longest = s.quiet_ns > longest ? s.quiet_ns : longest;
        looks++;
        if (!is_loop(&s))
            continue;
        finding_prove(f, begin->seq, end->seq);
        return finding_fail(f, broken, "it sleeps for most of that time",
                            "%s %s ran for %.0f of %.0f ms in which nothing happened, and slept "
                            "for %.0f",
                            name_of(end), end->node, (double)s.ran_ns / 1e6,
                            (double)s.quiet_ns / 1e6, (double)s.slept_ns / 1e6);
    }
    if (!looks)
        return finding_skip(f, "nothing was quiet for %lld ms, or the kernel does not tell",
                            (long long)QUIET_LEAST_NS / 1000000);
    return finding_pass(f, "%d look%s at who waited, for %.1f s at most: none looped", looks,
                        looks == 1 ? "" : "s", (double)longest / 1e9);
}

static const char *not_applicable(const struct scenario *s) {
    return str_eq(s->job.launcher, "template") ? "what a template starts may be the job itself"
                                               : NULL;
}

const struct check check_idle = {
    .name = "idle",
    .summary = "agents, helpers and the store wait while nothing happens",
    .text =
        "From when all workers of a round have made a step until the next thing happens (a worker, "
        "an agent or the store begins or ends, a fault is in force, a rank is done), agents, their "
        "helpers and "
        "the store have little to do. The kernel tells what each has had of the processors, and "
        "for how long it was ready and had none: one that ran for longer than it slept, and 50 ms, "
        "loops in "
        "place of waiting, and takes a processor from the job. A busy host changes nothing of "
        "that. Only "
        "the main thread is looked at.",
    .example = "rankquake run scenarios/restart/worker-killed.yaml",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(KERNEL) | SOURCES(PROBE),
    .not_applicable = not_applicable,
    .judge = judge,
};
