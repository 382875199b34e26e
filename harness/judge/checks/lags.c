#include "harness/judge/checks/lags.h"

#include "base/mem.h"
#include "harness/judge/checks/spans.h"

#include <stdlib.h>

struct lags {
    struct arena arena;
    struct moments told;
    struct spans spans;
};

static int64_t late_ns(const struct record *r) {
    return record_i64(r, "max_ns", 0);
}

static bool is_lag(const struct record *r) {
    if (r->source != SOURCE_HARNESS || !record_is(r, "lag"))
        return false;
    int64_t max = late_ns(r), window = record_i64(r, "window_ns", 0);
    return max >= 0 && max <= r->t_ns && window >= 0 && window <= r->t_ns;
}

/* It was late by then, in the window before, and may have been since before that. */
static struct span of_lag(const void *things, size_t at) {
    const struct record *r = ((const struct record *const *)things)[at];
    return (struct span){r->t_ns - record_i64(r, "window_ns", 0) - late_ns(r), r->t_ns};
}

struct lags *lags_new(const struct history *h) {
    struct lags *l = mem_new(struct lags);
    moments_init(&l->told, &l->arena, h, is_lag);
    spans_init(&l->spans, &l->arena, l->told.when.n, of_lag, l->told.v);
    return l;
}

struct lags *lags_free(struct lags *l) {
    if (!l)
        return NULL;
    arena_fini(&l->arena);
    free(l);
    return NULL;
}

int64_t lags_most_ns(const struct lags *l, int64_t from_ns, int64_t to_ns) {
    int64_t most = 0;
    for (size_t i = 0; (i = spans_next(&l->spans, i, from_ns, to_ns)) < l->spans.n; i++)
        if (late_ns(l->told.v[i]) > most)
            most = late_ns(l->told.v[i]);
    return most;
}
