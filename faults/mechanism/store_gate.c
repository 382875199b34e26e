#include "faults/mechanism/store_gate.h"

#include "base/list.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* Behind a request that waits; what comes beyond is lost, and sent again by its TCP. */
enum { FRAMES_MAX = 64 };

struct kept_frame {
    struct list link;
    size_t len;
    unsigned char message[];
};

struct gated {
    struct list link;
    uint64_t id;
    int from, to;
    unsigned plane;
    uint16_t tcp_port;
    struct list frames;
    int n;
};

struct store_gate {
    struct store_requests requests;
    unsigned told, held;
    uint64_t last_id;
    struct list waiting;
};

struct store_gate *store_gate_new(void) {
    struct store_gate *g = mem_new(struct store_gate);
    list_init(&g->waiting);
    return g;
}

static void gated_free(struct gated *w) {
    list_remove(&w->link);
    list_each_safe(it, next, &w->frames) free(list_entry(it, struct kept_frame, link));
    free(w);
}

struct store_gate *store_gate_free(struct store_gate *g) {
    if (!g)
        return NULL;
    list_each_safe(it, next, &g->waiting) gated_free(list_entry(it, struct gated, link));
    free(g);
    return NULL;
}

void store_gate_watch(struct store_gate *g, unsigned told, unsigned held) {
    g->told = told;
    g->held = held;
}

bool store_gate_is_open(const struct store_gate *g) {
    return !g->told && list_empty(&g->waiting);
}

static struct gated *find(struct store_gate *g, const struct gate_frame *f) {
    list_each(it, &g->waiting) {
        struct gated *w = list_entry(it, struct gated, link);
        if (w->from == f->from && w->to == f->to && w->tcp_port == f->frame->source_port)
            return w;
    }
    return NULL;
}

static void keep(struct gated *w, const struct gate_frame *f) {
    if (w->n++ >= FRAMES_MAX)
        return;
    struct kept_frame *k = mem_alloc(1, sizeof(*k) + f->len);
    k->len = f->len;
    memcpy(k->message, f->message, f->len);
    list_append(&w->frames, &k->link);
}

static struct gated *wait_anew(struct store_gate *g, const struct gate_frame *f) {
    struct gated *w = mem_new(struct gated);
    *w = (struct gated){.id = ++g->last_id,
                        .from = f->from,
                        .to = f->to,
                        .plane = f->plane,
                        .tcp_port = f->frame->source_port};
    list_init(&w->frames);
    list_append(&g->waiting, &w->link);
    return w;
}

struct gate_verdict store_gate_see(struct store_gate *g, const struct gate_frame *f) {
    struct gate_verdict ret = {.operation = STORE_OPERATION_NONE};
    struct gated *w = f->frame->kind == FRAME_TCP ? find(g, f) : NULL;
    if (!w) {
        enum store_operation op = store_requests_see(&g->requests, f->from, f->frame);
        unsigned bit = op == STORE_OPERATION_NONE ? 0 : 1U << op;
        if (!(bit & g->told))
            return ret;
        ret.operation = op;
        if (!(bit & g->held))
            return ret;
        w = wait_anew(g, f);
        ret.id = w->id;
    }
    ret.kept = true;
    keep(w, f);
    return ret;
}

static struct gated *find_id(struct store_gate *g, uint64_t id) {
    list_each(it, &g->waiting) {
        struct gated *w = list_entry(it, struct gated, link);
        if (w->id == id)
            return w;
    }
    return NULL;
}

void store_gate_pass(struct store_gate *g, uint64_t id, store_gate_fn *fn, void *arg) {
    struct gated *w = find_id(g, id);
    if (!w)
        return;
    list_each(it, &w->frames) {
        const struct kept_frame *k = list_entry(it, struct kept_frame, link);
        fn(arg, &(struct gate_frame){.from = w->from,
                                     .to = w->to,
                                     .plane = w->plane,
                                     .message = k->message,
                                     .len = k->len});
    }
    gated_free(w);
}

void store_gate_open(struct store_gate *g, store_gate_fn *fn, void *arg) {
    g->told = g->held = 0;
    while (!list_empty(&g->waiting))
        store_gate_pass(g, list_entry(g->waiting.next, struct gated, link)->id, fn, arg);
}
