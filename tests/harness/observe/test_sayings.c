/* What an agent has printed of the job: which lines count, and what is recorded of them. */
#include "harness/observe/sayings.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void on_record(void *arg, const struct record *r, struct event_client *from) {
    (void)arg, (void)r, (void)from;
}

struct stage {
    struct history history;
    struct rounds rounds;
    struct recorder rec;
};

static void stage_open(struct stage *s) {
    assert_int_equal(history_create(&s->history, NULL, NULL), 0);
    rounds_init(&s->rounds, true);
    s->rec = (struct recorder){&s->history, &s->rounds, on_record, s};
}

static void stage_close(struct stage *s) {
    history_fini(&s->history);
    rounds_fini(&s->rounds);
}

static int file_of(const char *text, size_t times) {
    int fd = memfd_create("agent.log", 0);
    assert_true(fd >= 0);
    for (size_t i = 0; i < times; i++)
        assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    return fd;
}

static void test_lines_of_the_job_become_records_also_behind_what_a_worker_had_begun(void **state) {
    (void)state;
    struct stage s;
    struct err err;
    static const char text[] = "data fashion-mnist\n"
                               "rankrun: store: listening\n"
                               "step 2rankrun: round 1 (start): world 2\n"
                               "{\"time\":\"2026\",\"what\":\"round\"}\n"
                               "{\"name\":\"torchelastic.worker.status.FAILED\"}\n"
                               "{\"name\":\"mine\"}\n"
                               "[n1] rankrun: round 7 (start): world 2\n"
                               "rankrun: first failure of round 1: node\n"
                               "rankrun: run \"x\" failed: no";
    static const char *const lines[] = {
        "rankrun: round 1 (start): world 2", "{\"time\":\"2026\",\"what\":\"round\"}",
        "{\"name\":\"torchelastic.worker.status.FAILED\"}",
        "rankrun: first failure of round 1: node", "rankrun: run \"x\" failed: no"};
    int fd = file_of(text, 1);
    stage_open(&s);
    assert_int_equal(sayings_record(&s.rec, "n1", fd, &err), 0);
    assert_int_equal(s.history.n, 6);
    for (size_t i = 0; i < 5; i++) {
        const struct record *r = s.history.records[i];
        assert_int_equal(r->source, SOURCE_LAUNCHER);
        assert_string_equal(r->kind, "said");
        assert_string_equal(r->node, "n1");
        assert_string_equal(record_text(r, "line"), lines[i]);
    }
    const struct record *heard = s.history.records[5];
    assert_int_equal(heard->source, SOURCE_HARNESS);
    assert_string_equal(heard->kind, "heard");
    assert_int_equal(record_i64(heard, "lines", -1), 9);
    assert_int_equal(record_i64(heard, "said", -1), 5);
    assert_false(json_get_bool(heard->fields, "whole", true)); /* n1 may be the node's own agent */
    close(fd);
    stage_close(&s);
}

static void test_what_has_lines_of_no_other_was_heard_whole(void **state) {
    (void)state;
    struct stage s;
    struct err err;
    int fd = file_of("step 2\nrankrun: round 1\n", 1);
    stage_open(&s);
    assert_int_equal(sayings_record(&s.rec, "n1", fd, &err), 0);
    assert_int_equal(s.history.n, 2);
    assert_true(json_get_bool(s.history.records[1]->fields, "whole", false));
    close(fd);
    stage_close(&s);
}

static void
test_of_one_that_says_the_same_for_ever_a_part_is_recorded_and_that_is_told(void **state) {
    (void)state;
    struct stage s;
    struct err err;
    int fd = file_of("rankrun: round 1\n", 2001);
    stage_open(&s);
    assert_int_equal(sayings_record(&s.rec, "n1", fd, &err), 0);
    assert_int_equal(s.history.n, 2001);
    const struct record *heard = s.history.records[2000];
    assert_int_equal(record_i64(heard, "said", -1), 2001);
    assert_false(json_get_bool(heard->fields, "whole", true));
    close(fd);
    stage_close(&s);
}

static void test_more_than_anybody_reads_is_not_the_whole(void **state) {
    (void)state;
    struct stage s;
    struct err err;
    int fd = file_of("", 1);
    assert_int_equal(ftruncate(fd, (16 << 20) + 1), 0);
    stage_open(&s);
    assert_int_equal(sayings_record(&s.rec, "n1", fd, &err), 0);
    assert_int_equal(s.history.n, 1);
    assert_false(json_get_bool(s.history.records[0]->fields, "whole", true));
    close(fd);
    stage_close(&s);
}

static void test_what_cannot_be_read_is_an_error_and_no_record(void **state) {
    (void)state;
    struct stage s;
    struct err err = {0};
    stage_open(&s);
    assert_int_equal(sayings_record(&s.rec, "n1", -1, &err), -EBADF);
    assert_non_null(strstr(err.msg, "read what the agent has printed"));
    assert_int_equal(s.history.n, 0);
    stage_close(&s);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_of_the_job_become_records_also_behind_what_a_worker_had_begun),
        cmocka_unit_test(
            test_of_one_that_says_the_same_for_ever_a_part_is_recorded_and_that_is_told),
        cmocka_unit_test(test_what_has_lines_of_no_other_was_heard_whole),
        cmocka_unit_test(test_more_than_anybody_reads_is_not_the_whole),
        cmocka_unit_test(test_what_cannot_be_read_is_an_error_and_no_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
