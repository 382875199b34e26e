#include "harness/judge/checks/spans.h"

void spans_init(struct spans *s, struct arena *a, size_t n,
                struct span (*of)(const void *things, size_t at), const void *things) {
    int64_t earliest_ns = INT64_MAX;
    *s = (struct spans){.n = n, .leaves = 1};
    while (s->leaves < n)
        s->leaves *= 2;
    s->begin_ns = arena_array(a, int64_t, n);
    s->earliest_ns = arena_array(a, int64_t, n);
    s->latest_ns = arena_array(a, int64_t, 2 * s->leaves);
    for (size_t i = s->leaves; i-- > 0;) {
        struct span one = i < n ? of(things, i) : (struct span){INT64_MAX, INT64_MIN};
        s->latest_ns[s->leaves + i] = one.end_ns;
        if (i >= n)
            continue;
        earliest_ns = one.begin_ns < earliest_ns ? one.begin_ns : earliest_ns;
        s->begin_ns[i] = one.begin_ns;
        s->earliest_ns[i] = earliest_ns;
    }
    for (size_t i = s->leaves; i-- > 1;) {
        const int64_t *two = &s->latest_ns[2 * i];
        s->latest_ns[i] = two[0] > two[1] ? two[0] : two[1];
    }
}

/* The first at or behind `at` that ends no earlier; n: none. */
static size_t next_end(const struct spans *s, size_t at, int64_t from_ns) {
    size_t i = at + s->leaves;
    if (at >= s->n)
        return s->n;
    while (s->latest_ns[i] < from_ns) {
        while (i & 1) /* all to the left of what lies above has been asked */
            i /= 2;
        if (!i)
            return s->n;
        i++;
    }
    while (i < s->leaves) {
        i *= 2;
        i += s->latest_ns[i] < from_ns;
    }
    return i - s->leaves < s->n ? i - s->leaves : s->n;
}

size_t spans_next(const struct spans *s, size_t at, int64_t from_ns, int64_t to_ns) {
    for (; (at = next_end(s, at, from_ns)) < s->n; at++) {
        if (s->earliest_ns[at] > to_ns)
            return s->n;
        if (s->begin_ns[at] <= to_ns)
            return at;
    }
    return s->n;
}

static struct span of_incident(const void *things, size_t at) {
    const struct incident *i = ((const struct incidents *)things)->v[at];
    if (!i->in_force)
        return (struct span){INT64_MAX, INT64_MIN};
    int64_t until_ns = i->recovered ? i->recovered_ns : i->t0_ns;
    return until_ns < i->t0_ns ? (struct span){until_ns, i->t0_ns}
                               : (struct span){i->t0_ns, until_ns};
}

void spans_of_incidents(struct spans *s, struct arena *a, const struct incidents *is) {
    spans_init(s, a, is->n, of_incident, is);
}

static struct span of_record(const void *things, size_t at) {
    const struct record *r = ((const struct record *const *)things)[at];
    return (struct span){r->t_ns, r->t_ns};
}

void moments_init(struct moments *m, struct arena *a, const struct history *h,
                  bool (*wanted)(const struct record *)) {
    size_t n = 0;
    history_each(r, h) n += wanted(r);
    m->v = arena_array(a, const struct record *, n);
    n = 0;
    history_each(r, h) if (wanted(r)) m->v[n++] = r;
    spans_init(&m->when, a, n, of_record, m->v);
}

const struct record *moments_next(const struct moments *m, size_t *at, int64_t from_ns,
                                  int64_t to_ns) {
    size_t i = spans_next(&m->when, *at, from_ns, to_ns);
    *at = i + 1;
    return i < m->when.n ? m->v[i] : NULL;
}
