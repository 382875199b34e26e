#include "harness/judge/checks/recovery/growth.h"

#include "harness/judge/checks/recovery/holding.h"

#include "base/str.h"

static const char broken[] = "Drift: a worker holds as much after many steps as after few.";

/* What is new in the first steps is no leak, nor is what a worker has open for a moment, while it saves. */
enum { LOOKS_LEAST = 6, MORE_LEAST = 8 };

static bool is_look(const struct record *r) {
    return r->source == SOURCE_KERNEL && record_is(r, "usage") &&
           str_eq(record_text(r, "who"), "worker");
}

/* The first look in a round names no step. */
static bool is_first(const struct record *r) {
    return is_look(r) && !record_get(r, "step");
}

/* Those of one worker lie before the first of the next round. */
static void read_looks(const struct history *h, size_t at, const struct counted *c,
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
            readings_add(r, holding_count(look, c), look->seq);
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
    for (const struct counted *c = holding_counted; c->key; c++) {
        if (str_eq(c->key, "processes"))
            continue; /* one is looked at */
        read_looks(t->history, at, c, r);
        *ret_looks = r->n > *ret_looks ? r->n : *ret_looks;
        if (!goes_on_growing(r))
            continue;
        finding_fail(f, broken, "nothing that is held more of in every look",
                     "the worker of rank %lld had %lld %s in the first of %zu looks within a "
                     "round, and %lld in the last",
                     (long long)record_i64(t->history->records[at], "rank", -1), (long long)r->v[0],
                     c->many, r->n, (long long)r->v[r->n - 1]);
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
