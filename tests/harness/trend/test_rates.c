/* Published rates: they follow from their counts, have a source and a mix that is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "faults/hazards.h"
#include "harness/trend/rates.h"

#include <math.h>
#include <string.h>

static void test_each_has_a_source_and_a_mix(void **state) {
    size_t n = 0;
    for (const struct rate *r = rates; r->name; r++, n++) {
        bool known = false;
        for (const struct hazards *h = hazards; h->name; h++)
            known |= str_eq(h->name, r->mix);
        assert_true(known);
        assert_true(str_starts(r->source, "https://"));
        assert_true(rate_per_1000(r) > 2 && rate_per_1000(r) < 7);
        assert_true(!n || strcmp(r[-1].name, r->name) < 0);
        assert_ptr_equal(rate_find(r->name), r);
    }
    assert_true(n >= 5);
    assert_null(rate_find("none"));
}

/* 419 of 2,048 nodes in 54 days are 3.79 of 1,000 in one; so 1,024 nodes fail every 6.2 hours, and
 * all of them every 3.1, as the paper says. */
static void test_rates_follow_from_counts(void **state) {
    const struct rate *r = rate_find("llama3");
    assert_true(fabs(rate_per_1000(r) - 3.789) < 0.001);
    assert_true(fabs(rate_mtbf_s(r, 1024) / 3600 - 6.186) < 0.001);
    assert_true(fabs(rate_mtbf_s(r, 2048) / 3600 - 3.1) < 0.05);
    assert_true(fabs(rate_per_1000(rate_find("infinitehbd")) - 4.183) < 0.001);
    /* 1,024 GPUs are 128 nodes: 7.9 hours were published for all failures of rsc1's jobs. */
    assert_true(rate_mtbf_s(rate_find("rsc1"), 128) / 3600 > 7.9);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_has_a_source_and_a_mix),
        cmocka_unit_test(test_rates_follow_from_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
