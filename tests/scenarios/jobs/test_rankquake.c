/* The event client against a server made by hand in a thread of the test. */
#include "scenarios/jobs/rankquake.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

/* One listener, its page, and what the only client of it has said. */
struct server {
    char dir[64], path[96];
    int listener, fd, page_fd;
    struct rankquake_page *page;
    pthread_t thread;
    int joined;
    void *(*script)(void *server);
};

static void server_send_page(struct server *s) {
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    char byte = 'P';
    struct iovec iov = {&byte, 1};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = sizeof(control.bytes)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &s->page_fd, sizeof(int));
    sendmsg(s->fd, &msg, MSG_NOSIGNAL);
}

static void *server_run(void *arg) {
    struct server *s = arg;
    s->fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
    return s->script(s);
}

static void *script_page(void *arg) {
    server_send_page(arg);
    return NULL;
}

static void server_start(struct server *s, void *(*script)(void *)) {
    *s = (struct server){.dir = "/tmp/test-rankquake-XXXXXX", .fd = -1, .script = script};
    assert_non_null(mkdtemp(s->dir));
    snprintf(s->path, sizeof(s->path), "%s/events", s->dir);
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    memcpy(addr.sun_path, s->path, strlen(s->path));
    s->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->listener, (void *)&addr, sizeof(addr)), 0);
    assert_int_equal(listen(s->listener, 8), 0);
    s->page_fd = memfd_create("page", MFD_CLOEXEC);
    assert_int_equal(ftruncate(s->page_fd, sizeof(*s->page)), 0);
    s->page = mmap(NULL, sizeof(*s->page), PROT_READ | PROT_WRITE, MAP_SHARED, s->page_fd, 0);
    s->page->version = 1;
    setenv("RANKQUAKE_EVENTS", s->path, 1);
    assert_int_equal(pthread_create(&s->thread, NULL, server_run, s), 0);
}

/* Waits for the end of the script; returns what it returned. */
static void *server_join(struct server *s) {
    static void *result;
    if (!s->joined)
        pthread_join(s->thread, &result);
    s->joined = 1;
    return result;
}

static void server_stop(struct server *s) {
    unsetenv("RANKQUAKE_EVENTS");
    server_join(s);
    if (s->fd >= 0)
        close(s->fd);
    close(s->listener);
    close(s->page_fd);
    munmap(s->page, sizeof(*s->page));
    unlink(s->path);
    rmdir(s->dir);
}

static void server_expect(struct server *s, const char *want) {
    char text[RANKQUAKE_MESSAGE_MAX + 1];
    ssize_t n = recv(s->fd, text, sizeof(text) - 1, 0);
    assert_true(n > 0);
    text[n] = 0;
    assert_string_equal(text, want);
}

static void test_without_the_variable_nothing_happens(void **state) {
    (void)state;
    struct rankquake q;
    unsetenv("RANKQUAKE_EVENTS");
    assert_int_equal(rankquake_open(&q), 0);
    assert_int_equal(rankquake_ready(&q), -1);
    assert_false(rankquake_listening(&q));
    rankquake_close(&q);
}

static void test_events_carry_sequence_and_fields(void **state) {
    (void)state;
    struct server s;
    struct rankquake q;
    int shards[] = {0, 1, 2};
    server_start(&s, script_page);
    assert_int_equal(rankquake_open(&q), 1);
    assert_int_equal(rankquake_ready(&q), 0);
    assert_int_equal(rankquake_step(&q, 137, 0.5, 24, shards, 3), 0);
    assert_int_equal(rankquake_checkpoint_write(&q, 25, "a\"b"), 0);
    assert_int_equal(rankquake_event(&q, RANKQUAKE_LAUNCHER, "\"what\":\"%s\"", "stop"), 0);
    server_join(&s);
    server_expect(&s, "{\"v\":1,\"seq\":1,\"lost\":0,\"kind\":\"ready\"}");
    server_expect(&s, "{\"v\":1,\"seq\":2,\"lost\":0,\"kind\":\"step\",\"step\":137,"
                      "\"loss\":0.5,\"samples\":24,\"shards\":[0,1,2]}");
    server_expect(&s, "{\"v\":1,\"seq\":3,\"lost\":0,\"kind\":\"checkpoint-write\",\"step\":25,"
                      "\"path\":\"a\\\"b\"}");
    server_expect(&s, "{\"v\":1,\"seq\":4,\"lost\":0,\"kind\":\"launcher\",\"what\":\"stop\"}");
    rankquake_close(&q);
    server_stop(&s);
}

static void *script_ask_weights(void *arg) {
    struct server *s = arg;
    s->page->kinds = 1u << RANKQUAKE_ASK_WEIGHTS;
    return script_page(arg);
}

static void test_a_job_is_told_what_the_scenario_asks_for(void **state) {
    (void)state;
    struct server s;
    struct rankquake q;
    int shards[] = {0};
    server_start(&s, script_ask_weights);
    assert_int_equal(rankquake_open(&q), 1);
    assert_true(rankquake_asked(&q, RANKQUAKE_ASK_WEIGHTS));
    assert_false(rankquake_asked(&q, RANKQUAKE_ASK_SAMPLES));
    assert_int_equal(rankquake_step_weights(&q, 1, 2, 8, shards, 1, "0a\"b"), 0); /* not held */
    server_join(&s);
    server_expect(&s, "{\"v\":1,\"seq\":1,\"lost\":0,\"kind\":\"step\",\"step\":1,\"loss\":2,"
                      "\"samples\":8,\"shards\":[0],\"weights\":\"0a\\\"b\"}");
    rankquake_close(&q);
    assert_false(rankquake_asked(&q, RANKQUAKE_ASK_WEIGHTS));
    server_stop(&s);
}

/* Every number comes, in order, in one message or in several. */
static void test_the_samples_of_a_step_take_as_many_messages_as_they_need(void **state) {
    (void)state;
    enum { SAMPLES = 2000 };
    static uint64_t ids[SAMPLES];
    struct server s;
    struct rankquake q;
    char text[RANKQUAKE_MESSAGE_MAX + 1];
    size_t seen = 0, messages = 0;
    for (size_t i = 0; i < SAMPLES; i++)
        ids[i] = i % 2 ? UINT64_MAX - i : i;
    server_start(&s, script_page);
    assert_int_equal(rankquake_open(&q), 1);
    assert_int_equal(rankquake_samples(&q, 7, 2, 60000, ids, SAMPLES), 0);
    server_join(&s);
    for (; seen < SAMPLES; messages++) {
        ssize_t n = recv(s.fd, text, sizeof(text) - 1, MSG_DONTWAIT);
        assert_true(n > 0);
        text[n] = 0;
        char *at =
            strstr(text, "\"kind\":\"samples\",\"step\":7,\"epoch\":2,\"of\":60000,\"ids\":[");
        assert_non_null(at);
        for (at = strchr(at, '['); *at != ']'; seen++)
            assert_true(strtoull(at + 1, &at, 10) == ids[seen]);
    }
    assert_true(messages > 1);
    assert_true(q.lost == 0);
    rankquake_close(&q);
    server_stop(&s);
}

static void *script_arm_step(void *arg) {
    struct server *s = arg;
    s->page->next_step = 3;
    s->page->armed_seq = 9;
    s->page->kinds = 1u << RANKQUAKE_STEP;
    server_send_page(s);
    char text[RANKQUAKE_MESSAGE_MAX];
    for (int i = 0; i < 2; i++)
        recv(s->fd, text, sizeof(text), 0);
    ssize_t n = recv(s->fd, text, sizeof(text) - 1, 0);
    s->page->kinds = 0;
    send(s->fd, "G", 1, MSG_NOSIGNAL);
    text[n > 0 ? n : 0] = 0;
    return strstr(text, "\"armed\":9") && strstr(text, "\"step\":3") ? s : NULL;
}

static void test_an_armed_step_waits_for_the_harness(void **state) {
    (void)state;
    struct server s;
    struct rankquake q;
    server_start(&s, script_arm_step);
    assert_int_equal(rankquake_open(&q), 1);
    assert_int_equal(rankquake_ready(&q), 0);
    assert_int_equal(rankquake_step(&q, 2, 0, 8, NULL, 0), 0);
    assert_int_equal(rankquake_step(&q, 3, 0, 8, NULL, 0), 1);
    assert_int_equal(rankquake_step(&q, 4, 0, 8, NULL, 0), 0);
    assert_ptr_equal(server_join(&s), &s);
    rankquake_close(&q);
    server_stop(&s);
}

static void *script_vanish_while_armed(void *arg) {
    struct server *s = arg;
    s->page->kinds = 1u << RANKQUAKE_READY;
    server_send_page(s);
    char text[RANKQUAKE_MESSAGE_MAX];
    recv(s->fd, text, sizeof(text), 0);
    close(s->fd);
    s->fd = -1;
    return NULL;
}

static void test_a_harness_that_dies_lets_the_job_run_on(void **state) {
    (void)state;
    struct server s;
    struct rankquake q;
    server_start(&s, script_vanish_while_armed);
    assert_int_equal(rankquake_open(&q), 1);
    rankquake_ready(&q);
    assert_int_equal(rankquake_ready(&q), -1);
    assert_false(rankquake_listening(&q));
    server_stop(&s);
}

static void test_a_reader_that_is_slow_loses_events_and_is_told(void **state) {
    (void)state;
    struct server s;
    struct rankquake q;
    server_start(&s, script_page);
    assert_int_equal(rankquake_open(&q), 1);
    int sent = 0;
    while (rankquake_ready(&q) == 0 && sent < 1000000)
        sent++;
    server_join(&s);
    assert_true(sent > 10);
    assert_true(rankquake_listening(&q));
    assert_int_equal(q.lost, 1);
    char text[RANKQUAKE_MESSAGE_MAX], want[64];
    for (int i = 0; i < sent; i++)
        recv(s.fd, text, sizeof(text), 0);
    assert_int_equal(rankquake_ready(&q), 0);
    snprintf(want, sizeof(want), "{\"v\":1,\"seq\":%d,\"lost\":1,\"kind\":\"ready\"}", sent + 2);
    server_expect(&s, want);
    rankquake_close(&q);
    server_stop(&s);
}

static void test_an_event_too_long_is_counted_as_lost(void **state) {
    (void)state;
    struct server s;
    struct rankquake q;
    static char big[5000];
    memset(big, 'x', sizeof(big) - 1);
    server_start(&s, script_page);
    assert_int_equal(rankquake_open(&q), 1);
    assert_int_equal(rankquake_event(&q, RANKQUAKE_OTHER, "\"x\":\"%s\"", big), -1);
    assert_int_equal(q.lost, 1);
    assert_int_equal(rankquake_ready(&q), 0);
    rankquake_close(&q);
    server_stop(&s);
}

static void *script_close(void *arg) {
    struct server *s = arg;
    close(s->fd);
    s->fd = -1;
    return NULL;
}

static void test_a_server_without_a_page_leaves_us_silent(void **state) {
    (void)state;
    struct server s;
    struct rankquake q;
    server_start(&s, script_close);
    assert_int_equal(rankquake_open(&q), -EPROTO);
    assert_false(rankquake_listening(&q));
    server_stop(&s);
}

static void test_quote_cuts_between_characters(void **state) {
    (void)state;
    char out[8];
    assert_string_equal(rankquake_quote(out, 8, "a\"\n"), "a\\\"");
    assert_string_equal(rankquake_quote(out, 5, "abc\xc3\xa4"), "abc");
    assert_string_equal(rankquake_quote(out, 6, "abc\xc3\xa4"), "abc\xc3\xa4");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_the_variable_nothing_happens),
        cmocka_unit_test(test_events_carry_sequence_and_fields),
        cmocka_unit_test(test_a_job_is_told_what_the_scenario_asks_for),
        cmocka_unit_test(test_the_samples_of_a_step_take_as_many_messages_as_they_need),
        cmocka_unit_test(test_an_armed_step_waits_for_the_harness),
        cmocka_unit_test(test_a_harness_that_dies_lets_the_job_run_on),
        cmocka_unit_test(test_a_reader_that_is_slow_loses_events_and_is_told),
        cmocka_unit_test(test_an_event_too_long_is_counted_as_lost),
        cmocka_unit_test(test_a_server_without_a_page_leaves_us_silent),
        cmocka_unit_test(test_quote_cuts_between_characters),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
