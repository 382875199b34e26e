/* Output at each of its bounds: the functions of output.c themselves are called, the clock is the
 * test's, and whose file is closed is only noted. */
#include "base/sys/clock.h"
#include "harness/observe/lines.h"

#include <stddef.h>

static int64_t now_ns;
static struct lines_file *closed[8];
static size_t closed_n;
static uint64_t portions;

static int64_t test_now(void) {
    return now_ns;
}

static void note_closed(struct lines_file *f) {
    closed[closed_n++] = f;
}

static void drain_nothing(struct lines_file *f) {
    (void)f;
}

static struct lines_count count_portions(const struct lines_file *f) {
    (void)f;
    return (struct lines_count){
        .portions = portions, .lines = 3, .skipped_bytes = 500, .cut_lines = 7};
}

#define clock_monotonic_ns test_now
#define lines_close        note_closed
#define lines_drain        drain_nothing
#define lines_counted      count_portions
#include "harness/observe/output.c"
#undef clock_monotonic_ns

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static struct history history;
static struct rounds rounds;
static struct output_reader reader;

static void on_record(void *arg, const struct record *r, struct event_client *from) {
    (void)arg, (void)r, (void)from;
}

static void hear(void *arg, const char *node, pid_t pid, const char *line) {
    (void)arg, (void)node, (void)pid, (void)line;
}

static struct recorder rec = {&history, &rounds, on_record, NULL};

static int set_up(void **state) {
    (void)state;
    rounds_init(&rounds, true);
    reader = (struct output_reader){.rec = &rec, .fn = hear};
    list_init(&reader.writers);
    now_ns = 5000000000;
    closed_n = portions = 0;
    return history_create(&history, NULL, NULL);
}

static int tear_down(void **state) {
    (void)state;
    for (size_t i = 0; i < reader.n; i++)
        pattern_free(reader.v[i].pattern);
    arena_fini(&reader.arena);
    history_fini(&history);
    rounds_fini(&rounds);
    return 0;
}

static struct writer writer_of(pid_t pid) {
    return (struct writer){
        .owner = &reader, .node = "n3", .pid = pid, .step = -1, .pending = -1, .since_ns = now_ns};
}

/* ---- too many ---- */

static void test_so_many_records_are_made_in_a_window_and_no_more(void **state) {
    (void)state;
    struct writer w = writer_of(17);
    for (int window = 0; window < 2; window++) {
        for (int i = 0; i < RECORDS_A_WINDOW; i++)
            record_step(&w, window * 1000 + i);
        assert_int_equal(history.n, (window + 1) * RECORDS_A_WINDOW);
        assert_int_equal(w.pending, -1);
        now_ns += WINDOW_NS - 1;
        record_step(&w, 7000 + window);
        record_event(&w, "saved", "", 0);
        assert_int_equal(history.n, (window + 1) * RECORDS_A_WINDOW);
        assert_int_equal(reader.thinned, 2 * (window + 1));
        assert_int_equal(w.pending, 7000 + window);
        assert_int_equal(w.step, 7000 + window);
        now_ns++;
    }
    w.ending = true; /* last words have room */
    reader.records = RECORDS_A_WINDOW;
    reader.window_ns = now_ns;
    record_step(&w, 9000);
    record_event(&w, "checkpoint-commit", "", 9000);
    assert_int_equal(history.n, 2 * RECORDS_A_WINDOW + 2);
    assert_int_equal(reader.thinned, 4);
}

/* Those of all that have ended, in the order in which they began; who lives is not among them. */
static void test_of_the_ended_the_oldest_is_followed_no_more(void **state) {
    (void)state;
    static struct writer ws[132];
    for (size_t i = 0; i < 132; i++) {
        ws[i] = writer_of(100 + (pid_t)i);
        ws[i].file = (struct lines_file *)&ws[i];
        list_append(&reader.writers, &ws[i].link);
    }
    for (size_t i = 1; i < 131; i++) { /* the first lives on */
        output_last_words(&reader, ws[i].pid);
        assert_int_equal(closed_n, i <= 128 ? 0 : i - 128);
    }
    assert_ptr_equal(closed[0], &ws[1]);
    assert_ptr_equal(closed[1], &ws[2]);
    assert_true(ws[1].closed && ws[2].closed && !ws[3].closed && !ws[0].closed);
    output_last_words(&reader, ws[130].pid); /* again: nothing more */
    assert_int_equal(closed_n, 2);
    output_last_words(&reader, 0);
    output_last_words(&reader, 99);
    assert_false(ws[0].ended || ws[131].ended);
}

/* ---- values ---- */

static struct pattern_value value_of(const char *text) {
    return (struct pattern_value){.at = text, .len = text ? strlen(text) : 0};
}

static void test_a_number_is_digits_with_commas_and_has_a_length(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t number; /* -1: it is none */
    } rows[] = {{"0", 0},
                {"12,345", 12345},
                {",1,", 1},
                {"", -1},
                {",", -1},
                {"-1", -1},
                {"1.5", -1},
                {NULL, -1},
                {"9223372036854775807", INT64_MAX},
                {"9223372036854775808", -1},
                {"0000,0000,0000,0000,007", 7},    /* 23 */
                {"0000,0000,0000,0000,0007", -1}}; /* 24 */
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct pattern_value v = value_of(rows[i].text);
        int64_t n = -1;
        assert_int_equal(number_of(&v, &n), rows[i].number >= 0);
        if (rows[i].number >= 0)
            assert_int_equal(n, rows[i].number);
    }
}

static void test_a_step_is_what_the_groups_of_its_expression_say(void **state) {
    (void)state;
    static const struct {
        const char *v[3];
        int64_t total, step, total_then; /* step -2: no number */
    } rows[] = {
        {{"7"}, 0, 7, 0},
        {{NULL, "8"}, 0, 8, 0},
        {{NULL, NULL, "9"}, 5, 9, 5},
        {{"3", "10"}, 0, 3, 10},
        {{"4", "10"}, 10, 4, 10},
        {{"5", "11"}, 10, -1, 10},
        {{"x", "10"}, 0, -2, 0},
        {{"5", "x"}, 0, -2, 0},
        {{"2", "3", "18"}, 0, 39, 0},
        {{"0", "18", "18"}, 0, 18, 0},
        {{"2", "3", "0"}, 0, -2, 0},
        {{"x", "3", "18"}, 0, -2, 0},
        {{"2", "x", "18"}, 0, -2, 0},
        {{"2", "3", "x"}, 0, -2, 0},
        {{"2147483647", "3", "2147483647"}, 0, 2147483647LL * 2147483647LL + 3, 0},
        {{"2147483648", "3", "1"}, 0, -2, 0},
        {{"1", "3", "2147483648"}, 0, -2, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct pattern_value v[PATTERN_VALUES_MAX] = {{0}};
        struct writer w = writer_of(1);
        int64_t step = 4711;
        for (size_t k = 0; k < 3; k++)
            v[k] = value_of(rows[i].v[k]);
        w.total = rows[i].total;
        assert_int_equal(step_of(&w, v, &step), rows[i].step != -2);
        if (rows[i].step != -2)
            assert_int_equal(step, rows[i].step);
        assert_int_equal(w.total, rows[i].total_then);
    }
}

/* ---- what is told of it ---- */

static void follow(const struct observed *v, size_t n) {
    struct scenario s = {.observe = {.v = v, .n = n}};
    compile(&reader, &s);
    assert_int_equal(reader.n, n);
}

/* Each record of a worker in full: kind, node, pid, from, and its values. */
static void assert_records(const char *wanted) {
    struct buf out = {0};
    history_each(r, &history) {
        assert_int_equal(r->t_ns, now_ns);
        assert_int_equal(r->source, SOURCE_JOB);
        assert_string_equal(record_text(r, "from"), "output");
        buf_printf(&out, "%s%s %s %d", out.len ? ", " : "", r->kind, r->node, (int)r->pid);
        if (record_get(r, "step"))
            buf_printf(&out, " step %lld", (long long)record_i64(r, "step", -1));
        if (record_get(r, "loss"))
            buf_printf(&out, " loss %g", json_number(record_get(r, "loss"), -1));
        if (record_get(r, "model"))
            buf_printf(&out, " model %s", record_text(r, "model"));
    }
    assert_string_equal(buf_str(&out), wanted);
    buf_fini(&out);
}

static const struct observed all[] = {
    {.kind = "step", .pattern = "step ([^ ]+)"},
    {.kind = "done", .pattern = "model (\\w+)"},
    {.kind = "loss", .pattern = "loss ([^ ]+)"},
    {.kind = "resume", .pattern = "resuming(?: from ([^ ]+))?"},
    {.kind = "checkpoint-begin", .pattern = "saving"},
    {.kind = "checkpoint-commit", .pattern = "saved(?: ([^ ]+))?"},
    {.kind = "steady", .pattern = "steady"},
};
#define ALL all, sizeof(all) / sizeof(*all)

static void say(struct writer *w, const char *const *lines) {
    for (; *lines; lines++)
        on_line(&reader, w, *lines);
}

static const struct expression *expression(const char *kind) {
    for (size_t i = 0; i < reader.n; i++)
        if (str_eq(reader.v[i].spec->kind, kind))
            return &reader.v[i];
    fail_msg("no %s", kind);
    return NULL;
}

static void test_each_kind_of_line_becomes_its_record_with_its_value(void **state) {
    (void)state;
    static const char *const lines[] = {"saving",
                                        "resuming from 4",
                                        "resuming",
                                        "step 5 loss 0.5 and saved",
                                        "saved",
                                        "saved 1,234",
                                        "saved soon",
                                        "saving",
                                        "steady",
                                        "loss nan",
                                        "loss -1e3",
                                        "loss none",
                                        "step 6",
                                        "step 6",
                                        "step six",
                                        "model 3f3f",
                                        "model 4 resuming",
                                        "step 7",
                                        "resuming from",
                                        NULL};
    struct writer w = writer_of(17);
    follow(ALL);
    say(&w, lines);
    assert_records("checkpoint-begin n3 17 step 0, resume n3 17 step 4, resume n3 17 step 0, "
                   "checkpoint-commit n3 17 step 0, step n3 17 step 5 loss 0.5, "
                   "checkpoint-commit n3 17 step 5, checkpoint-commit n3 17 step 1234, "
                   "checkpoint-begin n3 17 step 5, steady n3 17, step n3 17 step 6 loss -1000, "
                   "done n3 17 model 3f3f, done n3 17 model 4, resume n3 17 step 6, "
                   "step n3 17 step 7, resume n3 17 step 7");
    assert_int_equal(expression("loss")->unread, 1);
    assert_int_equal(expression("step")->unread, 1);
    assert_int_equal(expression("checkpoint-commit")->unread, 1);
    assert_int_equal(expression("resume")->unread, 0);
    assert_int_equal(expression("step")->matched, 5);
    assert_int_equal(expression("loss")->matched, 4);
    assert_int_equal(expression("resume")->matched, 4);
    assert_int_equal(reader.near_lines, 19);
    assert_int_equal(reader.late_lines, 0);
}

static void test_what_a_worker_tells_by_events_is_counted_and_not_recorded(void **state) {
    (void)state;
    static const char *const lines[] = {"step 1", "saved 1", NULL};
    struct writer w = writer_of(17);
    follow(ALL);
    w.speaks = UINT32_C(1) << rankquake_kind_of("step");
    say(&w, lines);
    assert_records("checkpoint-commit n3 17 step 1");
    assert_int_equal(expression("step")->matched, 1);
    w.ended = true;
    say(&w, lines);
    assert_int_equal(reader.late_lines, 2);
    assert_int_equal(expression("step")->matched, 1);
    w = writer_of(0); /* the program of a node says nothing of a job */
    say(&w, lines);
    assert_int_equal(expression("step")->matched, 1);
    assert_int_equal(history.n, 1);
    assert_int_equal(reader.near_lines, 2);
}

static void test_the_closest_line_is_the_first_of_the_nearest(void **state) {
    (void)state;
    static const char *const lines[] = {"st", "step", "stop", "step", "nothing", NULL};
    char longest[LINE_SHOWN + 10], cut[LINE_SHOWN + 1];
    struct writer w = writer_of(17);
    follow(all, 1);
    say(&w, lines);
    assert_string_equal(reader.v[0].closest, "step");
    memset(longest, '-', sizeof(longest));
    memcpy(longest, "step ", 5);
    longest[5] = ' ';
    longest[sizeof(longest) - 1] = '\0';
    on_line(&reader, &w, longest);
    memcpy(cut, longest, LINE_SHOWN);
    cut[LINE_SHOWN] = '\0';
    assert_string_equal(reader.v[0].closest, cut);
}

static void test_nearness_is_asked_of_so_many_lines(void **state) {
    (void)state;
    struct writer w = writer_of(17);
    follow(all, 1);
    reader.near_lines = NEAR_LINES_MAX - 1;
    on_line(&reader, &w, "st");
    assert_string_equal(reader.v[0].closest, "st");
    on_line(&reader, &w, "step");
    assert_string_equal(reader.v[0].closest, "st");
    assert_int_equal(reader.near_lines, NEAR_LINES_MAX + 1);
}

/* ---- bursts ---- */

static bool buffered(int64_t steps, int64_t bursts, int64_t lived_ns, bool ended) {
    struct writer w = writer_of(17);
    w.steps = steps;
    w.bursts = bursts;
    w.since_ns = now_ns - lived_ns;
    if (ended) {
        w.ended = true;
        w.ended_ns = now_ns;
        w.since_ns = now_ns - lived_ns;
        now_ns += 10000000000; /* nobody asks when it is judged */
    }
    bool is = is_buffered(&w);
    now_ns -= ended ? 10000000000 : 0;
    return is;
}

static void test_who_tells_steps_in_bursts_is_said_to(void **state) {
    (void)state;
    for (int ended = 0; ended < 2; ended++) {
        assert_true(buffered(ALL_AT_ONCE, 1, ALL_AT_ONCE * FAST_STEP_NS, ended));
        assert_false(buffered(ALL_AT_ONCE - 1, 1, ALL_AT_ONCE * FAST_STEP_NS, ended));
        assert_false(buffered(ALL_AT_ONCE, 1, ALL_AT_ONCE * FAST_STEP_NS - 1, ended));
        assert_true(buffered(2 * BURST, 2, 2 * BURST * FAST_STEP_NS, ended));
        assert_false(buffered(2 * BURST - 1, 2, 2 * BURST * FAST_STEP_NS, ended));
        assert_false(buffered(0, 0, FAST_STEP_NS, ended));
    }
}

static void test_a_burst_is_what_came_in_one_portion(void **state) {
    (void)state;
    static const char *const first[] = {"step 1", "step 2", "step 2", NULL};
    static const char *const then[] = {"step 2", NULL}, *const last[] = {"step 3", NULL};
    struct writer w = writer_of(17);
    follow(ALL);
    portions = 1;
    say(&w, first);
    assert_int_equal(w.steps, 2);
    assert_int_equal(w.bursts, 1);
    portions = 2;
    say(&w, then); /* the same again: none */
    assert_int_equal(w.bursts, 1);
    portions = 3;
    say(&w, last);
    assert_int_equal(w.steps, 3);
    assert_int_equal(w.bursts, 2);
}

/* ---- the end ---- */

static void test_the_sum_of_all_is_told_at_the_end(void **state) {
    (void)state;
    static const char *const lines[] = {"step 1", "loss", "step x", NULL};
    struct writer w = writer_of(17), program = writer_of(0);
    follow(ALL);
    list_append(&reader.writers, &w.link);
    list_append(&reader.writers, &program.link);
    say(&w, lines);
    w.steps = 50;
    w.bursts = 1;
    w.since_ns = now_ns - 1000000000;
    reader.late_lines = 11;
    reader.thinned = 13;
    output_end(&reader);
    const struct record *r = history_newest(&history, SOURCE_HARNESS, "observed");
    assert_non_null(r);
    assert_int_equal(r->t_ns, now_ns);
    assert_int_equal(record_i64(r, "lines", -1), 3);
    assert_int_equal(record_i64(r, "late_lines", -1), 11);
    assert_int_equal(record_i64(r, "cut_lines", -1), 14);
    assert_int_equal(record_i64(r, "skipped_bytes", -1), 1000);
    assert_int_equal(record_i64(r, "thinned", -1), 13);
    assert_int_equal(record_i64(r, "buffered", -1), 1);
    static const char *const kinds[] = {
        "loss", "done", "resume", "checkpoint-begin", "checkpoint-commit", "steady", "step"};
    size_t n = 0;
    json_each(p, record_get(r, "patterns")) {
        bool step = str_eq(kinds[n], "step");
        assert_string_equal(json_get_string(p, "event", ""), kinds[n++]);
        assert_int_equal(json_get_i64(p, "matched", -1), step ? 2 : 0);
        assert_int_equal(json_get_i64(p, "unread", 0), step ? 1 : 0);
        assert_false(json_get_bool(p, "own", true));
        if (str_eq(kinds[n - 1], "loss"))
            assert_string_equal(json_get_string(p, "closest", ""), "loss");
        if (step)
            assert_null(json_get(p, "closest"));
    }
    assert_int_equal(n, 7);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_so_many_records_are_made_in_a_window_and_no_more),
        TEST(test_of_the_ended_the_oldest_is_followed_no_more),
        TEST(test_a_number_is_digits_with_commas_and_has_a_length),
        TEST(test_a_step_is_what_the_groups_of_its_expression_say),
        TEST(test_each_kind_of_line_becomes_its_record_with_its_value),
        TEST(test_what_a_worker_tells_by_events_is_counted_and_not_recorded),
        TEST(test_the_closest_line_is_the_first_of_the_nearest),
        TEST(test_nearness_is_asked_of_so_many_lines),
        TEST(test_who_tells_steps_in_bursts_is_said_to),
        TEST(test_a_burst_is_what_came_in_one_portion),
        TEST(test_the_sum_of_all_is_told_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
