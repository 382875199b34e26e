#include "harness/shrink/reduction.h"

#include "agent/base/str.h"
#include "harness/shrink/node_names.h"
#include "harness/shrink/smaller.h"

#include <string.h>

enum { NAMED_MAX = 4 };

struct search {
    struct arena *arena;
    const struct reduction_spec *spec;
    const struct scenario *best;
    const char **tried; /* as text */
    size_t tried_n, tried_cap;
    bool stopped;
};

/* ---- one ---- */

static bool was_tried(struct search *r, const struct scenario *s) {
    struct buf text = {0};
    bool before = false;
    scenario_print(s, &text);
    for (size_t i = 0; i < r->tried_n && !before; i++)
        before = str_eq(r->tried[i], buf_str(&text));
    if (!before && r->tried_n == r->tried_cap) {
        size_t cap = r->tried_cap ? 2 * r->tried_cap : 64;
        const char **v = arena_array(r->arena, const char *, cap);
        if (r->tried_n)
            memcpy(v, r->tried, r->tried_n * sizeof(*v));
        r->tried = v;
        r->tried_cap = cap;
    }
    if (!before)
        r->tried[r->tried_n++] = arena_strdup(r->arena, buf_str(&text));
    buf_fini(&text);
    return before;
}

/* Whether c fails in the same way; it is the best then. */
static bool try(struct search *r, const struct scenario *c, const char *what) {
    if (!c || r->stopped || was_tried(r, c))
        return false;
    enum reduction_answer answer = r->spec->try(r->spec->arg, c, what);
    r->stopped = answer == REDUCTION_STOP;
    if (answer == REDUCTION_SAME)
        r->best = c;
    return answer == REDUCTION_SAME;
}

/* ---- the timeline ---- */

static const char *list(struct arena *a, const char *before, const char *const *names, size_t n,
                        size_t of) {
    struct buf text = {0};
    if (n > NAMED_MAX)
        buf_printf(&text, "%s%zu of %zu lines", before, n, of);
    for (size_t i = 0; i < n && n <= NAMED_MAX; i++)
        buf_printf(&text, "%s%s", i ? ", " : before, names[i]);
    const char *said = arena_strdup(a, buf_str(&text));
    buf_fini(&text);
    return said;
}

/* Rounds that a fault has made are not there when it has gone. */
static bool without(struct search *r, bool *gone) {
    const struct scenario *s = r->best, *c = smaller_timeline(r->arena, s, gone);
    const char **names = arena_array(r->arena, const char *, s->timeline_n + 1);
    size_t n = 0;
    if (!c || !c->timeline_n)
        return false;
    for (size_t i = 0; i < s->timeline_n; i++)
        if (gone[i])
            names[n++] = s->timeline[i].id;
    const char *what = list(r->arena, "without ", names, n, s->timeline_n);
    return try(r, c, what) ||
           try(r, smaller_rounds(r->arena, c), arena_printf(r->arena, "%s, and any round", what));
}

static bool *flags(struct search *r, size_t n) {
    bool *v = arena_array(r->arena, bool, n + 1);
    memset(v, 0, n + 1);
    return v;
}

/* From the end: what came before stays as it was. */
static bool fewer_lines(struct search *r) {
    bool any = false;
    for (size_t n = (r->best->timeline_n + 1) / 2; n >= 1; n /= 2)
        for (size_t at = r->best->timeline_n; at > 0;) {
            size_t from = at > n ? at - n : 0;
            bool *gone = flags(r, r->best->timeline_n);
            memset(gone + from, true, at - from);
            any |= without(r, gone);
            at = from < r->best->timeline_n ? from : r->best->timeline_n;
        }
    return any;
}

/* What did not happen has done nothing, nor will it be missed. */
static void without_unfired(struct search *r) {
    size_t n = r->best->timeline_n;
    bool *gone = flags(r, n);
    for (size_t i = 0; i < n; i++)
        gone[i] = r->best->timeline[i].fault && !r->spec->fired[i];
    without(r, gone);
}

/* ---- the cluster ---- */

/* The last n nodes below `at` that nothing names; -1: there are none. */
static int mark_nodes(const struct scenario *s, int at, int n, bool *gone, struct buf *what) {
    int marked = 0, node = at;
    while (node > 0 && marked < n) {
        node--;
        if (node_names_has(s, node))
            continue;
        gone[node] = true;
        buf_printf(what, "%sn%d", marked++ ? ", " : "without ", node);
    }
    return marked ? node : -1;
}

static bool fewer_nodes(struct search *r) {
    bool any = false;
    for (int n = (r->best->cluster.nodes + 1) / 2; n >= 1; n /= 2)
        for (int at = r->best->cluster.nodes; at > 0;) {
            struct buf what = {0};
            bool *gone = flags(r, (size_t)r->best->cluster.nodes);
            at = mark_nodes(r->best, at, n, gone, &what);
            if (at >= 0)
                any |= try(r, smaller_cluster(r->arena, r->best, gone), buf_str(&what));
            buf_fini(&what);
        }
    return any;
}

static bool fewer_workers(struct search *r) {
    bool any = false;
    for (int n = 1; n < r->best->job.workers_per_node && !any; n *= 2)
        any = try(r, smaller_workers(r->arena, r->best, n),
                  arena_printf(r->arena, "%d worker%s a node", n, n == 1 ? "" : "s"));
    return any;
}

/* ---- plainer ---- */

static bool named_draws(struct search *r) {
    return try(r, smaller_draws(r->arena, r->best, r->spec->struck), "what was drawn by name");
}

static bool no_probes(struct search *r) {
    for (const char *const *c = r->spec->checks; *c; c++)
        if (str_eq(*c, "probe"))
            return false;
    return r->best->probes_n && try(r, smaller_probes(r->arena, r->best), "without the probes");
}

/* What can be halved is, as long as it goes well. */
static bool plainer_lines(struct search *r) {
    bool any = false;
    for (size_t i = 0; i < r->best->timeline_n; i++)
        for (int part = 0; part < SMALLER_PARTS_N; part++) {
            bool again = true;
            while (again) {
                const char *what = arena_printf(r->arena, "%s %s", r->best->timeline[i].id,
                                                smaller_part_text[part]);
                again = try(r, smaller_line(r->arena, r->best, i, part), what);
                any |= again;
            }
        }
    return any;
}

static bool fewer_steps(struct search *r) {
    bool any = false;
    while (try(r, smaller_steps(r->arena, r->best), "half the steps"))
        any = true;
    return any;
}

void reduction_run(struct arena *a, const struct scenario *given, const struct reduction_spec *spec,
                   struct reduction *ret) {
    struct search r = {.arena = a, .spec = spec};
    bool again = try(&r, smaller_expect(a, given, spec->checks), "as recorded") && !spec->fixed;
    if (again) {
        named_draws(&r);
        without_unfired(&r);
    }
    while (again && !r.stopped) {
        again = fewer_lines(&r);
        again |= fewer_nodes(&r);
        again |= fewer_workers(&r);
        again |= no_probes(&r);
        again |= plainer_lines(&r);
        again |= fewer_steps(&r);
    }
    *ret = (struct reduction){.smallest = r.best, .stopped = r.stopped};
}
