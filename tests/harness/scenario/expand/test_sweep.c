/* One file, many runs: sweep and vars. */
#include "tests/harness/scenario/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define JOB "job: {run: [ranktrain, \"--steps={steps}\"]}\nvars: {steps: 80, at: 37}\n"

/* "a=1 b=2|a=1 b=3" of the points that are left of the file under `set`. */
static void assert_points(const char *text, const char *const *set, const char *want) {
    struct scratch x;
    struct buf got = {0};
    scratch_load(&x, text);
    struct sweep *s = scenario_sweep(x.path, set, NULL);
    for (size_t i = 0; i < s->n; i++) {
        buf_puts(&got, i ? "|" : "");
        for (const char *const *v = s->v[i]; *v; v++)
            buf_printf(&got, "%s%s", v == s->v[i] ? "" : " ", *v);
    }
    assert_string_equal(buf_str(&got), want);
    sweep_free(s);
    buf_fini(&got);
    scratch_drop(&x);
}

static void test_a_map_runs_all_with_all(void **state) {
    (void)state;
    assert_points(JOB "sweep: {job.max_restarts: [1, 2], vars.at: [5, 6]}\n", NULL,
                  "job.max_restarts=1 vars.at=5|job.max_restarts=1 vars.at=6|"
                  "job.max_restarts=2 vars.at=5|job.max_restarts=2 vars.at=6");
    assert_points(JOB, NULL, "");
}

static void test_a_list_runs_each_of_its_items(void **state) {
    (void)state;
    assert_points(JOB "sweep: [{vars.at: 5, job.nnodes: \"1:2\"}, {vars.at: 6, job.nnodes: 2}]\n",
                  NULL, "vars.at=5 job.nnodes=\"1:2\"|vars.at=6 job.nnodes=2");
}

static void test_a_value_that_is_set_is_not_swept(void **state) {
    (void)state;
    static const char *const set[] = {"vars.at=9", NULL};
    assert_points(JOB "sweep: {job.max_restarts: [1, 2], vars.at: [5, 6]}\n", set,
                  "job.max_restarts=1|job.max_restarts=2");
    assert_points(JOB "sweep: [{vars.at: 5}, {vars.at: 6}]\n", set, "");
}

static void test_texts_lists_and_maps_can_be_swept(void **state) {
    (void)state;
    assert_points(
        JOB "sweep: {launcher: [rankrun, \"python3 -m x\"], expect.world_sizes: [[2, "
            "\"*\"]], job.env: [{A: b c}]}\n",
        NULL,
        "launcher=rankrun expect.world_sizes=[2, \"*\"] job.env={\"A\": \"b c\"}|"
        "launcher=\"python3 -m x\" expect.world_sizes=[2, \"*\"] job.env={\"A\": \"b c\"}");
}

static void load_set(struct scratch *x, const char *text, const char *const *set) {
    scratch_load_bytes(x, text, strlen(text), set);
    assert_string_equal(buf_str(&x->d.out), "");
    assert_non_null(x->s);
}

static const char KILL[] =
    JOB "scenario: s\n"
        "timeline: [{id: k, when: {step: \"{at}\"}, fault: worker-kill, on: rank 0}]\n"
        "sweep: {job.max_restarts: [1, 2], timeline.k.on: [rank 0, rank 1]}\n";

static void test_a_point_is_a_scenario_with_a_name_of_its_own(void **state) {
    (void)state;
    struct scratch x;
    load_set(&x, KILL, NULL);
    assert_string_equal(x.s->name, "s.max_restarts-1.on-rank0");
    assert_int_equal(x.s->job.max_restarts, 1);
    assert_int_equal(x.s->timeline[0].when.step, 37);
    assert_string_equal(x.s->job.run[1], "--steps=80");
    scratch_drop(&x);
    static const char *const set[] = {"job.max_restarts=2", "timeline.k.on=\"rank 1\"",
                                      "vars.at=12", "vars.steps=20", NULL};
    load_set(&x, KILL, set);
    assert_string_equal(x.s->name, "s.max_restarts-2.on-rank1");
    assert_int_equal(x.s->job.max_restarts, 2);
    assert_int_equal(x.s->timeline[0].on.rank, 1);
    assert_int_equal(x.s->timeline[0].when.step, 12);
    assert_string_equal(x.s->job.run[1], "--steps=20");
    scratch_drop(&x);
}

static void test_what_is_wrong_is_said_where_it_stands(void **state) {
    (void)state;
    static const char *const wrong[][2] = {
        {"sweep: 3\n", "3:8: sweep must be a map of keys and the values to run with, such as "
                       "{job.max_restarts: [1, 2]}, not empty\n"},
        {"sweep: {job.max_restarts: 3}\n", "3:27: sweep: job.max_restarts must be a list of the "
                                           "values to run with, such as [1, 2]\n"},
        {"sweep: {job.max_restart: [3]}\n",
         "3:27: job has no key \"max_restart\"; did you mean \"max_restarts\"?\n"},
        {"sweep: {job.max_restarts: [x]}\n",
         "3:28: max_restarts must be a whole number, not \"x\"\n"},
        {"sweep: [{vars.at: 1}, {vars.to: 2}]\n",
         "3:23: sweep: every item must be a map of values, all of them of the same keys, such as "
         "{job.max_restarts: 1}\n"},
        {"sweep: {timeline.k: [rank 0]}\ntimeline: [{when: {step: 1}, fault: worker-kill, on: "
         "rank 0}]\n",
         "3:22: the list has 1 item, counted from 0, and none \"k\"\n"},
        {"seed: \"{att}\"\n", "3:7: seed must be a whole number, not the text \"{att}\"\n"},
        {"seed: {at}\n", "3:7: seed must be a whole number, not a map; a variable is written in "
                         "quotes, \"{name}\"\n"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct scratch x;
        struct buf got = {0}, text = {0};
        buf_printf(&text, "%s%s", JOB, wrong[i][0]);
        scratch_load(&x, buf_str(&text));
        scratch_messages(&x, &got);
        assert_string_equal(buf_str(&got), wrong[i][1]);
        assert_null(x.s);
        buf_fini(&got);
        buf_fini(&text);
        scratch_drop(&x);
    }
}

static void test_a_variable_that_is_set_must_stand_somewhere(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"vars.att=3",
         "--set vars.att: {att} stands nowhere in the scenario; did you mean vars.at?\n"},
        {"vars.other=3", "--set vars.other: {other} stands nowhere in the scenario\n"},
    };
    for (size_t i = 0; i < 2; i++) {
        static const char text[] = "vars: {at: 5, idle: 1}\njob: {run: [a, \"{at}\"]}\n";
        const char *const set[] = {rows[i][0], NULL};
        struct scratch x;
        struct buf got = {0};
        scratch_load_bytes(&x, text, strlen(text), set);
        scratch_messages(&x, &got);
        assert_string_equal(buf_str(&got), rows[i][1]);
        buf_fini(&got);
        scratch_drop(&x);
    }
}

static void test_a_variable_cannot_hide_a_placeholder(void **state) {
    (void)state;
    struct scratch x;
    struct buf got = {0};
    scratch_load(&x, "job: {run: [a]}\nvars: {seed: 3, A: 1, l: [1]}\n");
    scratch_messages(&x, &got);
    assert_string_equal(buf_str(&got),
                        "2:8: vars: {seed} means something already; choose another name\n"
                        "2:17: vars: \"A\" must be small letters and _, as it stands in braces\n");
    buf_fini(&got);
    scratch_drop(&x);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_map_runs_all_with_all),
        cmocka_unit_test(test_a_list_runs_each_of_its_items),
        cmocka_unit_test(test_a_value_that_is_set_is_not_swept),
        cmocka_unit_test(test_texts_lists_and_maps_can_be_swept),
        cmocka_unit_test(test_a_point_is_a_scenario_with_a_name_of_its_own),
        cmocka_unit_test(test_what_is_wrong_is_said_where_it_stands),
        cmocka_unit_test(test_a_variable_that_is_set_must_stand_somewhere),
        cmocka_unit_test(test_a_variable_cannot_hide_a_placeholder),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
