#include "harness/judge/doubt.h"

#include "base/mem.h"
#include "base/str.h"
#include "harness/history/clocks.h"
#include "harness/judge/checks/check.h"
#include "harness/judge/stands.h"
#include "harness/judge/views.h"

#include <stdio.h>
#include <stdlib.h>

struct doubt {
    struct arena arena;
    const struct scenario *scenario;
    const struct history *whole;
    struct clocks clocks;
    struct stands stands;
    struct history middle;
    int64_t *middle_ns; /* by the place of a record */
};

/* One check at one place of the clocks: what it found in the middle, and whether it does there. */
struct doubtful {
    struct doubt *doubt;
    const struct check *check;
    const struct lost *lost;
    enum finding_status in_the_middle;
    const int64_t *there_ns; /* times of all records there */
    int64_t *t_ns;           /* for those that are tried */
    struct finding found;
};

struct doubt *doubt_new(const struct scenario *s, const struct history *h) {
    struct doubt *d = mem_new(struct doubt);
    d->scenario = s;
    d->whole = h;
    clocks_load(&d->clocks, h);
    if (!clocks_most_ns(&d->clocks))
        return doubt_free(d);
    d->middle_ns = arena_array(&d->arena, int64_t, h->n);
    for (size_t i = 0; i < h->n; i++)
        d->middle_ns[i] = clocks_moment(&d->clocks, h, i, 0.5);
    history_retime(&d->middle, h, d->middle_ns);
    stands_choose(&d->stands, &d->arena, &d->clocks, h);
    return d;
}

struct doubt *doubt_free(struct doubt *d) {
    if (!d)
        return NULL;
    history_fini(&d->middle);
    clocks_fini(&d->clocks);
    arena_fini(&d->arena);
    free(d);
    return NULL;
}

const struct history *doubt_history(const struct doubt *d) {
    return &d->middle;
}

/* ---- which two moments decide ---- */

/* Whether the check finds at the times of q->t_ns what it did in the middle. */
static bool finds_the_same(struct doubtful *q) {
    struct history h;
    history_retime(&h, q->doubt->whole, q->t_ns);
    struct views *views = views_new(q->doubt->scenario, &h);
    struct finding f;
    views_ask(views, q->check, q->lost, &f);
    views_free(views);
    history_fini(&h);
    return f.status == q->in_the_middle;
}

/* With n of all records moved the answer is still the same, with all of them it is another: the one at
 * which it turns, if those before it have been moved. */
static size_t turning_record(struct doubtful *q,
                             bool (*same)(struct doubtful *, size_t, const void *),
                             const void *arg) {
    size_t low = 0, high = q->doubt->whole->n;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (same(q, middle, arg))
            low = middle;
        else
            high = middle;
    }
    return low;
}

static bool same_with_first(struct doubtful *q, size_t n, const void *arg) {
    for (size_t i = 0; i < q->doubt->whole->n; i++)
        q->t_ns[i] = i < n ? q->there_ns[i] : q->doubt->middle_ns[i];
    return finds_the_same(q);
}

/* Where all go with the one that has turned it, nothing has moved against anything: the answer comes
 * back with the other moment. */
static bool other_with_rest(struct doubtful *q, size_t n, const void *arg) {
    size_t turned = *(const size_t *)arg;
    int64_t by_ns = q->there_ns[turned] - q->doubt->middle_ns[turned];
    for (size_t i = 0; i < q->doubt->whole->n; i++) {
        q->t_ns[i] = i < turned ? q->there_ns[i] : q->doubt->middle_ns[i];
        if (i == turned || i < n)
            q->t_ns[i] += by_ns;
    }
    return !finds_the_same(q);
}

static const char *host_of(const struct doubt *d, size_t at) {
    return d->clocks.of[at] < 0 ? NULL : d->clocks.v[d->clocks.of[at]].host;
}

static int64_t half_ns(const struct doubt *d, size_t at) {
    return (d->clocks.latest_ns[at] - d->clocks.earliest_ns[at] + 1) / 2;
}

static void name_moment(char *out, size_t size, const struct record *r) {
    snprintf(out, size, "record %lld (%.30s%s%.20s)", (long long)r->seq, r->kind,
             *r->node ? " of " : "", r->node);
}

static void name_clocks(char *out, size_t size, const char *one, const char *other) {
    if (one && other && !str_eq(one, other))
        snprintf(out, size, "the clocks of %.40s and %.40s are", one, other);
    else
        snprintf(out, size, "the clock of %.40s is", one ? one : other ? other : "its host");
}

/* Whether what makes it uncertain is less the clock than who was late to look at it. */
static bool was_late(const struct doubt *d, size_t at) {
    return record_late_ns(d->whole->records[at]) > half_ns(d, at);
}

/* The sentence: the two moments, the time between them, the host and the bound. */
static void say(struct finding *f, const struct doubtful *q, size_t one, size_t other) {
    const struct doubt *d = q->doubt;
    const struct history *h = d->whole;
    char first[80], second[80], clocks[110], was[300];
    const char *why = was_late(d, one) || was_late(d, other) ? " (its helper was late)" : "";
    size_t a = d->middle_ns[one] <= d->middle_ns[other] ? one : other, b = a == one ? other : one;
    bool alone = f->status != FINDING_FAIL;
    str_copy(was, sizeof(was), f->seen);
    name_moment(first, sizeof(first), h->records[a]);
    name_moment(second, sizeof(second), h->records[b]);
    name_clocks(clocks, sizeof(clocks), host_of(d, a), host_of(d, b));
    finding_unknown(
        f, alone ? q->check->summary : f->broken,
        "%s came %.3f ms before %s, and %s known to within %.3f ms%s: too close to tell; "
        "%s: %.60s",
        first, (double)(d->middle_ns[b] - d->middle_ns[a]) / 1e6, second, clocks,
        (double)(half_ns(d, a) + half_ns(d, b)) / 1e6, why,
        f->status == FINDING_PASS ? "else it passed" : "else", was);
    f->loud = false;
    finding_prove(f, h->records[a]->seq, h->records[b]->seq);
}

static void open_question(struct finding *f, struct doubtful *q) {
    size_t one = turning_record(q, same_with_first, NULL);
    size_t other = turning_record(q, other_with_rest, &one);
    say(f, q, one, other);
}

/* ---- every place ---- */

/* What a scenario gives no reason to ask for is not asked for at any time. */
static bool may_hang(const struct doubt *d, const struct check *c, const struct finding *f) {
    return f->status != FINDING_UNKNOWN && !(c->not_applicable && c->not_applicable(d->scenario));
}

static void try_place(struct doubt *d, const double *share, struct finding *found,
                      const struct lost *lost, int64_t *there_ns, int64_t *t_ns) {
    struct history h;
    for (size_t i = 0; i < d->whole->n; i++) {
        int32_t of = d->clocks.of[i];
        there_ns[i] = of < 0 ? d->middle_ns[i] : clocks_moment(&d->clocks, d->whole, i, share[of]);
    }
    history_retime(&h, d->whole, there_ns);
    struct views *views = views_new(d->scenario, &h);
    for (size_t i = 0; checks[i]; i++) {
        struct doubtful q = {.doubt = d,
                             .check = checks[i],
                             .lost = lost,
                             .in_the_middle = found[i].status,
                             .there_ns = there_ns,
                             .t_ns = t_ns};
        if (!may_hang(d, checks[i], &found[i]))
            continue;
        views_ask(views, checks[i], lost, &q.found);
        if (q.found.status != found[i].status)
            open_question(&found[i], &q);
    }
    views_free(views);
    history_fini(&h);
}

void doubt_cast(struct doubt *d, struct finding *found, const struct lost *lost) {
    int64_t *times = mem_array(int64_t, 2 * d->whole->n + 1);
    for (size_t i = 0; i < d->stands.n; i++)
        try_place(d, d->stands.v[i], found, lost, times, times + d->whole->n);
    free(times);
}
