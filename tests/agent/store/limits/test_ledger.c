/* Random bytes that come and go on random connections, and a plain model of what is held, by whom, and who is ended for it, to
 * the byte and to the nanosecond. libevent, the kernel and the clock are this file's. */
#include "agent/store/limits/crowd.h"
#include "base/rand.h"
#include "base/sys/clock.h"
#include "base/sys/loop.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <string.h>
#include <sys/socket.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

enum { CONNECTIONS = 16 };
static int64_t virtual_ns, timer_ns;
static char due;
static loop_timer_fn *due_fn;

/* A connection, whose input and output it is too. */
static struct line {
    struct end {
        int is_output;
        size_t length;
        evbuffer_cb_func fn;
        void *arg;
    } in, out;
    int fd, shut, lowered;
    uint64_t cookie; /* the kernel's; 0: it is closed */
} lines[CONNECTIONS];

static int fake_cookie(int fd, uint64_t *ret, const socklen_t *n) {
    assert_int_equal(*n, sizeof(*ret));
    *ret = fd >= 0 ? lines[fd].cookie : 0;
    return fd >= 0 && lines[fd].cookie ? 0 : -1;
}

static void fake_callback(struct evbuffer *b, evbuffer_cb_func fn, void *arg) {
    struct end *e = (struct end *)(void *)b;
    e->fn = fn;
    e->arg = arg;
}

static char of_loop, of_crowd;
static int freed;

/* Everything is asked of whom it belongs to. */
static void is(const void *p, const void *expected) {
    assert_ptr_equal(p, expected);
}

#define clock_monotonic_ns()   virtual_ns
#define loop_timer(l, fn, arg) (is(l, &of_loop), due_fn = (fn), (struct loop_source *)(void *)&due)
#define loop_timer_at(s, at)   (is(s, &due), timer_ns = (at))
#define loop_source_free(s)    (is(s, &due), freed++)
#define getsockopt(fd, level, name, ret, n)                                                        \
    (assert_true((level) == SOL_SOCKET && (name) == SO_COOKIE), fake_cookie(fd, ret, n))
#define shutdown(fd, how)           (assert_true((how) == SHUT_RDWR), lines[fd].shut++)
#define bufferevent_getfd(b)        (((struct line *)(void *)(b))->fd)
#define bufferevent_get_input(b)    ((struct evbuffer *)(void *)&((struct line *)(uintptr_t)(b))->in)
#define bufferevent_get_output(b)   ((struct evbuffer *)(void *)&((struct line *)(uintptr_t)(b))->out)
#define evbuffer_add_cb(b, fn, arg) fake_callback(b, fn, arg)
#define evbuffer_get_length(b)      (((struct end *)(void *)(b))->length)
#define crowd_lower(c, b)           (is(c, &of_crowd), ((struct line *)(void *)(b))->lowered = 1)
#include "agent/store/limits/ledger.c"

/* ---- the model ---- */

static struct model {
    int open, trusted, told, knows, lowered, shut;
    uint64_t cookie; /* that it was known by */
    size_t in, out;
    int64_t begun_ns, begun, holding; /* since when, in the order of which; 0: not */
} m[CONNECTIONS];
static size_t held_most;
static int64_t request_ns, order, model_timer_ns;
static int armed;
static uint64_t hits_held, hits_time;
static struct ledger *ledger;
static struct bounds bounds;
static struct rand chance;

static int draw(int n) {
    return (int)rand_below(&chance, (uint64_t)n);
}

static size_t sum(int others) {
    size_t n = 0;
    for (int i = 0; i < CONNECTIONS; i++)
        n += others && m[i].trusted ? 0 : m[i].in + m[i].out;
    return n;
}

static int model_over(void) {
    return sum(0) > held_most || sum(1) > held_most / 2;
}

static void model_arm(int64_t begun_ns) {
    if (armed)
        return;
    armed = 1;
    model_timer_ns = begun_ns + request_ns;
}

static void model_set(int i, size_t in, size_t out) {
    if (!m[i].in && in) {
        m[i].begun_ns = virtual_ns;
        m[i].begun = ++order;
        model_arm(virtual_ns);
    }
    m[i].begun = in ? m[i].begun : 0;
    if (!(m[i].in + m[i].out) && in + out)
        m[i].holding = ++order;
    m[i].in = in;
    m[i].out = out;
}

static void model_end(int i) {
    model_set(i, 0, 0);
    if (!m[i].cookie && m[i].told)
        m[i].cookie = lines[i].cookie;
    m[i].shut += m[i].cookie && m[i].cookie == lines[i].cookie;
}

static void model_check(void) {
    for (int i = 0; i < CONNECTIONS && model_over(); i++)
        for (int k = 0; k < CONNECTIONS; k++)
            if (i == 0 && m[k].cookie && m[k].cookie != lines[k].cookie)
                model_set(k, 0, 0);
    while (model_over()) {
        int most = -1;
        for (int i = 0; i < CONNECTIONS; i++) {
            size_t n = m[i].in + m[i].out, than = most < 0 ? 0 : m[most].in + m[most].out;
            if (!n)
                continue;
            if (most < 0 || (m[most].trusted && !m[i].trusted) ||
                (m[most].trusted == m[i].trusted &&
                 (n > than || (n == than && m[i].holding < m[most].holding))))
                most = i;
        }
        if (most < 0)
            return;
        hits_held++;
        model_end(most);
    }
}

/* ---- both ---- */

static struct bufferevent *at(int i) {
    return (struct bufferevent *)(void *)&lines[i];
}

static size_t draw_size(void) {
    static const size_t sizes[] = {1, 2, 100, 1000, LARGE - 1, LARGE, LARGE + 1};
    /* Often what is missing to one of the bounds, to the byte. */
    size_t bound = draw(2) ? held_most : held_most / 2, is = sum(draw(2));
    if (!draw(3) && bound > is + 1 && bound - is < 200000)
        return bound - is - 1 + (size_t)draw(3);
    return sizes[draw(draw(4) ? 4 : 7)];
}

static void do_open(int i) {
    lines[i] = (struct line){.fd = i, .cookie = ++order};
    model_set(i, 0, 0);
    m[i] = (struct model){.open = 1};
    ledger_open(ledger, at(i));
}

static void do_input(int i) {
    size_t n = draw(6) ? draw_size() : 0;
    struct evbuffer_cb_info info = {.n_added = n};
    lines[i].in.length += n;
    if (n) {
        m[i].cookie = m[i].cookie ? m[i].cookie : lines[i].cookie;
        model_set(i, m[i].in + n, m[i].out);
        m[i].lowered |= m[i].in > LARGE && !m[i].trusted;
        model_check();
    }
    lines[i].in.fn((struct evbuffer *)(void *)&lines[i].in, &info, lines[i].in.arg);
}

static void do_output(int i) {
    struct evbuffer_cb_info info = {.n_added = 1};
    lines[i].out.length = draw(3) ? draw_size() : 0;
    if (m[i].cookie) {
        model_set(i, m[i].in, lines[i].out.length);
        model_check();
    }
    lines[i].out.fn((struct evbuffer *)(void *)&lines[i].out, &info, lines[i].out.arg);
}

static void do_begin(int i) {
    size_t n = draw_size();
    m[i].told = 1;
    model_set(i, n, m[i].out);
    model_check();
    ledger_begin(ledger, at(i), n);
}

static void do_close(int i) {
    model_set(i, 0, 0);
    m[i].told = 0;
    m[i].cookie = 0;
    ledger_close(ledger, at(i));
}

static void do_trust(int i) {
    m[i].trusted = 1;
    ledger_trust(ledger, at(i));
}

static void do_whole(int i) {
    lines[i].in.length = draw(3) ? 0 : draw_size();
    model_set(i, 0, m[i].out);
    model_set(i, lines[i].in.length, m[i].out);
    ledger_whole(ledger, at(i));
}

/* The kernel has closed it, and nobody was told. */
static void do_vanish(int i) {
    lines[i].cookie = draw(2) ? 0 : (uint64_t)++order;
}

static void be_limited(void) {
    struct ledger_limits limits = {.held_max = draw(5) ? (size_t)draw(200000) : SIZE_MAX,
                                   .request_ns = 1000 + draw(1000)};
    int64_t oldest_ns = 0, oldest = 0;
    held_most = limits.held_max;
    request_ns = limits.request_ns;
    armed = 0;
    for (int i = 0; i < CONNECTIONS; i++)
        if (m[i].begun && (!oldest || m[i].begun < oldest)) {
            oldest = m[i].begun;
            oldest_ns = m[i].begun_ns;
        }
    if (oldest)
        model_arm(oldest_ns);
    ledger_set_limits(ledger, &limits);
}

static void be_due(void) {
    if (!armed || virtual_ns < timer_ns)
        return;
    armed = 0;
    for (;;) {
        int oldest = -1;
        for (int i = 0; i < CONNECTIONS; i++)
            if (m[i].begun && (oldest < 0 || m[i].begun < m[oldest].begun))
                oldest = i;
        if (oldest < 0)
            break;
        if (m[oldest].begun_ns + request_ns > virtual_ns) {
            model_arm(m[oldest].begun_ns);
            break;
        }
        hits_time++;
        model_end(oldest);
    }
    due_fn(ledger, virtual_ns);
}

static void pass_time(void) {
    if (draw(2) && armed && timer_ns - 1 > virtual_ns)
        virtual_ns = timer_ns - 1 + draw(3);
    else
        virtual_ns += draw(300);
}

static void same(void) {
    assert_int_equal(ledger_held(ledger), sum(0));
    assert_int_equal(ledger->held_by_others, sum(1));
    for (int i = 0; i < CONNECTIONS; i++) {
        assert_int_equal(lines[i].shut, m[i].shut);
        assert_int_equal(lines[i].lowered, m[i].lowered);
    }
    assert_int_equal(ledger->armed, armed);
    if (armed)
        assert_true(timer_ns == model_timer_ns);
    assert_int_equal(bounds.hits[BOUND_HELD], hits_held);
    assert_int_equal(bounds.hits[BOUND_TIME], hits_time);
}

static void step(void) {
    static void (*const deeds[])(int i) = {do_input,  do_input,  do_input,  do_input, do_output,
                                           do_output, do_output, do_whole,  do_whole, do_begin,
                                           do_close,  do_trust,  do_vanish, do_open};
    int i = draw(CONNECTIONS);
    pass_time();
    if (!draw(12))
        be_limited();
    else if (m[i].open)
        deeds[draw(sizeof(deeds) / sizeof(*deeds))](i);
    else
        do_open(i);
    be_due();
    same();
}

static void test_what_is_held_is_as_a_plain_model_has_it(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        rand_init(&chance, seed);
        memset(m, 0, sizeof(m));
        memset(lines, 0, sizeof(lines));
        memset(&bounds, 0, sizeof(bounds));
        bounds.told[BOUND_HELD] = bounds.told[BOUND_TIME] = 1; /* nothing is said */
        virtual_ns = bounds.told_ns[BOUND_HELD] = bounds.told_ns[BOUND_TIME] = 1000000;
        hits_held = hits_time = 0;
        armed = 0;
        held_most = SIZE_MAX;
        request_ns = INT64_MAX / 2;
        ledger =
            ledger_new((struct loop *)(void *)&of_loop, &bounds, (struct crowd *)(void *)&of_crowd);
        be_limited();
        for (int i = 0; i < 500; i++)
            step();
        freed = 0;
        assert_null(ledger_free(ledger));
        assert_int_equal(freed, 1);
    }
    assert_null(ledger_free(NULL));
}

static void test_until_it_has_limits_nobody_is_ended(void **state) {
    (void)state;
    memset(m, 0, sizeof(m));
    virtual_ns = 1000000;
    ledger =
        ledger_new((struct loop *)(void *)&of_loop, &bounds, (struct crowd *)(void *)&of_crowd);
    struct evbuffer_cb_info info = {.n_added = (size_t)1 << 40};
    do_open(0);
    lines[0].in.fn((struct evbuffer *)(void *)&lines[0].in, &info, lines[0].in.arg);
    assert_true(ledger_held(ledger) == (size_t)1 << 40 && !lines[0].shut);
    assert_true(timer_ns - virtual_ns > INT64_MAX / 4); /* a century and more */
    ledger_free(ledger);
}

static void test_a_connection_that_was_never_opened_has_no_account(void **state) {
    (void)state;
    ledger =
        ledger_new((struct loop *)(void *)&of_loop, &bounds, (struct crowd *)(void *)&of_crowd);
    lines[0] = (struct line){.in = {.length = 7}};
    ledger_begin(ledger, at(0), 5);
    ledger_whole(ledger, at(0));
    ledger_trust(ledger, at(0));
    ledger_close(ledger, at(0));
    assert_int_equal(ledger_held(ledger), 0);
    ledger_free(ledger);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_held_is_as_a_plain_model_has_it),
        cmocka_unit_test(test_until_it_has_limits_nobody_is_ended),
        cmocka_unit_test(test_a_connection_that_was_never_opened_has_no_account),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
