/* The picture: every worker and fault is in it, whatever their names, and it is small however long
 * the run. */
#include "tests/reports/told.h"

static const struct edit none[1];

static void tell_picture(struct told *t, const char *name, const struct edit *edits) {
    tell(t, name, edits, "svg", (struct report_style){.unicode = true});
}

/* Every element is closed, in order, and of those that are drawn here. */
static void assert_picture(const char *text) {
    static const char *const known[] = {"svg", "title", "style", "rect", "path", "text", NULL};
    char open[8][16];
    size_t depth = 0;
    for (const char *at = text; at; at = strchr(at + 1, '<')) {
        char name[16] = "";
        const char *end = strchr(at, '>');
        size_t k = 0;
        sscanf(at + 1, "%15[a-z/]", name);
        while (known[k] && strcmp(known[k], name + (name[0] == '/')) != 0)
            k++;
        if (!end || !known[k])
            fail_msg("no element: %.60s", at);
        if (name[0] == '/') {
            if (!depth || strcmp(open[--depth], name + 1) != 0)
                fail_msg("%s closes nothing: %.60s", name, at);
        } else if (end[-1] != '/') {
            assert_true(depth < 8);
            strcpy(open[depth++], name);
        }
    }
    assert_int_equal(depth, 0);
}

static void test_each_worker_round_and_fault_is_in_it(void **state) {
    (void)state;
    struct told t;
    tell_picture(&t, "worker-killed", none);
    const char *text = buf_str(&t.text);
    assert_picture(text);
    assert_says(&t, "class=\"title good\">\u2713 worker-killed passed</text>");
    assert_says(&t, "class=\"bad\">worker-kill on n0/1 (rank 1)</text>");
    assert_says(&t, ">n0/0</text>");
    assert_says(&t, ">n0/1</text>");
    assert_int_equal(count(text, "class=\"round\""), 2);
    assert_int_equal(count(text, "class=\"setup\""), 4);
    assert_int_equal(count(text, "class=\"struck\""), 1);
    assert_int_equal(count(text, ">\u2717</text>"), 1); /* only one worker was hit */
    forget(&t);
}

static void test_a_node_that_is_gone_is_marked_on_its_lanes(void **state) {
    (void)state;
    struct told t;
    tell_picture(&t, "node-powered-off", none);
    const char *text = buf_str(&t.text), *gone = strstr(text, ">n2/0</text>");
    assert_picture(text);
    assert_non_null(gone);
    assert_int_equal(count(text, "class=\"away\""), count(gone, "class=\"away\""));
    assert_true(count(gone, "class=\"away\"") > 0);
    forget(&t);
}

static void test_it_has_colours_by_day_and_by_night_and_asks_for_nothing(void **state) {
    (void)state;
    struct told t;
    tell_picture(&t, "worker-killed", none);
    assert_says(&t, "prefers-color-scheme:dark");
    assert_says(&t, "<rect class=\"panel\"");
    static const char *const outside[] = {"https:", "src=", "href", "url(", "@import", "<script"};
    for (size_t i = 0; i < sizeof(outside) / sizeof(*outside); i++)
        if (strstr(buf_str(&t.text), outside[i]))
            fail_msg("the picture has %s", outside[i]);
    assert_int_equal(count(buf_str(&t.text), "http:"), 1); /* the name of its language */
    forget(&t);
}

static void test_whatever_a_run_says_stays_text(void **state) {
    (void)state;
    static const struct edit edits[] = {{"{", NULL, "\"n0\"", "\"<b onx='\\\"&\u202e\""},
                                        {"fault-", NULL, "worker-kill", "</text><script>"},
                                        {0}};
    struct told t;
    tell_picture(&t, "worker-killed", edits);
    assert_picture(buf_str(&t.text));
    assert_says(&t, "&lt;b onx='&quot;&amp;\\u202e/0</text>");
    assert_says(&t, "&lt;/text&gt;&lt;script&gt;");
    forget(&t);
}

static void test_a_run_without_workers_says_so(void **state) {
    (void)state;
    static const struct edit edits[] = {{"\"t\":1", "\"source\":\"probe\"", "", NULL}, {0}};
    struct told t;
    tell_picture(&t, "worker-killed", edits);
    assert_picture(buf_str(&t.text));
    assert_says(&t, "No worker was seen to start.");
    forget(&t);
}

/* 100 workers of 1,000 steps each: so many are neither seen on a screen nor written. */
static void test_a_large_run_makes_a_small_picture(void **state) {
    (void)state;
    struct told t;
    tell_long(&t, &(struct long_run){.nodes = 100, .workers = 100, .rounds = 1, .steps = 1000},
              "svg");
    assert_picture(buf_str(&t.text));
    assert_says(&t, "Further workers are not drawn.");
    assert_true(t.text.len < 256 * 1000);
    forget(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_worker_round_and_fault_is_in_it),
        cmocka_unit_test(test_a_node_that_is_gone_is_marked_on_its_lanes),
        cmocka_unit_test(test_it_has_colours_by_day_and_by_night_and_asks_for_nothing),
        cmocka_unit_test(test_whatever_a_run_says_stays_text),
        cmocka_unit_test(test_a_run_without_workers_says_so),
        cmocka_unit_test(test_a_large_run_makes_a_small_picture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
