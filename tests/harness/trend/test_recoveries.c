/* What a forecast takes out of recorded runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "harness/trend/recoveries.h"

#include <math.h>
#include <string.h>

static void test_a_recorded_run_gives_its_recovery_and_its_saves(void **state) {
    struct history h;
    struct rounds rs;
    struct incidents is;
    struct err err = {0};
    struct recoveries r = {0};
    double known;
    if (history_load(&h, "tests/histories/worker-killed.jsonl", &err) < 0)
        fail_msg("%s", err.msg);
    rounds_load(&rs, true, &h);
    incidents_load(&is, &h, &rs);
    recoveries_add(&r, &(struct recorded_run){.history = &h, .rounds = &rs});
    assert_int_equal(r.n, 1);
    assert_string_equal(r.v[0].fault, is.v[0]->fault);
    assert_true(fabs(recovery_median(&r.v[0]) - (double)is.v[0]->recover_ns / 1e9) < 1e-9);
    assert_true(r.saves_n > 0 && recoveries_save(&r) > 0 && recoveries_save(&r) < 10);
    assert_true(r.gaps_n > 0 && recoveries_interval(&r) > 0);
    assert_int_equal(r.nodes, round_nodes(rs.v[0]));
    for (const struct hazards *x = hazards; x->name; x++)
        assert_true(fabs(recoveries_restart(&r, x, &known) - recovery_median(&r.v[0])) < 1e-9);
    recoveries_fini(&r);
    incidents_fini(&is);
    rounds_fini(&rs);
    history_fini(&h);
}

static void add(struct recoveries *r, const char *fault, double s) {
    mem_push(r->v, r->n) = (struct recovery){0};
    struct recovery *one = &r->v[r->n - 1];
    str_copy(one->fault, sizeof(one->fault), fault);
    mem_push(one->v, one->n) = s;
}

static void test_recoveries_are_weighed_by_how_often_each_comes(void **state) {
    static const struct hazards mix = {
        "m", "", {{"worker-kill", 60}, {"node-kill", 20}, {"worker-hang", 20}, {0}}};
    static const struct hazards none = {"n", "", {{0}}};
    struct recoveries r = {0};
    double known;
    assert_true(isnan(recoveries_restart(&r, &mix, &known)));
    assert_true(isnan(recoveries_save(&r)));
    add(&r, "worker-kill", 10);
    add(&r, "node-kill", 50);
    add(&r, "clock-jump", 999); /* nobody counts it */
    assert_true(fabs(recoveries_restart(&r, &mix, &known) - (60 * 10 + 20 * 50) / 80.0) < 1e-9);
    assert_true(fabs(known - 0.8) < 1e-9);
    assert_true(fabs(recoveries_restart(&r, &none, &known) - (10 + 50 + 999) / 3.0) < 1e-9);
    assert_true(known == 0);
    recoveries_fini(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_recorded_run_gives_its_recovery_and_its_saves),
        cmocka_unit_test(test_recoveries_are_weighed_by_how_often_each_comes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
