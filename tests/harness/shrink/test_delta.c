/* The loop of delta debugging, over parts that are numbers: what is left out together, and when it
 * is over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "harness/shrink/delta.h"

#include <limits.h>
#include <string.h>

struct parts {
    struct delta delta;
    char best[32];   /* a letter is a part */
    char needs[8];   /* it fails as long as these are there */
    char tried[400]; /* all candidates, behind one another */
    int tries, most; /* most 0: no limit */
    int passes;      /* that were taken */
};

static enum delta_answer try(void *arg, void *candidate) {
    struct parts *p = arg;
    const char *c = candidate;
    if (p->most && p->tries == p->most)
        return DELTA_STOP;
    p->tries++;
    strcat(strcat(p->tried, c), " ");
    for (const char *need = p->needs; *need; need++)
        if (!strchr(c, *need))
            return DELTA_OTHER;
    memmove(p->best, c, strlen(c) + 1);
    return DELTA_SAME;
}

static size_t count(void *arg) {
    return strlen(((const struct parts *)arg)->best);
}

/* From the end. */
static size_t without(void *arg, size_t left, size_t many) {
    struct parts *p = arg;
    size_t from = left > many ? left - many : 0;
    char c[32];
    strcpy(c, p->best);
    memmove(c + from, p->best + left, strlen(p->best + left) + 1);
    delta_try(&p->delta, c);
    return from;
}

static void fewer(void *arg) {
    struct parts *p = arg;
    p->passes++;
    delta_halves(&p->delta, count, without);
}

static void (*const passes[])(void *) = {fewer, NULL};

static void set_up(struct parts *p, const char *all, const char *needs) {
    *p = (struct parts){.delta = {.try = try, .arg = p}};
    strcpy(p->best, all);
    strcpy(p->needs, needs);
}

static void test_halves_go_first_then_quarters_then_single_parts(void **state) {
    (void)state;
    struct parts p;
    set_up(&p, "abcdefgh", "b");
    delta_halves(&p.delta, count, without);
    assert_string_equal(p.tried, "abcd  ab  a b ");
    assert_string_equal(p.best, "b");
    assert_int_equal(p.delta.found, 3);
}

static void test_passes_are_taken_until_none_finds_anything(void **state) {
    (void)state;
    struct parts p;
    set_up(&p, "abcdefgh", "ag");
    delta_run(&p.delta, passes, INT_MAX);
    assert_string_equal(p.best, "ag");
    assert_true(p.passes > 1 && !p.delta.stopped);
    set_up(&p, "abc", "abc");
    delta_run(&p.delta, passes, INT_MAX);
    assert_int_equal(p.passes, 1);
    assert_int_equal(p.tries, 2 + 3);
}

static void test_passes_are_taken_no_more_often_than_allowed(void **state) {
    (void)state;
    struct parts p;
    set_up(&p, "abcdefgh", "ag");
    delta_run(&p.delta, passes, 1);
    assert_int_equal(p.passes, 1);
    assert_false(p.delta.stopped);
}

static void test_once_stopped_nothing_more_is_tried_and_the_best_stays(void **state) {
    (void)state;
    struct parts p;
    set_up(&p, "abcdefgh", "a");
    p.most = 1;
    delta_run(&p.delta, passes, INT_MAX);
    assert_true(p.delta.stopped);
    assert_int_equal(p.tries, 1);
    assert_string_equal(p.best, "abcd");
    p.most = 0;
    assert_false(delta_try(&p.delta, p.best));
    assert_int_equal(p.tries, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_halves_go_first_then_quarters_then_single_parts),
        cmocka_unit_test(test_passes_are_taken_until_none_finds_anything),
        cmocka_unit_test(test_passes_are_taken_no_more_often_than_allowed),
        cmocka_unit_test(test_once_stopped_nothing_more_is_tried_and_the_best_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
