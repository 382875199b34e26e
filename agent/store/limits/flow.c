#include "agent/store/limits/flow.h"

#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/loop.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <stdlib.h>

enum { OTHERS, AGENTS, KINDS };
enum { TURN_MAX = 1 << 20 }; /* bytes that others are sent before somebody else has a turn */

static const int64_t SLOW_NS = 10000000000, CROWDED_NS = 1000000000;

struct flow {
    struct kind {
        struct list waiting, taking; /* taking: who began longest ago first */
        size_t held, max;
    } kinds[KINDS];
    struct event *turn[KINDS];
    struct loop_source *late;
    int64_t armed_ns; /* late is, INT64_MAX: it is not */
};

static struct kind *kind_of(const struct flow_item *i) {
    return &i->flow->kinds[i->agent ? AGENTS : OTHERS];
}

static void wake(struct flow *f, int kind) {
    if (!list_empty(&f->kinds[kind].waiting))
        event_active(f->turn[kind], EV_TIMEOUT, 0);
}

/* ---- who takes nothing ---- */

static int64_t patience(const struct kind *k) {
    return list_empty(&k->waiting) || k->held < k->max ? SLOW_NS : CROWDED_NS;
}

static int64_t late_at(const struct kind *k) {
    if (list_empty(&k->taking))
        return INT64_MAX;
    return list_entry(k->taking.next, struct flow_item, node)->since_ns + patience(k);
}

/* It is set when it has to be earlier, and looks again when it was too early: not for each piece.
 */
static void arm(struct flow *f) {
    int64_t others_ns = late_at(&f->kinds[OTHERS]), agents_ns = late_at(&f->kinds[AGENTS]);
    int64_t at_ns = others_ns < agents_ns ? others_ns : agents_ns;
    if (at_ns >= f->armed_ns)
        return;
    f->armed_ns = at_ns;
    loop_timer_at(f->late, at_ns);
}

static void on_late(void *arg, int64_t now_ns) {
    struct flow *f = arg;
    f->armed_ns = INT64_MAX;
    for (int kind = 0; kind < KINDS; kind++) {
        struct kind *k = &f->kinds[kind];
        while (late_at(k) <= now_ns) {
            struct flow_item *i = list_entry(k->taking.next, struct flow_item, node);
            flow_remove(i);
            i->ops->cut(i);
        }
        wake(f, kind);
    }
    arm(f);
}

/* ---- a piece ---- */

static void on_taken(struct evhttp_connection *connection, void *arg) {
    struct flow_item *i = arg;
    struct flow *f = i->flow;
    bool agent = i->agent;
    if (!i->held)
        return;
    kind_of(i)->held -= i->held;
    i->held = 0;
    list_remove(&i->node);
    i->ops->taken(i);
    wake(f, agent ? AGENTS : OTHERS);
    arm(f);
}

/* Returns how many bytes it has now. */
static size_t give(struct flow_item *i) {
    struct kind *k = kind_of(i);
    BUF_FINI struct buf text = {0};
    size_t n = 0;
    list_remove(&i->node);
    i->waits = false;
    if (i->ops->produce(i, &text) && text.len) {
        struct evbuffer *out = evbuffer_new();
        if (!out)
            abort();
        n = i->held = text.len;
        k->held += n;
        i->since_ns = clock_monotonic_ns();
        list_append(&k->taking, &i->node);
        evbuffer_add(out, text.data, text.len);
        evhttp_send_reply_chunk_with_cb(i->req, out, on_taken, i);
        evbuffer_free(out);
    }
    return n;
}

static void on_turn(struct flow *f, int kind) {
    struct kind *k = &f->kinds[kind];
    size_t given = 0;
    while (!list_empty(&k->waiting) && k->held < k->max && given < TURN_MAX)
        given += give(list_entry(k->waiting.next, struct flow_item, node));
    if (k->held < k->max)
        wake(f, kind);
    arm(f);
}

static void on_agents_turn(int fd, short what, void *arg) {
    on_turn(arg, AGENTS);
}

static void on_others_turn(int fd, short what, void *arg) {
    on_turn(arg, OTHERS);
}

/* ---- the whole ---- */

static struct event *turn_new(struct loop *l, event_callback_fn fn, int priority, struct flow *f) {
    struct event *e = event_new(loop_base(l), -1, 0, fn, f);
    if (!e)
        abort();
    event_priority_set(e, priority);
    return e;
}

struct flow *flow_new(struct loop *l) {
    struct flow *f = mem_new(struct flow);
    for (int kind = 0; kind < KINDS; kind++) {
        list_init(&f->kinds[kind].waiting);
        list_init(&f->kinds[kind].taking);
        f->kinds[kind].max = SIZE_MAX;
    }
    f->turn[AGENTS] = turn_new(l, on_agents_turn, LOOP_USUAL, f);
    f->turn[OTHERS] = turn_new(l, on_others_turn, LOOP_LAST, f);
    f->late = loop_timer(l, on_late, f);
    f->armed_ns = INT64_MAX;
    return f;
}

struct flow *flow_free(struct flow *f) {
    if (!f)
        return NULL;
    for (int kind = 0; kind < KINDS; kind++)
        event_free(f->turn[kind]);
    loop_source_free(f->late);
    free(f);
    return NULL;
}

void flow_limit(struct flow *f, size_t agents_max, size_t others_max) {
    f->kinds[AGENTS].max = agents_max;
    f->kinds[OTHERS].max = others_max;
}

void flow_add(struct flow *f, struct flow_item *i, const struct flow_ops *ops,
              struct evhttp_request *req, bool agent) {
    *i = (struct flow_item){.flow = f, .ops = ops, .req = req, .agent = agent};
    list_init(&i->node);
}

void flow_want(struct flow_item *i) {
    if (!i->flow || i->held || i->waits)
        return;
    i->waits = true;
    list_append(&kind_of(i)->waiting, &i->node);
    wake(i->flow, i->agent ? AGENTS : OTHERS);
}

void flow_remove(struct flow_item *i) {
    if (!i->flow)
        return;
    kind_of(i)->held -= i->held;
    list_remove(&i->node);
    i->held = 0;
    i->flow = NULL;
}
