/* What a helper on another host does to its node's disks, and what the harness keeps of it for the node's next life. */
#include "harness/cluster/held_node.h"

#include "base/str.h"
#include "faults/fault.h"
#include "harness/cluster/far_rules.h"
#include "harness/cluster/node_faults.h"
#include "tests/harness/cluster/fault_order.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void nobody(void *arg, const struct disk_rule_state *rule, enum disk_verdict v,
                   const struct disk_strike *s) {
    fail_msg("%s was struck, and no call was made", s->path);
}

struct stage {
    struct loop *loop;
    struct held_node node;
    struct node_faults faults;
    struct arena arena;
};

static int setup(void **state) {
    struct stage *s = calloc(1, sizeof(*s));
    static const char text[] = "{\"shared\":\"/run/of/it/shared\",\"disk\":\"/run/of/it/n1\"}";
    s->loop = loop_new(NULL);
    s->node.rules = held_rules_new(s->loop, nobody, NULL);
    held_node_places(&s->node, json_parse(&s->arena, text, strlen(text), NULL));
    s->faults.ops = &held_node_ops;
    s->faults.node = &s->node;
    *state = s;
    return 0;
}

static int teardown(void **state) {
    struct stage *s = *state;
    node_faults_fini(&s->faults);
    held_rules_free(s->node.rules);
    held_node_fini(&s->node);
    loop_free(s->loop);
    arena_fini(&s->arena);
    free(s);
    return 0;
}

static int say(struct stage *s, const char *fault, const char *args, bool recover,
               struct err *err) {
    struct message m = fault_order(fault, args, recover);
    int r = node_faults_do(&s->faults, &m, -1, err);
    message_fini(&m);
    return r;
}

static size_t in_force(const struct stage *s) {
    size_t n;
    held_rules_all(s->node.rules, &n);
    return n;
}

static const char synced[] = "\"op\":\"fsync\",\"path\":\"{shared}/ckpt/**\"",
                  renamed[] = "\"op\":\"rename\",\"path\":\"{disk}/*\",\"nth\":\"3\"";

static void test_a_rule_is_about_the_place_that_setup_has_named(void **state) {
    struct stage *s = *state;
    size_t n;
    assert_int_equal(say(s, "disk-error", synced, false, NULL), 0);
    assert_int_equal(say(s, "disk-stuck", renamed, false, NULL), 0);
    const struct disk_rule_state *v = held_rules_all(s->node.rules, &n);
    assert_int_equal(n, 2);
    assert_int_equal(v[0].rule.error, EIO);
    assert_true(disk_rule_means(&v[0].rule, "/run/of/it/shared/ckpt/a/b"));
    assert_false(disk_rule_means(&v[0].rule, "/run/of/it/n1/ckpt/a"));
    assert_true(disk_rule_means(&v[1].rule, "/run/of/it/n1/a"));
    assert_true(v[1].rule.stuck && v[1].rule.nth == 3);
}

/* A descriptor has the name of what lies there, whatever link led to it. */
static void test_a_place_behind_a_link_has_two_names(void **state) {
    struct stage *s = *state;
    char real[] = "/tmp/held-node-XXXXXX", link[64], text[256], below[128];
    size_t n;
    assert_non_null(mkdtemp(real));
    snprintf(link, sizeof(link), "%s-link", real);
    assert_int_equal(symlink(real, link), 0);
    snprintf(text, sizeof(text), "{\"shared\":\"%s\",\"disk\":\"%s\"}", link, link);
    held_node_fini(&s->node);
    held_node_places(&s->node, json_parse(&s->arena, text, strlen(text), NULL));
    assert_int_equal(say(s, "disk-error", synced, false, NULL), 0);
    const struct disk_rule *r = &held_rules_all(s->node.rules, &n)[0].rule;
    snprintf(below, sizeof(below), "%s/ckpt/a", link);
    assert_true(disk_rule_means(r, below));
    snprintf(below, sizeof(below), "%s/ckpt/a", real);
    assert_true(disk_rule_means(r, below));
    unlink(link);
    assert_int_equal(say(s, "disk-error", synced, true, NULL), 0); /* the link has gone since */
    assert_int_equal(in_force(s), 0);
    rmdir(real);
}

static void test_of_several_that_one_is_undone_which_is_meant(void **state) {
    struct stage *s = *state;
    struct err err;
    assert_int_equal(say(s, "disk-error", synced, false, NULL), 0);
    assert_int_equal(say(s, "disk-error", renamed, false, NULL), 0);
    assert_int_equal(say(s, "disk-error", synced, false, &err), -EBUSY);
    assert_non_null(strstr(err.msg, "an earlier fault does the same"));
    assert_int_equal(say(s, "disk-error", synced, true, NULL), 0);
    assert_int_equal(in_force(s), 1);
    assert_int_equal(s->faults.n, 1); /* the other one is still to be undone */
    assert_int_equal(say(s, "disk-error", synced, true, NULL), 0);
    assert_int_equal(in_force(s), 1);
}

static void test_all_rules_are_undone_without_an_order(void **state) {
    struct stage *s = *state;
    BUF_FINI struct buf text = {0};
    struct json_writer w = {.out = &text};
    say(s, "disk-error", synced, false, NULL);
    say(s, "disk-error", renamed, false, NULL);
    say(s, "disk-slow", synced, false, NULL);
    json_array(&w, NULL);
    node_faults_undo(&s->faults, -1, &w);
    json_end_array(&w);
    assert_int_equal(in_force(s), 0);
    assert_non_null(
        strstr(buf_str(&text), "{\"fault\":\"disk-slow\",\"name\":\"n1\",\"error\":null}"));
}

static void test_without_places_there_is_no_disk_to_strike(void **state) {
    struct stage *s = *state;
    struct err err;
    held_node_fini(&s->node);
    assert_int_equal(say(s, "disk-error", synced, false, &err), -EINVAL);
    assert_non_null(strstr(err.msg, "where the disks"));
    assert_int_equal(in_force(s), 0);
}

/* ---- the harness's end ---- */

static struct disk_rule rule_of(const char *root, const char *pattern) {
    struct disk_rule r = {.does = DISK_DOES_SYNC, .nth = 1, .times = 1, .error = EIO, .room = -1};
    str_copy(r.root, sizeof(r.root), root);
    str_copy(r.pattern, sizeof(r.pattern), pattern);
    return r;
}

static void test_a_rule_goes_on_from_where_it_was(void **state) {
    struct stage *s = *state;
    struct far_rules f = {0};
    BUF_FINI struct buf order = {0};
    BUF_FINI struct buf bye = {0};
    struct json_writer w = {.out = &bye};
    const struct disk_rule a = rule_of("/run/of/it/shared", "a"), b = rule_of("/run/of/it/n1", "b");
    buf_puts(&order, "{\"op\":\"fault\"");
    far_rules_add(&f, &order, &a);
    far_rules_add(&f, &order, &b);
    far_rules_add(&f, &order, &b);
    assert_int_equal(f.n, 2);
    struct disk_rule_state *there =
        held_rules_find(s->node.rules, held_rules_add(s->node.rules, &b));
    there->matched = 7;
    there->done = 1;
    json_object(&w, NULL);
    held_node_put_rules(&s->node, &w);
    json_end_object(&w);
    far_rules_bye(&f, json_parse(&s->arena, buf_str(&bye), bye.len, NULL));
    assert_int_equal(f.v[0].state.done, 0);
    assert_int_equal(f.v[1].state.matched, 7);
    assert_int_equal(f.v[1].state.done, 1);
    far_rules_drop(&f, &a);
    assert_int_equal(f.n, 1);
    assert_int_equal(f.v[0].state.matched, 7);
    far_rules_drop(&f, &a);
    assert_int_equal(f.n, 1);
    far_rules_fini(&f);
}

static void test_what_it_had_is_what_it_has(void **state) {
    struct stage *s = *state;
    size_t n;
    static const char had[] = "{\"matched\":7,\"done\":1,\"used\":40}";
    s->node.had = json_parse(&s->arena, had, strlen(had), NULL);
    assert_int_equal(say(s, "disk-error", synced, false, NULL), 0);
    const struct disk_rule_state *v = held_rules_all(s->node.rules, &n);
    assert_int_equal(v[0].matched, 7);
    assert_int_equal(v[0].done, 1);
    assert_int_equal(v[0].used, 40);
    assert_int_equal(v[0].rule.error, EIO);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_rule_is_about_the_place_that_setup_has_named, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_place_behind_a_link_has_two_names, setup, teardown),
        cmocka_unit_test_setup_teardown(test_of_several_that_one_is_undone_which_is_meant, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_all_rules_are_undone_without_an_order, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_without_places_there_is_no_disk_to_strike, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_rule_goes_on_from_where_it_was, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_it_had_is_what_it_has, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
