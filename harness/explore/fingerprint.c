/* The fingerprint of a world: the hashes of its parts, then all their numbers, ranked: they are
 * compared, and never counted with. */
#include "harness/explore/world.h"

#include <stdlib.h>
#include <string.h>

/* No time further away than this is told apart: nothing is set so far ahead but what is never
 * reached here (giving up, the job's lease, a worker that cannot be killed). */
static const int64_t horizon_ns = 8 * EXPLORE_STEP_NS;

static struct gathered {
    struct canonical_number *all;
    int64_t *mapped;
    size_t *order;
    size_t n, n_order, cap;
    uint64_t hash;
} gathered; /* one world at a time */

static void number(struct gathered *g, const struct canonical_number *x) {
    if (g->n == g->cap) {
        g->cap = g->cap ? 2 * g->cap : 512;
        g->all = realloc(g->all, g->cap * sizeof(*g->all));
        g->mapped = realloc(g->mapped, g->cap * sizeof(*g->mapped));
        g->order = realloc(g->order, g->cap * sizeof(*g->order));
        if (!g->all || !g->mapped || !g->order)
            abort();
    }
    if (!x->is_time && x->value)
        g->order[g->n_order++] = g->n;
    g->mapped[g->n] = 0;
    g->all[g->n++] = *x;
}

static void see(struct gathered *g, const struct canonical *c) {
    g->hash = canonical_mix(g->hash, c->hash ^ c->n);
    for (size_t i = 0; i < c->n; i++)
        number(g, &c->numbers[i]);
}

static void see_word(struct gathered *g, uint64_t word) {
    g->hash = canonical_mix(g->hash, word);
}

static void see_id(struct gathered *g, uint64_t class, uint64_t id) {
    number(g, &(struct canonical_number){.class = class, .value = (int64_t)id});
}

static void see_time(struct gathered *g, int64_t at_ns) {
    number(g, &(struct canonical_number){.is_time = true, .value = at_ns});
}

static void see_bytes(struct gathered *g, const void *p, size_t size) {
    struct canonical c = {.hash = g->hash};
    canonical_bytes(&c, p, size);
    g->hash = c.hash;
}

static void see_pending(struct gathered *g, uint64_t ids, const struct pending *p) {
    bool beat = p->message->kind == ACTION_BEAT;
    see(g, &p->message->seen);
    see_word(g, (uint64_t)p->held | (uint64_t)p->ghost << 1 | (uint64_t)p->answered << 2 |
                    (uint64_t)p->slow << 3 | (uint64_t)p->deaf << 4 | (uint64_t)p->applied << 5);
    if (!p->ghost) {
        see_id(g, ids + beat, p->message->id);
        see_time(g, p->sent_ns + 2 * EXPLORE_STEP_NS);
    }
    if (p->answered)
        see_id(g, CANONICAL_REVISION, (uint64_t)p->revision);
}

static void see_stream(struct gathered *g, const struct world *w, uint64_t ids,
                       const struct explore_stream *s, int slot) {
    see_id(g, ids, s->generation);
    see_word(g, s->slow);
    if (!s->generation)
        return;
    see_bytes(g, s->uid, sizeof(s->uid));
    for (int i = s->at; i < w->n_log; i++)
        if (stream_wants(s, slot, w->log[i]))
            see(g, &w->log[i]->seen);
}

static void see_node(struct gathered *g, const struct world *w, int node) {
    const struct explore_node *n = &w->nodes[node];
    uint64_t ids = 2 * (uint64_t)node + 2;
    see_word(g, (uint64_t)n->shown.life << 32 | (uint64_t)n->joins << 16 |
                    (uint64_t)n->stopped << 4 | (uint64_t)n->guard_stopped << 3 |
                    (uint64_t)n->cut << 2 | (uint64_t)n->shown.signaled << 1 | (n->core != NULL));
    if (n->core)
        see(g, &n->core->seen);
    see_time(g, n->timer_ns);
    see_time(g, n->shown.group.alive || n->core ? n->fence_ns : 0);
    for (int k = 0; k < WATCH_SLOTS; k++)
        see_stream(g, w, ids, &n->streams[k], k);
    see_word(g, (uint64_t)n->n_pending << 8 | (uint64_t)n->n_pipe);
    for (int k = 0; k < n->n_pending; k++)
        see_pending(g, ids, &n->pending[k]);
    for (int k = 0; k < n->n_pipe; k++)
        see_word(g, (uint64_t)n->pipe[k].kind << 40 | (uint64_t)n->pipe[k].status << 8 |
                        (uint64_t)n->pipe[k].exited << 4 | n->pipe[k].fenced);
    see_word(g, (uint64_t)n->shown.group.alive << 2 | (uint64_t)n->stopping << 1 |
                    n->shown.group.failed);
    see_word(g, (uint64_t)n->shown.group.round);
    see_bytes(g, n->shown.group.uid, sizeof(n->shown.group.uid));
}

static void see_judge(struct gathered *g, const struct world *w) {
    struct canonical c = {.hash = g->hash};
    judge_canonical(&w->judge, &c);
    g->hash = c.hash;
    see_word(g, (uint64_t)w->rounds << 1 | w->was_cut);
    see_word(g, (uint64_t)w->whole_round);
}

static int compare(const void *a, const void *b) {
    const struct canonical_number *x = &gathered.all[*(const size_t *)a],
                                  *y = &gathered.all[*(const size_t *)b];
    if (x->class != y->class)
        return x->class < y->class ? -1 : 1;
    return x->value < y->value ? -1 : x->value > y->value;
}

static void rank(struct gathered *g) {
    int64_t last = 0, given = 0;
    uint64_t class = 0;
    qsort(g->order, g->n_order, sizeof(*g->order), compare);
    for (size_t i = 0; i < g->n_order; i++) {
        const struct canonical_number *x = &g->all[g->order[i]];
        if (!i || x->class != class)
            last = given = 0;
        class = x->class;
        given += x->value != last;
        last = x->value;
        g->mapped[g->order[i]] = given;
    }
}

static int64_t distance(const struct world *w, const struct canonical_number *x) {
    if (!x->value)
        return INT64_MIN;
    if (x->value > w->now_ns + horizon_ns)
        return horizon_ns;
    int64_t ns = x->value - w->now_ns;
    int64_t past_ns = x->past_ns < horizon_ns ? x->past_ns : horizon_ns;
    return ns < -past_ns ? -past_ns : ns;
}

uint64_t world_fingerprint(const struct world *w) {
    struct gathered *g = &gathered;
    g->n = g->n_order = 0;
    g->hash = 0;
    see(g, &w->store->seen);
    for (int i = 0; i < w->config->agents; i++)
        see_node(g, w, i);
    see_judge(g, w);
    for (int i = 0; i < EXPLORE_BOUNDS_N; i++)
        see_word(g, w->left[i] < w->together ? w->left[i] : w->together);
    see_word(g, w->together);
    rank(g);
    for (size_t i = 0; i < g->n; i++)
        see_word(g, (uint64_t)(g->all[i].is_time ? distance(w, &g->all[i]) : g->mapped[i]));
    return g->hash ? g->hash : 1;
}
