/* When the parts of a run are called, and in which order: the engine with parts of cardboard. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "base/sys/clock.h"
#include "harness/run/engine.h"

#include <errno.h>

enum verb { OPEN, BEGIN, START, RECORD, ROUND_END, END, TAKE_DOWN, DOWN, CLOSE };

static struct call {
    enum verb verb;
    int part;
    const char *kind; /* of a record */
} calls[4096];
static size_t calls_n;

static int refuses; /* the part that cannot be opened; -1: none */
static void (*play)(struct engine *e);
static void (*on_record)(struct engine *e, int part, const struct record *r); /* or NULL */
static struct loop_source *turn;

static void note(enum verb verb, int part, const char *kind) {
    assert_true(calls_n < sizeof(calls) / sizeof(*calls));
    calls[calls_n++] = (struct call){verb, part, kind};
}

static int open_one(int part, struct err *err) {
    note(OPEN, part, NULL);
    return part == refuses ? err_say(err, -EMFILE, "too few files") : 0;
}

static void on_turn(void *arg, int64_t now) {
    struct engine *e = arg;
    (void)now;
    play(e);
    loop_stop(e->loop);
}

static void begin_one(struct engine *e, int part) {
    note(BEGIN, part, NULL);
    if (part < PARTS_N - 1)
        return;
    turn = loop_timer(e->loop, on_turn, e);
    loop_timer_at(turn, clock_monotonic_ns());
}

static void tell_one(struct engine *e, int part, const struct record *r) {
    note(RECORD, part, r->kind);
    if (on_record)
        on_record(e, part, r);
}

static void close_one(const struct engine *e, int part) {
    assert_non_null(e->own[part]);
    note(CLOSE, part, NULL);
    turn = loop_source_free(turn);
}

#define X(name)                                                                                    \
    static int name##_open(struct engine *e, struct err *err) {                                    \
        assert_non_null(e->own[PART_##name]);                                                      \
        return open_one(PART_##name, err);                                                         \
    }                                                                                              \
    static void name##_begin(struct engine *e) {                                                   \
        begin_one(e, PART_##name);                                                                 \
    }                                                                                              \
    static void name##_start(struct engine *e) {                                                   \
        note(START, PART_##name, e->phase == ENGINE_RUNNING ? NULL : "too early");                 \
    }                                                                                              \
    static void name##_record(struct engine *e, const struct record *r) {                          \
        tell_one(e, PART_##name, r);                                                               \
    }                                                                                              \
    static void name##_round_end(struct engine *e, const struct round *r) {                        \
        (void)e, (void)r;                                                                          \
        note(ROUND_END, PART_##name, NULL);                                                        \
    }                                                                                              \
    static void name##_end(struct engine *e, const char *why) {                                    \
        (void)e;                                                                                   \
        note(END, PART_##name, why);                                                               \
    }                                                                                              \
    static void name##_take_down(struct engine *e) {                                               \
        (void)e;                                                                                   \
        note(TAKE_DOWN, PART_##name, NULL);                                                        \
    }                                                                                              \
    static void name##_down(struct engine *e) {                                                    \
        (void)e;                                                                                   \
        note(DOWN, PART_##name, NULL);                                                             \
    }                                                                                              \
    static void name##_close(struct engine *e) {                                                   \
        close_one(e, PART_##name);                                                                 \
    }                                                                                              \
    const struct run_part run_part_##name = {                                                      \
        .size = 8,                                                                                 \
        .open = name##_open,                                                                       \
        .begin = name##_begin,                                                                     \
        .start = name##_start,                                                                     \
        .record = name##_record,                                                                   \
        .round_end = name##_round_end,                                                             \
        .end = name##_end,                                                                         \
        .take_down = name##_take_down,                                                             \
        .down = name##_down,                                                                       \
        .close = name##_close,                                                                     \
    };
#include "harness/run/parts.h"
#undef X

/* ---- a run ---- */

struct result {
    struct history history;
    struct rounds rounds;
    struct err err;
    int code;
};

static void run(struct result *o, void (*what)(struct engine *e)) {
    struct scenario scenario = {0};
    struct plan plan = {.scenario = &scenario};
    const struct run_spec spec = {.plan = &plan};
    calls_n = 0;
    play = what;
    assert_int_equal(history_create(&o->history, NULL, &o->err), 0);
    rounds_init(&o->rounds, true);
    o->code = run_execute(&spec, &o->history, &o->rounds, &o->err);
}

static void result_free(struct result *o) {
    history_fini(&o->history);
    rounds_fini(&o->rounds);
}

/* Where the calls of a verb for that kind begin; they are one for each part, one after another. */
static size_t assert_all(enum verb verb, const char *kind, bool backwards) {
    size_t at = 0;
    while (at < calls_n && !(calls[at].verb == verb && (!kind || str_eq(calls[at].kind, kind))))
        at++;
    assert_true(at + PARTS_N <= calls_n);
    for (int i = 0; i < PARTS_N; i++) {
        assert_int_equal(calls[at + (size_t)i].verb, verb);
        assert_int_equal(calls[at + (size_t)i].part, backwards ? PARTS_N - 1 - i : i);
    }
    return at;
}

static size_t count(enum verb verb) {
    size_t n = 0;
    for (size_t i = 0; i < calls_n; i++)
        n += calls[i].verb == verb;
    return n;
}

static int setup(void **state) {
    (void)state;
    refuses = -1;
    on_record = NULL;
    return 0;
}

/* ---- tests ---- */

static const char *const nothing[] = {NULL};

static void whole_life(struct engine *e) {
    engine_start(e);
    engine_end(e, "ended");
    engine_end(e, "limit"); /* too late to be the reason */
    engine_take_down(e);
    engine_down(e, nothing);
}

static void test_what_begins_goes_in_order_and_what_ends_goes_backwards(void **state) {
    (void)state;
    struct result o;
    run(&o, whole_life);
    assert_int_equal(o.code, 0);
    size_t at = assert_all(OPEN, NULL, false);
    assert_int_equal(at, 0);
    const size_t order[] = {at,
                            assert_all(BEGIN, NULL, false),
                            assert_all(START, NULL, false),
                            assert_all(END, "ended", true),
                            assert_all(RECORD, "job-end", false),
                            assert_all(TAKE_DOWN, NULL, true),
                            assert_all(DOWN, NULL, true),
                            assert_all(RECORD, "health", false),
                            assert_all(CLOSE, NULL, true)};
    for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++)
        assert_int_equal(order[i], i * PARTS_N);
    assert_int_equal(calls_n, 9 * PARTS_N);
    result_free(&o);
}

static void test_a_part_that_refuses_is_the_last_that_is_opened_and_all_are_closed(void **state) {
    (void)state;
    struct result o;
    refuses = PART_usage;
    run(&o, whole_life);
    assert_int_equal(o.code, -EMFILE);
    assert_string_equal(o.err.msg, "too few files");
    assert_int_equal(count(OPEN), PART_usage + 1);
    assert_int_equal(assert_all(CLOSE, NULL, true), PART_usage + 1);
    assert_int_equal(calls_n, PART_usage + 1 + PARTS_N);
    assert_int_equal(o.history.n, 0);
    result_free(&o);
}

static void start_worker(struct engine *e, int pid) {
    struct json_writer *w = engine_record(e, SOURCE_PROBE, "worker-start");
    json_put_string(w, "node", "n0");
    json_put_i64(w, "pid", pid);
    json_object(w, "env");
    json_put_string(w, "RANK", "0");
    json_put_string(w, "WORLD_SIZE", "1");
    json_put_string(w, "MASTER_ADDR", "n0");
    json_put_string(w, "MASTER_PORT", "20000");
    json_end_object(w);
    engine_recorded(e);
}

static void one_round(struct engine *e) {
    start_worker(e, 100);
    assert_int_equal(e->rounds_ended, 0);
    struct json_writer *w = engine_record(e, SOURCE_KERNEL, "worker-exit");
    json_put_i64(w, "pid", 100);
    json_put_i64(w, "code", 0);
    engine_recorded(e);
    assert_int_equal(e->rounds_ended, 1);
}

static void test_a_round_ends_when_all_know_that_its_last_worker_has(void **state) {
    (void)state;
    struct result o;
    run(&o, one_round);
    assert_int_equal(assert_all(ROUND_END, NULL, false),
                     assert_all(RECORD, "worker-exit", false) + PARTS_N);
    assert_int_equal(count(ROUND_END), PARTS_N);
    result_free(&o);
}

static struct event_client *sent[4];
static size_t sent_n;

static void remember_sender(struct engine *e) {
    sent[sent_n++] = e->sender;
}

/* The timeline answers to a step by a record of its own. */
static void answer_to_step(struct engine *e, int part, const struct record *r) {
    if (!record_is(r, "step"))
        return;
    if (part == PART_timeline) {
        remember_sender(e);
        engine_record(e, SOURCE_HARNESS, "fault-fired");
        engine_recorded(e);
        remember_sender(e);
    }
    if (part == PART_ending)
        remember_sender(e);
}

static void one_step(struct engine *e) {
    recorder_begin(&e->rec, clock_monotonic_ns(), SOURCE_JOB, "step");
    recorder_end(&e->rec, (struct event_client *)(uintptr_t)1);
    assert_null(e->sender);
}

static void test_records_nest_and_each_has_its_sender(void **state) {
    (void)state;
    struct result o;
    on_record = answer_to_step;
    sent_n = 0;
    run(&o, one_step);
    size_t inner = assert_all(RECORD, "fault-fired", false);
    assert_int_equal(calls[inner - 1].part, PART_timeline);
    assert_string_equal(calls[inner - 1].kind, "step");
    assert_int_equal(calls[inner + PARTS_N].part, PART_timeline + 1);
    assert_int_equal(sent_n, 3);
    for (size_t i = 0; i < sent_n; i++)
        assert_ptr_equal(sent[i], (struct event_client *)(uintptr_t)1);
    result_free(&o);
}

static void two_errors(struct engine *e) {
    struct err first, second;
    err_say(&first, -ENOEXEC, "n0: no such program");
    err_say(&second, -EIO, "the wire has ended");
    engine_fail(e, &first);
    engine_fail(e, &second);
}

static void test_a_run_that_breaks_ends_once_and_returns_the_first_error(void **state) {
    (void)state;
    struct result o;
    run(&o, two_errors);
    assert_int_equal(o.code, -ENOEXEC);
    assert_string_equal(o.err.msg, "n0: no such program");
    assert_all(END, "error", true);
    assert_int_equal(count(END), PARTS_N);
    assert_string_equal(record_text(history_newest(&o.history, SOURCE_HARNESS, "job-end"), "why"),
                        "error");
    result_free(&o);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_what_begins_goes_in_order_and_what_ends_goes_backwards, setup),
        cmocka_unit_test_setup(
            test_a_part_that_refuses_is_the_last_that_is_opened_and_all_are_closed, setup),
        cmocka_unit_test_setup(test_a_round_ends_when_all_know_that_its_last_worker_has, setup),
        cmocka_unit_test_setup(test_records_nest_and_each_has_its_sender, setup),
        cmocka_unit_test_setup(test_a_run_that_breaks_ends_once_and_returns_the_first_error, setup),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
