/* Random connections that come, ask, are silent and go, at moments that are chosen to the nanosecond, and a plain model of who
 * has to go and who is served first. libevent, the kernel and the clock are this file's. */
#include "base/rand.h"
#include "base/sys/clock.h"
#include "base/sys/loop.h"

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

/* A connection: what stands for its bufferevent and for evhttp's connection too. */
struct fake {
    int fd, origin;
    int unread;
    int due; /* its priority cannot be set for now */
    int priority;
    int shut;
    void (*closed)(struct evhttp_connection *connection, void *arg);
    void *closed_arg;
};

enum { FAKES = 400, ORIGINS = 5 };
static struct fake fakes[FAKES];
static int64_t virtual_ns, timer_ns; /* timer_ns 0: it is off */
static int disabled, arrived_active, turn_active;
static rlim_t files_max;
static int files_known;

static struct fake *fake_of(const void *p) {
    return (struct fake *)(uintptr_t)p;
}

/* One IPv4 address, the same mapped, two of one IPv6 network, and one of another. */
static const unsigned char addresses[ORIGINS][16] = {
    {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1},
    {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2},
    {0x20, 1, 0x0d, 0xb8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1},
    {0x20, 1, 0x0d, 0xb8, 0, 0, 0, 1, 9, 9, 0, 0, 0, 0, 0, 2},
    {0x20, 1, 0x0d, 0xb8, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1},
};
static const char *const address_texts[ORIGINS] = {
    "10.0.0.1", "10.0.0.2", "2001:db8:0:1::", "2001:db8:0:1::", "2001:db8:0:2::"};

static int fake_peer(int fd, struct sockaddr *to, socklen_t *n) {
    assert_int_equal(*n, sizeof(struct sockaddr_storage));
    const struct fake *f = &fakes[fd];
    int v4 = addresses[f->origin][10] == 0xff;
    struct sockaddr_in in = {.sin_family = AF_INET};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
    memcpy(&in.sin_addr, addresses[f->origin] + 12, 4);
    memcpy(&in6.sin6_addr, addresses[f->origin], 16);
    if (v4 && fd % 2)
        memcpy(to, &in, *n = sizeof(in));
    else
        memcpy(to, &in6, *n = sizeof(in6));
    return 0;
}

static int fake_files(struct rlimit *ret) {
    ret->rlim_cur = files_max;
    return files_known ? 0 : -1;
}

static char of_arrived, of_turn, of_again, of_loop, of_base, of_listener;
static struct event *fake_event(void (*fn)(int fd, short what, void *arg), int urgent);
static void (*arrived_fn)(int fd, short what, void *arg), (*turn_fn)(int fd, short what, void *arg);
static loop_timer_fn *again_fn;
static int freed; /* events and the timer */

/* Everything is asked of whom it belongs to. */
static void is(const void *p, const void *expected) {
    assert_ptr_equal(p, expected);
}

static int *flag_of(const struct event *e) {
    assert_true((const void *)e == &of_turn || (const void *)e == &of_arrived);
    return (const void *)e == &of_turn ? &turn_active : &arrived_active;
}

#define clock_monotonic_ns() virtual_ns
#define loop_base(l)         (is(l, &of_loop), (struct event_base *)(void *)&of_base)
#define loop_timer(l, fn, arg)                                                                     \
    (is(l, &of_loop), again_fn = (fn), (struct loop_source *)(void *)&of_again)
#define loop_timer_at(s, at) (is(s, &of_again), timer_ns = (at))
#define loop_timer_off(s)    (is(s, &of_again), timer_ns = 0)
#define loop_source_free(s)  (is(s, &of_again), freed++)
#define event_new(base, fd, what, fn, arg)                                                         \
    (is(base, &of_base), assert_true((fd) == -1 && !(what)), fake_event(fn, arrived_fn == NULL))
#define event_free(e)                        (flag_of(e), freed++)
#define event_active(e, what, n)             (assert_true((what) == EV_TIMEOUT && (n) == 0), *flag_of(e) = 1)
#define event_priority_set(e, p)             assert_true((void *)(e) == (void *)&of_turn && (p) == LOOP_LAST)
#define bufferevent_getfd(b)                 (fake_of(b)->fd)
#define bufferevent_getcb(b, r, w, e, arg)   (assert_true(!(r) && !(w) && !(e)), *(arg) = (b))
#define bufferevent_priority_set(b, p)       (fake_of(b)->due ? -1 : (fake_of(b)->priority = (p), 0))
#define evhttp_connection_get_bufferevent(c) ((struct bufferevent *)(void *)(c))
#define evhttp_connection_set_closecb(c, fn, arg)                                                  \
    (fake_of(c)->closed = (fn), fake_of(c)->closed_arg = (arg))
#define evconnlistener_disable(l) (is(l, &of_listener), disabled = 1)
#define evconnlistener_enable(l)  (is(l, &of_listener), disabled = 0)
#define shutdown(fd, how)         (assert_true((how) == SHUT_RDWR), fakes[fd].shut++)
#define ioctl(fd, what, n)        (assert_true((what) == FIONREAD), *(n) = fakes[fd].unread, 0)
#define getpeername(fd, to, n)    fake_peer(fd, to, n)
#define getrlimit(what, ret)      (assert_true((what) == RLIMIT_NOFILE), fake_files(ret))
#include "agent/store/limits/crowd.c"

static struct event *fake_event(void (*fn)(int fd, short what, void *arg), int urgent) {
    *(urgent ? &arrived_fn : &turn_fn) = fn;
    return (struct event *)(void *)(urgent ? &of_arrived : &of_turn);
}

/* ---- the model ---- */

static const int64_t MODEL_SILENT_NS = 100000000, MODEL_IDLE_NS = 1000000000,
                     MODEL_PAUSE_NS = 100000000;

static struct model {
    int here[FAKES], arriving[FAKES], ending[FAKES], rank[FAKES], busy[FAKES], lowered[FAKES],
        asked[FAKES];
    int64_t asked_ns[FAKES], place[FAKES]; /* place: who was put last has the highest */
    int64_t came[ORIGINS]; /* when the first of this address came, of those that are here */
    int64_t next;
    int max, paused, turn_due, equal, n_arriving;
    int64_t turn_ns, timer_ns;
    uint64_t hits;
} m;

static struct crowd *crowd;
static struct bounds bounds;
static struct rand chance;
static int gone, told;

static int draw(int n) {
    return (int)rand_below(&chance, (uint64_t)n);
}

/* Those of one network are one. */
static int group(int i) {
    return fakes[i].origin == 3 ? 2 : fakes[i].origin;
}

static int model_count(int rank) {
    int n = 0;
    for (int i = 0; i < FAKES; i++)
        n += m.here[i] && !m.arriving[i] && !m.ending[i] && m.rank[i] == rank;
    return n;
}

static int model_over(void) {
    int outsiders = model_count(CROWD_STRANGER) + model_count(CROWD_GUEST);
    int part = m.max / 2 < 1024 ? m.max / 2 : 1024;
    part = m.max / 4 > part ? m.max / 4 : part;
    return outsiders > part || outsiders + model_count(CROWD_AGENT) > m.max;
}

static int outsiders_of(int g) {
    int n = 0;
    for (int i = 0; i < FAKES; i++)
        n += m.here[i] && !m.arriving[i] && !m.ending[i] && m.rank[i] != CROWD_AGENT &&
             group(i) == g;
    return n;
}

/* -1: there is nobody. */
static int model_victim(int64_t *ret_free_ns) {
    int most = -1, who = -1;
    for (int g = 0; g < ORIGINS; g++)
        if (outsiders_of(g) &&
            (most < 0 || outsiders_of(g) > outsiders_of(most) ||
             (outsiders_of(g) == outsiders_of(most) && m.came[g] < m.came[most])))
            most = g;
    for (int i = 0; i < FAKES; i++) {
        bool fits = most >= 0 ? m.rank[i] != CROWD_AGENT && group(i) == most
                              : m.rank[i] == CROWD_AGENT && !m.busy[i];
        if (m.here[i] && !m.arriving[i] && !m.ending[i] && fits &&
            (who < 0 || m.place[i] < m.place[who]))
            who = i;
    }
    *ret_free_ns =
        who < 0 ? INT64_MAX : m.asked_ns[who] + (most >= 0 ? MODEL_SILENT_NS : MODEL_IDLE_NS);
    return who;
}

static void model_put(int i) {
    m.asked_ns[i] = virtual_ns;
    m.place[i] = ++m.next;
}

static void model_pause(int64_t at_ns) {
    m.paused = 1;
    m.timer_ns = at_ns;
}

static void model_resume(void) {
    m.paused = 0;
    m.timer_ns = 0;
}

static void model_make_room(void) {
    while (model_over()) {
        int64_t free_ns;
        int who = model_victim(&free_ns);
        if (free_ns > virtual_ns) {
            model_pause(free_ns - virtual_ns < MODEL_PAUSE_NS ? free_ns
                                                              : virtual_ns + MODEL_PAUSE_NS);
            return;
        }
        if (fakes[who].unread) {
            model_put(who);
            continue;
        }
        m.hits++;
        m.ending[who] = 1;
    }
    model_resume();
}

static void model_last(int i, int last) {
    if (!fakes[i].due)
        m.lowered[i] = last;
}

static void model_equal(int equal) {
    m.equal = equal;
    for (int i = 0; i < FAKES; i++)
        if (m.here[i] && !m.arriving[i] && !m.ending[i] && m.rank[i] == CROWD_AGENT)
            model_last(i, equal);
}

static void model_turn(void) {
    int n = 0;
    for (int i = 0; i < FAKES; i++)
        n += m.here[i] && m.lowered[i];
    if (!n)
        return;
    if (!m.turn_due && virtual_ns - m.turn_ns > 20000000) {
        m.turn_due = 1;
        m.turn_ns = virtual_ns;
    } else if (m.turn_due && !m.equal && virtual_ns - m.turn_ns > 50000000) {
        model_equal(1);
    }
}

static void model_asked(int i, int rank) {
    if (m.ending[i])
        return;
    m.rank[i] = rank > m.rank[i] ? rank : m.rank[i];
    model_put(i);
    if (m.rank[i] == CROWD_AGENT) {
        model_last(i, m.equal);
        model_turn();
    } else if (rank == CROWD_GUEST && ++m.asked[i] > 16) {
        model_last(i, 1);
    }
    if (m.paused && !model_over())
        model_resume();
}

/* ---- both ---- */

static struct evhttp_connection *connection_at(int i) {
    return (struct evhttp_connection *)(void *)&fakes[i];
}

static struct bufferevent *buffer_at(int i) {
    return (struct bufferevent *)(void *)&fakes[i];
}

static void on_gone(void *arg, struct bufferevent *b) {
    assert_ptr_equal(arg, &m);
    assert_true(fake_of(b) == &fakes[gone]);
}

static void on_told(struct evhttp_connection *connection, void *arg) {
    assert_ptr_equal(connection, connection_at(gone));
    assert_ptr_equal(arg, &fakes[gone]);
    told++;
}

/* One that is here; -1: there is none. */
static int draw_here(void) {
    for (int tries = 0; tries < 40; tries++) {
        int i = draw(FAKES);
        if (m.here[i] && !m.arriving[i])
            return i;
    }
    return -1;
}

static void come(void) {
    int i = 0;
    while (i < FAKES && m.here[i])
        i++;
    if (i == FAKES)
        return;
    fakes[i] =
        (struct fake){.fd = i, .origin = draw(draw(2) ? 2 : ORIGINS), .priority = LOOP_USUAL};
    m.here[i] = m.arriving[i] = 1;
    m.ending[i] = m.rank[i] = m.busy[i] = m.lowered[i] = m.asked[i] = 0;
    m.place[i] = ++m.next;
    crowd_enter(crowd, buffer_at(i));
    assert_true(arrived_active);
    if (++m.n_arriving >= 256)
        assert_true(disabled);
}

static void arrive(void) {
    if (!arrived_active)
        return;
    arrived_active = 0;
    for (; m.n_arriving; m.n_arriving--) { /* in the order in which they came */
        int first = -1;
        for (int i = 0; i < FAKES; i++)
            if (m.arriving[i] && (first < 0 || m.place[i] < m.place[first]))
                first = i;
        int others = 0; /* of its address that were here before */
        for (int i = 0; i < FAKES; i++)
            others += m.here[i] && !m.arriving[i] && group(i) == group(first);
        m.arriving[first] = 0;
        model_put(first);
        if (!others)
            m.came[group(first)] = m.place[first];
    }
    model_make_room();
    arrived_fn(-1, 0, crowd);
}

static void leave_crowd(int i) {
    int before = told;
    gone = i;
    m.here[i] = 0;
    m.ending[i] = 0;
    fakes[i].closed(connection_at(i), fakes[i].closed_arg);
    assert_int_equal(told - before, m.busy[i]);
    if (m.paused && !model_over())
        model_resume();
}

static void ask_something(int i) {
    int rank = draw(3);
    crowd_asked(crowd, connection_at(i), (enum crowd_rank)rank);
    model_asked(i, rank);
}

static void be_busy(int i) {
    m.busy[i] = draw(2);
    crowd_on_close(crowd, connection_at(i), m.busy[i] ? on_told : NULL, &fakes[i]);
}

static void be_lowered(int i) {
    crowd_lower(crowd, buffer_at(i));
    if (m.rank[i] != CROWD_AGENT)
        model_last(i, 1);
}

static void be_ended(int i) {
    crowd_end(crowd, connection_at(i));
    m.ending[i] = 1;
}

static void be_limited(void) {
    static const int sizes[] = {1, 3, 4, 8, 20, 64, 200, 4096};
    m.max = sizes[draw(8)];
    crowd_limit(crowd, (size_t)m.max);
    model_make_room();
}

static void wait_for_files(void) {
    int64_t free_ns;
    int who = model_victim(&free_ns);
    if (who >= 0 && free_ns <= virtual_ns) {
        if (fakes[who].unread)
            model_put(who);
        else
            m.ending[who] = 1, m.hits++;
    }
    model_pause(virtual_ns + MODEL_PAUSE_NS);
    crowd_wait(crowd);
}

/* The timer, and the event of those who are served last. */
static void be_due(void) {
    if (turn_active && draw(2)) {
        turn_active = 0;
        m.turn_due = 0;
        m.turn_ns = virtual_ns;
        if (m.equal)
            model_equal(0);
        turn_fn(-1, 0, crowd);
    }
    if (timer_ns && timer_ns <= virtual_ns) {
        model_make_room();
        again_fn(crowd, virtual_ns);
    }
}

static void pass_time(void) {
    static const int64_t steps[] = {0,        1,        1000000,  20000000,  20000001,
                                    50000000, 50000001, 99999999, 100000000, 1000000000};
    int64_t free_ns;
    if (draw(2)) {
        virtual_ns += steps[draw(10)];
        return;
    }
    if (model_victim(&free_ns) >= 0 && free_ns - 1 > virtual_ns)
        virtual_ns = free_ns - 1 + draw(3);
    else if (timer_ns > virtual_ns + 1)
        virtual_ns = timer_ns - 1 + draw(3);
}

static void same(void) {
    for (int i = 0; i < FAKES; i++) {
        if (!m.here[i] || m.arriving[i])
            continue;
        assert_int_equal(fakes[i].shut, m.ending[i]);
        assert_int_equal(fakes[i].priority, m.lowered[i] ? LOOP_LAST : LOOP_USUAL);
        assert_int_equal(crowd_rank_of(crowd, connection_at(i)), m.rank[i]);
        assert_string_equal(crowd_address(crowd, connection_at(i)), address_texts[fakes[i].origin]);
    }
    for (int rank = 0; rank < CROWD_RANKS; rank++)
        assert_int_equal(crowd_count(crowd, (enum crowd_rank)rank), model_count(rank));
    assert_int_equal(timer_ns, m.timer_ns);
    if (m.n_arriving < 256)
        assert_int_equal(disabled, m.paused);
    assert_int_equal(turn_active, m.turn_due);
    assert_int_equal(bounds.hits[BOUND_CONNECTIONS], m.hits);
}

/* Then nobody is lowered, and nobody is here: what is counted has to be nothing again. */
static void all_leave(void) {
    arrive();
    for (int i = 0; i < FAKES; i++)
        if (m.here[i])
            leave_crowd(i);
}

static void step(void) {
    if (draw(50) == 0)
        all_leave();
    int i = draw_here();
    pass_time();
    switch (draw(12)) {
    case 0:
    case 1:
        for (int n = draw(40) ? 1 + draw(4) : 300; n; n--)
            come();
        break;
    case 2:
        be_limited();
        break;
    case 3:
        wait_for_files();
        break;
    default:
        if (i < 0)
            break;
        static void (*const deeds[])(int i) = {ask_something, ask_something, ask_something,
                                               ask_something, be_busy,       be_lowered,
                                               be_ended,      leave_crowd};
        fakes[i].unread = draw(5) ? 0 : 7;
        fakes[i].due = !draw(6);
        deeds[draw(8)](i);
    }
    if (draw(4))
        arrive();
    be_due();
    same();
}

static void test_who_goes_and_who_is_first_is_as_a_plain_model_has_it(void **state) {
    (void)state;
    struct crowd_watch watch = {on_gone, &m};
    for (uint64_t seed = 1; seed <= 40; seed++) {
        rand_init(&chance, seed);
        memset(&m, 0, sizeof(m));
        memset(&bounds, 0, sizeof(bounds));
        bounds.told[BOUND_CONNECTIONS] = 1; /* nothing is said */
        virtual_ns = bounds.told_ns[BOUND_CONNECTIONS] = 1000000000000;
        timer_ns = disabled = arrived_active = turn_active = 0;
        arrived_fn = NULL;
        crowd = crowd_new((struct loop *)(void *)&of_loop, &bounds, &watch);
        crowd_listen(crowd, (struct evconnlistener *)(void *)&of_listener);
        be_limited();
        for (int i = 0; i < 400; i++)
            step();
        all_leave();
        come();
        freed = 0;
        crowd = crowd_free(crowd);
        assert_null(crowd);
        assert_int_equal(freed, 3);
    }
    assert_null(crowd_free(NULL));
}

/* A stranger to the crowd: whatever is asked about it is nothing. */
static void test_whoever_never_came_is_nobody(void **state) {
    (void)state;
    struct crowd_watch watch = {on_gone, &m};
    struct fake stranger = {.fd = 5000, .priority = LOOP_USUAL};
    struct evhttp_connection *c = (struct evhttp_connection *)(void *)&stranger;
    memset(&bounds, 0, sizeof(bounds));
    arrived_fn = NULL;
    crowd = crowd_new((struct loop *)(void *)&of_loop, &bounds, &watch);
    for (stranger.fd = -1; stranger.fd <= 64; stranger.fd += 65) {
        crowd_asked(crowd, c, CROWD_AGENT);
        crowd_lower(crowd, (struct bufferevent *)(void *)c);
        crowd_on_close(crowd, c, on_told, NULL);
        crowd_end(crowd, c);
        assert_int_equal(crowd_rank_of(crowd, c), CROWD_STRANGER);
        assert_null(crowd_address(crowd, c));
    }
    assert_int_equal(stranger.priority, LOOP_USUAL);
    crowd_free(crowd);
}

/* Whoever is told where connections come from later waits and goes on all the same. */
static void test_nobody_need_listen(void **state) {
    (void)state;
    struct crowd_watch watch = {on_gone, &m};
    memset(&m, 0, sizeof(m));
    memset(&bounds, 0, sizeof(bounds));
    bounds.told[BOUND_CONNECTIONS] = 1;
    virtual_ns = bounds.told_ns[BOUND_CONNECTIONS] = 1000000000000;
    disabled = timer_ns = 0;
    arrived_fn = NULL;
    crowd = crowd_new((struct loop *)(void *)&of_loop, &bounds, &watch);
    m.max = 4;
    crowd_limit(crowd, 4);
    for (int i = 0; i < 300; i++) {
        fakes[i] = (struct fake){.fd = i, .priority = LOOP_USUAL};
        crowd_enter(crowd, buffer_at(i));
    }
    arrived_fn(-1, 0, crowd);
    assert_int_equal(timer_ns, virtual_ns + MODEL_SILENT_NS);
    virtual_ns = timer_ns;
    again_fn(crowd, virtual_ns);
    assert_true(timer_ns == 0 && !disabled);
    crowd_listen(crowd, (struct evconnlistener *)(void *)&of_listener);
    crowd_wait(crowd);
    assert_true(disabled && timer_ns == virtual_ns + MODEL_PAUSE_NS);
    for (gone = 0; gone < 300; gone++)
        fakes[gone].closed(connection_at(gone), fakes[gone].closed_arg);
    assert_int_equal(crowd_count(crowd, CROWD_STRANGER), 0);
    assert_false(disabled);
    crowd_free(crowd);
}

/* A quarter of all, and 1,024 where that is no more than half. */
static void test_strangers_and_guests_have_a_part_of_each_size(void **state) {
    (void)state;
    for (size_t max = 0; max < 20000; max++) {
        size_t least = max >= 2048 ? 1024 : max / 2, quarter = max / 4;
        struct crowd c = {.max = max};
        assert_int_equal(outsiders_max(&c), quarter > least ? quarter : least);
        c.n[CROWD_STRANGER] = 1;
        c.n[CROWD_GUEST] = outsiders_max(&c) - 1;
        c.n[CROWD_AGENT] = max > outsiders_max(&c) ? max - outsiders_max(&c) : 0;
        if (!outsiders_max(&c))
            continue;
        assert_false(is_over(&c));
        c.n[CROWD_AGENT]++; /* all together */
        assert_true(is_over(&c));
        c.n[CROWD_AGENT] = 0;
        c.n[CROWD_GUEST]++; /* of one part */
        assert_true(is_over(&c));
    }
}

/* Sixteen times as anybody; an agent ever, and whoever only came too. */
static void test_who_asks_often_is_served_last(void **state) {
    (void)state;
    static const enum crowd_rank ranks[] = {CROWD_STRANGER, CROWD_GUEST, CROWD_AGENT};
    struct crowd_watch watch = {on_gone, &m};
    memset(&m, 0, sizeof(m));
    memset(&bounds, 0, sizeof(bounds));
    virtual_ns = 1000000000000;
    arrived_fn = NULL;
    crowd = crowd_new((struct loop *)(void *)&of_loop, &bounds, &watch);
    for (int i = 0; i < 3; i++) {
        fakes[i] = (struct fake){.fd = i, .priority = LOOP_USUAL};
        crowd_enter(crowd, buffer_at(i));
    }
    arrived_fn(-1, 0, crowd);
    for (int asked = 1; asked < 40; asked++)
        for (int i = 0; i < 3; i++) {
            crowd_asked(crowd, connection_at(i), ranks[i]);
            assert_int_equal(fakes[i].priority,
                             ranks[i] == CROWD_GUEST && asked > 16 ? LOOP_LAST : LOOP_USUAL);
        }
    crowd_asked(crowd, connection_at(1), CROWD_AGENT); /* it is one after all */
    assert_int_equal(fakes[1].priority, LOOP_USUAL);
    for (gone = 0; gone < 3; gone++)
        fakes[gone].closed(connection_at(gone), fakes[gone].closed_arg);
    crowd_free(crowd);
}

static void test_there_are_as_many_places_as_open_files_but_some(void **state) {
    (void)state;
    static const struct {
        rlim_t files;
        size_t places;
    } all[] = {{0, 16},        {64, 16},       {80, 16},
               {81, 17},       {1024, 960},    {16447, 16383},
               {16448, 16384}, {16449, 16384}, {RLIM_INFINITY, 16384}};
    files_known = 1;
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        files_max = all[i].files;
        assert_int_equal(crowd_default(), all[i].places);
    }
    files_known = 0;
    files_max = 100;
    assert_int_equal(crowd_default(), 16384);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_goes_and_who_is_first_is_as_a_plain_model_has_it),
        cmocka_unit_test(test_whoever_never_came_is_nobody),
        cmocka_unit_test(test_nobody_need_listen),
        cmocka_unit_test(test_strangers_and_guests_have_a_part_of_each_size),
        cmocka_unit_test(test_who_asks_often_is_served_last),
        cmocka_unit_test(test_there_are_as_many_places_as_open_files_but_some),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
