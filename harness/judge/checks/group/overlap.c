#include "harness/judge/checks/group/overlap.h"

static struct span of_round(const void *things, size_t at) {
    const struct round *r = ((const struct rounds *)things)->v[at];
    struct span s = {r->first_start_ns, 0};
    for (size_t i = 0; i < r->n; i++) {
        const struct worker *w = r->workers[i];
        int64_t end_ns = w->exit_ns ? w->exit_ns - 1 : INT64_MAX; /* then it lived no more */
        s.begin_ns = w->start_ns < s.begin_ns ? w->start_ns : s.begin_ns;
        s.end_ns = end_ns > s.end_ns ? end_ns : s.end_ns;
    }
    return s;
}

static struct span of_incomplete(const void *things, size_t at) {
    bool complete = ((const struct rounds *)things)->v[at]->complete;
    return complete ? (struct span){INT64_MAX, INT64_MIN} : of_round(things, at);
}

void overlap_init(struct overlap *o, struct arena *a, const struct rounds *rs) {
    o->rounds = rs;
    spans_init(&o->all, a, rs->n, of_round, rs);
    spans_init(&o->incomplete, a, rs->n, of_incomplete, rs);
}

const struct round *overlap_next(const struct overlap *o, size_t *at, const struct round *later) {
    const struct spans *s = later->complete ? &o->incomplete : &o->all;
    size_t end = (size_t)later->number - 1;
    int64_t began_ns = later->first_start_ns;
    while ((*at = spans_next(s, *at, began_ns, began_ns)) < end) {
        const struct round *earlier = o->rounds->v[(*at)++];
        if (round_outlives(earlier, later))
            return earlier;
    }
    return NULL;
}
