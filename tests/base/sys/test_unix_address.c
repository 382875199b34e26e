/* Paths and abstract names, as long as an address may be and longer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/sys/unix_address.h"

#include <errno.h>
#include <string.h>

static void test_a_path_stays_and_an_abstract_name_begins_with_nothing(void **state) {
    (void)state;
    struct sockaddr_un at;
    assert_int_equal(unix_address("/run/x", &at), sizeof(at));
    assert_string_equal(at.sun_path, "/run/x");
    assert_int_equal(unix_address("@x", &at), offsetof(struct sockaddr_un, sun_path) + 2);
    assert_memory_equal(at.sun_path, "\0x", 2);
}

static void test_what_is_too_long_is_refused_and_does_not_fit(void **state) {
    (void)state;
    struct sockaddr_un at;
    char name[UNIX_ADDRESS_MAX + 1];
    memset(name, 'x', sizeof(name));
    name[UNIX_ADDRESS_MAX] = '\0';
    assert_false(unix_address_fits(name));
    assert_int_equal(unix_address(name, &at), -ENAMETOOLONG);
    name[UNIX_ADDRESS_MAX - 1] = '\0';
    assert_true(unix_address_fits(name));
    assert_int_equal(unix_address(name, &at), sizeof(at));
}

static void test_a_name_is_drawn_anew_and_can_be_one(void **state) {
    (void)state;
    struct sockaddr_un at;
    char one[UNIX_ADDRESS_MAX], other[UNIX_ADDRESS_MAX];
    unix_address_draw("n0", one);
    unix_address_draw("n0", other);
    assert_true(unix_address_is_abstract(one));
    assert_string_not_equal(one, other);
    assert_true(unix_address(one, &at) > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_path_stays_and_an_abstract_name_begins_with_nothing),
        cmocka_unit_test(test_what_is_too_long_is_refused_and_does_not_fit),
        cmocka_unit_test(test_a_name_is_drawn_anew_and_can_be_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
