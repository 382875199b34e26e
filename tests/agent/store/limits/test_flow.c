/* Random pieces to random readers, and a plain model of whose turn it is and who is cut off, to the nanosecond. libevent and
 * the clock are this file's. */
#include "base/rand.h"
#include "base/sys/clock.h"
#include "base/sys/loop.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

struct evhttp_request;
static int64_t virtual_ns, timer_ns;
static int active[2]; /* of others, of agents */
static char turns[2], late;
static void (*turn_fns[2])(int fd, short what, void *arg);
static loop_timer_fn *late_fn;
static int priorities[2], n_events;

static struct event *fake_event(void (*fn)(int fd, short what, void *arg));
static void fake_chunk(struct evhttp_request *req, struct evbuffer *out,
                       void (*taken)(struct evhttp_connection *c, void *arg), void *arg);
static int kind_at(const void *e) {
    assert_true(e == &turns[0] || e == &turns[1]);
    return e == &turns[1];
}

static char of_loop, of_base;
static int freed; /* events and the timer */

/* Everything is asked of whom it belongs to. */
static void is(const void *p, const void *expected) {
    assert_ptr_equal(p, expected);
}

#define clock_monotonic_ns() virtual_ns
#define loop_base(l)         (is(l, &of_loop), (struct event_base *)(void *)&of_base)
#define loop_timer(l, fn, arg)                                                                     \
    (is(l, &of_loop), late_fn = (fn), (struct loop_source *)(void *)&late)
#define loop_timer_at(s, at) (is(s, &late), timer_ns = (at))
#define loop_source_free(s)  (is(s, &late), freed++)
#define event_new(base, fd, what, fn, arg)                                                         \
    (is(base, &of_base), assert_true((fd) == -1 && !(what)), fake_event(fn))
#define event_free(e) (is(e, &turns[kind_at(e)]), freed++)
#define event_active(e, what, n)                                                                   \
    (assert_true((what) == EV_TIMEOUT && (n) == 0), active[kind_at(e)] = 1)
#define event_priority_set(e, p)                           (priorities[kind_at(e)] = (p))
#define evhttp_send_reply_chunk_with_cb(req, out, fn, arg) fake_chunk(req, out, fn, arg)
#include "agent/store/limits/flow.c"

/* Of agents first, then of others: as flow_new makes them. */
static struct event *fake_event(void (*fn)(int fd, short what, void *arg)) {
    int kind = n_events++ ? 0 : 1;
    turn_fns[kind] = fn;
    return (struct event *)(void *)&turns[kind];
}

/* ---- the model ---- */

enum { ITEMS = 24 };
static const int64_t MODEL_SLOW_NS = 10000000000, MODEL_CROWDED_NS = 1000000000;

static struct reader {
    struct flow_item item;
    int here, agent, waits;
    size_t held, next; /* next: the size of what it would be given */
    int64_t since_ns, place;
    int cut;
} readers[ITEMS];
static struct flow *flow;
static struct rand chance;
static size_t held[2], most[2];
static int64_t armed_ns, places;
static int model_active[2], wants_more, takings; /* takings: how often it was told */
static struct reader *given;                     /* whom a piece was sent to */
static struct reader *cut_last;

static int draw(int n) {
    return (int)rand_below(&chance, (uint64_t)n);
}

/* Who waits, or is being sent something, for longest; NULL: nobody. */
static struct reader *first(int kind, int waits) {
    struct reader *best = NULL;
    for (int i = 0; i < ITEMS; i++) {
        struct reader *r = &readers[i];
        if (r->here && r->agent == kind && (waits ? r->waits : r->held > 0) &&
            (!best || r->place < best->place))
            best = r;
    }
    return best;
}

static int64_t model_late_at(int kind) {
    const struct reader *r = first(kind, 0);
    bool crowded = first(kind, 1) && held[kind] >= most[kind];
    return r ? r->since_ns + (crowded ? MODEL_CROWDED_NS : MODEL_SLOW_NS) : INT64_MAX;
}

static void model_arm(void) {
    int64_t a = model_late_at(0), b = model_late_at(1);
    if ((a < b ? a : b) < armed_ns)
        armed_ns = a < b ? a : b;
}

static void model_wake(int kind) {
    model_active[kind] |= first(kind, 1) != NULL;
}

/* ---- what flow calls ---- */

static struct reader *reader_of(struct flow_item *i) {
    return (struct reader *)(void *)((char *)i - offsetof(struct reader, item));
}

static int waits_now = 1; /* 2: only who was found to be given something */

static bool on_produce(struct flow_item *i, struct buf *out) {
    struct reader *r = reader_of(i);
    assert_ptr_equal(r, first(r->agent, 1)); /* who has waited longest */
    assert_int_equal(r->waits, waits_now);   /* and nobody whom the bounds leave out */
    r->waits = 0;
    for (size_t n = 0; n < r->next; n++)
        buf_putc(out, 'x');
    given = r;
    return r->next != 1; /* one byte, and that is not to be sent */
}

static void fake_chunk(struct evhttp_request *req, struct evbuffer *out,
                       void (*taken)(struct evhttp_connection *c, void *arg), void *arg) {
    struct reader *r = given;
    assert_true(req == (struct evhttp_request *)(void *)r && arg == &r->item && taken == on_taken);
    assert_int_equal(evbuffer_get_length(out), r->next);
    r->held = r->next;
    held[r->agent] += r->held;
    r->since_ns = virtual_ns;
    r->place = ++places;
}

static void on_item_taken(struct flow_item *i) {
    struct reader *r = reader_of(i);
    takings++;
    if (!wants_more)
        return;
    flow_want(i);
    r->waits = 1;
    r->place = ++places;
    model_active[r->agent] = 1;
}

static void model_remove(struct reader *r) {
    held[r->agent] -= r->held;
    r->held = 0;
    r->waits = r->here = 0;
}

static void on_item_cut(struct flow_item *i) {
    struct reader *r = reader_of(i);
    assert_ptr_equal(r, first(r->agent, 0));
    assert_true(model_late_at(r->agent) <= virtual_ns);
    assert_null(i->flow);
    model_remove(r);
    cut_last = r;
}

static const struct flow_ops ops = {on_produce, on_item_taken, on_item_cut};

/* ---- both ---- */

static void add(struct reader *r) {
    *r = (struct reader){.here = 1, .agent = draw(2)};
    flow_add(flow, &r->item, &ops, (struct evhttp_request *)(void *)r, r->agent);
}

static void want(struct reader *r) {
    static const size_t sizes[] = {0, 1, 2, 3, 100, 5000, 1 << 18};
    flow_want(&r->item);
    if (!r->here || r->held || r->waits)
        return;
    r->next = sizes[draw(draw(8) ? 6 : 7)];
    r->waits = 1;
    r->place = ++places;
    model_active[r->agent] = 1;
}

static void take(struct reader *r) {
    size_t was = r->held;
    wants_more = draw(2);
    if (!r->here)
        return;
    held[r->agent] -= was;
    r->held = 0;
    takings = 0;
    on_taken(NULL, &r->item);
    assert_int_equal(takings, was > 0);
    if (!was)
        return;
    model_wake(r->agent);
    model_arm();
}

static void turn(int kind) {
    if (!active[kind])
        return;
    active[kind] = model_active[kind] = 0;
    size_t n = 0; /* what is given, as the model has it */
    for (struct reader *r; n < TURN_MAX && held[kind] + n < most[kind];
         n += r->next == 1 ? 0 : r->next) {
        r = NULL;
        for (int i = 0; i < ITEMS; i++)
            if (readers[i].here && readers[i].agent == kind && readers[i].waits == 1 &&
                (!r || readers[i].place < r->place))
                r = &readers[i];
        if (!r)
            break;
        r->waits = 2; /* it will be given something */
    }
    waits_now = 2;
    turn_fns[kind](-1, 0, flow);
    waits_now = 1;
    for (int i = 0; i < ITEMS; i++)
        assert_int_not_equal(readers[i].here && readers[i].agent == kind ? readers[i].waits : 0, 2);
    if (held[kind] < most[kind])
        model_wake(kind);
    model_arm();
}

static void pass_time(void) {
    int64_t at_ns = model_late_at(draw(2));
    if (draw(3) && at_ns < INT64_MAX && at_ns - 1 > virtual_ns)
        virtual_ns = at_ns - 1 + draw(3);
    else
        virtual_ns += draw(1000000000);
}

static void be_late(void) {
    if (virtual_ns < timer_ns || armed_ns == INT64_MAX)
        return;
    armed_ns = INT64_MAX;
    late_fn(flow, virtual_ns);
    for (int kind = 0; kind < 2; kind++) {
        assert_true(model_late_at(kind) > virtual_ns); /* whoever was late is gone */
        model_wake(kind);
    }
    model_arm();
}

static void same(void) {
    for (int kind = 0; kind < 2; kind++) {
        assert_int_equal(flow->kinds[kind].held, held[kind]);
        assert_int_equal(active[kind], model_active[kind]);
    }
    if (armed_ns < INT64_MAX)
        assert_true(timer_ns == armed_ns);
    assert_true(flow->armed_ns == armed_ns);
}

static void step(void) {
    struct reader *r = &readers[draw(ITEMS)];
    switch (draw(10)) {
    case 0:
        flow_remove(&r->item);
        model_remove(r);
        break;
    case 1:
        for (int kind = 0; kind < 2; kind++) /* often just what is held */
            most[kind] = draw(2) ? (size_t)draw(12000) : held[kind] + (size_t)draw(2);
        flow_limit(flow, most[1], most[0]);
        break;
    case 2:
    case 3:
        take(r);
        break;
    case 4:
    case 5:
        turn(draw(2));
        break;
    case 6:
        pass_time();
        be_late();
        break;
    default:
        if (!r->here)
            add(r);
        if (draw(8))
            want(r);
    }
    same();
}

static void test_turns_and_ends_are_as_a_plain_model_has_them(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        rand_init(&chance, seed);
        memset(readers, 0, sizeof(readers));
        memset(held, 0, sizeof(held));
        memset(active, 0, sizeof(active));
        memset(model_active, 0, sizeof(model_active));
        most[0] = most[1] = SIZE_MAX;
        virtual_ns = 1000000000000;
        timer_ns = n_events = 0;
        armed_ns = INT64_MAX;
        flow = flow_new((struct loop *)(void *)&of_loop);
        assert_true(priorities[1] == LOOP_USUAL && priorities[0] == LOOP_LAST);
        for (int i = 0; i < 600; i++)
            step();
        for (int i = 0; i < ITEMS; i++)
            flow_remove(&readers[i].item);
        assert_true(flow->kinds[0].held == 0 && flow->kinds[1].held == 0);
        freed = 0;
        assert_null(flow_free(flow));
        assert_int_equal(freed, 3);
    }
    assert_non_null(cut_last);
    assert_null(flow_free(NULL));
}

/* Of one kind: pieces that make a megabyte to the byte, and one byte less. */
static void test_a_turn_is_a_megabyte_long(void **state) {
    (void)state;
    for (int kind = 0; kind < 2; kind++)
        for (size_t less = 0; less < 2; less++) {
            memset(readers, 0, sizeof(readers));
            memset(active, 0, sizeof(active));
            n_events = 0;
            flow = flow_new((struct loop *)(void *)&of_loop);
            for (int i = 0; i < 6; i++) {
                struct reader *r = &readers[i];
                *r = (struct reader){.here = 1, .agent = kind, .waits = 1, .place = i};
                flow_add(flow, &r->item, &ops, (struct evhttp_request *)(void *)r, kind);
                flow_want(&r->item);
                r->next = (1 << 18) - (i ? 0 : less);
            }
            active[kind] = 0;
            turn_fns[kind](-1, 0, flow);
            for (int i = 0; i < 6; i++)
                assert_int_equal(readers[i].held > 0, i < (less ? 5 : 4));
            assert_true(active[kind]);
            for (int i = 0; i < 6; i++)
                flow_remove(&readers[i].item);
            flow_free(flow);
        }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turns_and_ends_are_as_a_plain_model_has_them),
        cmocka_unit_test(test_a_turn_is_a_megabyte_long),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
