/* A program that is asked something: what it answers, how it ends, and what is left of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/sys/clock.h"
#include "harness/observe/question.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { BYTES_MAX = 10000 };

struct heard {
    struct loop *loop;
    int times;
    char text[BYTES_MAX + 1], ended[100];
    size_t len;
    bool too_long, late;
};

static void on_answer(void *arg, const struct question_answer *a) {
    struct heard *h = arg;
    h->times++;
    h->len = a->len;
    h->too_long = a->too_long;
    h->late = a->late;
    assert_true(a->len <= BYTES_MAX);
    assert_int_equal(a->text[a->len], '\0');
    snprintf(h->text, sizeof(h->text), "%s", a->text);
    snprintf(h->ended, sizeof(h->ended), "%s", a->ended ? a->ended : "");
    loop_stop(h->loop);
}

static struct question *begin(struct heard *h, const char *script, int64_t within_ns,
                              struct err *err) {
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    const char *const env[] = {"WORD=said", "PATH=/usr/bin:/bin", NULL};
    const struct question_spec spec = {
        .program = {.argv = argv, .envp = env}, .bytes_max = BYTES_MAX, .within_ns = within_ns};
    *h = (struct heard){.loop = loop_new(err)};
    assert_non_null(h->loop);
    return question_ask(h->loop, &spec, on_answer, h, err);
}

static void ask(struct heard *h, const char *script, int64_t within_ns) {
    struct err err = {0};
    assert_non_null(begin(h, script, within_ns, &err));
    assert_int_equal(loop_run(h->loop, &err), 0);
    loop_free(h->loop);
    assert_int_equal(h->times, 1);
}

static const int64_t LONG_NS = 60000000000;

static void test_it_answers_with_what_it_prints_and_how_it_ends(void **state) {
    (void)state;
    static const struct {
        const char *script, *text, *ended;
        size_t len;
        bool too_long;
    } rows[] = {
        {"echo \"it $WORD\"", "it said\n", "", 8, false},
        {":", "", "", 0, false},
        {"echo half; exit 3", "half\n", "it ended with exit code 3", 5, false},
        {"kill -TERM $$", "", "it ended with SIGTERM", 0, false},
        {"echo 1; sleep 600 &", "1\n", "", 2, false},
        {"head -c 10000 /dev/zero", "", "", BYTES_MAX, false},
        {"head -c 10001 /dev/zero", "", "", BYTES_MAX, true},
        {"head -c 3000000 /dev/zero", "", "", BYTES_MAX, true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct heard h;
        ask(&h, rows[i].script, LONG_NS);
        if (strcmp(h.text, rows[i].text) != 0 || strcmp(h.ended, rows[i].ended) != 0 || h.late ||
            h.len != rows[i].len || h.too_long != rows[i].too_long)
            fail_msg("%s: \"%s\" (%zu bytes), \"%s\"", rows[i].script, h.text, h.len, h.ended);
    }
}

static void test_one_that_is_too_late_is_ended_with_all_it_has_started(void **state) {
    (void)state;
    struct heard h;
    int64_t from = clock_monotonic_ns();
    ask(&h, "echo soon; sleep 600 & sleep 600", 50000000);
    assert_true(h.late);
    assert_string_equal(h.ended, "it ended with SIGKILL");
    assert_true(clock_monotonic_ns() - from < LONG_NS);
}

static void test_one_that_cannot_be_started_is_told_at_once(void **state) {
    (void)state;
    const char *const argv[] = {"/no/such/program", NULL};
    const struct question_spec spec = {
        .program = {.argv = argv}, .bytes_max = BYTES_MAX, .within_ns = LONG_NS};
    struct err err = {0};
    struct heard h = {.loop = loop_new(&err)};
    assert_null(question_ask(h.loop, &spec, on_answer, &h, &err));
    assert_non_null(strstr(err.msg, "/no/such/program"));
    loop_free(h.loop);
    assert_int_equal(h.times, 0);
}

static void test_one_that_is_abandoned_is_ended_unheard(void **state) {
    (void)state;
    struct err err = {0};
    struct heard h;
    struct question *q = begin(&h, "sleep 600", LONG_NS, &err);
    assert_non_null(q);
    assert_null(question_abandon(q));
    assert_null(question_abandon(NULL));
    loop_free(h.loop);
    assert_int_equal(h.times, 0);
}

/* With so few descriptors left that something of it has no room, each number from none up. */
static void test_where_descriptors_are_too_few_it_is_told_and_nothing_is_left(void **state) {
    (void)state;
    struct rlimit had, few;
    bool started = false;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &had), 0);
    for (rlim_t left = 0; left < 32 && !started; left++) {
        struct err err = {0};
        struct heard h = {.loop = loop_new(&err)};
        const char *const argv[] = {"/bin/true", NULL};
        const struct question_spec spec = {
            .program = {.argv = argv}, .bytes_max = BYTES_MAX, .within_ns = LONG_NS};
        int next = dup(2);
        assert_true(h.loop && next >= 0);
        close(next);
        few = (struct rlimit){.rlim_cur = (rlim_t)next + left, .rlim_max = had.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        struct question *q = question_ask(h.loop, &spec, on_answer, &h, &err);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &had), 0);
        started = q != NULL;
        if (!started) {
            assert_true(err.code < 0 && *err.msg);
            if (left == 0)
                assert_non_null(strstr(err.msg, "make a pipe"));
            int again = dup(2);
            close(again);
            assert_int_equal(again, next);
        }
        assert_null(question_abandon(q));
        assert_int_equal(h.times, 0);
        loop_free(h.loop);
    }
    assert_true(started);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_answers_with_what_it_prints_and_how_it_ends),
        cmocka_unit_test(test_one_that_is_too_late_is_ended_with_all_it_has_started),
        cmocka_unit_test(test_one_that_cannot_be_started_is_told_at_once),
        cmocka_unit_test(test_one_that_is_abandoned_is_ended_unheard),
        cmocka_unit_test(test_where_descriptors_are_too_few_it_is_told_and_nothing_is_left),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
