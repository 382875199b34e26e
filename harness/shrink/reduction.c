#include "harness/shrink/reduction.h"

#include "base/str.h"
#include "harness/shrink/node_names.h"
#include "harness/shrink/smaller.h"

#include <limits.h>
#include <string.h>

enum { NAMED_MAX = 4 };

struct tried {
    const char *text;
    const struct tried *before;
};

struct reduction_search {
    struct arena *arena;
    const struct reduction_spec *spec;
    struct delta delta;
    const struct scenario *best;
    const struct tried *tried;
};

struct smaller_scenario {
    const struct scenario *s;
    const char *what; /* is different from the best */
};

/* ---- one ---- */

static bool was_tried(struct reduction_search *r, const struct scenario *s) {
    BUF_FINI struct buf text = {0};
    const struct tried *t = r->tried;
    scenario_print(s, &text);
    while (t && !str_eq(t->text, buf_str(&text)))
        t = t->before;
    if (!t) {
        struct tried *now = arena_new(r->arena, struct tried);
        *now = (struct tried){arena_strdup(r->arena, buf_str(&text)), r->tried};
        r->tried = now;
    }
    return t;
}

static enum delta_answer answer(void *arg, void *candidate) {
    struct reduction_search *r = arg;
    const struct smaller_scenario *c = candidate;
    if (was_tried(r, c->s))
        return DELTA_OTHER;
    enum delta_answer said = r->spec->try(r->spec->arg, c->s, c->what);
    if (said == DELTA_SAME)
        r->best = c->s;
    return said;
}

/* Whether c fails in the same way; it is the best then. */
static bool try(struct reduction_search *r, const struct scenario *c, const char *what) {
    return c && delta_try(&r->delta, &(struct smaller_scenario){c, what});
}

/* ---- the timeline ---- */

static const char *list(struct arena *a, const char *before, const char *const *names, size_t n,
                        size_t of) {
    BUF_FINI struct buf text = {0};
    if (n > NAMED_MAX)
        buf_printf(&text, "%s%zu of %zu lines", before, n, of);
    for (size_t i = 0; i < n && n <= NAMED_MAX; i++)
        buf_printf(&text, "%s%s", i ? ", " : before, names[i]);
    return arena_strdup(a, buf_str(&text));
}

/* Rounds that a fault has made are not there when it has gone. */
static void without(struct reduction_search *r, bool *gone) {
    const struct scenario *s = r->best, *c = smaller_timeline(r->arena, s, gone);
    const char **names = arena_array(r->arena, const char *, s->timeline_n + 1);
    size_t n = 0;
    if (!c || !c->timeline_n)
        return;
    for (size_t i = 0; i < s->timeline_n; i++)
        if (gone[i])
            names[n++] = s->timeline[i].id;
    const char *what = list(r->arena, "without ", names, n, s->timeline_n);
    if (!try(r, c, what))
        try(r, smaller_rounds(r->arena, c), arena_printf(r->arena, "%s, and any round", what));
}

static size_t lines_n(void *arg) {
    return ((const struct reduction_search *)arg)->best->timeline_n;
}

/* From the end: what came before stays as it was. */
static size_t without_lines(void *arg, size_t left, size_t many) {
    struct reduction_search *r = arg;
    size_t from = left > many ? left - many : 0;
    bool *gone = arena_array(r->arena, bool, r->best->timeline_n + 1);
    memset(gone + from, true, left - from);
    without(r, gone);
    return from < r->best->timeline_n ? from : r->best->timeline_n;
}

static void fewer_lines(void *arg) {
    struct reduction_search *r = arg;
    delta_halves(&r->delta, lines_n, without_lines);
}

/* What did not happen has done nothing, nor will it be missed. */
static void without_unfired(struct reduction_search *r) {
    size_t n = r->best->timeline_n;
    bool *gone = arena_array(r->arena, bool, n + 1);
    for (size_t i = 0; i < n; i++)
        gone[i] = r->best->timeline[i].fault && !r->spec->fired[i];
    without(r, gone);
}

/* ---- the cluster ---- */

static size_t nodes_n(void *arg) {
    return (size_t)((const struct reduction_search *)arg)->best->cluster.nodes;
}

/* The last of those that are left; what names one keeps it. */
static size_t without_nodes(void *arg, size_t left, size_t many) {
    struct reduction_search *r = arg;
    BUF_FINI struct buf what = {0};
    bool *gone = arena_array(r->arena, bool, nodes_n(r) + 1);
    size_t marked = 0;
    while (left > 0 && marked < many) {
        if (node_names_has(r->best, (int)--left))
            continue;
        gone[left] = true;
        buf_printf(&what, "%sn%zu", marked++ ? ", " : "without ", left);
    }
    if (marked)
        try(r, smaller_cluster(r->arena, r->best, gone), buf_str(&what));
    return left;
}

static void fewer_nodes(void *arg) {
    struct reduction_search *r = arg;
    delta_halves(&r->delta, nodes_n, without_nodes);
}

static void fewer_workers(void *arg) {
    struct reduction_search *r = arg;
    bool fewer = false;
    for (int n = 1; n < r->best->job.workers_per_node && !fewer; n *= 2)
        fewer = try(r, smaller_workers(r->arena, r->best, n),
                    arena_printf(r->arena, "%d worker%s a node", n, n == 1 ? "" : "s"));
}

/* ---- plainer ---- */

static void no_probes(void *arg) {
    struct reduction_search *r = arg;
    if (r->best->probes_n && !str_in("probe", r->spec->checks))
        try(r, smaller_probes(r->arena, r->best), "without the probes");
}

/* What can be halved is, as long as it goes well. */
static void plainer_lines(void *arg) {
    struct reduction_search *r = arg;
    for (size_t i = 0; i < r->best->timeline_n; i++)
        for (int part = 0; part < SMALLER_PARTS_N; part++)
            while (try(
                r, smaller_line(r->arena, r->best, i, part),
                arena_printf(r->arena, "%s %s", r->best->timeline[i].id, smaller_part_text[part])))
                ;
}

static void fewer_steps(void *arg) {
    struct reduction_search *r = arg;
    while (try(r, smaller_steps(r->arena, r->best), "half the steps"))
        ;
}

void reduction_run(struct arena *a, const struct scenario *given, const struct reduction_spec *spec,
                   struct reduction *ret) {
    static void (*const passes[])(void *) = {fewer_lines,   fewer_nodes, fewer_workers, no_probes,
                                             plainer_lines, fewer_steps, NULL};
    struct reduction_search r = {.arena = a, .spec = spec, .delta = {.try = answer, .arg = &r}};
    if (try(&r, smaller_expect(a, given, spec->checks), "as recorded") && !spec->fixed) {
        try(&r, smaller_draws(a, r.best, spec->struck), "what was drawn by name");
        without_unfired(&r);
        delta_run(&r.delta, passes, INT_MAX);
    }
    *ret = (struct reduction){.smallest = r.best, .stopped = r.delta.stopped};
}
