#include "harness/checks/spans.h"

#include "harness/checks/check.h"

#include <stdlib.h>

void spans_init(struct spans *s, size_t n, struct span (*of)(const void *things, size_t at),
                const void *things) {
    int64_t earliest_ns = INT64_MAX;
    *s = (struct spans){.n = n, .leaves = 1};
    while (s->leaves < n)
        s->leaves *= 2;
    s->begin_ns = check_array(n, sizeof(int64_t));
    s->earliest_ns = check_array(n, sizeof(int64_t));
    s->latest_ns = check_array(2 * s->leaves, sizeof(int64_t));
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

void spans_fini(struct spans *s) {
    free(s->begin_ns);
    free(s->earliest_ns);
    free(s->latest_ns);
    *s = (struct spans){0};
}

static struct span of_incident(const void *things, size_t at) {
    const struct incident *i = ((const struct incidents *)things)->v[at];
    if (!i->in_force)
        return (struct span){INT64_MAX, INT64_MIN};
    int64_t until_ns = i->recovered ? i->recovered_ns : i->t0_ns;
    return until_ns < i->t0_ns ? (struct span){until_ns, i->t0_ns}
                               : (struct span){i->t0_ns, until_ns};
}

void spans_of_incidents(struct spans *s, const struct incidents *is) {
    spans_init(s, is->n, of_incident, is);
}

static struct span of_record(const void *things, size_t at) {
    const struct record *r = ((const struct record *const *)things)[at];
    return (struct span){r->t_ns, r->t_ns};
}

static const struct record **grown(const struct record **v, size_t n) {
    v = reallocarray(v, n, sizeof(*v));
    if (!v)
        abort(); /* out of memory */
    return v;
}

void moments_init(struct moments *m, const struct history *h,
                  bool (*wanted)(const struct record *)) {
    size_t n = 0, cap = 64;
    m->v = grown(NULL, cap); /* never NULL, also where there is none */
    history_each(r, h) {
        if (!wanted(r))
            continue;
        if (n == cap)
            m->v = grown(m->v, cap *= 2);
        m->v[n++] = r;
    }
    spans_init(&m->when, n, of_record, m->v);
}

void moments_fini(struct moments *m) {
    free(m->v);
    spans_fini(&m->when);
}

const struct record *moments_next(const struct moments *m, size_t *at, int64_t from_ns,
                                  int64_t to_ns) {
    size_t i = spans_next(&m->when, *at, from_ns, to_ns);
    *at = i + 1;
    return i < m->when.n ? m->v[i] : NULL;
}
