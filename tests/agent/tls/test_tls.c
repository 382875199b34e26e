/* The files of a store's TLS: whatever is wrong with them is said before anything starts. */
#include "tests/agent/tls/certificates.h"

#include <errno.h>

/* NULL: not given. */
static void refused(const char *cert, const char *key, const char *client_ca,
                    const char *sentence) {
    struct err err = {0};
    struct tls_files f = {.cert = certificate_path(cert),
                          .key = key ? certificate_path(key) : NULL,
                          .client_ca = client_ca ? certificate_path(client_ca) : NULL};
    assert_null(tls_new(&f, &err));
    assert_int_equal(err.code, -EINVAL);
    if (!strstr(err.msg, sentence))
        fail_msg("expected '%s' in: %s", sentence, err.msg);
}

static void taken(const char *cert, const char *key, const char *client_ca) {
    struct err err = {0};
    struct tls_files f = {.cert = certificate_path(cert),
                          .key = key ? certificate_path(key) : NULL,
                          .client_ca = client_ca ? certificate_path(client_ca) : NULL};
    struct tls *t = tls_new(&f, &err);
    assert_string_equal(err.msg, "");
    assert_non_null(t);
    tls_free(t);
}

static void test_a_certificate_and_its_key_are_taken_from_two_files_or_one(void **state) {
    (void)state;
    taken("server.pem", "server.key", NULL);
    taken("both.pem", NULL, NULL);
    taken("server.pem", "server.key", "ca.pem");
    assert_null(tls_free(NULL));
}

static void test_a_file_that_is_wrong_is_named(void **state) {
    (void)state;
    refused("nowhere.pem", "server.key", NULL, "nowhere.pem: No such file");
    refused("server.pem", "nowhere.key", NULL, "nowhere.key: No such file");
    refused("server.pem", "server.key", "nowhere.ca", "nowhere.ca: No such file");
    refused("empty.pem", "server.key", NULL, "empty.pem: must be a certificate in PEM");
    refused("server.pem", "empty.pem", NULL, "empty.pem: must be the private key of");
    refused("server.pem", NULL, NULL, "server.pem: must be the private key of");
    refused("server.pem", "other.key", NULL, "other.key: must be the private key of");
    refused("server.pem", "server.key", "server.key", "server.key: must be certificates");
}

static void test_a_key_with_a_passphrase_is_refused_and_nobody_is_asked(void **state) {
    (void)state;
    refused("server.pem", "locked.key", NULL, "locked.key: must be the private key of");
    refused("server.pem", "locked.key", NULL, "without a passphrase");
}

/* For the next test. */
static void not_loaded(const char *file, int code, const char *sentence) {
    struct err err = {0};
    struct tls_files f = {.cert = "x"};
    setenv(TLS_VARIABLE, file, 1);
    assert_null(tls_new(&f, &err));
    assert_int_equal(err.code, code);
    if (!strstr(err.msg, sentence))
        fail_msg("expected '%s' in: %s", sentence, err.msg);
}

static void test_without_its_library_a_store_has_no_tls_and_says_what_to_do(void **state) {
    char named[1200] = "";
    const char *before = getenv(TLS_VARIABLE);
    (void)state;
    if (before)
        snprintf(named, sizeof(named), "%s", before);
    not_loaded("/nowhere.so", -ENOEXEC, "/nowhere.so: there is no such file");
    not_loaded("/dev/null", -ENOEXEC, "build it again");
    not_loaded("", -ENOENT, "install libssl-dev and run make");
    if (*named)
        setenv(TLS_VARIABLE, named, 1);
    else
        unsetenv(TLS_VARIABLE);
}

int main(void) {
    const struct CMUnitTest without[] = {
        cmocka_unit_test(test_without_its_library_a_store_has_no_tls_and_says_what_to_do),
    };
    const struct CMUnitTest with[] = {
        cmocka_unit_test(test_a_certificate_and_its_key_are_taken_from_two_files_or_one),
        cmocka_unit_test(test_a_file_that_is_wrong_is_named),
        cmocka_unit_test(test_a_key_with_a_passphrase_is_refused_and_nobody_is_asked),
    };
    int failed = cmocka_run_group_tests(without, NULL, NULL);
    if (!certificates_make())
        return failed;
    failed += cmocka_run_group_tests(with, NULL, NULL);
    certificates_end();
    return failed;
}
