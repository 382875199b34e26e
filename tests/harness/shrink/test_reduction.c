/* The search, with a runner that knows what fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "harness/shrink/reduction.h"
#include "tests/harness/scenario/scratch.h"

static const char *const outcome[] = {"outcome", NULL};

static const char five[] =
    "scenario: x\n"
    "cluster: {nodes: 4}\n"
    "job: {nnodes: \"1:4\", workers_per_node: 2, run: [ranktrain, --steps=200]}\n"
    "timeline:\n"
    "  - {id: a, when: {step: 20}, fault: worker-kill, on: rank 1}\n"
    "  - {id: b, when: {after: a, round: 2, step: 40}, fault: node-kill, on: n2}\n"
    "  - {id: c, when: {after: b, round: 3, step: 60}, fault: worker-hang, on: rank 0, for: 1s}\n"
    "  - {id: d, when: {after: c, plus: 1s}, fault: worker-kill, on: rank 0}\n"
    "  - {id: e, when: {step: 190}, fault: worker-kill, on: rank 0}\n"
    "expect: {restarts: 3}\n";

struct runner {
    const char *needs[4]; /* lines without which it does not fail; NULL-ended */
    int least_nodes;
    bool counts_rounds; /* a trigger that waits for a round that no fault makes never comes */
    int tries, most;    /* most 0: no limit */
    struct buf said;
};

static bool has(const struct scenario *s, const char *id) {
    for (size_t i = 0; i < s->timeline_n; i++)
        if (str_eq(s->timeline[i].id, id))
            return true;
    return false;
}

static bool waits_forever(const struct scenario *s) {
    for (size_t i = 0; i < s->timeline_n; i++)
        if (s->timeline[i].when.has_round && s->timeline[i].when.round > (int)i + 1)
            return true;
    return false;
}

static enum delta_answer run(void *arg, const struct scenario *s, const char *what) {
    struct runner *r = arg;
    struct buf text = {0};
    struct scratch x;
    if (r->most && r->tries == r->most)
        return DELTA_STOP;
    r->tries++;
    buf_printf(&r->said, "%s\n", what);
    scenario_print(s, &text);
    scratch_load(&x, buf_str(&text)); /* whatever is tried can be read */
    if (!x.s)
        fail_msg("%s: %s", what, buf_str(&x.d.out));
    bool fails = s->cluster.nodes >= r->least_nodes && !(r->counts_rounds && waits_forever(s));
    for (const char **need = r->needs; *need; need++)
        fails &= has(s, *need);
    scratch_drop(&x);
    buf_fini(&text);
    return fails ? DELTA_SAME : DELTA_OTHER;
}

struct fixture {
    struct arena arena;
    struct scratch given;
    struct reduction found;
};

static void reduce(struct fixture *f, struct runner *r, const char *text,
                   const struct reduction_spec *like) {
    static const bool all[16] = {true, true, true, true, true, true, true, true};
    static const char *const none[16] = {NULL};
    struct reduction_spec spec = *like;
    *f = (struct fixture){0};
    scratch_load(&f->given, text);
    if (!f->given.s)
        fail_msg("%s", buf_str(&f->given.d.out));
    spec.checks = spec.checks ? spec.checks : outcome;
    spec.fired = spec.fired ? spec.fired : all;
    spec.struck = spec.struck ? spec.struck : none;
    spec.try = run;
    spec.arg = r;
    reduction_run(&f->arena, f->given.s, &spec, &f->found);
}

static void drop(struct fixture *f, struct runner *r) {
    scratch_drop(&f->given);
    arena_fini(&f->arena);
    buf_fini(&r->said);
}

static void test_two_of_five_lines_and_two_of_four_nodes_are_found(void **state) {
    (void)state;
    struct fixture f;
    struct runner r = {.needs = {"b", "d"}, .least_nodes = 2};
    reduce(&f, &r, five, &(struct reduction_spec){0});
    const struct scenario *s = f.found.smallest;
    assert_non_null(s);
    assert_false(f.found.stopped);
    assert_int_equal(s->timeline_n, 2);
    assert_string_equal(s->timeline[0].id, "b");
    assert_string_equal(s->timeline[1].id, "d");
    assert_int_equal(s->timeline[1].when.after, -1); /* it had come after c */
    assert_int_equal(s->cluster.nodes, 2);
    assert_int_equal(s->job.workers_per_node, 1);
    assert_int_equal(s->expect.has_restarts, false);
    assert_true(r.tries < 40);
    drop(&f, &r);
}

static void test_the_same_answers_lead_the_same_way(void **state) {
    (void)state;
    struct fixture f, g;
    struct runner r = {.needs = {"b", "c"}}, q = r;
    reduce(&f, &r, five, &(struct reduction_spec){0});
    reduce(&g, &q, five, &(struct reduction_spec){0});
    assert_string_equal(buf_str(&r.said), buf_str(&q.said));
    drop(&f, &r);
    drop(&g, &q);
}

static void test_a_round_that_nothing_makes_any_more_is_not_waited_for(void **state) {
    (void)state;
    struct fixture f;
    struct runner r = {.needs = {"c"}, .counts_rounds = true};
    reduce(&f, &r, five, &(struct reduction_spec){0});
    assert_int_equal(f.found.smallest->timeline_n, 1);
    assert_string_equal(f.found.smallest->timeline[0].id, "c");
    drop(&f, &r);
}

static void test_what_did_not_happen_is_left_out_at_once(void **state) {
    (void)state;
    struct fixture f;
    struct runner r = {.needs = {"b"}};
    static const bool fired[] = {true, true, false, false, false};
    reduce(&f, &r, five, &(struct reduction_spec){.fired = fired});
    assert_non_null(strstr(buf_str(&r.said), "as recorded\nwithout c, d, e\n"));
    assert_int_equal(f.found.smallest->timeline_n, 1);
    drop(&f, &r);
}

static void test_what_does_not_fail_again_is_not_made_smaller(void **state) {
    (void)state;
    struct fixture f;
    struct runner r = {.needs = {"z"}};
    reduce(&f, &r, five, &(struct reduction_spec){0});
    assert_null(f.found.smallest);
    assert_int_equal(r.tries, 1);
    drop(&f, &r);
}

static void test_the_best_so_far_is_kept_when_it_is_stopped(void **state) {
    (void)state;
    struct fixture f;
    struct runner r = {.needs = {"a"}, .most = 2};
    reduce(&f, &r, five, &(struct reduction_spec){0});
    assert_true(f.found.stopped);
    assert_int_equal(f.found.smallest->timeline_n, 2); /* the last three have gone at once */
    assert_int_equal(r.tries, 2);
    drop(&f, &r);
}

static void test_a_timeline_that_is_counted_stays_as_it_is(void **state) {
    (void)state;
    struct fixture f;
    struct runner r = {.needs = {NULL}};
    static const char *const checks[] = {"restarts", NULL};
    reduce(&f, &r, five, &(struct reduction_spec){.checks = checks, .fixed = true});
    assert_int_equal(r.tries, 1);
    assert_int_equal(f.found.smallest->timeline_n, 5);
    assert_true(f.found.smallest->expect.has_restarts);
    drop(&f, &r);
}

static void test_the_last_line_is_not_left_out(void **state) {
    (void)state;
    struct fixture f;
    struct runner r = {.needs = {NULL}};
    reduce(&f, &r, five, &(struct reduction_spec){0});
    assert_int_equal(f.found.smallest->timeline_n, 1);
    assert_int_equal(f.found.smallest->cluster.nodes, 1);
    drop(&f, &r);
}

static void test_a_scenario_without_a_timeline_loses_nodes(void **state) {
    (void)state;
    struct fixture f;
    struct runner r = {.needs = {NULL}, .least_nodes = 2};
    reduce(&f, &r, "cluster: {nodes: 7}\njob: {run: [ls]}\n", &(struct reduction_spec){0});
    assert_int_equal(f.found.smallest->cluster.nodes, 2);
    drop(&f, &r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_of_five_lines_and_two_of_four_nodes_are_found),
        cmocka_unit_test(test_the_same_answers_lead_the_same_way),
        cmocka_unit_test(test_a_round_that_nothing_makes_any_more_is_not_waited_for),
        cmocka_unit_test(test_what_did_not_happen_is_left_out_at_once),
        cmocka_unit_test(test_what_does_not_fail_again_is_not_made_smaller),
        cmocka_unit_test(test_the_best_so_far_is_kept_when_it_is_stopped),
        cmocka_unit_test(test_a_timeline_that_is_counted_stays_as_it_is),
        cmocka_unit_test(test_the_last_line_is_not_left_out),
        cmocka_unit_test(test_a_scenario_without_a_timeline_loses_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
