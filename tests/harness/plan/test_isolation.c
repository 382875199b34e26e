/* How the nodes of a plan are kept apart: what is asked for, and what is found by trying. */
#include "base/json.h"
#include "base/sys/namespace.h"
#include "faults/need.h"
#include "harness/plan/plan.h"
#include "tests/harness/scenario/scratch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

static struct plan *make(struct scratch *x, const char *cluster) {
    struct buf text = {0};
    buf_printf(&text, "job: {run: [a]}\ncluster: {%s}\n", cluster);
    scratch_load(x, buf_str(&text));
    buf_fini(&text);
    if (!x->s)
        fail_msg("%s", buf_str(&x->d.out));
    return plan_make(x->s, 1, &x->d);
}

static void drop(struct scratch *x, struct plan *p) {
    plan_free(p);
    scratch_drop(x);
}

static bool is_said(const struct plan *p, const char *words) {
    struct buf text = {0};
    plan_print(p, &text);
    bool said = strstr(buf_str(&text), words);
    buf_fini(&text);
    return said;
}

static void test_processes_have_addresses_of_the_loopback_and_no_names(void **state) {
    (void)state;
    struct scratch x;
    struct err err;
    struct plan *p = make(&x, "nodes: 2, isolation: processes");
    assert_int_equal(p->isolation, ISOLATION_AUTO); /* until it is settled */
    assert_int_equal(plan_settle(p, &err), 0);
    assert_int_equal(p->isolation, ISOLATION_PROCESSES);
    assert_null(p->isolation_why); /* it was asked for */
    const struct plan_node *n1 = plan_find_node(p, "n1"), *store = plan_find_node(p, "store");
    assert_memory_equal(n1->addr, "127.", 4);
    assert_string_equal(strrchr(n1->addr, '.'), ".11");
    assert_string_equal(plan_node_host(n1), n1->addr);
    assert_string_equal(plan_node_listen(n1), n1->addr);
    assert_memory_equal(p->endpoint, store->addr, strlen(store->addr));
    assert_string_equal(strrchr(p->endpoint, ':'), ":29400");
    char addr[16];
    memcpy(addr, n1->addr, sizeof(addr));
    assert_int_equal(plan_settle(p, &err), 0); /* once and for all */
    assert_string_equal(n1->addr, addr);
    assert_true(is_said(p, "processes: every node is a tree of processes of this host"));
    drop(&x, p);
}

static void test_two_plans_do_not_meet(void **state) {
    (void)state;
    struct scratch x, y;
    struct err err;
    struct plan *p = make(&x, "isolation: processes"), *q = make(&y, "isolation: processes");
    assert_int_equal(plan_settle(p, &err), 0);
    assert_int_equal(plan_settle(q, &err), 0);
    assert_string_not_equal(p->nodes[0].addr, q->nodes[0].addr);
    drop(&x, p);
    drop(&y, q);
}

static void test_auto_is_namespaces_where_they_can_be_had(void **state) {
    (void)state;
    struct scratch x;
    struct err err;
    bool possible = namespace_check(&err) == 0;
    struct plan *p = make(&x, "nodes: 2");
    assert_true(is_said(p, "auto: namespaces where the host allows them, else processes"));
    assert_int_equal(plan_settle(p, &err), 0);
    assert_int_equal(p->isolation, possible ? ISOLATION_NAMESPACES : ISOLATION_PROCESSES);
    if (possible)
        assert_string_equal(plan_node_host(&p->nodes[0]), "n0");
    else
        assert_true(is_said(p, "because namespaces are not possible: "));
    drop(&x, p);
}

static void test_a_root_file_system_needs_namespaces(void **state) {
    (void)state;
    struct scratch x;
    struct err err;
    struct plan *p = make(&x, "isolation: processes, rootfs: /");
    assert_int_equal(plan_settle(p, &err), -ENOTSUP);
    assert_non_null(strstr(err.msg, "cluster.rootfs needs namespaces"));
    drop(&x, p);
}

static void test_what_a_job_may_do_to_the_host_is_said(void **state) {
    (void)state;
    struct scratch x;
    struct err err;
    struct plan *p = make(&x, "isolation: processes");
    assert_int_equal(plan_settle(p, &err), 0);
    assert_true(is_said(p, "as processes among those of this host"));
    assert_true(is_said(p, "reached   by every user of this host"));
    assert_false(is_said(p, "nothing else on this host is touched"));
    drop(&x, p);
    p = make(&x, "isolation: namespaces");
    assert_true(is_said(p, "in nodes that are namespaces"));
    assert_true(is_said(p, "sees /proc and /sys, and changes nothing there"));
    assert_int_equal(is_said(p, "writes to all but /etc, /boot"), namespace_needs_no_user());
    drop(&x, p);
    p = make(&x, "isolation: namespaces, privileged: true");
    assert_true(is_said(p, "the job keeps all your rights (cluster.privileged)"));
    assert_false(is_said(p, "changes nothing there"));
    drop(&x, p);
}

static void test_the_isolation_is_kept_in_the_resolved_scenario_and_the_plan(void **state) {
    (void)state;
    struct scratch x;
    struct err err;
    struct buf text = {0};
    struct arena a = {0};
    struct plan *p = make(&x, "isolation: processes, privileged: true");
    scenario_print(x.s, &text);
    assert_non_null(strstr(buf_str(&text), "isolation: processes, privileged: true"));
    assert_int_equal(plan_settle(p, &err), 0);
    buf_clear(&text);
    plan_json(p, &text);
    const struct json *j = json_parse(&a, buf_str(&text), text.len, NULL);
    assert_string_equal(json_get_string(j, "isolation", ""), "processes");
    arena_fini(&a);
    buf_fini(&text);
    drop(&x, p);
}

/* Nodes that are processes have a cut at their sockets and no wire, no uptime and no names of their own.
 * What a fault needs of these is refused beforehand, with its name and its place; all others work. */
static void test_every_fault_works_on_processes_or_is_refused_by_its_name_and_place(void **state) {
    const unsigned never = FAULT_NEEDS_WIRE | FAULT_NEEDS_UPTIME | FAULT_NEEDS_NAMES;
    int refused = 0;
    (void)state;
    for (size_t i = 0; faults[i]; i++) {
        const struct fault *f = faults[i];
        struct scratch x;
        struct err err = {0};
        struct buf text = {0};
        char place[64];
        bool etcd = f->suits && f->suits(NULL, &(struct fault_store){.rankrun = true}, NULL) < 0;
        buf_printf(&text,
                   "job: {run: [a], nnodes: \"1:4\"}\n"
                   "cluster: {nodes: 4, start: 3, isolation: processes, racks: [[n0, n1], [n2, "
                   "n3]]%s}\ntimeline: [%s]\n",
                   etcd ? ", store: etcd, store_quota_mb: 16" : "", f->example);
        scratch_load(&x, buf_str(&text));
        struct plan *p = x.s ? plan_make(x.s, 1, &x.d) : NULL;
        if (!p)
            fail_msg("%s: %s", f->name, buf_str(&x.d.out));
        unsigned needs = fault_course(f, &p->entries[0].args).needs;
        int r = plan_settle(p, &err);
        assert_int_equal(r, needs & never ? -ENOTSUP : fault_needs_check(needs, NULL));
        snprintf(place, sizeof(place), "-1 (%s) in line 3, column %d, with nodes that are", f->name,
                 (int)(strstr(f->example, "fault: ") + 7 - f->example) + 12);
        if (r && !strstr(err.msg, place))
            fail_msg("%s is refused with: %s", f->name, err.msg);
        refused += r != 0;
        buf_fini(&text);
        drop(&x, p);
    }
    assert_true(refused > 15);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_processes_have_addresses_of_the_loopback_and_no_names),
        cmocka_unit_test(test_two_plans_do_not_meet),
        cmocka_unit_test(test_auto_is_namespaces_where_they_can_be_had),
        cmocka_unit_test(test_a_root_file_system_needs_namespaces),
        cmocka_unit_test(test_every_fault_works_on_processes_or_is_refused_by_its_name_and_place),
        cmocka_unit_test(test_what_a_job_may_do_to_the_host_is_said),
        cmocka_unit_test(test_the_isolation_is_kept_in_the_resolved_scenario_and_the_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
