#include "harness/carrier/carrier.h"

#include "base/mem.h"
#include "harness/carrier/frames.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* One end of a carrier, and what it has heard. */
struct end {
    struct carrier *carrier;
    int messages, ends, fds;
    size_t length; /* of the last message's `s` */
    struct err why;
    bool frees; /* itself, with the first message */
};

static void on_message(void *arg, struct message *m) {
    struct end *e = arg;
    e->messages++;
    e->length = strlen(json_get_string(m->json, "s", ""));
    for (size_t i = 0; i < CHANNEL_FDS_MAX; i++)
        e->fds += m->fds[i] >= 0;
    if (e->frees)
        e->carrier = carrier_free(e->carrier);
}

static void on_end(void *arg, const struct err *why) {
    struct end *e = arg;
    e->ends++;
    e->why = *why;
}

static struct end *end_new(struct loop *l, const struct carrier_ends *ends) {
    struct end *e = mem_new(struct end);
    e->carrier = carrier_new(l, ends, &(struct carrier_listener){on_message, on_end, e});
    return e;
}

static void end_free(struct end *e) {
    carrier_free(e->carrier);
    free(e);
}

static struct buf text_of(size_t length) {
    struct buf text = {0};
    buf_puts(&text, "{\"s\":\"");
    for (size_t i = 0; i < length; i++)
        buf_putc(&text, 'x');
    buf_puts(&text, "\"}");
    return text;
}

static int say(struct end *e, size_t length, const int *fds, size_t n) {
    BUF_FINI struct buf text = text_of(length);
    return carrier_send(e->carrier, &text, fds, n, NULL);
}

struct pair {
    struct loop *loop;
    struct end *a, *b;
};

static struct pair pair_new(void) {
    struct carrier_ends ends[2];
    struct pair p = {.loop = loop_new(NULL)};
    assert_int_equal(carrier_pair(ends, NULL), 0);
    p.a = end_new(p.loop, &ends[0]);
    p.b = end_new(p.loop, &ends[1]);
    return p;
}

static void pair_free(struct pair *p) {
    end_free(p->a);
    end_free(p->b);
    loop_free(p->loop);
}

static void test_messages_come_in_order_with_their_descriptors(void **state) {
    struct pair p = pair_new();
    int two[2];
    assert_int_equal(pipe(two), 0);
    assert_int_equal(say(p.a, 1, NULL, 0), 0);
    assert_int_equal(say(p.a, 2, two, 2), 0);
    assert_int_equal(say(p.a, 3, NULL, 0), 0);
    carrier_read(p.b->carrier);
    assert_int_equal(p.b->messages, 3);
    assert_int_equal(p.b->fds, 2);
    assert_int_equal(p.b->length, 3);
    close(two[0]);
    close(two[1]);
    pair_free(&p);
}

static void test_two_pipes_carry_too_and_no_descriptors(void **state) {
    int there[2], back[2], null = open("/dev/null", O_RDONLY);
    struct loop *l = loop_new(NULL);
    assert_int_equal(pipe(there), 0);
    assert_int_equal(pipe(back), 0);
    struct end *a = end_new(l, &(struct carrier_ends){back[0], there[1], -1});
    struct end *b = end_new(l, &(struct carrier_ends){there[0], back[1], -1});
    assert_false(carrier_has_lane(a->carrier));
    assert_int_equal(say(a, 7, &null, 1), -EOPNOTSUPP);
    assert_int_equal(say(a, 8, NULL, 0), 0);
    assert_int_equal(say(b, 9, NULL, 0), 0);
    carrier_read(a->carrier);
    carrier_read(b->carrier);
    assert_int_equal(a->length, 9);
    assert_int_equal(b->length, 8);
    carrier_shut(a->carrier); /* b still says goodbye */
    carrier_read(b->carrier);
    assert_int_equal(b->why.code, -ECONNRESET);
    assert_int_equal(say(b, 10, NULL, 0), 0);
    carrier_read(a->carrier);
    assert_int_equal(a->length, 10);
    close(null);
    end_free(a);
    end_free(b);
    loop_free(l);
}

/* Far more than a socket holds: nobody waits, and nothing is lost. */
static void test_what_is_not_taken_waits_and_nobody_blocks(void **state) {
    struct pair p = pair_new();
    enum { N = 40, LENGTH = 100000 };
    for (int i = 0; i < N; i++)
        assert_int_equal(say(p.a, LENGTH, NULL, 0), 0);
    assert_int_equal(carrier_flush(p.a->carrier, 1), -ETIME);
    for (int i = 0; i < 10000 && p.b->messages < N; i++) {
        carrier_read(p.b->carrier);
        carrier_flush(p.a->carrier, 0);
    }
    assert_int_equal(p.b->messages, N);
    assert_int_equal(p.b->length, LENGTH);
    pair_free(&p);
}

static void hear_raw(const void *bytes, size_t n, int code, const char *says) {
    int ends[2];
    struct loop *l = loop_new(NULL);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    struct end *e = end_new(l, &(struct carrier_ends){ends[0], ends[0], -1});
    assert_int_equal(write(ends[1], bytes, n), (ssize_t)n);
    close(ends[1]);
    carrier_read(e->carrier);
    assert_int_equal(e->messages, 0);
    assert_int_equal(e->ends, 1);
    assert_int_equal(e->why.code, code);
    if (!strstr(e->why.msg, says))
        fail_msg("\"%s\" does not say \"%s\"", e->why.msg, says);
    end_free(e);
    loop_free(l);
}

static void hear_text(const char *text, int code, const char *says) {
    BUF_FINI struct buf frame = {0};
    frame_put(&frame, text, strlen(text));
    hear_raw(frame.data, frame.len, code, says);
}

static void test_bytes_that_are_no_message_end_it_with_a_sentence(void **state) {
    hear_raw("Permission denied\n", 18, -EPROTO, "\"Permission denied\"");
    hear_raw("\0\0\0\x10{\"op\":", 10, -ECONNRESET, "in the middle of a message");
    hear_raw("", 0, -ECONNRESET, "has gone");
    hear_text("[1,2]", -EPROTO, "no object");
    hear_text("{\"op\":", -EPROTO, "cannot be read");
    hear_text("{\"op\":\"run\",\"fds\":1}", -EPROTO, "1 descriptors that cannot have come");
    hear_text("{\"op\":\"run\",\"fds\":-1}", -EPROTO, "cannot have come");
}

static void test_message_that_promises_more_than_its_lane_brought_is_refused(void **state) {
    struct pair p = pair_new();
    BUF_FINI struct buf text = {0};
    buf_puts(&text, "{\"op\":\"run\",\"fds\":2}");
    assert_int_equal(carrier_send(p.a->carrier, &text, NULL, 0, NULL), 0);
    carrier_read(p.b->carrier);
    assert_int_equal(p.b->messages, 0);
    assert_int_equal(p.b->why.code, -EPROTO);
    assert_non_null(strstr(p.b->why.msg, "2 descriptors, and 0 have come"));
    pair_free(&p);
}

static void test_listener_may_free_the_carrier_that_tells_it(void **state) {
    struct pair p = pair_new();
    p.b->frees = true;
    assert_int_equal(say(p.a, 1, NULL, 0), 0);
    assert_int_equal(say(p.a, 2, NULL, 0), 0);
    struct carrier *c = p.b->carrier;
    carrier_read(c);
    assert_int_equal(p.b->messages, 1);
    assert_null(p.b->carrier);
    carrier_read(p.a->carrier);
    assert_int_equal(p.a->why.code, -ECONNRESET);
    assert_int_equal(say(p.a, 3, NULL, 0), -EPIPE);
    pair_free(&p);
}

/* A helper that is copied: 300 kB, which no socket takes at once, and what is said after it. */
static void test_bytes_for_who_asked_go_before_what_is_said_next(void **state) {
    static char sent[300000], got[sizeof(sent) + 64];
    const char hello[] = "{\"op\":\"hello\"}";
    int ends[2];
    size_t n = 0, whole = sizeof(sent) + 4 + strlen(hello);
    struct end e = {0};
    struct err err;
    BUF_FINI struct buf text = {0};
    struct loop *l = loop_new(&err);
    const struct carrier_listener listener = {on_message, on_end, &e, NULL};
    for (size_t i = 0; i < sizeof(sent); i++)
        sent[i] = (char)(i * 7 + i / 256);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    e.carrier = carrier_new(l, &(struct carrier_ends){ends[0], ends[0], -1}, &listener);
    assert_int_equal(carrier_heard_ns(e.carrier), 0);
    buf_puts(&text, hello);
    assert_int_equal(carrier_send_bytes(e.carrier, sent, sizeof(sent), &err), 0);
    assert_true(carrier_waits(e.carrier) > 0);
    assert_int_equal(carrier_send(e.carrier, &text, NULL, 0, &err), 0);
    while (n < whole) {
        ssize_t r = read(ends[1], got + n, sizeof(got) - n);
        assert_true(r > 0);
        n += (size_t)r;
        assert_int_not_equal(carrier_flush(e.carrier, 0), -EPIPE);
    }
    assert_int_equal(n, whole);
    assert_memory_equal(got, sent, sizeof(sent));
    assert_memory_equal(got + sizeof(sent) + 4, hello, strlen(hello));
    carrier_shut(e.carrier);
    assert_int_equal(carrier_send_bytes(e.carrier, sent, 1, &err), -EPIPE);
    close(ends[1]);
    carrier_free(e.carrier);
    loop_free(l);
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages_come_in_order_with_their_descriptors),
        cmocka_unit_test(test_two_pipes_carry_too_and_no_descriptors),
        cmocka_unit_test(test_what_is_not_taken_waits_and_nobody_blocks),
        cmocka_unit_test(test_bytes_that_are_no_message_end_it_with_a_sentence),
        cmocka_unit_test(test_message_that_promises_more_than_its_lane_brought_is_refused),
        cmocka_unit_test(test_listener_may_free_the_carrier_that_tells_it),
        cmocka_unit_test(test_bytes_for_who_asked_go_before_what_is_said_next),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
