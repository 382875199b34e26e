/* A heap in which each has up to four below it: half as deep as with two, and the four lie side by
 * side. An occurrence knows its place, so that it can be moved. */
#include "harness/sim/simulation.h"

#include <stdlib.h>

enum { WIDTH = 4 };

static bool is_before(const struct planned *a, const struct planned *b) {
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->seq < b->seq;
}

static void put(struct sim *c, size_t place, struct planned p) {
    c->queue[place] = p;
    p.occurrence->place = place;
}

/* Puts p where it belongs, from place up or down; what was in place is overwritten. */
static void rise(struct sim *c, size_t place, struct planned p) {
    while (place && is_before(&p, &c->queue[(place - 1) / WIDTH])) {
        put(c, place, c->queue[(place - 1) / WIDTH]);
        place = (place - 1) / WIDTH;
    }
    put(c, place, p);
}

static void sink(struct sim *c, size_t place, struct planned p) {
    const struct planned *q = c->queue;
    for (size_t first; (first = WIDTH * place + 1) < c->n_queue;) {
        size_t least = first, end = first + WIDTH < c->n_queue ? first + WIDTH : c->n_queue;
        for (size_t i = first + 1; i < end; i++)
            if (is_before(&q[i], &q[least]))
                least = i;
        if (!is_before(&q[least], &p))
            break;
        put(c, place, q[least]);
        place = least;
    }
    put(c, place, p);
}

static struct planned planned_of(struct occurrence *o) {
    return (struct planned){o->at_ns, o->seq, o};
}

void sim_queue_add(struct sim *c, struct occurrence *o) {
    if (c->n_queue == c->cap_queue) {
        c->cap_queue = c->cap_queue ? c->cap_queue * 2 : 256;
        c->queue = realloc(c->queue, c->cap_queue * sizeof(*c->queue));
        if (!c->queue)
            abort(); /* out of memory */
    }
    rise(c, c->n_queue++, planned_of(o));
}

void sim_queue_move(struct sim *c, struct occurrence *o, int64_t at_ns, uint64_t number) {
    struct planned before = planned_of(o);
    o->at_ns = at_ns < c->now_ns ? c->now_ns : at_ns;
    o->seq = number;
    struct planned p = planned_of(o);
    if (is_before(&p, &before))
        rise(c, o->place, p);
    else
        sink(c, o->place, p);
}

struct occurrence *sim_queue_take(struct sim *c) {
    struct occurrence *next = c->queue[0].occurrence;
    struct planned last = c->queue[--c->n_queue];
    if (c->n_queue)
        sink(c, 0, last);
    return next;
}
