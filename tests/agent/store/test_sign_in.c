/* Every answer to who asks for a token, and what becomes of it. HTTP and munge are this file's. */
#include "agent/store/sign_in.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/http/http.h"
#include "base/sys/munge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static char call, way;
static int sent, cancelled, munged;
static char asked_url[64], asked_body[256], authorized[64], shown[64];
static const char *opens; /* what a seal holds; NULL: it cannot be opened */
static void (*answered)(void *arg, long status, const struct buf *text, const char *error);
static void *answered_arg;

static struct http_call *fake_send(const struct http_request *r,
                                   void (*fn)(void *arg, long status, const struct buf *text,
                                              const char *error),
                                   void *arg) {
    sent++;
    answered = fn;
    answered_arg = arg;
    assert_string_equal(r->method, "POST");
    assert_string_equal(r->type, HTTP_JSON);
    assert_int_equal(r->timeout_ms, 5000);
    snprintf(asked_url, sizeof(asked_url), "%s", r->url);
    snprintf(asked_body, sizeof(asked_body), "%s", buf_str(r->body));
    return (struct http_call *)(void *)&call;
}

static int fake_open(const char *sealed, struct buf *out, struct err *err) {
    munged++;
    assert_string_equal(sealed, "MUNGE:x:");
    if (!opens)
        return err_say(err, -1, "no munged here");
    buf_puts(out, opens);
    return 0;
}

static void keep(char to[64], const char *text) {
    snprintf(to, 64, "%s", text);
}

static void is_way(const struct http *h) {
    assert_ptr_equal(h, &way);
}

#define http_send(h, r, fn, arg) (is_way(h), fake_send(r, fn, arg))
#define http_cancel(c)           (assert_ptr_equal(c, &call), cancelled++)
#define http_authorize(h, t)     (is_way(h), keep(authorized, t))
#define http_show_token(h, t)    (is_way(h), keep(shown, t))
#define munge_open(s, out, err)  fake_open(s, out, err)
#include "agent/store/sign_in.c"

static int ends;
static enum sign_in_end how;
static char why[400];

static void on_end(void *arg, enum sign_in_end end, const char *reason) {
    assert_ptr_equal(arg, &ends);
    ends++;
    how = end;
    snprintf(why, sizeof(why), "%s", reason ? reason : "(none)");
}

static char token[TOKEN_MAX + 1];
static struct store_access with_user = {.user = "me", .password = "secret"},
                           without_password = {.user = "me"}, with_seal = {.sealed = &token},
                           with_nothing;

static struct sign_in begin(const struct store_access *access) {
    sent = cancelled = munged = ends = 0;
    keep(authorized, "(none)");
    keep(shown, "(none)");
    memset(token, 'x', sizeof(token) - 1);
    return (struct sign_in){
        .access = access, .http = (struct http *)(void *)&way, .fn = on_end, .arg = &ends};
}

static void answer(struct sign_in *s, long status, const char *text, const char *error) {
    struct buf said = {0};
    buf_puts(&said, text);
    sign_in_begin(s, "http://store/v3/auth/authenticate");
    assert_int_equal(sent, 1);
    assert_string_equal(authorized, ""); /* what was shown before is no more */
    answered(answered_arg, status, &said, error);
    assert_true(ends == 1 && !s->call);
    buf_fini(&said);
}

static void test_a_token_is_asked_for_where_one_may_be_had(void **state) {
    (void)state;
    struct sign_in s = begin(NULL);
    assert_false(sign_in_is_used(&s) || sign_in_is_due(&s));
    s = begin(&with_nothing);
    assert_false(sign_in_is_used(&s) || sign_in_is_due(&s));
    const struct store_access *const those[] = {&with_user, &with_seal};
    for (int i = 0; i < 2; i++) {
        s = begin(those[i]);
        assert_true(sign_in_is_used(&s) && sign_in_is_due(&s));
        s.times = 1;
        assert_true(sign_in_is_used(&s) && !sign_in_is_due(&s));
        s.stale = true;
        assert_true(sign_in_is_due(&s));
    }
}

static void test_who_it_is_stands_in_the_request(void **state) {
    (void)state;
    static const struct {
        const struct store_access *access;
        const char *body;
    } all[] = {{&with_user, "{\"name\":\"me\",\"password\":\"secret\"}"},
               {&without_password, "{\"name\":\"me\",\"password\":\"\"}"},
               {&with_seal, "{}"}};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        struct sign_in s = begin(all[i].access);
        sign_in_begin(&s, "http://store/x");
        assert_string_equal(asked_url, "http://store/x");
        assert_string_equal(asked_body, all[i].body);
        sign_in_begin(&s, "http://store/y"); /* somebody asks already */
        assert_int_equal(sent, 1);
        sign_in_cancel(&s);
        assert_true(cancelled == 1 && !s.call);
        sign_in_cancel(&s);
        assert_int_equal(cancelled, 1);
        sign_in_begin(&s, "http://store/y");
        assert_int_equal(sent, 2);
    }
}

/* authorized NULL: nothing is shown from then on. */
static void expect_user(long status, const char *text, const char *error, enum sign_in_end end,
                        const char *then, const char *reason) {
    struct sign_in s = begin(&with_user);
    s.stale = true;
    answer(&s, status, text, error);
    assert_int_equal(how, end);
    assert_string_equal(authorized, then);
    if (!strstr(why, reason))
        fail_msg("\"%s\" is not in: %s", reason, why);
    assert_int_equal(s.times, end == SIGNED_IN);
    assert_int_equal(s.stale, end != SIGNED_IN);
    assert_int_equal(munged, 0);
}

static void test_an_etcd_gives_a_token_or_says_why_not(void **state) {
    (void)state;
    expect_user(200, "{\"token\":\"t1\"}", NULL, SIGNED_IN, "t1", "(none)");
    expect_user(400, "{\"error\":\"etcdserver: authentication is not enabled\",\"code\":9}", NULL,
                SIGNED_IN, "", "(none)");
    expect_user(400, "{\"error\":\"etcdserver: invalid user ID or password\",\"code\":3}", NULL,
                SIGN_IN_FAILED, "",
                "user me: etcdserver: invalid user ID or password; these are of --rdzv-conf");
    expect_user(400, "{\"token\":\"t1\"}", NULL, SIGN_IN_FAILED, "", "HTTP status 400");
    expect_user(404, "404 page not found", NULL, SIGN_IN_NO_SUCH_URL, "", "HTTP status 404");
    expect_user(200, "hello", NULL, SIGN_IN_FAILED, "", "HTTP status 200, hello");
    expect_user(0, "", "connection refused", SIGN_IN_FAILED, "", "connection refused");
}

/* holds: what it told; "": nothing. */
static void expect_sealed(long status, const char *text, const char *error, enum sign_in_end end,
                          const char *holds, const char *reason) {
    struct sign_in s = begin(&with_seal);
    s.stale = true;
    answer(&s, status, text, error);
    assert_int_equal(how, end);
    if (status)
        assert_string_equal(token, holds);
    assert_string_equal(shown, *holds ? holds : "(none)");
    if (!strstr(why, reason))
        fail_msg("\"%s\" is not in: %s", reason, why);
    assert_int_equal(s.times, end == SIGNED_IN);
    assert_int_equal(s.stale, end != SIGNED_IN);
}

static void test_a_store_of_ours_seals_a_token_or_wants_none(void **state) {
    (void)state;
    static const char seal[] = "{\"munge\":\"MUNGE:x:\"}";
    char longest[TOKEN_MAX + 2];
    opens = "drawn";
    expect_sealed(200, seal, NULL, SIGNED_IN, "drawn", "(none)");
    assert_int_equal(munged, 1);
    static const char *const others[] = {"{}", "{\"munge\":\"\"}", "{\"munge\":5}", "no json", ""};
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        expect_sealed(200, others[i], NULL, SIGNED_IN, "", "(none)");
    expect_sealed(404, seal, NULL, SIGNED_IN, "", "(none)");
    assert_int_equal(munged, 0);
    expect_sealed(0, "", "connection refused", SIGN_IN_FAILED, "", "connection refused");
    assert_int_equal(munged, 0);
    const char *const bad[] = {NULL, "", "with a blank", longest};
    memset(longest, 'a', sizeof(longest) - 1);
    longest[TOKEN_MAX + 1] = '\0';
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        opens = bad[i];
        expect_sealed(200, seal, NULL, SIGN_IN_FAILED, "",
                      "by munge, which cannot be opened here: ");
        assert_non_null(strstr(why, i ? "a token has 1 to"
                                      : "no munged here; the variable RANKRUN_STORE_TOKEN"));
    }
    longest[TOKEN_MAX] = '\0';
    opens = longest;
    struct sign_in s = begin(&with_seal);
    answer(&s, 200, seal, NULL);
    assert_int_equal(how, SIGNED_IN);
    assert_string_equal(token, longest);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_token_is_asked_for_where_one_may_be_had),
        cmocka_unit_test(test_who_it_is_stands_in_the_request),
        cmocka_unit_test(test_an_etcd_gives_a_token_or_says_why_not),
        cmocka_unit_test(test_a_store_of_ours_seals_a_token_or_wants_none),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
