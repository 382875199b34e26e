/* Each bound is counted each time, and told at first and once a minute. The line is this file's. */
#include "agent/store/limits/bounds.h"

#include "base/sys/line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static int said;
static char text[400];

__attribute__((format(printf, 3, 4))) static void fake_say(const char *level, const char *what,
                                                           const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    said++;
    assert_string_equal(level, "warning");
    assert_string_equal(what, "store");
}

#define line_say(...) fake_say(__VA_ARGS__)
#include "agent/store/limits/bounds.c"

static const struct {
    const char *name, *text;
} all[BOUNDS] = {
    {"connections", "ended a connection of nobody's agent to let others in"},
    {"time", "ended a connection whose request did not come whole in time"},
    {"held", "ended the connection that held most of the memory for requests"},
    {"slow", "ended an answer that was read too slowly"},
    {"kept", "refused a write, as there is no room for what it adds to"},
    {"watches", "refused a watch of nobody's agent: there are too many"},
    {"answers", "refused a request for much, as too much is being answered"},
    {"pages", "refused a request that a web page made, or for another host"},
};

static void told(const char *words, const char *behind) {
    char expected[400];
    snprintf(expected, sizeof(expected), "store: port 29400 %s%s", words, behind);
    assert_string_equal(text, expected);
}

static void test_each_is_told_at_first_and_once_a_minute(void **state) {
    (void)state;
    static const int64_t minute_ns = 60000000000;
    struct bounds b = {.port = 29400};
    int before = 0;
    for (int i = 0; i < BOUNDS; i++) {
        enum store_bound which = (enum store_bound)i;
        assert_string_equal(bounds_name(which), all[i].name);
        bounds_hit(&b, which, i % 2 ? "10.0.0.1" : NULL, 5);
        assert_int_equal(said, ++before);
        told(all[i].text, i % 2 ? ": 10.0.0.1" : "");
        bounds_hit(&b, which, NULL, 5 + minute_ns - 1);
        assert_int_equal(said, before);
        bounds_hit(&b, which, i % 2 ? "10.0.0.2" : NULL, 5 + minute_ns);
        assert_int_equal(said, ++before);
        told(all[i].text,
             i % 2 ? ": 10.0.0.2, and 1 times before that" : ", and 1 times before that");
        for (int more = 0; more < 6; more++)
            bounds_hit(&b, which, NULL, 5 + 2 * minute_ns - 1);
        assert_int_equal(said, before);
        bounds_hit(&b, which, NULL, 5 + 2 * minute_ns);
        assert_int_equal(said, ++before);
        told(all[i].text, ", and 6 times before that");
        bounds_hit(&b, which, NULL, 5 + 3 * minute_ns);
        assert_int_equal(said, ++before);
        told(all[i].text, "");
        assert_int_equal(b.hits[i], 11);
        for (int other = i + 1; other < BOUNDS; other++)
            assert_int_equal(b.hits[other], 0);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_is_told_at_first_and_once_a_minute),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
