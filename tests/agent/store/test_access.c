/* How a store is reached: what is made of each setting, and the advice for each trouble. HTTP is this file's. */
#include "agent/store/access.h"

#include "base/http/http.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static char of_loop, of_http;
static struct http_way asked;
static int fails; /* 0, or the code */

static struct http *fake_new(const struct loop *l, const struct http_way *w, struct err *err) {
    assert_ptr_equal(l, &of_loop);
    asked = *w;
    if (fails)
        err_say(err, fails, "there is no libcurl");
    return fails ? NULL : (struct http *)(void *)&of_http;
}

#define http_new(l, w, err) fake_new(l, w, err)
#include "agent/store/access.c"

static struct err err;

static struct http *reach(const struct store_access *a) {
    err = (struct err){0};
    memset(&asked, 'x', sizeof(asked));
    return store_access_http((struct loop *)(void *)&of_loop, a, &err);
}

/* cert: what is advised to who has one, or has none. */
static void advice_is(bool any, bool cert) {
    static const char *const advices[HTTP_TROUBLES] = {
        [HTTP_MAY_WANT_TLS] = "; does it want --rdzv-conf protocol=https?",
        [HTTP_MAY_WANT_CERTIFICATE] =
            "; it may want a certificate: --rdzv-conf cert=, key=; or it has no TLS",
        [HTTP_NOT_TRUSTED] =
            "; --rdzv-conf cacert= names the file of who signs the store's certificate",
        [HTTP_OWN_CERTIFICATE] = "; is --rdzv-conf cert=, key= a certificate and its key in PEM?",
        [HTTP_BAD_CACERT] = "; is --rdzv-conf cacert= a file of certificates in PEM?",
    };
    for (int i = 0; i < HTTP_TROUBLES; i++)
        if (!any)
            assert_null(asked.advice[i]);
        else
            assert_string_equal(
                asked.advice[i],
                cert && i == HTTP_MAY_WANT_CERTIFICATE
                    ? "; does the store accept the certificate of --rdzv-conf cert=?"
                    : advices[i]);
    assert_true(!asked.names && !asked.names_n && !asked.token);
}

static void test_each_setting_goes_where_it_is_used(void **state) {
    (void)state;
    struct store_access plain = {.user = "u", .password = "p", .token = "t"},
                        safe = {.https = true, .cacert = "ca", .cert = "c", .key = "k"};
    assert_ptr_equal(reach(NULL), &of_http);
    assert_true(!asked.https && !asked.cacert && !asked.cert && !asked.key);
    advice_is(false, false);
    assert_ptr_equal(reach(&plain), &of_http);
    assert_true(!asked.https && !asked.cacert && !asked.cert && !asked.key);
    advice_is(true, false);
    assert_ptr_equal(reach(&safe), &of_http);
    assert_true(asked.https);
    assert_string_equal(asked.cacert, "ca");
    assert_string_equal(asked.cert, "c");
    assert_string_equal(asked.key, "k");
    advice_is(true, true);
    assert_int_equal(err.code, 0);
    fails = -2;
    assert_null(reach(&safe));
    assert_int_equal(err.code, -2);
    assert_string_equal(err.msg, "there is no libcurl; a store is reached by https through it");
    fails = 0;
}

static void test_what_an_url_begins_with(void **state) {
    (void)state;
    static const struct {
        const char *host, *begins;
    } all[] = {{"store", "://store:65535"},
               {"10.0.0.1", "://10.0.0.1:65535"},
               {"::1", "://[::1]:65535"},
               {"fd00::2", "://[fd00::2]:65535"}};
    for (int i = 0; i < 12; i++) {
        BUF_FINI struct buf url = {0};
        char expected[64];
        struct store_access a = {.https = i % 3 == 2};
        struct tcp_endpoint e = {.port = 65535};
        strcpy(e.host, all[i / 3].host);
        store_access_put_origin(&url, i % 3 ? &a : NULL, &e);
        snprintf(expected, sizeof(expected), "http%s%s", i % 3 == 2 ? "s" : "", all[i / 3].begins);
        assert_string_equal(buf_str(&url), expected);
    }
}

static void test_a_token_is_shown_where_one_is_known(void **state) {
    (void)state;
    char sealed[TOKEN_MAX + 1] = "";
    struct store_access a = {0};
    assert_null(store_access_token(&a));
    a.sealed = &sealed;
    assert_null(store_access_token(&a));
    strcpy(sealed, "d");
    assert_string_equal(store_access_token(&a), "d");
    strcpy(sealed, "drawn");
    assert_string_equal(store_access_token(&a), "drawn");
    a.token = "given";
    assert_string_equal(store_access_token(&a), "given");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_setting_goes_where_it_is_used),
        cmocka_unit_test(test_what_an_url_begins_with),
        cmocka_unit_test(test_a_token_is_shown_where_one_is_known),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
