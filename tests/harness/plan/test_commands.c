/* What a run starts because the scenario says so, and what of it is refused for a stranger's. */
#include "harness/plan/plan.h"
#include "tests/harness/scenario/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static const char whole[] = "feature: [cpus 1, command test -d /proc]\n"
                            "launcher: /opt/python3 -m torch.distributed.run\n"
                            "cluster: {nodes: 2}\n"
                            "job:\n"
                            "  nnodes: 2\n"
                            "  needs: [torch, numpy]\n"
                            "  run: [train.py, --lr, it's]\n"
                            "  checkpoint: {dir: \"{shared}/ckpt\", complete: ls}\n"
                            "probe:\n"
                            "  here: {cmd: [look]}\n"
                            "  there: {cmd: [look], on: n1}\n"
                            "  out: {http: 'http://127.0.0.1:80/'}\n"
                            "  in: {http: 'http://n0:80/'}\n"
                            "checks: [{name: own, program: [judge, -v]}]\n";

static const struct plan_command *find(const struct plan *p, const char *key, bool in_nodes) {
    for (size_t i = 0; i < p->commands_n; i++)
        if (str_eq(p->commands[i].key, key) && !p->commands[i].nodes == !in_nodes)
            return &p->commands[i];
    return NULL;
}

static void assert_command(const struct plan *p, const char *key, const char *nodes,
                           const char *words, int line) {
    const struct plan_command *c = find(p, key, nodes);
    if (!c)
        fail_msg("there is no %s", key);
    assert_string_equal(c->words, words);
    assert_int_equal(c->place.line, line);
    assert_non_null(c->when);
    if (nodes)
        assert_string_equal(c->nodes, nodes);
}

static void test_every_program_is_listed_with_the_line_that_asks_for_it(void **state) {
    (void)state;
    struct scratch x;
    scratch_load(&x, whole);
    struct plan *p = plan_make(x.s, 1, &x.d);
    assert_non_null(p);
    plan_find_commands(p);
    assert_int_equal(p->commands_n, 10);
    assert_command(p, "feature", NULL, "/bin/sh -c 'test -d /proc'", 1);
    assert_command(p, "job.needs", NULL, "/opt/python3 -c ...", 6);
    assert_command(p, "probe.here", NULL, "look", 10);
    assert_command(p, "probe.there", NULL, "look", 11);
    assert_command(p, "probe.out", NULL, "rankquake ask http://127.0.0.1:80/", 12);
    assert_command(p, "probe.in", "n0", "rankquake ask http://n0:80/", 13);
    assert_command(p, "job.checkpoint.complete", NULL, "/bin/sh -c ls", 8);
    assert_command(p, "checks.own", NULL, "judge -v", 14);
    assert_command(p, "launcher", "n0 n1", "/opt/python3 -m torch.distributed.run", 2);
    assert_command(p, "job.run", "n0 n1", "train.py --lr 'it'\\''s'", 7);
    plan_free(p);
    scratch_drop(&x);
}

static void test_the_store_runs_in_a_node_of_its_own(void **state) {
    (void)state;
    struct scratch x;
    scratch_load(&x, "cluster: {nodes: 2, store: etcd}\njob: {nnodes: 2, run: [train]}\n");
    struct plan *p = plan_make(x.s, 1, &x.d);
    assert_non_null(p);
    plan_find_commands(p);
    assert_command(p, "cluster.store", "store", "etcd", 1);
    assert_command(p, "launcher", "n0 n1", "rankrun", 0);
    plan_free(p);
    scratch_drop(&x);
}

static void test_whatever_runs_outside_of_nodes_is_refused_for_a_stranger(void **state) {
    (void)state;
    struct scratch x;
    scratch_load(&x, whole);
    struct plan *p = plan_make(x.s, 1, &x.d);
    assert_non_null(p);
    plan_refuse_outside(p, &x.d);
    assert_int_equal(x.d.errors, 6);
    static const char *const said[] = {
        ":1:10: feature: --untrusted starts nothing outside of the nodes; it would have executed, "
        "before the run, and must end with 0: /bin/sh -c 'test -d /proc'\n",
        ":8:48: job.checkpoint.complete: --untrusted",
        ":10:3: probe.here: --untrusted",
        ":11:3: probe.there: --untrusted",
        ":12:3: probe.out: --untrusted asks nobody in this host's network",
        ":14:10: checks.own: --untrusted",
    };
    for (size_t i = 0; i < sizeof(said) / sizeof(*said); i++)
        if (!strstr(buf_str(&x.d.out), said[i]))
            fail_msg("\"%s\" is not in:\n%s", said[i], buf_str(&x.d.out));
    plan_free(p);
    scratch_drop(&x);
}

static void test_a_directory_of_the_host_is_not_read_for_a_stranger(void **state) {
    (void)state;
    static const char *const dirs[] = {"/etc", "{shared}/../../etc", "ckpt"};
    for (size_t i = 0; i < 3; i++) {
        struct scratch x;
        struct buf text = {0};
        buf_printf(&text, "job: {run: [train], checkpoint: {dir: '%s'}}\n", dirs[i]);
        scratch_load(&x, buf_str(&text));
        struct plan *p = plan_make(x.s, 1, &x.d);
        assert_non_null(p);
        plan_refuse_outside(p, &x.d);
        assert_int_equal(x.d.errors, 1);
        assert_non_null(strstr(buf_str(&x.d.out), "job.checkpoint.dir: --untrusted reads no"));
        plan_free(p);
        buf_fini(&text);
        scratch_drop(&x);
    }
}

static void assert_outside(struct plan *p, struct texts *said, const char *expected) {
    struct buf out = {0};
    plan_put_outside(p, said, &out);
    assert_string_equal(buf_str(&out), expected);
    buf_fini(&out);
}

static const char on_hosts[] = "cluster: {nodes: 2, provider: ssh, hosts: [a, b]}\n"
                               "job: {nnodes: 2, run: [train]}\n"
                               "checks: [{name: own, program: [judge]}]\n";

static void test_what_is_started_here_is_said_once(void **state) {
    (void)state;
    struct texts said = {0};
    for (int i = 0; i < 2; i++) {
        struct scratch x;
        scratch_load(&x, on_hosts);
        struct plan *p = plan_make(x.s, 1, &x.d);
        assert_outside(p, &said,
                       i ? ""
                         : "on this host, to reach the host of n0, as long as the run lasts: ssh a "
                           "(cluster.hosts)\n"
                           "on this host, to reach the host of n1, as long as the run lasts: ssh b "
                           "(cluster.hosts)\n"
                           "on this host, when the run is judged: judge (checks.own)\n");
        plan_free(p);
        scratch_drop(&x);
    }
    texts_fini(&said);
}

static void test_hosts_that_were_typed_are_no_news(void **state) {
    (void)state;
    struct texts said = {0};
    struct scratch x;
    scratch_load(&x, on_hosts);
    struct plan *p = plan_make(x.s, 1, &x.d);
    p->hosts_said = true;
    assert_outside(p, &said, "on this host, when the run is judged: judge (checks.own)\n");
    plan_free(p);
    scratch_drop(&x);
    texts_fini(&said);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_program_is_listed_with_the_line_that_asks_for_it),
        cmocka_unit_test(test_the_store_runs_in_a_node_of_its_own),
        cmocka_unit_test(test_whatever_runs_outside_of_nodes_is_refused_for_a_stranger),
        cmocka_unit_test(test_a_directory_of_the_host_is_not_read_for_a_stranger),
        cmocka_unit_test(test_what_is_started_here_is_said_once),
        cmocka_unit_test(test_hosts_that_were_typed_are_no_news),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
