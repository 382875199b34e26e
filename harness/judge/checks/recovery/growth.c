#include "harness/judge/checks/recovery/growth.h"

#include "base/str.h"

static const char broken[] = "Drift: a worker holds as much after many steps as after few.";

/* What is new in the first steps is no leak, nor is what a worker has open for a moment, while it saves. */
enum { LOOKS_LEAST = 6, MORE_LEAST = 8 };

static const struct grown {
    const char *key, *many;
    bool by_kind;
} grown[] = {
    {"socket", "sockets", true},
    {"pipe", "pipes", true},
    {"file", "open files", true},
    {"pidfd", "pidfds", true},
    {"anonymous", "epolls, timers and events", true},
    {"threads", "threads", false},
    {0},
};

static bool is_look(const struct record *r) {
    return r->source == SOURCE_KERNEL && record_is(r, "usage") &&
           str_eq(record_text(r, "who"), "worker");
}

/* The first look in a round names no step. */
static bool is_first(const struct record *r) {
    return is_look(r) && !record_get(r, "step");
}

static int64_t count_of(const struct record *r, const struct grown *g) {
    const struct json *kinds = record_get(r, "kinds");
    if (!g->by_kind)
        return record_i64(r, g->key, -1);
    return kinds ? json_get_i64(kinds, g->key, -1) : -1;
}

/* Those of one worker lie before the first of the next round. */
static void read_looks(const struct history *h, size_t at, const struct grown *g,
                       struct readings *r) {
    const struct record *first = h->records[at];
    int64_t round = record_i64(first, "round", 0);
    r->n = 0;
    for (size_t i = at; i < h->n; i++) {
        const struct record *look = h->records[i];
        if (!is_look(look))
            continue;
        if (record_i64(look, "round", 0) > round)
            break;
        if (look->pid == first->pid && str_eq(look->node, first->node))
            readings_add(r, count_of(look, g), look->seq);
    }
}

static bool goes_on_growing(const struct readings *r) {
    size_t third = r->n / 3;
    return r->n >= LOOKS_LEAST && readings_rise(r, third) &&
           r->v[r->n - 1] - r->v[third] >= MORE_LEAST;
}

/* False where it does; *ret_looks: how often it was looked at. */
static bool judge_worker(const struct trial *t, struct finding *f, size_t at, struct readings *r,
                         size_t *ret_looks) {
    *ret_looks = 0;
    for (const struct grown *g = grown; g->key; g++) {
        read_looks(t->history, at, g, r);
        *ret_looks = r->n > *ret_looks ? r->n : *ret_looks;
        if (!goes_on_growing(r))
            continue;
        finding_fail(f, broken, "nothing that is held more of in every look",
                     "the worker of rank %lld had %lld %s in the first of %zu looks within a "
                     "round, and %lld in the last",
                     (long long)record_i64(t->history->records[at], "rank", -1), (long long)r->v[0],
                     g->many, r->n, (long long)r->v[r->n - 1]);
        readings_prove(f, r);
        return false;
    }
    return true;
}

bool growth_judge(const struct trial *t, struct finding *f, struct readings *r, int *ret_judged) {
    history_each(first, t->history) {
        size_t looks = 0;
        if (!is_first(first))
            continue;
        if (!judge_worker(t, f, first_i, r, &looks))
            return false;
        *ret_judged += looks >= LOOKS_LEAST;
    }
    return true;
}
