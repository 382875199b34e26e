/* Breadth first, so that the first path to a violation is a shortest one; when the worlds that wait
 * fill half of the memory, the newest of them first, until they do no more. Of a state that has
 * been gone on from only its fingerprint, its parent and the choice that led to it are kept. */
#include "harness/explore/world.h"

#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct known {
    uint64_t fingerprint;
    uint32_t parent;
    struct choice choice;
    bool end; /* all is over, or a bound of the search is reached */
};

struct search_waiting {
    struct world *world;
    uint32_t index;
    int depth;
};

struct queue {
    struct search_waiting *all;
    size_t n, cap;
};

struct exhaustive_search {
    const struct explore_config *config;
    struct explore_result *ret;
    struct known *known;
    uint64_t n, cap;
    uint32_t *table; /* 1 + index of a known state, by fingerprint */
    uint64_t slots;
    uint32_t *edges; /* from, to: without a fault */
    uint64_t n_edges, cap_edges;
    struct queue now, next;
    uint64_t taken;
};

static void *grow(void *p, uint64_t *cap, uint64_t least, size_t size) {
    *cap = *cap ? *cap * 2 : least;
    p = realloc(p, *cap * size);
    if (!p)
        abort(); /* out of memory */
    return p;
}

static uint64_t bytes(const struct exhaustive_search *s) {
    return world_bytes() + s->cap * sizeof(*s->known) + s->slots * sizeof(*s->table) +
           s->cap_edges * sizeof(*s->edges) +
           (s->now.cap + s->next.cap) * sizeof(struct search_waiting);
}

/* --- known states --- */

static void rehash(struct exhaustive_search *s) {
    free(s->table);
    s->slots = s->slots ? s->slots * 2 : 1 << 16;
    s->table = calloc(s->slots, sizeof(*s->table));
    if (!s->table)
        abort();
    for (uint64_t i = 0; i < s->n; i++) {
        uint64_t at = s->known[i].fingerprint & (s->slots - 1);
        while (s->table[at])
            at = (at + 1) & (s->slots - 1);
        s->table[at] = (uint32_t)i + 1;
    }
}

/* Its index; *ret_new: it was not known. */
static uint32_t find(struct exhaustive_search *s, const struct world *w, uint32_t parent,
                     struct choice choice, bool *ret_new) {
    uint64_t fingerprint = world_fingerprint(w);
    if (2 * s->n >= s->slots)
        rehash(s);
    uint64_t at = fingerprint & (s->slots - 1);
    for (; s->table[at]; at = (at + 1) & (s->slots - 1))
        if (s->known[s->table[at] - 1].fingerprint == fingerprint) {
            *ret_new = false;
            return s->table[at] - 1;
        }
    if (s->n == s->cap)
        s->known = grow(s->known, &s->cap, 1 << 15, sizeof(*s->known));
    bool over = world_is_over(w), bounded = world_is_bounded(w);
    s->ret->ends += over;
    s->ret->bounded += bounded && !over;
    s->known[s->n] = (struct known){fingerprint, parent, choice, over || bounded};
    s->table[at] = (uint32_t)s->n + 1;
    *ret_new = true;
    return (uint32_t)s->n++;
}

static void edge_add(struct exhaustive_search *s, uint32_t from, uint32_t to) {
    if (2 * s->n_edges + 2 > s->cap_edges)
        s->edges = grow(s->edges, &s->cap_edges, 1 << 17, sizeof(*s->edges));
    s->edges[2 * s->n_edges] = from;
    s->edges[2 * s->n_edges + 1] = to;
    s->n_edges++;
}

static void push(struct queue *q, struct world *w, uint32_t index, int depth) {
    uint64_t cap = q->cap;
    if (q->n == q->cap)
        q->all = grow(q->all, &cap, 1024, sizeof(*q->all));
    q->cap = cap;
    q->all[q->n++] = (struct search_waiting){w, index, depth};
}

/* --- paths --- */

static void path_write(struct exhaustive_search *s, uint32_t to, const struct choice *last) {
    uint32_t n = 0, *steps;
    BUF_FINI struct buf text = {0};
    for (uint32_t i = to; i; i = s->known[i].parent)
        n++;
    steps = malloc((n + 1) * sizeof(*steps));
    if (!steps)
        abort();
    for (uint32_t i = to, k = n; i; i = s->known[i].parent)
        steps[--k] = i;
    for (uint32_t i = 0; i < n; i++) {
        struct choice c = s->known[steps[i]].choice;
        buf_printf(&text, "%s %d %d\n", choice_name(c), c.node, c.arg);
    }
    if (last)
        buf_printf(&text, "%s %d %d\n", choice_name(*last), last->node, last->arg);
    free(s->ret->path);
    s->ret->path = strdup(buf_str(&text));
    free(steps);
}

/* --- every choice of a state --- */

/* Returns false when the search is over: something is violated. */
static bool expand(struct exhaustive_search *s, const struct search_waiting *from) {
    struct choice all[CHOICES_MAX];
    int n = choice_list(from->world, all);
    s->ret->depth = from->depth > s->ret->depth ? from->depth : s->ret->depth;
    for (int i = 0; i < n; i++) {
        struct world *w = world_copy(from->world);
        bool is_new = false, good = choice_take(w, all[i]);
        if (!good) {
            world_free(w);
            continue;
        }
        s->ret->transitions++;
        if (w->violated) {
            s->ret->end = EXPLORE_VIOLATED;
            snprintf(s->ret->text, sizeof(s->ret->text), "%s", w->text);
            path_write(s, from->index, &all[i]);
            world_free(w);
            return false;
        }
        uint32_t to = find(s, w, from->index, all[i], &is_new);
        if (all[i].kind < CHOICE_FAULTS)
            edge_add(s, from->index, to);
        if (is_new && !s->known[to].end)
            push(&s->next, w, to, from->depth + 1);
        else
            world_free(w);
    }
    return true;
}

static bool goes_on(struct exhaustive_search *s) {
    const struct explore_config *c = s->config;
    uint64_t now = bytes(s);
    s->ret->bytes = now > s->ret->bytes ? now : s->ret->bytes;
    if (s->n >= c->states_max || now >= c->memory_max || s->n >= UINT32_MAX / 2) {
        s->ret->end = EXPLORE_LIMIT;
        return false;
    }
    uint64_t waits = s->now.n + s->next.n;
    if (c->seen && !c->seen(c->arg, s->n, waits, s->ret->depth)) {
        s->ret->end = EXPLORE_STOPPED;
        return false;
    }
    return true;
}

static bool take(struct exhaustive_search *s, const struct search_waiting *from) {
    bool on = expand(s, from);
    world_free(from->world);
    return on && (++s->taken % 256 || goes_on(s));
}

/* What comes last is near an end, and leaves little behind. */
static bool relieve(struct exhaustive_search *s) {
    bool on = true;
    while (on && s->next.n && world_bytes() > s->config->memory_max / 2) {
        struct search_waiting newest = s->next.all[--s->next.n];
        on = take(s, &newest);
    }
    return on;
}

static bool level(struct exhaustive_search *s) {
    bool on = true;
    for (size_t i = 0; i < s->now.n; i++) {
        if (on)
            on = take(s, &s->now.all[i]) && relieve(s);
        else
            world_free(s->now.all[i].world);
    }
    struct queue done = s->now;
    s->now = s->next;
    s->next = done;
    s->next.n = 0;
    return on && goes_on(s);
}

/* --- whether an end can be reached --- */

static uint32_t *backwards(const struct exhaustive_search *s, uint32_t **ret_first) {
    uint32_t *first = calloc(s->n + 2, sizeof(*first));
    uint32_t *from = malloc((s->n_edges + 1) * sizeof(*from));
    if (!first || !from)
        abort();
    for (uint64_t i = 0; i < s->n_edges; i++)
        first[s->edges[2 * i + 1] + 2]++;
    for (uint64_t i = 2; i < s->n + 2; i++)
        first[i] += first[i - 1];
    for (uint64_t i = 0; i < s->n_edges; i++)
        from[first[s->edges[2 * i + 1] + 1]++] = s->edges[2 * i];
    *ret_first = first;
    return from;
}

/* The states from which no end is reached without a further fault; the first of them in *ret. */
static uint64_t stuck_states(const struct exhaustive_search *s, uint32_t *ret) {
    uint32_t *first, *from = backwards(s, &first);
    uint32_t *todo = malloc((s->n + 1) * sizeof(*todo));
    bool *good = calloc(s->n + 1, sizeof(*good));
    uint64_t n = 0, done = 0, stuck = 0;
    if (!todo || !good)
        abort();
    for (uint64_t i = 0; i < s->n; i++)
        if ((good[i] = s->known[i].end))
            todo[n++] = (uint32_t)i;
    for (; done < n; done++)
        for (uint32_t k = first[todo[done]]; k < first[todo[done] + 1]; k++)
            if (!good[from[k]]) {
                good[from[k]] = true;
                todo[n++] = from[k];
            }
    for (uint64_t i = s->n; i-- > 0;)
        if (!good[i]) {
            stuck++;
            *ret = (uint32_t)i;
        }
    free(good);
    free(todo);
    free(from);
    free(first);
    return stuck;
}

static void judge_ends(struct exhaustive_search *s) {
    uint32_t first = 0;
    uint64_t n = stuck_states(s, &first);
    s->ret->end = EXPLORE_COMPLETE;
    if (!n)
        return;
    s->ret->end = EXPLORE_STUCK;
    snprintf(s->ret->text, sizeof(s->ret->text),
             "I5: no end can be reached from %llu of %llu states, though nothing more goes wrong",
             (unsigned long long)n, (unsigned long long)s->n);
    path_write(s, first, NULL);
}

void explore_run(const struct explore_config *config, struct explore_result *ret) {
    struct exhaustive_search s = {.config = config, .ret = ret};
    bool is_new, on = true;
    *ret = (struct explore_result){.end = EXPLORE_COMPLETE};
    struct world *w = world_new(config, false);
    push(&s.now, w, find(&s, w, 0, (struct choice){0}, &is_new), 0);
    while (on && s.now.n)
        on = level(&s);
    if (on)
        judge_ends(&s);
    ret->states = s.n;
    for (size_t i = 0; i < s.now.n; i++)
        world_free(s.now.all[i].world);
    free(s.now.all);
    free(s.next.all);
    free(s.known);
    free(s.table);
    free(s.edges);
}
