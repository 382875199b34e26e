/* What a scenario becomes before it is run, and what is refused because it can never happen. */
#include "base/json.h"
#include "base/str.h"
#include "harness/plan/plan.h"
#include "tests/harness/scenario/scratch.h"

#include <errno.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

/* The scenario must be valid; the plan may be refused (NULL). */
static struct plan *make(struct scratch *x, const char *text) {
    scratch_load(x, text);
    if (!x->s)
        fail_msg("%s", buf_str(&x->d.out));
    return plan_make(x->s, x->s->seed, &x->d);
}

static void test_nodes_get_names_and_addresses(void **state) {
    (void)state;
    struct scratch x;
    struct plan *p = make(&x, "job: {run: [a]}\ncluster: {nodes: 3, start: 2}\n");
    assert_int_equal(p->nodes_n, 4);
    assert_string_equal(p->nodes[0].name, "n0");
    assert_string_equal(p->nodes[0].addr, "198.18.0.10");
    assert_string_equal(p->nodes[2].addr, "198.18.0.12");
    assert_true(p->nodes[1].on_at_start);
    assert_false(p->nodes[2].on_at_start);
    assert_string_equal(p->nodes[3].name, "store");
    assert_string_equal(p->nodes[3].addr, "198.18.0.2");
    assert_true(p->nodes[3].is_store && p->nodes[3].on_at_start);
    assert_int_equal(p->nodes[3].index, -1);
    assert_string_equal(p->endpoint, "store:29400");
    assert_ptr_equal(plan_find_node(p, "n2"), &p->nodes[2]);
    assert_null(plan_find_node(p, "n3"));
    plan_free(p);
    scratch_drop(&x);
}

static void test_the_last_of_the_most_nodes_has_an_address(void **state) {
    (void)state;
    struct scratch x;
    struct plan *p = make(&x, "job: {run: [a]}\ncluster: {nodes: 240}\n");
    assert_string_equal(p->nodes[239].addr, "198.18.0.249");
    assert_int_equal(p->nodes[239].mac[5], 249);
    plan_free(p);
    scratch_drop(&x);
}

static void test_each_launcher_meets_at_its_own_store(void **state) {
    (void)state;
    static const struct {
        const char *launcher, *store, *endpoint, *backend;
        size_t stores;
    } rows[] = {
        {"rankrun", "embedded", "store:29400", "embedded", 1},
        {"rankrun", "{on: n1}", "n1:29400", "embedded", 0},
        {"rankrun", "etcd", "store:29400", "etcd-v3", 1},
        {"rankrun", "etcd-3", "store-0:29400,store-1:29400,store-2:29400", "etcd-v3", 3},
        {"torchrun", "embedded", "n0:29400", "c10d", 0},
        {"torchrun", "{on: n1}", "n1:29400", "c10d", 0},
        {"torchrun", "etcd", "store:29400", "etcd-v2", 1},
        {"torchrun", "etcd-3", "store-0:29400", "etcd-v2", 3},
        {"'go {worker}'", "embedded", "n0:29400", NULL, 0},
        {"'go {worker}'", "none", "n0:29400", NULL, 0},
        {"'go {worker}'", "etcd", "store:29400", NULL, 1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct scratch x;
        char text[300];
        snprintf(text, sizeof(text),
                 "job: {run: [a]}\ncluster: {nodes: 2, store: %s}\nlauncher: %s\n", rows[i].store,
                 rows[i].launcher);
        struct plan *p = make(&x, text);
        assert_string_equal(p->endpoint, rows[i].endpoint);
        if (rows[i].backend)
            assert_string_equal(p->backend, rows[i].backend);
        else
            assert_null(p->backend);
        assert_int_equal(p->nodes_n, 2 + rows[i].stores);
        assert_int_equal(x.s->torchrun_semantics, str_eq(rows[i].launcher, "torchrun"));
        plan_free(p);
        scratch_drop(&x);
    }
}

static void test_one_node_alone_has_no_store_node(void **state) {
    (void)state;
    struct scratch x;
    struct plan *p = make(&x, "job: {run: [a], nnodes: 1}\ncluster: {nodes: 1}\n");
    assert_int_equal(p->nodes_n, 1);
    assert_null(p->endpoint);
    plan_free(p);
    scratch_drop(&x);
    p = make(&x, "job: {run: [a], nnodes: \"1:2\"}\ncluster: {nodes: 1}\n");
    assert_string_equal(p->endpoint, "store:29400");
    plan_free(p);
    scratch_drop(&x);
}

static void test_actions_know_their_fault_and_a_seed_of_their_own(void **state) {
    (void)state;
    struct scratch x;
    struct plan *p =
        make(&x, "job: {run: [a]}\n"
                 "timeline:\n"
                 "  - {when: {step: 5}, fault: node-kill, on: n1}\n"
                 "  - {when: {step: 9}, fault: node-start, on: n1, with: {disk: fresh}}\n");
    assert_int_equal(p->entries_n, 2);
    assert_string_equal(p->entries[0].fault->name, "node-kill");
    assert_string_equal(fault_arg(&p->entries[1].args, "disk", "kept"), "fresh");
    assert_true(p->entries[0].args.seed != p->entries[1].args.seed);
    struct plan *again = plan_make(x.s, x.s->seed, &x.d), *other = plan_make(x.s, 2, &x.d);
    assert_true(again->entries[0].args.seed == p->entries[0].args.seed);
    assert_true(other->entries[0].args.seed != p->entries[0].args.seed);
    plan_free(again);
    plan_free(other);
    plan_free(p);
    scratch_drop(&x);
}

#define LINE(text) "  - {when: {step: 5}, " text "}\n"

/* Each is valid as a scenario; the cluster has n0 n1 on and n2 off, two workers each. */
static const struct refused {
    const char *lines, *messages;
} refused[] = {
    {LINE("fault: worker-kil, on: workers"),
     "4:30: there is no fault \"worker-kil\"; did you mean \"worker-kill\"?\n"},
    {LINE("fault: earthquake, on: nodes"),
     "4:30: there is no fault \"earthquake\"; `rankquake list faults` names them\n"},
    {LINE("fault: node-kill, on: n7"), "4:45: there is no n7: the cluster has 3 nodes, n0 first\n"},
    {LINE("fault: worker-kill, on: n1/2"),
     "4:47: there is no n1/2: a node has 2 workers, n1/0 first\n"},
    {LINE("fault: worker-kill, on: rank 4"),
     "4:47: there is never a rank 4: the job has at most 4 workers, rank 0 first\n"},
    {LINE("fault: worker-kill, on: node of rank 99"),
     "4:47: there is never a rank 99: the job has at most 4 workers, rank 0 first\n"},
    {LINE("fault: worker-kill, on: random 5 of workers"),
     "4:47: random 5 of workers: there are at most 4\n"},
    {LINE("fault: node-kill, on: random 3 of nodes"),
     "4:45: random 3 of nodes: there are at most 2\n"},
    {LINE("fault: node-kill, on: n2"), "4:45: n2 is off and no node-start switches it on\n"},
    {LINE("fault: node-start, on: n0"), "4:46: n0 is on from the beginning and nothing switches it "
                                        "off, so it cannot be started\n"},
    {LINE("id: k, fault: node-kill, on: n1") "  - {when: {after: k}, fault: node-start, on: n0}\n",
     "5:47: n0 is on from the beginning and nothing switches it off, so it cannot be started\n"},
    {LINE("id: s, fault: node-start, on: n0") "  - {when: {after: s}, fault: node-kill, on: n0}\n",
     "4:53: n0 is on from the beginning and nothing switches it off, so it cannot be started\n"},
    {LINE("fault: node-kill, on: workers"),
     "4:45: node-kill cannot be aimed at workers; it takes nodes (n0, node of rank 0)\n"},
    {LINE("fault: agent-kill, on: rank 0"),
     "4:46: agent-kill cannot be aimed at rank 0; it takes agents, nodes (n0, node of rank 0)\n"},
    {LINE("fault: worker-kill, on: agents"),
     "4:47: worker-kill cannot be aimed at agents; it takes workers, nodes (n0, node of rank 0)\n"},
    {LINE("fault: worker-kill, on: workers, with: {disk: fresh}"),
     "4:69: worker-kill has no parameter \"disk\"; it takes signal\n"},
    {LINE("fault: node-kill, on: n0, with: {disk: fresh}"),
     "4:62: node-kill has no parameter \"disk\"; it takes none\n"},
    {LINE("fault: node-start, on: n2, with: {dsk: fresh}"),
     "4:62: node-start has no parameter \"dsk\"; did you mean \"disk\"?\n"},
    {LINE("fault: worker-kill"),
     "4:5: worker-kill needs a target, for example on: random of workers\n"},
    {LINE("fault: net-partition"), "4:5: net-partition needs a target, for example on: n0\n"},
    {LINE("fault: net-partition, on: n0, with: {groups: n0|n1}"),
     "4:49: on and groups exclude each other: groups name all\n"},
    {LINE("fault: net-partition, with: {groups: \"n0,n1\"}"),
     "4:60: groups: \"n0,n1\" is one group; write two, as in n0,n1|n2\n"},
    {LINE("fault: net-partition, with: {groups: \"n0|n0,n9\"}"),
     "4:60: groups: n0 is named twice\n4:60: groups: there is no node \"n9\"; write n0,n1|n2, "
     "without blanks\n"},
    {LINE("fault: net-delay, on: n0, profile: [{at: 0s, delay: 0s}]"),
     "4:75: delay: \"0s\" must be longer than 0s and at most 60s, as in 100ms\n"},
    {LINE("fault: net-delay, on: n0, profile: [{at: 0s, dellay: 1ms}]"),
     "4:76: net-delay has no parameter \"dellay\"; did you mean \"delay\"?\n"},
    {LINE("fault: net-delay, on: n0, profile: [{at: 0s, planes: data}]"),
     "4:76: profile: planes does not change; write it in with\n"},
    {LINE("fault: net-block, on: n0, profile: [{at: 0s, port: 1}]"),
     "4:59: profile: net-block does not change while it lasts; what impairs frames does, such as "
     "net-delay, net-loss and net-rate\n"},
    {LINE("fault: net-dns-fail, on: n0, with: {names: n7}"),
     "4:66: names: there is no node \"n7\"; write n0,n1, without blanks\n"},
    {LINE("fault: net-partition, on: n0, with: {shape: halves}"),
     "4:49: on and shape exclude each other: a shape draws whom\n"},
    {LINE("fault: net-partition, with: {shape: halves, groups: \"n0|n1\"}"),
     "4:75: groups and shape exclude each other: a shape draws whom\n"},
    {LINE("fault: net-partition, with: {shape: ring}"),
     "4:59: shape: ring takes 4 nodes, and at most 2 are on at any time\n"},
    {LINE("fault: net-delay, with: {shape: star}"),
     "4:55: shape: \"star\" is none; write isolate, halves, majority, bridge or ring\n"},
    {LINE("fault: net-partition, on: n0, with: {planes: date}"),
     "4:68: planes: \"date\" is not a plane; write store, bootstrap, data, ssh or all, or several "
     "as in "
     "store,data\n"},
    {LINE("fault: worker-exit, on: rank 0, with: {code: 256}"),
     "4:68: code: 256 is not an exit code; write one from 0 to 255\n"},
    {LINE("fault: worker-kill, on: workers, until: {round: 2}"),
     "4:63: until: worker-kill does not last: nothing to undo: the launcher starts a new worker\n"},
    {LINE("fault: node-kill, on: rack 0"),
     "4:45: rack 0: the cluster has no racks; write cluster: {racks: [[n0, n1], [n2]]}\n"},
    {LINE("fault: node-kill, on: n1, sticky: node"),
     "4:57: sticky: no node-start brings a node back, so this would come once\n"},
    {LINE("id: k, fault: node-kill, on: n1") LINE("fault: node-start, on: n1, sticky: node"),
     "5:58: sticky: a node that comes back is on, so node-start has nothing to do there\n"},
    {LINE("fault: worker-kill, on: workers, for: 2s"),
     "4:61: for: worker-kill does not last: nothing to undo: the launcher starts a new worker\n"},
    {LINE("fault: node-kill, on: n1") LINE("fault: worker-kill, on: n1/0"),
     "5:47: nothing is left to hit: node-kill-1 (node-kill) has ended n1 by then, and no "
     "node-start switches it on again\n"},
    {LINE("id: gone, fault: node-leave, on: n1") "  - {id: b, when: {after: gone}, fault: "
                                                 "worker-kill, on: n0}\n"
                                                 "  - {when: {after: b}, fault: node-poweroff, "
                                                 "on: n1}\n",
     "6:50: nothing is left to hit: gone (node-leave) has ended n1 by then, and no node-start "
     "switches it on again\n"},
    {LINE("id: a, fault: worker-kill, on: workers") LINE("heal: a"),
     "5:29: heal: a (worker-kill) does not last: nothing to undo: the launcher starts a new "
     "worker\n"},
};

static void test_a_rack_that_can_never_be_struck_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *fault, *on, *message;
    } rows[] = {
        {"node-kill", "rack 0", NULL},
        {"worker-kill", "rack of rank 0", NULL},
        {"node-start", "rack 1", NULL},
        {"node-kill", "random of racks", NULL},
        {"node-kill", "rack 2", "there is no rack 2: the cluster has 2 racks, rack 0 first"},
        {"node-kill", "rack 1", "all of rack 1 is off and no node-start switches it on"},
        {"node-start", "rack 0",
         "all of rack 0 is on from the beginning and nothing switches it off, so it cannot be "
         "started"},
        {"node-kill", "random 3 of rack 0", "random 3 of rack 0: there are at most 2"},
        {"node-kill", "random 3 of racks", "random 3 of racks: there are at most 2"},
        {"worker-kill", "rack of rank 7", "there is never a rank 7: the job has at most"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct scratch x;
        char text[400];
        snprintf(text, sizeof(text),
                 "job: {run: [a]}\ncluster: {nodes: 3, start: 2, racks: [[n0, n1], [n2]]}\n"
                 "timeline: [{when: {time: 5s}, fault: %s, on: %s}]\n",
                 rows[i].fault, rows[i].on);
        struct plan *p = make(&x, text);
        if (rows[i].message ? !strstr(buf_str(&x.d.out), rows[i].message) : !p)
            fail_msg("%s on %s: %s", rows[i].fault, rows[i].on, buf_str(&x.d.out));
        plan_free(p);
        scratch_drop(&x);
    }
}

static void test_what_can_never_happen_is_refused_with_its_place(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
        struct scratch x;
        struct buf text = {0}, got = {0};
        buf_printf(&text,
                   "job: {run: [a], workers_per_node: 2}\n"
                   "cluster: {nodes: 3, start: 2}\ntimeline:\n%s",
                   refused[i].lines);
        struct plan *p = make(&x, buf_str(&text));
        scratch_messages(&x, &got);
        if (!str_eq(buf_str(&got), refused[i].messages))
            fail_msg("%s:\n%snot\n%s", refused[i].lines, buf_str(&got), refused[i].messages);
        assert_null(p);
        buf_fini(&text);
        buf_fini(&got);
        scratch_drop(&x);
    }
}

static void test_what_can_happen_is_not_refused(void **state) {
    (void)state;
    static const char *const lines[] = {
        LINE("fault: worker-kill, on: n0/1"),
        LINE("fault: worker-kill, on: n0"),
        LINE("fault: agent-kill, on: n0"),
        LINE("fault: agent-kill, on: node of rank 0"),
        LINE("fault: node-poweroff, on: node of rank 3"),
        LINE("fault: worker-kill, on: 50% of workers, times: 2"),
        LINE("fault: node-start, on: n2") LINE("fault: node-kill, on: n2"),
        LINE("fault: node-start, on: n2") LINE("fault: worker-kill, on: rank 5"),
        LINE("fault: net-partition, on: node of rank 0, with: {planes: data}, for: 2s"),
        LINE("id: a, fault: net-partition, with: {groups: \"n0,store|n1\"}") LINE("heal: a"),
        LINE("fault: net-partition, with: {shape: halves}, for: 2s"),
        LINE("fault: worker-hang, on: rank 0, times: each-round"),
        LINE("fault: node-kill, on: random of nodes") LINE("fault: node-start, on: n0"),
        LINE("fault: node-kill, on: n1") LINE("fault: worker-kill, on: n0"),
        LINE("fault: worker-kill, on: n1") LINE("fault: node-kill, on: n1"),
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        struct scratch x;
        struct buf text = {0};
        buf_printf(&text,
                   "job: {run: [a], workers_per_node: 2}\n"
                   "cluster: {nodes: 3, start: 2}\ntimeline:\n%s",
                   lines[i]);
        struct plan *p = make(&x, buf_str(&text));
        assert_string_equal(buf_str(&x.d.out), "");
        assert_non_null(p);
        plan_free(p);
        buf_fini(&text);
        scratch_drop(&x);
    }
}

static void test_fewer_nodes_than_the_job_needs_are_refused(void **state) {
    (void)state;
    struct scratch x;
    struct buf got = {0};
    struct plan *p = make(&x, "job: {run: [a], nnodes: \"3:4\"}\n"
                              "cluster: {nodes: 4, start: 2}\n"
                              "timeline: [{when: {step: 5}, fault: node-start, on: n3}]\n");
    assert_null(p);
    scratch_messages(&x, &got);
    assert_string_equal(buf_str(&got), "2:28: 2 nodes are started but nnodes needs 3, and no "
                                       "node-start makes up for it: the job could never begin\n");
    buf_fini(&got);
    scratch_drop(&x);
}

static void test_a_plan_is_printed_for_people_and_for_programs(void **state) {
    (void)state;
    struct scratch x;
    struct buf text = {0}, json = {0};
    struct arena a = {0};
    struct plan *p = make(&x, "job: {run: [a, --x]}\n"
                              "timeline: [{id: k, when: {step: 5}, fault: node-kill, on: n1}]\n");
    plan_print(p, &text);
    assert_non_null(strstr(buf_str(&text), "  store  198.18.0.2     on   the store, port 29400\n"));
    assert_non_null(strstr(buf_str(&text), "  k: node-kill on n1\n"
                                           "      when    when the target has done step 5 (held"));
    assert_non_null(strstr(buf_str(&text), "      undo    "));
    plan_json(p, &json);
    const struct json *j = json_parse(&a, buf_str(&json), json.len, NULL);
    assert_int_equal(json_get_i64(j, "v", 0), 1);
    assert_string_equal(json_get_string(j, "endpoint", ""), "store:29400");
    assert_int_equal(json_get(j, "nodes")->length, 3);
    assert_string_equal(json_get_string(json_first(json_get(j, "timeline")), "fault", ""),
                        "node-kill");
    arena_fini(&a);
    buf_fini(&text);
    buf_fini(&json);
    plan_free(p);
    scratch_drop(&x);
}

static void expect_no_program(const char *run, const char *sentence) {
    struct scratch x;
    struct buf text = {0};
    struct err err = {0};
    buf_printf(&text, "job: {run: [%s]}\n", run);
    struct plan *p = make(&x, buf_str(&text));
    assert_int_equal(plan_check_host(p, &err), -ENOENT);
    assert_non_null(strstr(err.msg, sentence));
    plan_free(p);
    buf_fini(&text);
    scratch_drop(&x);
}

static void test_a_program_that_is_not_there_is_named(void **state) {
    (void)state;
    expect_no_program("no-such-program, --x", "job.run: there is no program \"no-such-program\"");
    expect_no_program("./no/such/program", "job.run: there is no program ./no/such/program");
    expect_no_program("./Makefile", "job.run: ./Makefile is not executable; chmod +x it");
    expect_no_program("/usr", "job.run: there is no program /usr");
}

static void test_every_example_of_a_fault_can_be_planned(void **state) {
    (void)state;
    for (size_t i = 0; faults[i]; i++) {
        struct scratch x;
        struct buf text = {0};
        assert_non_null(faults[i]->example);
        buf_printf(&text,
                   "job: {run: [a], workers_per_node: 2}\n"
                   "cluster: {nodes: 4, start: 3, racks: [[n0, n1], [n2, n3]], store: %s}\n"
                   "timeline:\n  - %s\n",
                   str_eq(faults[i]->name, "store-full") ? "etcd, store_quota_mb: 16" : "embedded",
                   faults[i]->example);
        struct plan *p = make(&x, buf_str(&text));
        assert_string_equal(buf_str(&x.d.out), "");
        assert_ptr_equal(p->entries[0].fault, faults[i]);
        plan_free(p);
        buf_fini(&text);
        scratch_drop(&x);
    }
}

static void test_every_scenario_that_comes_along_can_be_planned(void **state) {
    (void)state;
    glob_t g;
    assert_int_equal(glob("scenarios/*.yaml", 0, NULL, &g), 0);
    glob("scenarios/*/*.yaml", GLOB_APPEND, NULL, &g);
    for (size_t i = 0; i < g.gl_pathc; i++) {
        struct diagnostics d = {0};
        struct suite *u = suite_load(g.gl_pathv[i], &d); /* its scenarios come themselves */
        struct scenario *s = u ? NULL : scenario_load(g.gl_pathv[i], NULL, &d);
        suite_free(u);
        struct plan *p = s ? plan_make(s, 1, &d) : NULL;
        assert_string_equal(buf_str(&d.out), "");
        plan_free(p);
        scenario_free(s);
        diagnostics_fini(&d);
    }
    globfree(&g);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nodes_get_names_and_addresses),
        cmocka_unit_test(test_the_last_of_the_most_nodes_has_an_address),
        cmocka_unit_test(test_each_launcher_meets_at_its_own_store),
        cmocka_unit_test(test_one_node_alone_has_no_store_node),
        cmocka_unit_test(test_actions_know_their_fault_and_a_seed_of_their_own),
        cmocka_unit_test(test_what_can_never_happen_is_refused_with_its_place),
        cmocka_unit_test(test_a_rack_that_can_never_be_struck_is_refused),
        cmocka_unit_test(test_what_can_happen_is_not_refused),
        cmocka_unit_test(test_fewer_nodes_than_the_job_needs_are_refused),
        cmocka_unit_test(test_a_plan_is_printed_for_people_and_for_programs),
        cmocka_unit_test(test_a_program_that_is_not_there_is_named),
        cmocka_unit_test(test_every_example_of_a_fault_can_be_planned),
        cmocka_unit_test(test_every_scenario_that_comes_along_can_be_planned),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
