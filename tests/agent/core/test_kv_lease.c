#include "agent/core/kv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

/* The id that a store of this seed would choose is taken already. */
static void test_an_id_that_is_taken_is_not_chosen(void **state) {
    (void)state;
    struct kv *first = kv_new(5, 0), *second = kv_new(5, 0);
    int64_t id = 0, again = 0;
    assert_int_equal(kv_lease_grant(first, 0, 10, 0, &id, NULL), 0);
    assert_true(id > 0);
    assert_int_equal(kv_lease_grant(second, id, 10, 0, &again, NULL), 0);
    assert_int_equal(kv_lease_grant(second, 0, 10, 0, &again, NULL), 0);
    assert_true(again > 0 && again != id);
    kv_free(first);
    kv_free(second);
}

static void test_a_copied_store_has_the_leases_too(void **state) {
    (void)state;
    struct kv *kv = kv_new(1, 0);
    int64_t id = 0, ttl_s = 0;
    struct kv *without = kv_copy(kv);
    assert_int_equal(kv_lease_grant(kv, 7, 10, 0, &id, NULL), 0);
    struct kv *with = kv_copy(kv);
    assert_int_equal(kv_lease_keepalive(without, 7, 0, &ttl_s, NULL), KV_LEASE_NOT_FOUND);
    assert_int_equal(kv_lease_keepalive(with, 7, 0, &ttl_s, NULL), 0);
    assert_int_equal(ttl_s, 10);
    kv_free(with);
    kv_free(without);
    kv_free(kv);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_id_that_is_taken_is_not_chosen),
        cmocka_unit_test(test_a_copied_store_has_the_leases_too),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
