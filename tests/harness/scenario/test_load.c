/* What a good scenario becomes. */
#include "tests/harness/scenario/scratch.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { MS = 1000000 };

static void test_the_smallest_scenario_gets_every_default(void **state) {
    (void)state;
    struct scratch x;
    scratch_load(&x, "job: {run: [python3, train.py]}\n");
    assert_string_equal(buf_str(&x.d.out), "");
    const struct scenario *s = x.s;
    assert_int_equal(s->cluster.nodes, 2);
    assert_int_equal(s->cluster.start, 2);
    assert_int_equal(s->cluster.store, STORE_EMBEDDED);
    assert_string_equal(s->job.launcher, "rankrun");
    assert_int_equal(s->job.min_nodes, 1);
    assert_int_equal(s->job.max_nodes, 2);
    assert_int_equal(s->job.workers_per_node, 1);
    assert_int_equal(s->job.max_restarts, 3);
    assert_int_equal(s->job.run_n, 2);
    assert_null(s->job.run[2]);
    assert_null(s->job.checkpoint_dir);
    assert_int_equal(s->expect.outcome, OUTCOME_SUCCEEDED);
    assert_false(s->expect.has_restarts);
    assert_int_equal(s->timeline_n, 0);
    assert_int_equal(s->seed, 1);
    assert_false(s->has_seed);
    assert_int_equal(s->limits.start_ns / MS, 60000);
    assert_int_equal(s->limits.stall_ns / MS, 30000);
    assert_int_equal(s->limits.total_ns / MS, 600000);
    assert_int_equal(s->limits.grace_ns / MS, 30000);
    scratch_drop(&x);
}

static const char full[] =
    "scenario: everything\n"
    "seed: 9\n"
    "cluster: {nodes: 4, start: 3, store: embedded}\n"
    "job:\n"
    "  nnodes: \"2:3\"\n"
    "  workers_per_node: 2\n"
    "  rdzv_conf: {profile: fast}\n"
    "  env: {A: 1, B: \"{seed}\"}\n"
    "  run: [ranktrain, --steps=400, --checkpoint-dir, \"{shared}/ckpt\"]\n"
    "timeline:\n"
    "  - {id: dark, when: {step: 137}, fault: node-poweroff, on: n2}\n"
    "  - {when: {after: dark, round: 2, plus: 1500ms}, fault: node-start, on: n3,\n"
    "     with: {disk: fresh}}\n"
    "  - {when: {after: node-start-1, event: checkpoint-write, nth: 2, within: 5s, hold: false},\n"
    "     fault: worker-kill, on: rank 0, times: 3}\n"
    "expect:\n"
    "  world_sizes: [6, \"*\", 6]\n"
    "  restarts: 0..2\n"
    "  detect_within: {dark: 2s, worker-kill-1: 500ms}\n"
    "  recover_within: 5s\n"
    "  phases_within: {rendezvous: 500ms, first step: 5s}\n"
    "  lost_work: 25\n"
    "  goodput: 60%\n"
    "  loss_within: 5%\n"
    "  losses: {1: 2.30..2.31, 40: <= 0.9}\n"
    "  model: same-as-undisturbed\n"
    "  weights: same-on-all-ranks\n"
    "  epochs: shuffled\n";

static void test_the_job_says_what_it_is(void **state) {
    (void)state;
    struct scratch x;
    scratch_load(&x, full);
    assert_string_equal(buf_str(&x.d.out), "");
    const struct job_spec *j = &x.s->job;
    assert_int_equal(x.s->cluster.start, 3);
    assert_true(x.s->has_seed);
    assert_int_equal(j->min_nodes, 2);
    assert_int_equal(j->max_nodes, 3);
    assert_int_equal(j->rdzv_conf_n, 1);
    assert_string_equal(j->rdzv_conf[0].key, "profile");
    assert_string_equal(j->env[1].value, "{seed}");
    assert_string_equal(j->checkpoint_dir, "{shared}/ckpt");
    assert_int_equal(j->nnodes_place.line, 5);
    assert_int_equal(j->nnodes_place.column, 11);
    scratch_drop(&x);
}

static void test_the_timeline_keeps_its_triggers(void **state) {
    (void)state;
    struct scratch x;
    scratch_load(&x, full);
    const struct timeline_entry *a = x.s->timeline;
    assert_int_equal(x.s->timeline_n, 3);
    assert_true(a[0].when.has_step && a[0].when.hold);
    assert_int_equal(a[0].when.step, 137);
    assert_int_equal(a[0].when.after, -1);
    assert_int_equal(a[0].times_n, 1);
    assert_string_equal(a[0].on.node, "n2");
    assert_string_equal(a[1].id, "node-start-1");
    assert_int_equal(a[1].when.after, 0);
    assert_int_equal(a[1].when.round, 2);
    assert_int_equal(a[1].when.plus_ns / MS, 1500);
    assert_false(a[1].when.hold);
    assert_string_equal(a[1].with[0].value, "fresh");
    assert_int_equal(a[2].when.after, 1);
    assert_string_equal(a[2].when.event, "checkpoint-write");
    assert_int_equal(a[2].when.nth, 2);
    assert_false(a[2].when.hold);
    assert_int_equal(a[2].when.within_ns / MS, 5000);
    assert_int_equal(a[2].on.pick, PICK_RANK);
    assert_int_equal(a[2].times_n, 3);
    scratch_drop(&x);
}

static void test_the_expectations_are_kept(void **state) {
    (void)state;
    struct scratch x;
    scratch_load(&x, full);
    const struct expect *e = &x.s->expect;
    assert_int_equal(e->world_sizes_n, 3);
    assert_int_equal(e->world_sizes[1], -1);
    assert_true(e->has_restarts && e->model_same);
    assert_int_equal(e->weights, WEIGHTS_OF_ALL_RANKS);
    assert_int_equal(e->epochs, EPOCHS_SHUFFLED);
    assert_int_equal(e->restarts_min, 0);
    assert_int_equal(e->restarts_max, 2);
    assert_int_equal(e->detect_n, 2);
    assert_string_equal(e->detect_within[1].id, "worker-kill-1");
    assert_int_equal(e->detect_within[1].ns / MS, 500);
    assert_null(e->recover_within[0].id);
    assert_int_equal(e->phases_n, 2);
    assert_string_equal(e->phases_within[1].id, "first step");
    assert_int_equal(e->phases_within[1].ns / MS, 5000);
    assert_int_equal(e->lost_steps, 25);
    assert_int_equal(e->goodput, 60);
    assert_int_equal(e->loss_within, 5);
    assert_int_equal(e->losses_n, 2);
    assert_int_equal(e->losses[1].step, 40);
    assert_string_equal(e->losses[1].tolerance, "<= 0.9");
    scratch_drop(&x);
}

static void print_loads_again(const char *text, size_t len) {
    struct scratch first, again;
    struct buf once = {0}, twice = {0};
    scratch_load_bytes(&first, text, len, NULL);
    assert_string_equal(buf_str(&first.d.out), "");
    scenario_print(first.s, &once);
    scratch_load(&again, buf_str(&once));
    assert_string_equal(buf_str(&again.d.out), "");
    scenario_print(again.s, &twice);
    assert_string_equal(buf_str(&once), buf_str(&twice));
    buf_fini(&once);
    buf_fini(&twice);
    scratch_drop(&first);
    scratch_drop(&again);
}

static void test_a_printed_scenario_loads_to_the_same(void **state) {
    (void)state;
    print_loads_again(full, strlen(full));
    static const char odd[] =
        "about: \"quotes \\\" and { braces }: # and\\n lines\"\n"
        "job: {run: [a, \"\", \"b c\", \"'\", \"#\"], nnodes: 2}\n"
        "timeline: [{when: {time: 0s}, fault: x, on: 50% of workers, for: 2s},"
        "{when: {after: x-1}, heal: x-1},"
        "{when: {failpoint: answer-lost}, fault: x, on: n0, sticky: node},"
        "{when: {step: 3}, fault: x, on: majority of rack 1, until: {after: x-1, log: /a b/}}]\n"
        "cluster: {nodes: 3, racks: [[n1], [n0, n2]]}\n"
        "expect: {world_sizes: {ends: [2]}, recover_within: {x-1: 90s}, lost_work: 2s}\n";
    print_loads_again(odd, strlen(odd));
    static const char told[] =
        "cluster: {nodes: 2, store_args: [--memory=16, '--allow-host=a,b']}\njob: {run: [a]}\n";
    print_loads_again(told, strlen(told));
    static const char small[] =
        "cluster: {store: etcd, store_quota_mb: 16}\njob: {run: [a]}\nexpect: {outcome: unknown}\n";
    print_loads_again(small, strlen(small));
    static const char printed[] =
        "job: {run: [a]}\n"
        "observe: {preset: tqdm, loss: 'l\"o#: (\\d+)\\\\', done: \"{'x': \\\\[\\u00e9]}\"}\n"
        "timeline: [{when: {step: 3}, fault: x, on: n0},"
        "{when: {log: '/it''s: \"(\\d)\"/', nth: 2}, fault: x, on: n0}]\n";
    print_loads_again(printed, strlen(printed));
}

static void test_what_is_observed_is_the_presets_where_the_file_says_nothing_else(void **state) {
    (void)state;
    struct scratch x;
    scratch_load(&x, "job: {run: [a]}\n"
                     "observe: {loss: 'l (\\d+)', preset: hf-trainer, ready: go}\n"
                     "timeline:\n"
                     "  - {when: {step: 3}, fault: x, on: n0}\n"
                     "  - {when: {event: checkpoint-write}, fault: x, on: n0}\n"
                     "  - {when: {log: /saved/}, fault: x, on: n0}\n");
    assert_string_equal(buf_str(&x.d.out), "");
    assert_string_equal(x.s->observe.preset, "hf-trainer");
    assert_true(scenario_observes(x.s, "loss")->own);
    assert_string_equal(scenario_observes(x.s, "loss")->pattern, "l (\\d+)");
    assert_true(scenario_observes(x.s, "ready")->own);
    assert_false(scenario_observes(x.s, "step")->own);
    assert_null(scenario_observes(x.s, "checkpoint-commit"));
    assert_false(x.s->timeline[0].when.hold); /* read from the output */
    assert_true(x.s->timeline[1].when.hold);  /* not read from it */
    assert_false(x.s->timeline[2].when.hold);
    assert_string_equal(x.s->timeline[2].when.log, "saved");
    assert_int_equal(x.s->timeline[2].when.nth, 1);
    assert_true(scenario_reads_output(x.s));
    scratch_drop(&x);
    scratch_load(&x, "job: {run: [a]}\n");
    assert_false(scenario_reads_output(x.s));
    scratch_drop(&x);
}

/* A launcher that is told where workers' output goes keeps it, unless somebody reads theirs. */
static void test_output_is_left_where_the_launcher_is_told_to_put_it(void **state) {
    (void)state;
    static const struct {
        const char *args, *on, *more;
        bool reads;
    } rows[] = {
        {"--tee=3", "agents", "", false},
        {"--log_dir, a", "store", "", false},
        {"-t3", "agents", "", false},
        {"--role=--tee", "agents", "", true},
        {"--teeth", "agents", "", true},
        {"--tee=3", "workers", "", true},
        {"--tee=3", "n0", "", true},
        {"--redirects, '3'", "agents", "observe: {step: 'step (\\d+)'}\n", true},
        {"--redirects, '3'", "agents",
         "timeline: [{when: {log: /x/}, fault: worker-kill, on: n0/0}]\n", true},
        {"-r, '3'", "agents", "timeline: [{when: {log: /x/}, fault: agent-kill, on: agents}]\n",
         false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct scratch x;
        char text[400];
        snprintf(text, sizeof(text),
                 "job: {run: [a], launcher_args: [%s]}\n%sexpect: {log: [{seen: /x/, on: %s}]}\n",
                 rows[i].args, rows[i].more, rows[i].on);
        scratch_load(&x, text);
        assert_string_equal(buf_str(&x.d.out), "");
        assert_true(scenario_reads_output(x.s));
        if (scenario_reads_workers(x.s) != rows[i].reads)
            fail_msg("row %zu", i);
        scratch_drop(&x);
    }
    struct scratch x;
    scratch_load(&x, "job: {run: [a], launcher_args: [--tee=3]}\n");
    assert_false(scenario_reads_workers(x.s));
    scratch_drop(&x);
}

static void test_every_scenario_that_comes_along_is_valid(void **state) {
    (void)state;
    glob_t g;
    assert_int_equal(glob("scenarios/*.yaml", 0, NULL, &g), 0);
    glob("scenarios/*/*.yaml", GLOB_APPEND, NULL, &g);
    assert_true(g.gl_pathc >= 6);
    for (size_t i = 0; i < g.gl_pathc; i++) {
        struct diagnostics d = {0};
        struct suite *u = suite_load(g.gl_pathv[i], &d);
        struct scenario *s = u ? NULL : scenario_load(g.gl_pathv[i], NULL, &d);
        assert_string_equal(buf_str(&d.out), "");
        assert_non_null(u ? u->about : s->about);
        suite_free(u);
        scenario_free(s);
        diagnostics_fini(&d);
    }
    globfree(&g);
}

static void test_a_name_comes_from_the_file(void **state) {
    (void)state;
    struct scratch x;
    scratch_load(&x, "job: {run: [a]}\n");
    assert_true(str_starts(x.s->name, "scratch-"));
    assert_null(strchr(x.s->name, '.'));
    scratch_drop(&x);
}

static void test_an_empty_timeline_is_no_timeline(void **state) {
    (void)state;
    struct scratch x;
    scratch_load(&x, "job: {run: [a]}\ntimeline:\nexpect:\nlimits: {}\n");
    assert_string_equal(buf_str(&x.d.out), "");
    assert_int_equal(x.s->timeline_n, 0);
    scratch_drop(&x);
}

static void test_a_set_replaces_adds_and_reaches_into_lists(void **state) {
    (void)state;
    static const char *const set[] = {
        "job.max_restarts=7",      "job.run=[a, b, --x=1]", "timeline.dark.when.step=5",
        "timeline.2.on=n1",        "limits.total=5s",       "job.env.C=x",
        "expect.detect_within={}", "job.rdzv_conf.hb=50ms", NULL};
    struct scratch x;
    scratch_load_bytes(&x, full, strlen(full), set);
    assert_string_equal(buf_str(&x.d.out), "");
    assert_int_equal(x.s->job.max_restarts, 7);
    assert_string_equal(x.s->job.run[2], "--x=1");
    assert_int_equal(x.s->timeline[0].when.step, 5);
    assert_string_equal(x.s->timeline[2].on.text, "n1");
    assert_int_equal(x.s->limits.total_ns / MS, 5000);
    assert_int_equal(x.s->job.env_n, 3);
    assert_int_equal(x.s->expect.detect_n, 0);
    assert_int_equal(x.s->job.rdzv_conf_n, 2);
    scratch_drop(&x);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_smallest_scenario_gets_every_default),
        cmocka_unit_test(test_the_job_says_what_it_is),
        cmocka_unit_test(test_the_timeline_keeps_its_triggers),
        cmocka_unit_test(test_the_expectations_are_kept),
        cmocka_unit_test(test_a_printed_scenario_loads_to_the_same),
        cmocka_unit_test(test_what_is_observed_is_the_presets_where_the_file_says_nothing_else),
        cmocka_unit_test(test_output_is_left_where_the_launcher_is_told_to_put_it),
        cmocka_unit_test(test_every_scenario_that_comes_along_is_valid),
        cmocka_unit_test(test_a_name_comes_from_the_file),
        cmocka_unit_test(test_an_empty_timeline_is_no_timeline),
        cmocka_unit_test(test_a_set_replaces_adds_and_reaches_into_lists),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
