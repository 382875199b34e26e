/* What a scenario demands of the host. */
#include "harness/plan/features.h"
#include "tests/harness/scenario/scratch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

/* Plans a scenario with these features; NULL after a mistake. */
static struct plan *plan(struct scratch *x, const char *feature) {
    struct buf text = {0};
    buf_printf(&text, "feature: %s\njob: {run: [train]}\n", feature);
    scratch_load(x, buf_str(&text));
    buf_fini(&text);
    assert_non_null(x->s);
    return plan_make(x->s, 1, &x->d);
}

/* why NULL: the host has it. */
static void assert_feature(const char *feature, const char *why) {
    struct scratch x;
    struct err err = {0};
    struct plan *p = plan(&x, feature);
    assert_non_null(p);
    assert_int_equal(features_check(p, &err), why ? -ENOTSUP : 0);
    if (why && !strstr(err.msg, why))
        fail_msg("said \"%s\", wanted \"%s\"", err.msg, why);
    plan_free(p);
    scratch_drop(&x);
}

static void test_what_the_host_has_is_no_reason_to_skip(void **state) {
    (void)state;
    assert_feature("[cpus 1, program sh, command true]", NULL);
    assert_feature("[command test -d / && exit 0]", NULL);
    assert_feature("[]", NULL);
}

static void test_what_it_lacks_is_named_with_the_reason(void **state) {
    (void)state;
    assert_feature("[cpus 1, cpus 90000]", "feature cpus 90000: this host has ");
    assert_feature("[program no-such-program]", "there is no program no-such-program in PATH");
    assert_feature("[command exit 3]", "feature command exit 3: it ends with exit code 3");
    assert_feature("[command kill -9 $$]", "it ends with SIGKILL");
#ifdef __x86_64__
    assert_feature("[x86-64]", NULL);
    assert_feature("[arm64]", "this host is x86_64");
#endif
}

static void assert_mistake(const char *feature, const char *want) {
    struct scratch x;
    struct buf got = {0};
    assert_null(plan(&x, feature));
    scratch_messages(&x, &got);
    if (!str_starts(buf_str(&got), want))
        fail_msg("said:\n%swanted:\n%s", buf_str(&got), want);
    buf_fini(&got);
    scratch_drop(&x);
}

static void test_what_is_no_feature_is_a_mistake(void **state) {
    (void)state;
    assert_mistake("[namespace]", "1:10: feature: there is no feature \"namespace\"; did you mean "
                                  "\"namespaces\"? Or else they are arm64, command, cpus");
    assert_mistake("[cpus]", "1:10: feature: cpus needs a word behind it: cpus N");
    assert_mistake("[cpus many]", "1:10: feature: cpus many: write a whole number");
    assert_mistake("[gpu 2]", "1:10: feature: gpu takes no word behind it, not \"2\"");
}

static void test_features_are_in_alphabetical_order_and_said_in_a_sentence(void **state) {
    (void)state;
    for (const struct feature *f = features; f->name; f++) {
        assert_true(f == features || strcmp(f[-1].name, f->name) < 0);
        assert_true(*f->text && f->check);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_the_host_has_is_no_reason_to_skip),
        cmocka_unit_test(test_what_it_lacks_is_named_with_the_reason),
        cmocka_unit_test(test_what_is_no_feature_is_a_mistake),
        cmocka_unit_test(test_features_are_in_alphabetical_order_and_said_in_a_sentence),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
