/* What workers print, as records: the test writes the files and runs the loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "base/sys/clock.h"
#include "harness/observe/output.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORKER = 110, OTHER = 111 };

struct stage {
    struct loop *loop;
    struct history history;
    struct rounds rounds;
    struct recorder rec;
    struct scenario scenario;
    struct output_reader *output;
    char path[2][256];
    int fd[2];
    size_t lines, until; /* handed on; the loop stops at the until'th */
};

static void on_record(void *arg, const struct record *r, struct event_client *from) {
    (void)arg, (void)r;
    assert_null(from); /* nobody can be held */
}

static void on_line(void *arg, const char *node, pid_t pid, const char *line) {
    struct stage *s = arg;
    assert_string_equal(node, "n0");
    assert_true(pid == WORKER || pid == OTHER || !pid);
    assert_non_null(line);
    if (++s->lines == s->until)
        loop_stop(s->loop);
}

static void make_file(struct stage *s, int i, pid_t pid) {
    const char *dir = getenv("TMPDIR");
    struct err err = {0};
    snprintf(s->path[i], sizeof(s->path[i]), "%s/output-XXXXXX", dir ? dir : "/tmp");
    s->fd[i] = mkstemp(s->path[i]);
    assert_true(s->fd[i] >= 0);
    assert_int_equal(
        output_follow(s->output, open(s->path[i], O_RDWR | O_CLOEXEC), "n0", pid, &err), 0);
}

static struct stage *stage_new(const struct observed *v, size_t n) {
    struct stage *s = calloc(1, sizeof(*s));
    struct err err = {0};
    s->loop = loop_new(&err);
    assert_int_equal(history_create(&s->history, NULL, &err), 0);
    rounds_init(&s->rounds, true);
    s->rec = (struct recorder){&s->history, &s->rounds, on_record, s};
    s->scenario.observe = (struct observe_spec){.v = v, .n = n};
    s->output = output_new(s->loop, &s->rec, &s->scenario, on_line, s, &err);
    assert_non_null(s->output);
    make_file(s, 0, WORKER);
    make_file(s, 1, OTHER);
    return s;
}

static void stage_free(struct stage *s) {
    output_free(s->output);
    for (int i = 0; i < 2; i++) {
        close(s->fd[i]);
        unlink(s->path[i]);
    }
    history_fini(&s->history);
    rounds_fini(&s->rounds);
    loop_free(s->loop);
    free(s);
}

static void put(struct stage *s, int i, const char *text) {
    assert_int_equal(write(s->fd[i], text, strlen(text)), strlen(text));
}

/* Everything recorded of a worker, as "kind number" with ", " between. */
static const char *told(struct stage *s, pid_t pid, struct buf *out) {
    buf_clear(out);
    history_each(r, &s->history) {
        if (r->source != SOURCE_JOB || r->pid != pid)
            continue;
        assert_string_equal(record_text(r, "from"), "output");
        buf_printf(out, "%s%s", out->len ? ", " : "", r->kind);
        if (record_get(r, "step"))
            buf_printf(out, " %lld", (long long)record_i64(r, "step", -1));
        if (record_get(r, "loss"))
            buf_printf(out, " at %g", json_number(record_get(r, "loss"), -1));
        if (*record_text(r, "model"))
            buf_printf(out, " %s", record_text(r, "model"));
    }
    return buf_str(out);
}

static const struct observed plain[] = {
    {.kind = "step", .pattern = "step ([0-9,]+)", .own = true},
    {.kind = "loss", .pattern = "loss ([-0-9.e]+|nan)", .own = true},
    {.kind = "resume", .pattern = "resuming from (\\w+)", .own = true},
    {.kind = "checkpoint-commit", .pattern = "saved(?: (\\d+))?", .own = true},
    {.kind = "done", .pattern = "model (\\w+)", .own = true},
};
#define PLAIN plain, sizeof(plain) / sizeof(*plain)

static void assert_told(struct stage *s, pid_t pid, const char *wanted) {
    struct buf out = {0};
    assert_string_equal(told(s, pid, &out), wanted);
    buf_fini(&out);
}

static void test_lines_become_events_of_their_worker(void **state) {
    (void)state;
    struct stage *s = stage_new(PLAIN);
    put(s, 0, "resuming from 20\nstep 21 loss 0.5\nnoise\nloss 0.25\nstep 22\nsaved 22\nsaved\n");
    put(s, 1, "step 1,021 loss nan\nmodel 3f3f\n");
    output_last_words(s->output, WORKER);
    output_last_words(s->output, OTHER);
    assert_told(s, WORKER,
                "resume 20, step 21 at 0.5, step 22 at 0.25, checkpoint-commit 22, "
                "checkpoint-commit 22");
    assert_told(s, OTHER, "step 1021 at -1, done 3f3f");
    assert_int_equal(s->lines, 9);
    stage_free(s);
}

static void test_a_step_that_is_printed_again_is_one_step(void **state) {
    (void)state;
    struct stage *s = stage_new(PLAIN);
    put(s, 0, "\rstep 1\rstep 1 loss 3\rstep 2\rstep 2\nstep 1\n");
    output_last_words(s->output, WORKER);
    assert_told(s, WORKER, "step 1, step 2 at 3, step 1"); /* the loss of the next that is told */
    stage_free(s);
}

/* As the bar of a Trainer does it: no step comes behind the last loss. */
static void test_a_loss_behind_the_last_step_is_told_with_it(void **state) {
    (void)state;
    struct stage *s = stage_new(PLAIN);
    put(s, 0, "step 1\nloss 3\nstep 2\nloss 2\n");
    output_last_words(s->output, WORKER);
    assert_told(s, WORKER, "step 1, step 2 at 3, step 2 at 2");
    stage_free(s);
}

static void test_what_a_worker_says_by_events_is_not_taken_from_its_output(void **state) {
    (void)state;
    struct stage *s = stage_new(PLAIN);
    struct json_writer *w = recorder_begin(&s->rec, 1, SOURCE_JOB, "step");
    json_put_i64(w, "pid", WORKER);
    output_overruled(s->output, recorder_end(&s->rec, NULL));
    put(s, 0, "step 5\nsaved 5\n");
    put(s, 1, "step 5\n");
    output_last_words(s->output, WORKER);
    output_last_words(s->output, OTHER);
    assert_told(s, OTHER, "step 5");
    size_t steps = 0, commits = 0;
    history_each(r, &s->history) {
        steps += r->pid == WORKER && record_is(r, "step");
        commits += r->pid == WORKER && record_is(r, "checkpoint-commit");
    }
    assert_int_equal(steps, 1);
    assert_int_equal(commits, 1);
    stage_free(s);
}

static void test_the_file_of_a_node_that_comes_back_is_followed_once(void **state) {
    (void)state;
    struct stage *s = stage_new(PLAIN);
    for (int life = 0; life < 2; life++)
        assert_int_equal(
            output_follow(s->output, open(s->path[1], O_RDWR | O_CLOEXEC), "n0", 0, NULL), 0);
    close(s->fd[0]);
    s->fd[0] = open(s->path[1], O_WRONLY | O_APPEND | O_CLOEXEC);
    put(s, 0, "it says this once\n");
    output_end(s->output);
    assert_int_equal(s->lines, 2); /* of the worker whose file it is here, and of the program */
    stage_free(s);
}

static void test_what_comes_after_the_end_of_a_worker_is_no_event(void **state) {
    (void)state;
    struct stage *s = stage_new(PLAIN);
    put(s, 0, "step 1\nstep 2"); /* its last words have no end */
    output_last_words(s->output, WORKER);
    put(s, 0, "\nstep 3\n");
    output_end(s->output);
    assert_told(s, WORKER, "step 1, step 2");
    const struct record *r = history_newest(&s->history, SOURCE_HARNESS, "observed");
    assert_int_equal(record_i64(r, "late_lines", -1), 1);
    stage_free(s);
}

static void test_an_epoch_counts_its_steps_on(void **state) {
    (void)state;
    static const struct observed v[] = {
        {.kind = "step", .pattern = "Epoch (\\d+): (\\d+)/(\\d+)", .own = true}};
    struct stage *s = stage_new(v, 1);
    put(s, 0, "Epoch 0: 1/18\nEpoch 0: 18/18\nEpoch 1: 1/18\nEpoch 99999999999: 1/18\n");
    output_last_words(s->output, WORKER);
    assert_told(s, WORKER, "step 1, step 18, step 19");
    stage_free(s);
}

static void test_a_bar_that_counts_to_another_number_is_another_bar(void **state) {
    (void)state;
    static const struct observed v[] = {
        {.kind = "step", .pattern = "\\| (\\d+)/(\\d+)", .own = true}};
    struct stage *s = stage_new(v, 1);
    put(s, 0, "| 1/100\n| 7/10\n| 2/100\n");
    output_last_words(s->output, WORKER);
    assert_told(s, WORKER, "step 1, step 2");
    stage_free(s);
}

static void test_of_steps_that_come_too_fast_the_newest_is_recorded(void **state) {
    (void)state;
    struct stage *s = stage_new(PLAIN);
    struct buf text = {0}, out = {0};
    for (int i = 1; i <= 20000; i++)
        buf_printf(&text, "step %d\n", i);
    put(s, 1, buf_str(&text));
    struct err err = {0};
    s->until = 20000;
    assert_int_equal(loop_run(s->loop, &err), 0);
    output_last_words(s->output, OTHER);
    output_end(s->output);
    const struct record *r = history_newest(&s->history, SOURCE_HARNESS, "observed");
    assert_true(record_i64(r, "thinned", 0) > 1000);
    assert_true(s->history.n < 19000);
    assert_true(str_ends(told(s, OTHER, &out), ", step 20000"));
    buf_fini(&text);
    buf_fini(&out);
    stage_free(s);
}

/* A history is kept in memory: whatever is printed without end is counted. */
static void test_of_events_that_come_too_fast_the_rest_is_counted(void **state) {
    (void)state;
    struct stage *s = stage_new(PLAIN);
    struct buf text = {0};
    struct err err = {0};
    for (int i = 1; i <= 20000; i++)
        buf_puts(&text, "saved 7\n");
    put(s, 1, buf_str(&text));
    s->until = 20000;
    assert_int_equal(loop_run(s->loop, &err), 0);
    output_end(s->output);
    const struct record *r = history_newest(&s->history, SOURCE_HARNESS, "observed");
    int64_t thinned = record_i64(r, "thinned", 0);
    assert_true(thinned > 1000);
    assert_int_equal(s->history.n - 1 + (size_t)thinned, 20000);
    buf_fini(&text);
    stage_free(s);
}

static const struct json *expression(const struct stage *s, const char *event) {
    const struct record *r = history_newest(&s->history, SOURCE_HARNESS, "observed");
    assert_non_null(r);
    json_each(
        p, record_get(r, "patterns")) if (str_eq(json_get_string(p, "event", ""), event)) return p;
    fail_msg("nothing is told of %s", event);
    return NULL;
}

static void test_at_the_end_it_is_told_what_matched_and_what_came_closest(void **state) {
    (void)state;
    struct stage *s = stage_new(PLAIN);
    put(s, 0, "Step 1\nloss: 3\nresuming from nothing\nstep 7\nsteps 99999999999999999999\n");
    put(s, 1,
        "mod\xff"
        "el abc\nmodel: abc\n");
    output_end(s->output);
    assert_int_equal(json_get_i64(expression(s, "step"), "matched", -1), 1);
    assert_int_equal(json_get_i64(expression(s, "loss"), "matched", -1), 0);
    assert_string_equal(json_get_string(expression(s, "loss"), "closest", ""), "loss: 3");
    assert_string_equal(json_get_string(expression(s, "done"), "closest", ""), "model: abc");
    assert_int_equal(json_get_i64(expression(s, "resume"), "matched", -1), 1);
    assert_int_equal(json_get_i64(expression(s, "resume"), "unread", -1), 1);
    assert_true(json_get_bool(expression(s, "step"), "own", false));
    stage_free(s);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_become_events_of_their_worker),
        cmocka_unit_test(test_a_step_that_is_printed_again_is_one_step),
        cmocka_unit_test(test_a_loss_behind_the_last_step_is_told_with_it),
        cmocka_unit_test(test_what_a_worker_says_by_events_is_not_taken_from_its_output),
        cmocka_unit_test(test_the_file_of_a_node_that_comes_back_is_followed_once),
        cmocka_unit_test(test_what_comes_after_the_end_of_a_worker_is_no_event),
        cmocka_unit_test(test_an_epoch_counts_its_steps_on),
        cmocka_unit_test(test_a_bar_that_counts_to_another_number_is_another_bar),
        cmocka_unit_test(test_of_steps_that_come_too_fast_the_newest_is_recorded),
        cmocka_unit_test(test_of_events_that_come_too_fast_the_rest_is_counted),
        cmocka_unit_test(test_at_the_end_it_is_told_what_matched_and_what_came_closest),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
