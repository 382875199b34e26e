/* What is told of the entries of a timeline when something else of the scenario is wrong as
 * well. */
#include "harness/plan/plan.h"
#include "tests/harness/scenario/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

/* As every verb does it; the messages, "line:column: message". */
static void assert_told(const char *text, const char *messages) {
    struct scratch x;
    struct buf out = {0};
    scratch_load(&x, text);
    assert_null(x.s);
    diagnostics_fini(&x.d);
    x.d = (struct diagnostics){0};
    x.s = plan_load(x.path, NULL, &x.d);
    assert_null(x.s);
    scratch_messages(&x, &out);
    assert_string_equal(buf_str(&out), messages);
    buf_fini(&out);
    scratch_drop(&x);
}

static void test_a_wrong_value_hides_no_wrong_name(void **state) {
    (void)state;
    assert_told("job: {run: [a]}\ntimeline:\n"
                "  - {when: {step: x}, fault: worker-kil}\n"
                "  - {when: {time: 20}, fault: worker-kill, on: n7}\n"
                "  - {when: {step: 1}, fault: worker-kill, on: n0/5}\n"
                "  - {when: {step: 1}, fault: node-kill, on: workers, with: {x: 1}}\n",
                "3:19: step must be a whole number, not \"x\"\n"
                "3:30: there is no fault \"worker-kil\"; did you mean \"worker-kill\"?\n"
                "4:19: time: \"20\" is not a duration; write 250ms, 2s, 5m or 1h\n"
                "4:48: there is no n7: the cluster has 2 nodes, n0 first\n"
                "5:47: there is no n0/5: a node has 1 worker, n0/0 first\n"
                "6:45: node-kill cannot be aimed at workers; it takes nodes (n0, node of rank 0)\n"
                "6:64: node-kill has no parameter \"x\"; it takes none\n");
}

static void test_a_profile_begins_with_its_fault_and_goes_on_until_its_end(void **state) {
    (void)state;
    assert_told("job: {run: [a]}\ntimeline:\n"
                "  - {when: {step: 1}, fault: net-delay, on: n0, profile: [{at: 1s, delay: 1ms}]}\n"
                "  - {when: {step: 1}, fault: net-delay, on: n0, profile: [{at: 0s, delay: 1ms}, "
                "{at: 0s, delay: 2ms}]}\n"
                "  - {when: {step: 1}, fault: net-delay, on: n0, profile: [{delay: 1ms}]}\n"
                "  - {when: {step: 1}, fault: net-delay, on: n0, profile: [{at: 0s}]}\n"
                "  - {when: {step: 1}, fault: net-delay, on: n0, profile: [{at: soon, d: 1ms}]}\n"
                "  - {when: {step: 1}, fault: net-delay, on: n0, profile: [{at: 0s, delay: 1ms}, "
                "{at: 5s, delay: 2ms}], for: 5s}\n",
                "3:64: at: the first step begins with the fault; write at: 0s\n"
                "4:86: at: 0s is not later than the step before it\n"
                "5:59: profile: a step needs at, its time after the fault came\n"
                "6:59: profile: a step needs a parameter of the fault besides at\n"
                "7:64: at: \"soon\" is not a duration; write 250ms, 2s, 5m or 1h\n"
                "8:81: profile: this step comes when the fault is over (for)\n");
}

/* Who misspells the cluster has not said how many nodes there are. */
static void test_what_follows_from_another_mistake_is_not_told(void **state) {
    (void)state;
    static const char line[] = "timeline: [{when: {step: 1}, fault: worker-kil, on: n7/3}]\n";
    static const char fault[] =
        "2:37: there is no fault \"worker-kil\"; did you mean \"worker-kill\"?\n";
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"{job: {run: [a]}, clustr: {nodes: 9}, ",
         "1:19: scenario has no key \"clustr\"; did you mean \"cluster\"?\n"},
        {"{job: {run: [a]}, cluster: {nodes: many}, ",
         "1:36: nodes must be a whole number, not \"many\"\n"},
        {"{job: {run: [a], worker_per_node: 4}, cluster: {nodes: 9}, ",
         "1:18: job has no key \"worker_per_node\"; did you mean \"workers_per_node\"?\n"},
        {"{job: {nnodes: 2}, ",
         "1:7: job needs \"run\", for example run: [python3, train.py, --lr=0.1]\n"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct buf text = {0}, messages = {0};
        buf_printf(&text, "%s\n%.*s}\n", rows[i].text, (int)strlen(line) - 1, line);
        buf_printf(&messages, "%s%s", rows[i].message, fault);
        assert_told(buf_str(&text), buf_str(&messages));
        buf_fini(&text);
        buf_fini(&messages);
    }
}

static void test_what_is_no_scenario_has_no_lines(void **state) {
    (void)state;
    assert_told("[1, 2]\n", "1:1: a scenario is a map of keys, such as job: {...}, not a list\n");
    assert_told("job: {run: [a]}\ntimeline: [{when: {step: 1}, fault: worker-kill, on: evry}]\n",
                "2:54: on: \"evry\" is no target; write nodes, agents, workers, n2, n2/0, rank 0, "
                "node of rank 0, random of workers, random 2 of nodes, 50%, majority, rack 0, "
                "store, store-0, store-leader, majority of store or coordinator\n");
    assert_told("job: {run: [a]}\ntimeline: [{when: {step: 1}, heal: x}, 7]\n",
                "2:36: heal: no entry above has the id \"x\"\n"
                "2:40: timeline must be a map, such as {id: ...}, not a single value\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_profile_begins_with_its_fault_and_goes_on_until_its_end),
        cmocka_unit_test(test_a_wrong_value_hides_no_wrong_name),
        cmocka_unit_test(test_what_follows_from_another_mistake_is_not_told),
        cmocka_unit_test(test_what_is_no_scenario_has_no_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
