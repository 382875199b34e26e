/* Which etcd a plan can be run with. */
#include "harness/plan/etcd.h"

#include "base/str.h"
#include "base/sys/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static char dir[64];

/* An etcd that says of its version what that one does. */
static void put_etcd(const char *said) {
    char path[200], text[300];
    snprintf(path, sizeof(path), "%s/etcd", dir);
    snprintf(text, sizeof(text), "#!/bin/sh\necho '%s'\necho 'Git SHA: bdbbde998'\n", said);
    assert_int_equal(file_write(path, text, strlen(text), NULL), 0);
    assert_int_equal(chmod(path, 0755), 0);
}

static int prepare(void **state) {
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/etcd_XXXXXX");
    assert_int_equal(file_make_temp_dir(dir, NULL), 0);
    setenv("PATH", dir, 1); /* the stand-ins need sh alone, which the kernel finds */
    return 0;
}

static int clean(void **state) {
    (void)state;
    return file_remove_tree(dir, NULL);
}

/* why NULL: it can be. */
static void assert_etcd(enum store_kind store, const char *launcher, const char *backend,
                        const char *why) {
    struct scenario s = {.cluster.store = store, .job.launcher = launcher};
    struct plan p = {.scenario = &s, .backend = backend};
    struct err err = {0};
    assert_int_equal(etcd_check(&p, &err), why ? -ENOTSUP : 0);
    if (why && !strstr(err.msg, why))
        fail_msg("said \"%s\", wanted \"%s\"", err.msg, why);
}

static void test_one_that_is_missing_is_told_where_it_is_needed(void **state) {
    (void)state;
    assert_etcd(STORE_EMBEDDED, "rankrun", "embedded", NULL);
    assert_etcd(STORE_ETCD, "rankrun", "etcd-v3", "etcd is not installed here");
    assert_etcd(STORE_ETCD_3, "rankrun", "etcd", "etcd is not installed here");
}

static void test_one_without_the_v2_api_serves_no_legacy_protocol(void **state) {
    (void)state;
    put_etcd("etcd Version: 3.6.1");
    assert_etcd(STORE_ETCD, "rankrun", "etcd-v3", NULL);
    assert_etcd(STORE_ETCD, "template", NULL, NULL);
    assert_etcd(STORE_ETCD, "rankrun", "etcd",
                "etcd, of version 3.6, has no more: put an etcd up to 3.5 first in PATH, or write "
                "rdzv_backend: etcd-v3");
    assert_etcd(STORE_ETCD_3, "torchrun", "etcd-v2", "or write store: embedded");
    put_etcd("etcd Version: 4.0.0-rc.1");
    assert_etcd(STORE_ETCD, "torchrun", "etcd", "of version 4.0");
}

static void test_one_with_it_does_and_so_may_one_that_does_not_say(void **state) {
    static const char *const said[] = {"etcd Version: 3.5.21", "etcd Version: 3.4.23",
                                       "etcd Version: 2.3.8", "etcd Version: next", "hello"};
    (void)state;
    for (size_t i = 0; i < sizeof(said) / sizeof(*said); i++) {
        put_etcd(said[i]);
        assert_etcd(STORE_ETCD, "rankrun", "etcd", NULL);
        assert_etcd(STORE_ETCD, "torchrun", "etcd-v2", NULL);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_that_is_missing_is_told_where_it_is_needed,
                                        prepare, clean),
        cmocka_unit_test_setup_teardown(test_one_without_the_v2_api_serves_no_legacy_protocol,
                                        prepare, clean),
        cmocka_unit_test_setup_teardown(test_one_with_it_does_and_so_may_one_that_does_not_say,
                                        prepare, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
