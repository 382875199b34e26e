/* The page of `watch --serve` asks nobody else for anything, runs under its policy, and its script finds what it draws into. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/verbs/watch/watch_page.h"

#include <stdio.h>
#include <string.h>

static void test_nothing_is_fetched_and_nothing_runs_but_by_its_nonce(void **state) {
    (void)state;
    static const char *const never[] = {"http:", "https:",   "src=",     "@import",
                                        "url(",  " style=",  "onclick=", "innerHTML",
                                        "eval(", "<script>", "<style>"};
    BUF_FINI struct buf page = {0};
    watch_page("abc123", &page);
    for (size_t i = 0; i < sizeof(never) / sizeof(*never); i++)
        assert_null(strstr(buf_str(&page), never[i]));
    assert_non_null(strstr(buf_str(&page), "<style nonce=\"abc123\">"));
    assert_non_null(strstr(buf_str(&page), "<script nonce=\"abc123\">"));
    assert_non_null(strstr(buf_str(&page), "prefers-color-scheme:dark"));
}

/* $('x') of the script is an id="x" of the page, and each id is there once. */
static void test_the_script_finds_what_it_asks_for(void **state) {
    (void)state;
    BUF_FINI struct buf page = {0};
    int asked = 0;
    watch_page("n", &page);
    for (const char *at = buf_str(&page); (at = strstr(at, "$('")); at += 3, asked++) {
        char id[64];
        snprintf(id, sizeof(id), "id=\"%.*s\"", (int)strcspn(at + 3, "'"), at + 3);
        const char *first = strstr(buf_str(&page), id);
        assert_non_null(first);
        assert_null(strstr(first + 1, id));
    }
    assert_true(asked > 10);
}

/* On a run that takes no words there are no buttons: they stand in a template, or are made by the script. */
static void test_buttons_stand_in_the_template_alone(void **state) {
    (void)state;
    BUF_FINI struct buf page = {0};
    watch_page("n", &page);
    const char *begin = strstr(buf_str(&page), "<template id=\"words\">");
    const char *end = strstr(buf_str(&page), "</template>");
    const char *button = strstr(buf_str(&page), "<button");
    assert_true(begin && end && button);
    for (; button; button = strstr(button + 1, "<button"))
        assert_true(button > begin && button < end);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_fetched_and_nothing_runs_but_by_its_nonce),
        cmocka_unit_test(test_the_script_finds_what_it_asks_for),
        cmocka_unit_test(test_buttons_stand_in_the_template_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
