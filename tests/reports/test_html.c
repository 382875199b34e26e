/* The page: whole, safe and small, whatever the run was. */
#include "tests/reports/told.h"

#include "base/base64.h"
#include "base/printable.h"
#include "base/sha256.h"
#include "base/utf8.h"

#include <ctype.h>

static const struct edit none[1],
    off_by_one[] = {{"\"argv0\"", NULL, "COUNT\":\"1\"", "COUNT\":\"2\""}, {0}};

static void tell_page(struct told *t, const char *name, const struct edit *edits) {
    tell(t, name, edits, "html", (struct report_style){.unicode = true});
}

static void assert_before(const struct told *t, const char *first, const char *second) {
    const char *a = strstr(buf_str(&t->text), first), *b = strstr(buf_str(&t->text), second);
    if (!a || !b || a > b)
        fail_msg("\"%s\" does not stand before \"%s\"", first, second);
}

/* ---- what is said ---- */

static void test_a_bad_run_begins_with_what_is_wrong(void **state) {
    (void)state;
    struct told t;
    tell_page(&t, "worker-killed", off_by_one);
    assert_says(&t, "<header class=\"bad\">");
    assert_says(&t, "<dt>broken</dt><dd>Restart count: a worker's failure costs one restart");
    assert_says(&t, "<dt>seen</dt><dd>2 on all 2 workers of round 2, after 0 in round 1</dd>");
    assert_says(&t, "<dt>look at</dt><dd><code>runs/x/history.jsonl records ");
    assert_says(&t, "<code>rankquake run scenarios/planted.yaml --seed 1</code>");
    assert_says(&t, "evidence of restart_count\">");
    assert_before(&t, "<dt>broken</dt>", "<dt>expected</dt>");
    assert_before(&t, "<dt>expected</dt>", "<dt>seen</dt>");
    assert_before(&t, "<dt>look at</dt>", "run it again");
    assert_before(&t, "run it again", "id=\"timeline\"");
    forget(&t);
}

static void test_a_good_run_has_nothing_wrong_to_show(void **state) {
    (void)state;
    struct told t;
    tell_page(&t, "worker-killed", none);
    assert_says(&t, "<header class=\"good\">");
    assert_null(strstr(buf_str(&t.text), "<dt>broken</dt>"));
    char all[80];
    size_t asked = 0; /* the table of checks grows, and not all of them are asked for */
    for (size_t i = 0; i < t.verdict.n; i++)
        asked += t.verdict.v[i].status != FINDING_SKIP;
    snprintf(all, sizeof(all), "<b>%zu<i>/%zu</i></b><span>checks passed</span>", asked, asked);
    assert_says(&t, all);
    forget(&t);
}

static void test_what_was_never_tried_is_told(void **state) {
    (void)state;
    struct told t;
    tell_page(&t, "worker-killed", none);
    assert_says(&t, "<tr><td>worker-kill</td><td><span class=\"soft\">never</span></td>");
    assert_says(&t, " faults that this run did not try</summary>");
    assert_before(&t, "id=\"trouble\"", "net-partition");
    assert_says(&t, "<span class=\"soft\">(clock)</span></li>");
    forget(&t);
}

static void test_every_check_shows_its_evidence(void **state) {
    (void)state;
    struct told t;
    tell_page(&t, "worker-killed", off_by_one);
    for (size_t i = 0; i < t.verdict.n; i++) {
        char name[80];
        snprintf(name, sizeof(name), "</span><b>%s</b>", t.verdict.v[i].check);
        assert_says(&t, name);
    }
    const struct finding *f = verdict_first(&t.verdict);
    char records[120];
    snprintf(records, sizeof(records),
             "<summary>records %lld, %lld</summary>\n<code>{&quot;seq&quot;:%lld,",
             (long long)f->evidence[0], (long long)f->evidence[1], (long long)f->evidence[0]);
    assert_says(&t, records);
    forget(&t);
}

static void test_each_worker_has_a_lane_and_each_fault_a_pin(void **state) {
    (void)state;
    struct told t;
    tell_page(&t, "worker-killed", none);
    const char *page = buf_str(&t.text);
    assert_int_equal(count(page, "class=\"row node\""), 1);
    assert_int_equal(count(page, "class=\"row lane\""), 2);
    assert_int_equal(count(page, "class=\"setup\" d"), 4);
    assert_int_equal(count(page, "href=\"#fault-1\""), 1);
    assert_int_equal(count(page, "id=\"fault-1\""), 1);
    assert_int_equal(count(page, "class=\"end good\" style"), 2);
    assert_int_equal(count(page, "class=\"end hit\" style"), 1);
    assert_int_equal(count(page, "(a fault's target)"), 1);
    assert_says(&t, "Training again after <b>39");
    forget(&t);
}

static void test_a_node_that_is_gone_is_marked(void **state) {
    (void)state;
    struct told t;
    tell_page(&t, "node-powered-off", none);
    assert_int_equal(count(buf_str(&t.text), "<i class=\"away\""), 1);
    assert_before(&t, "<i class=\"away\"", "<div class=\"row node\"><b>n2</b>");
    assert_before(&t, "<div class=\"row node\"><b>n1</b>", "<i class=\"away\"");
    forget(&t);
}

static void test_a_lasting_fault_is_drawn_until_it_is_healed(void **state) {
    (void)state;
    static const struct edit edits[] = {
        {"fault-in-force", NULL, "\"ends_node\":true", "\"ends_node\":false"},
        {"fault-evidence", NULL, NULL,
         "{\"t\":2600000000,\"source\":\"harness\",\"kind\":\"fault-recovered\",\"id\":\"dark\","
         "\"n\":1}"},
        {"fault-", NULL, "node-poweroff", "net-partition"},
        {0}};
    struct told t;
    tell_page(&t, "node-powered-off", edits);
    assert_int_equal(count(buf_str(&t.text), "<i class=\"cut\""), 1);
    assert_int_equal(count(buf_str(&t.text), "<i class=\"lasting\""), 1);
    assert_null(strstr(buf_str(&t.text), "<i class=\"away\""));
    forget(&t);
}

static void test_a_run_without_workers_says_so(void **state) {
    (void)state;
    static const struct edit edits[] = {{"\"t\":1", "\"source\":\"probe\"", "", NULL}, {0}};
    struct told t;
    tell_page(&t, "worker-killed", edits);
    assert_says(&t, "No worker was seen to start.");
    forget(&t);
}

/* ---- what it is made of ---- */

static bool is_void(const char *name) {
    return strcmp(name, "meta") == 0 || strcmp(name, "link") == 0;
}

/* Every element is closed, in order; attributes have quotes. */
static void assert_balanced(const char *page) {
    char open[32][16];
    size_t depth = 0;
    for (const char *at = strstr(page, "<html"); at; at = strchr(at + 1, '<')) {
        char name[16] = "";
        sscanf(at + 1, "%15[a-z0-9/]", name);
        const char *end = strchr(at, '>');
        if (!*name || !end)
            fail_msg("no element: %.60s", at);
        if (name[0] == '/') {
            if (!depth || strcmp(open[--depth], name + 1) != 0)
                fail_msg("<%s> closes <%s>: %.60s", name, open[depth], at);
        } else if (end[-1] != '/' && !is_void(name)) {
            assert_true(depth < 32);
            strcpy(open[depth++], name);
        }
        if (strcmp(name, "script") == 0)
            at = strstr(at, "</script>") - 1;
    }
    assert_int_equal(depth, 0);
}

static void assert_asks_for_nothing(const char *page) {
    static const char *const outside[] = {
        "http:", "https:", "//", "src=", "url(", "@import", "import("};
    for (size_t i = 0; i < sizeof(outside) / sizeof(*outside); i++)
        if (strstr(page, outside[i]))
            fail_msg("the page has %s", outside[i]);
}

static void test_the_page_is_whole_and_asks_for_nothing(void **state) {
    (void)state;
    static const char *const names[] = {"worker-killed", "node-powered-off"};
    for (size_t i = 0; i < 2; i++) {
        struct told t;
        tell_page(&t, names[i], i ? none : off_by_one);
        assert_balanced(buf_str(&t.text));
        assert_asks_for_nothing(buf_str(&t.text));
        assert_null(strstr(buf_str(&t.text), "nan"));
        assert_null(strstr(buf_str(&t.text), "inf%"));
        forget(&t);
    }
}

static void test_whatever_a_run_says_stays_text(void **state) {
    (void)state;
    static const struct edit edits[] = {
        {"{", NULL, "\"n0\"", "\"<b onx='\\\"&\""},
        {"fault-", NULL, "\"kill\"", "\"</script><script>\""},
        {"fault-", NULL, "worker-kill", "<img/x=\\\">"},
        {"\"health\"", NULL, "[]", "[\"<i>\\u0001\"]"},
        {"\"kind\":\"run\"", NULL, "\"seed\":1", "\"seed\":1,\"file\":\"<u>\""},
        {0}};
    struct told t;
    tell_page(&t, "worker-killed", edits);
    const char *page = buf_str(&t.text);
    assert_balanced(page);
    assert_int_equal(count(page, "<script"), 1);
    assert_null(strstr(page, "<b onx"));
    assert_null(strstr(page, "<img"));
    assert_null(strstr(page, "<i>\001"));
    assert_null(strstr(page, "<u>"));
    assert_says(&t, "&lt;b onx='&quot;&amp;");
    forget(&t);
}

static void test_what_turns_text_around_is_seen_on_the_page(void **state) {
    (void)state;
    static const struct edit edits[] = {
        {"{", NULL, "\"n0\"", "\"n\u202e\u2066\u200b\""},
        {"\"health\"", NULL, "[]", "[\"\302\233 \\u001b[2J \\u200f \\ufeff\"]"},
        {0}};
    struct told t;
    tell_page(&t, "worker-killed", edits);
    const char *page = buf_str(&t.text);
    for (size_t i = 0; i < t.text.len;) {
        unsigned c = 0;
        int n = utf8_read(page + i, t.text.len - i, &c);
        if (n <= 0 || (!printable_is(c) && c != '\n'))
            fail_msg("byte %zu: %.20s", i, page + i);
        i += (size_t)n;
    }
    assert_says(&t, "<b>n\\u202e\\u2066\\u200b</b>");
    assert_says(&t, "\\u009b \\x1b[2J \\u200f \\ufeff");
    assert_says(&t, "{unicode-bidi:isolate}");
    forget(&t);
}

/* The hash that the page allows is that of its script. */
static void test_no_script_may_run_but_the_pages_own(void **state) {
    (void)state;
    struct told t;
    struct sha256 s;
    char hex[65], said[65] = "";
    struct buf allowed = {0};
    tell_page(&t, "worker-killed", none);
    const char *begin = strstr(buf_str(&t.text), "<script>") + strlen("<script>");
    const char *hash =
        strstr(buf_str(&t.text), "script-src 'sha256-") + strlen("script-src 'sha256-");
    sha256_init(&s);
    sha256_update(&s, begin, (size_t)(strstr(begin, "</script>") - begin));
    sha256_hex(&s, hex);
    assert_true(base64_take(&allowed, hash, strcspn(hash, "'")));
    assert_int_equal(allowed.len, 32);
    for (size_t i = 0; i < 32; i++)
        sprintf(said + 2 * i, "%02x", (unsigned char)allowed.data[i]);
    assert_string_equal(said, hex);
    assert_null(strstr(buf_str(&t.text), "script-src 'unsafe-inline'"));
    buf_fini(&allowed);
    forget(&t);
}

/* ---- long runs ---- */

static void test_a_long_run_is_thinned_out(void **state) {
    (void)state;
    static const struct long_run all = {.nodes = 16, .workers = 64, .rounds = 10, .steps = 150};
    struct told t;
    tell_long(&t, &all, "html");
    assert_true(t.history.n > 95000);
    assert_true(t.text.len < 2 * 1000 * 1000);
    assert_int_equal(count(buf_str(&t.text), "class=\"row lane\""), all.workers);
    assert_int_equal(count(buf_str(&t.text), "class=\"steps\""), all.workers * all.rounds);
    assert_balanced(buf_str(&t.text));
    forget(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_bad_run_begins_with_what_is_wrong),
        cmocka_unit_test(test_a_good_run_has_nothing_wrong_to_show),
        cmocka_unit_test(test_what_was_never_tried_is_told),
        cmocka_unit_test(test_every_check_shows_its_evidence),
        cmocka_unit_test(test_each_worker_has_a_lane_and_each_fault_a_pin),
        cmocka_unit_test(test_a_node_that_is_gone_is_marked),
        cmocka_unit_test(test_a_lasting_fault_is_drawn_until_it_is_healed),
        cmocka_unit_test(test_a_run_without_workers_says_so),
        cmocka_unit_test(test_the_page_is_whole_and_asks_for_nothing),
        cmocka_unit_test(test_whatever_a_run_says_stays_text),
        cmocka_unit_test(test_what_turns_text_around_is_seen_on_the_page),
        cmocka_unit_test(test_no_script_may_run_but_the_pages_own),
        cmocka_unit_test(test_a_long_run_is_thinned_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
