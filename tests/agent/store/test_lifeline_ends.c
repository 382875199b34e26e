/* Every claim from both sides of what is taken, every way in which a connection ends, and what is given back after it. libevent,
 * the kernel and the clock are this file's. */
#include "agent/store/lifelines.h"

#include "agent/core/kv.h"
#include "agent/core/kv_request.h"
#include "agent/store/codec.h"
#include "agent/store/limits/crowd.h"
#include "base/http/http.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/tcp.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define INC  "0123456789abcdef"
#define UID_ "00112233445566778899aabbccddeeff"

/* A request, its connection, bufferevent and input. */
static struct line {
    int fd, disabled, timeouts_off, freed, in_order, vanished;
    size_t pending;
    crowd_close_fn *closed;
    void *closed_arg;
} line;

static int64_t virtual_ns, timer_ns;
static int sources; /* that are not given back */
static char source;
static void (*end_fn)(void *arg, int fd, int what);
static loop_timer_fn *due_fn;
static void *end_arg, *due_arg;

static char of_loop, of_crowd;

/* Everything is asked of whom it belongs to. */
static void is(const void *p, const void *expected) {
    assert_ptr_equal(p, expected);
}

static struct loop_source *fake_source(void) {
    sources++;
    return (struct loop_source *)(void *)&source;
}

static struct loop_source *fake_free(struct loop_source *s) {
    if (s)
        is(s, &source);
    sources -= s != NULL;
    return NULL;
}

static int fake_ends(int fd, char own[TCP_ENDS_MAX], char peer[TCP_ENDS_MAX]) {
    assert_int_equal(fd, 7);
    snprintf(own, TCP_ENDS_MAX, "10.0.0.2:29400");
    snprintf(peer, TCP_ENDS_MAX, "10.0.0.1:40000");
    return line.vanished ? -1 : 0;
}

static void fake_close(struct evhttp_connection *c, crowd_close_fn *fn, void *arg) {
    assert_ptr_equal(c, &line);
    line.closed = fn;
    line.closed_arg = arg;
}

#define clock_monotonic_ns() virtual_ns
#define loop_fd(l, fd, what, fn, arg)                                                              \
    (is(l, &of_loop), assert_true((fd) == 7 && (what) == LOOP_READ), end_fn = (fn),                \
     end_arg = (arg), fake_source())
#define loop_timer(l, fn, arg)               (is(l, &of_loop), due_fn = (fn), due_arg = (arg), fake_source())
#define loop_timer_at(s, at)                 (is(s, &source), timer_ns = (at))
#define loop_source_free(s)                  fake_free(s)
#define tcp_ends(fd, own, peer)              fake_ends(fd, own, peer)
#define tcp_ended_in_order(fd)               (assert_true((fd) == 7), line.in_order != 0)
#define evhttp_request_get_connection(r)     ((struct evhttp_connection *)(void *)(r))
#define evhttp_connection_get_bufferevent(c) ((struct bufferevent *)(void *)(c))
#define evhttp_connection_free(c)            (is(c, &line), line.freed++)
#define bufferevent_get_input(b)             ((struct evbuffer *)(void *)(b))
#define evbuffer_get_length(b)               (((struct line *)(void *)(b))->pending)
#define bufferevent_getfd(b)                 (((struct line *)(void *)(b))->fd)
#define bufferevent_disable(b, what)         (is(b, &line), line.disabled = (what))
#define bufferevent_set_timeouts(b, r, w)                                                          \
    (is(b, &line), is(r, NULL), is(w, NULL), line.timeouts_off = 1)
#define crowd_on_close(crowd, c, fn, arg) (is(crowd, &of_crowd), fake_close(c, fn, arg))
#include "agent/store/lifelines.c"

static struct kv *kv;
static struct lifelines *all;
static int written;

static void on_written(void *arg) {
    assert_ptr_equal(arg, &written);
    written++;
}

static int begin(void **state) {
    (void)state;
    int64_t lease;
    kv = kv_new(1, 0);
    assert_int_equal(kv_lease_grant(kv, key_lease(INC), 60, 0, &lease, NULL), 0);
    all = lifelines_new((struct loop *)(void *)&of_loop, kv, (struct crowd *)(void *)&of_crowd,
                        on_written, &written);
    line = (struct line){.fd = 7};
    written = sources = 0;
    virtual_ns = 5000000000;
    timer_ns = 0;
    return 0;
}

static int finish(void **state) {
    (void)state;
    assert_null(lifelines_free(all));
    assert_null(lifelines_free(NULL));
    assert_int_equal(sources, 0);
    kv = kv_free(kv);
    return 0;
}

static int take(const char *body, struct err *err) {
    *err = (struct err){0};
    return lifelines_take(all, (struct evhttp_request *)(void *)&line, body, strlen(body), err);
}

static const char *claim(const char *run_id, const char *inc, const char *uid, const char *revision,
                         const char *from, const char *to) {
    static char text[1024];
    snprintf(text, sizeof(text),
             "{\"run_id\":\"%s\",\"inc\":\"%s\",\"uid\":\"%s\",\"revision\":%s,\"from\":\"%s\","
             "\"to\":\"%s\"}",
             run_id, inc, uid, revision, from, to);
    return text;
}

static void refused(const char *body, const char *words) {
    struct err err;
    assert_int_equal(take(body, &err), -22);
    if (!strstr(err.msg, words))
        fail_msg("\"%s\" is not in: %s", words, err.msg);
    assert_true(lifelines_count(all) == 0 && sources == 0 && !line.disabled && !line.closed);
}

#define FROM "10.0.0.1:40000"
#define TO   "10.0.0.2:29400"

static void taken(const char *run_id, const char *revision) {
    struct err err;
    size_t before = lifelines_count(all);
    assert_int_equal(take(claim(run_id, INC, UID_, revision, FROM, TO), &err), 0);
    assert_string_equal(err.msg, "");
    assert_int_equal(lifelines_count(all), before + 1);
    assert_true(line.disabled == (EV_READ | EV_WRITE) && line.timeouts_off && line.closed &&
                line.closed_arg);
}

/* evhttp closes it: that is no end of anybody. */
static void close_it(void) {
    line.closed((struct evhttp_connection *)(void *)&line, line.closed_arg);
    line = (struct line){.fd = 7};
}

static void test_each_part_of_a_claim_is_asked_for(void **state) {
    (void)state;
    char longest[RUN_ID_MAX + 2];
    memset(longest, 'r', sizeof(longest) - 1);
    longest[RUN_ID_MAX + 1] = '\0';
    refused("", "");
    refused("[]", "run_id is missing or too long");
    line.pending = 1; /* what is wrong first is told */
    refused("[]", "run_id is missing or too long");
    refused(claim("job", INC, UID_, "0", FROM, TO), "revision must be");
    refused(claim("job", INC, UID_, "1", TO, FROM), "nothing may follow");
    line.pending = 0;
    refused(claim("", INC, UID_, "1", FROM, TO), "run_id is missing or too long");
    refused(claim(longest, INC, UID_, "1", FROM, TO), "run_id is missing or too long");
    longest[RUN_ID_MAX] = '\0';
    taken(longest, "1");
    close_it();
    static const char *const incs[] = {"", "0123456789abcde", INC "0", "0123456789abcdeg",
                                       "0123456789ABCDEF"};
    for (size_t i = 0; i < sizeof(incs) / sizeof(*incs); i++)
        refused(claim("job", incs[i], UID_, "1", FROM, TO),
                "inc and uid must be 16 and 32 hex digits");
    static const char *const uids[] = {"", "0", UID_ "0", "0x112233445566778899aabbccddeeff0"};
    for (size_t i = 0; i < sizeof(uids) / sizeof(*uids); i++)
        refused(claim("job", INC, uids[i], "1", FROM, TO),
                "inc and uid must be 16 and 32 hex digits");
    static const char *const revisions[] = {"0", "-1", "\"x\"", "null"};
    for (size_t i = 0; i < sizeof(revisions) / sizeof(*revisions); i++)
        refused(claim("job", INC, UID_, revisions[i], FROM, TO),
                "revision must be that of the session's creation");
    refused(claim("job", INC, UID_, "1", "10.0.0.1:40001", TO),
            "lifeline: from 10.0.0.1:40001 to " TO " is here from " FROM " to " TO);
    refused(claim("job", INC, UID_, "1", FROM, FROM), "something in between");
    line.pending = 1;
    refused(claim("job", INC, UID_, "1", FROM, TO), "nothing may follow the request");
    line.pending = 0;
    line.vanished = 1;
    refused(claim("job", INC, UID_, "1", FROM, TO), "no ends any more");
}

/* Returns when it was created. */
static int64_t put_session(const char *uid) {
    struct arena a = {0};
    struct kv_txn_result r;
    struct kv_bytes end;
    struct store_key key = {.kind = KEY_SESSION, .inc = INC};
    snprintf(key.uid, sizeof(key.uid), "%s", uid);
    struct kv_op ops[] = {{.kind = KV_PUT, .key = kv_request_key(&a, "job", &key, &end)},
                          {.kind = KV_RANGE}};
    ops[1].key = ops[0].key;
    assert_int_equal(kv_txn(kv, &(struct kv_txn){.success = ops, .n_success = 2}, &a, &r, NULL), 0);
    int64_t created = r.results[1].pairs[0].create_revision;
    arena_fini(&a);
    return created;
}

static size_t count_gone(void) {
    struct arena a = {0};
    struct kv_txn_result r;
    struct kv_op op = {.kind = KV_RANGE,
                       .key = kv_string("/rankrun/job/" INC "/gone/"),
                       .range_end = kv_string("/rankrun/job/" INC "/gone0")};
    assert_int_equal(kv_txn(kv, &(struct kv_txn){.success = &op, .n_success = 1}, &a, &r, NULL), 0);
    size_t n = r.results[0].n_pairs;
    arena_fini(&a);
    return n;
}

/* how: it is broken, or was closed in order; and the session that it is of is there, or another. */
static void end_it(int in_order, int same_session) {
    char revision[24];
    int64_t created = put_session(UID_);
    size_t gone = count_gone();
    int before = written;
    enum lifeline_end how = in_order ? LIFELINE_CLOSED : LIFELINE_BROKEN;
    snprintf(revision, sizeof(revision), "%lld", (long long)created + !same_session);
    taken("job", revision);
    line.in_order = in_order;
    end_fn(end_arg, 7, LOOP_READ);
    assert_true(lifelines_count(all) == 0 && line.freed == 1 && !line.closed);
    int64_t due_ns = lifeline_due_ns(how, virtual_ns);
    if (due_ns == INT64_MAX) {
        assert_true(sources == 0 && count_gone() == gone && list_empty(&all->list));
    } else {
        assert_true(timer_ns == due_ns && sources == 1 && count_gone() == gone);
        virtual_ns = due_ns;
        due_fn(due_arg, due_ns);
        assert_int_equal(written - before, same_session);
        assert_int_equal(count_gone() - gone, same_session);
        assert_true(sources == 0 && list_empty(&all->list));
    }
    line = (struct line){.fd = 7};
}

static void test_an_end_certifies_the_session_that_it_is_of(void **state) {
    (void)state;
    end_it(0, 0);
    end_it(1, 0);
    end_it(1, 1);
    put_session("ff112233445566778899aabbccddeeff");
    end_it(0, 1);
}

/* Open ones, and one whose certificate is still to be written, when the store ends. */
static void test_what_is_open_at_the_end_is_given_back(void **state) {
    (void)state;
    taken("job", "1");
    end_fn(end_arg, 7, LOOP_READ);
    taken("job", "1");
    taken("job", "1");
    assert_int_equal(lifelines_count(all), 2);
    assert_int_equal(sources, 2 + (timer_ns > 0));
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)
    const struct CMUnitTest tests[] = {
        TEST(test_each_part_of_a_claim_is_asked_for),
        TEST(test_an_end_certifies_the_session_that_it_is_of),
        TEST(test_what_is_open_at_the_end_is_given_back),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
