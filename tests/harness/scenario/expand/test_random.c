/* Faults that are drawn by the seed. */
#include "faults/fault.h"
#include "harness/scenario/expand/schedule.h"
#include "tests/harness/scenario/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define JOB     "job: {run: [train], nnodes: \"2:4\", workers_per_node: 2, max_restarts: 300}\n"
#define CLUSTER "cluster: {nodes: 4}\nlimits: {total: 10h}\n"

static void load(struct scratch *x, const char *random, const char *set) {
    struct buf text = {0};
    const char *const sets[] = {set, NULL};
    buf_printf(&text, CLUSTER JOB "random: %s\n", random);
    scratch_load_bytes(x, buf_str(&text), text.len, set ? sets : NULL);
    buf_fini(&text);
}

static void load_well(struct scratch *x, const char *random, const char *set) {
    load(x, random, set);
    assert_string_equal(buf_str(&x->d.out), "");
    assert_non_null(x->s);
}

static size_t count_of(const struct scenario *s, const char *fault) {
    size_t n = 0;
    for (size_t i = 0; i < s->timeline_n; i++)
        n += str_eq(s->timeline[i].fault, fault);
    return n;
}

static void test_the_same_seed_draws_the_same_and_another_another(void **state) {
    (void)state;
    struct buf out[3] = {{0}};
    static const char *const seeds[] = {"seed=7", "seed=7", "seed=8"};
    for (size_t i = 0; i < 3; i++) {
        struct scratch x;
        load_well(&x, "{faults: 40}", seeds[i]);
        for (size_t j = 0; j < x.s->timeline_n; j++)
            buf_printf(&out[i], "%s %s %s %lld\n", x.s->timeline[j].id, x.s->timeline[j].fault,
                       x.s->timeline[j].on.text, (long long)x.s->timeline[j].when.time_ns);
        scratch_drop(&x);
    }
    assert_string_equal(buf_str(&out[0]), buf_str(&out[1]));
    assert_string_not_equal(buf_str(&out[0]), buf_str(&out[2]));
    for (size_t i = 0; i < 3; i++)
        buf_fini(&out[i]);
}

/* What is drawn is written down as lines, so a run can be judged again without drawing. */
static void test_what_was_drawn_loads_again_as_lines(void **state) {
    (void)state;
    struct scratch x, again;
    struct buf first = {0}, second = {0};
    load_well(&x, "{faults: 30, weights: uniform}", "seed=3");
    assert_non_null(strstr(x.s->drawn, "30 faults drawn with seed 3 by the weights uniform"));
    scenario_print(x.s, &first);
    scratch_load(&again, buf_str(&first));
    assert_string_equal(buf_str(&again.d.out), "");
    assert_int_equal(again.s->timeline_n, x.s->timeline_n);
    scenario_print(again.s, &second);
    const char *lines = strstr(buf_str(&first), "timeline:");
    assert_string_equal(strstr(buf_str(&second), "timeline:"), lines);
    scratch_drop(&x);
    scratch_drop(&again);
    buf_fini(&first);
    buf_fini(&second);
}

/* As if every fault came at its moment: how many nodes are there at the worst. */
static int fewest_nodes(const struct scenario *s, int nodes) {
    int fewest = nodes;
    for (size_t i = 0; i < s->timeline_n; i++) {
        const struct timeline_entry *at = &s->timeline[i];
        int away = 0;
        for (size_t j = 0; j < s->timeline_n; j++) {
            const struct timeline_entry *a = &s->timeline[j];
            int64_t lasts = a->for_ns ? a->for_ns : 5000000000;
            bool takes = str_starts(a->fault, "node-") && a->when.has_time;
            if ((takes || str_eq(a->fault, "net-partition")) &&
                a->when.time_ns <= at->when.time_ns && at->when.time_ns < a->when.time_ns + lasts)
                away++;
        }
        fewest = at->when.has_time && nodes - away < fewest ? nodes - away : fewest;
    }
    return fewest;
}

static void test_there_are_never_fewer_nodes_than_the_job_needs(void **state) {
    (void)state;
    for (int seed = 1; seed <= 30; seed++) {
        struct scratch x;
        char set[32];
        snprintf(set, sizeof(set), "seed=%d", seed);
        load_well(&x, "{faults: 60, every: 500ms, weights: uniform, together: 30%}", set);
        assert_true(fewest_nodes(x.s, 4) >= 2);
        scratch_drop(&x);
    }
}

static void test_a_node_that_is_lost_comes_back(void **state) {
    (void)state;
    struct scratch x;
    load_well(&x, "{faults: 60, weights: {node-kill: 1, node-poweroff: 1, node-leave: 1}}", NULL);
    size_t lost = 0, back = count_of(x.s, "node-start"), left = count_of(x.s, "node-leave");
    for (size_t i = 0; i < x.s->timeline_n; i++) {
        const struct timeline_entry *a = &x.s->timeline[i];
        lost += a->when.has_time;
        assert_true(a->when.patient);
        if (!a->when.has_time) /* it follows the line that took the node */
            assert_string_equal(x.s->timeline[a->when.after].on.text, a->on.text);
    }
    assert_int_equal(lost, 60);
    assert_int_equal(back, 60);
    assert_int_equal(x.s->timeline_n, 120 + left); /* who leaves is switched off before */
    scratch_drop(&x);
}

static void test_shares_and_gaps_are_about_what_was_asked_for(void **state) {
    (void)state;
    size_t kills = 0, all = 0;
    int64_t time_ns = 0;
    for (int seed = 1; seed <= 10; seed++) {
        struct scratch x;
        char set[32];
        snprintf(set, sizeof(set), "seed=%d", seed);
        load_well(&x,
                  "{faults: 300, every: 10s, inside: 0%, together: 0%, weights: {worker-kill: 3, "
                  "worker-exit: 1}}",
                  set);
        kills += count_of(x.s, "worker-kill");
        all += x.s->timeline_n;
        time_ns += x.s->timeline[x.s->timeline_n - 1].when.time_ns;
        scratch_drop(&x);
    }
    assert_int_equal(all, 3000);
    assert_in_range(kills, 2150, 2350);
    assert_in_range(time_ns / 3000 / 1000000, 9000, 11000); /* ms between two */
}

/* A schedule believes what the effects of a fault say of it. */
static void test_what_can_be_drawn_are_faults_of_that_kind(void **state) {
    (void)state;
    struct arena a = {0};
    const char *const *names = hit_names(&a);
    for (size_t i = 0; names[i]; i++) {
        const struct fault *f = fault_find(names[i]);
        enum hit hit = hit_of(names[i]);
        assert_int_equal(fault_has(f, EFFECT_ENDS_NODE | EFFECT_ASKS_TO_LEAVE), hit == HIT_END);
        assert_int_equal(fault_has(f, EFFECT_LASTING), hit == HIT_HANG || hit == HIT_CUT);
    }
    assert_int_equal(hit_of(fault_that(EFFECT_STARTS_NODE)), HIT_NONE);
    assert_int_equal(hit_of("no-fault"), HIT_NONE);
    for (const struct hazards *w = hazards; w->name; w++) {
        assert_true(w == hazards || strcmp(w[-1].name, w->name) < 0);
        for (const struct hazard *v = w->v; v->fault; v++)
            assert_true(hit_of(v->fault) && v->share > 0);
    }
    arena_fini(&a);
}

static void test_the_node_of_the_store_stays(void **state) {
    (void)state;
    struct scratch x;
    load_well(&x, "{faults: 100, weights: {node-kill: 1, net-partition: 1}}",
              "cluster.store={on: n1}");
    for (size_t i = 0; i < x.s->timeline_n; i++)
        assert_string_not_equal(x.s->timeline[i].on.text, "n1");
    scratch_drop(&x);
}

/* Which node has no workers then, nobody knows before. */
static void test_where_there_are_spares_any_worker_is_hit(void **state) {
    (void)state;
    struct scratch x;
    load_well(&x, "{faults: 5, weights: {worker-kill: 1}}", "job.nnodes=\"2:3\"");
    assert_string_equal(x.s->timeline[0].on.text, "random of workers");
    scratch_drop(&x);
}

static void test_ids_that_were_drawn_can_be_expected(void **state) {
    (void)state;
    struct scratch x;
    load_well(&x, "{faults: 3, weights: {worker-kill: 1}}", "expect.recover_within={drawn-2: 5s}");
    assert_string_equal(x.s->expect.recover_within[0].id, "drawn-2");
    scratch_drop(&x);
}

static void test_what_is_wrong_is_said(void **state) {
    (void)state;
    static const char *const wrong[][3] = {
        {"{weights: lama3}", NULL,
         "4:19: weights must be acme, byterobust, hsdp, llama3, uniform, "
         "or a map of faults and numbers, not \"lama3\"; did you mean "
         "\"llama3\"?\n"},
        {"{weights: {worker-kil: 3}}", NULL,
         "4:20: weights: \"worker-kil\" is not a fault that can be drawn; did you mean "
         "\"worker-kill\"?"},
        {"{weights: {worker-kill: 0}}", NULL, "4:19: weights: no fault has a share"},
        {"{faults: 5, shape: 9}", NULL, "4:28: shape must be a number from 0.2 to 5, not \"9\"\n"},
        {"{again: 25}", NULL, "4:17: again must be a percentage such as 25%, not \"25\"\n"},
        {"{evry: 5s}", NULL, "4:10: random has no key \"evry\"; did you mean \"every\"?\n"},
        {"{faults: 12}", "job.max_restarts=3",
         "4:1: random: 12 faults may cost a restart each and job.max_restarts is 3; write "
         "max_restarts: 12\n"},
        {"{faults: 2, weights: {node-kill: 1}}", "job.nnodes=4",
         "4:1: random: none of the faults can happen: 4 nodes run and the job needs 4"},
        {"{faults: 300, every: 10m}", NULL, "4:1: drawn-"}, /* can never fire */
        {"{faults: 2}\ntimeline: [{id: drawn-1, when: {step: 1}, fault: worker-kill, on: rank 0}]",
         NULL, "5:12: the id \"drawn-1\" begins like those of the faults that are drawn"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct scratch x;
        struct buf got = {0};
        load(&x, wrong[i][0], wrong[i][1]);
        assert_null(x.s);
        scratch_messages(&x, &got);
        if (!str_starts(buf_str(&got), wrong[i][2]))
            fail_msg("said:\n%swanted:\n%s", buf_str(&got), wrong[i][2]);
        buf_fini(&got);
        scratch_drop(&x);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same_seed_draws_the_same_and_another_another),
        cmocka_unit_test(test_what_was_drawn_loads_again_as_lines),
        cmocka_unit_test(test_there_are_never_fewer_nodes_than_the_job_needs),
        cmocka_unit_test(test_a_node_that_is_lost_comes_back),
        cmocka_unit_test(test_shares_and_gaps_are_about_what_was_asked_for),
        cmocka_unit_test(test_what_can_be_drawn_are_faults_of_that_kind),
        cmocka_unit_test(test_the_node_of_the_store_stays),
        cmocka_unit_test(test_where_there_are_spares_any_worker_is_hit),
        cmocka_unit_test(test_ids_that_were_drawn_can_be_expected),
        cmocka_unit_test(test_what_is_wrong_is_said),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
