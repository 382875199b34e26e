#include "tests/agent/options_fixture.h"

#include "base/sys/file.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define OF_ETCD "rankrun --nnodes 2 --rdzv-backend=etcd-v3 --rdzv-endpoint=h --rdzv-conf "

static void test_an_etcd_is_reached_with_certificates_by_either_of_torchruns_names(void **state) {
    (void)state;
    assert_int_equal(
        parse(OF_ETCD "protocol=https,cacert=/dev/null,cert=/dev/zero,key=/dev/full a.py"), 0);
    assert_true(o.rdzv.access.https);
    assert_string_equal(o.rdzv.access.cacert, "/dev/null");
    assert_string_equal(o.rdzv.access.cert, "/dev/zero");
    assert_string_equal(o.rdzv.access.key, "/dev/full");
    assert_int_equal(
        parse(OF_ETCD "protocol=https,ca_cert=/dev/null,ssl_cert=/dev/zero,ssl_cert_key=/dev/full "
                      "a.py"),
        0);
    assert_string_equal(o.rdzv.access.cacert, "/dev/null");
    assert_string_equal(o.rdzv.access.key, "/dev/full");
    REFUSED(OF_ETCD "protocol=https,cacert=/nowhere.pem a.py", "cacert=/nowhere.pem: No such file");
    REFUSED(OF_ETCD "protocol=https,key=/dev/null a.py", "its certificate is missing");
    REFUSED(OF_ETCD "protocol=ftp a.py", "must be http or https");
    assert_int_equal(parse(OF_ETCD "cacert=/dev/null a.py"), 0);
    assert_non_null(strstr(o.notices[0], "no effect without protocol=https"));
}

static void test_a_password_comes_from_a_file_or_a_variable_that_workers_do_not_see(void **state) {
    (void)state;
    REFUSED(OF_ETCD "user=me a.py", "its password is missing");
    REFUSED(OF_ETCD "password=x a.py", "without user=");
    REFUSED(OF_ETCD "user=me,password_file=/nowhere a.py", "password_file: ");
    setenv("RANKRUN_STORE_PASSWORD", "of,it", 1);
    assert_int_equal(parse(OF_ETCD "user=me,protocol=https a.py"), 0);
    assert_string_equal(o.rdzv.access.user, "me");
    assert_string_equal(o.rdzv.access.password, "of,it");
    assert_null(getenv("RANKRUN_STORE_PASSWORD"));
    assert_int_equal(parse(OF_ETCD "user=me,password=x a.py"), 0);
    assert_non_null(strstr(o.notices[0], "can read command lines"));
    assert_non_null(strstr(o.notices[1], "crosses the network"));
    REFUSED("rankrun --nnodes 2 --rdzv-backend=etcd --rdzv-endpoint=h --rdzv-conf "
            "user=me,password=x a.py",
            "knows no users");
}

#define OF_OWN "rankrun --nnodes 2 --rdzv-endpoint=h --rdzv-conf "

static void test_a_store_that_is_served_with_a_certificate_is_asked_by_https(void **state) {
    (void)state;
    TAKEN(OF_OWN "store_cert=/a,store_key=/b,store_client_ca=/c a.py");
    assert_string_equal(o.rdzv.tls.cert, "/a"); /* looked at by who serves alone */
    assert_string_equal(o.rdzv.tls.key, "/b");
    assert_string_equal(o.rdzv.tls.client_ca, "/c");
    assert_true(o.rdzv.access.https);
    assert_null(o.rdzv.access.cert);
    TAKEN(OF_OWN "protocol=https,store_cert=/a,cacert=/dev/null a.py");
    assert_string_equal(o.rdzv.access.cacert, "/dev/null");
    assert_null(o.rdzv.tls.key);
    assert_null(o.notices[0]);
    TAKEN("rankrun --nnodes 2 --master-addr h --rdzv-conf store_cert=/a a.py");
    assert_string_equal(o.rdzv.tls.cert, "/a");
    TAKEN(OF_OWN "lifeline=on,store_cert=/a a.py");
    assert_non_null(strstr(o.notices[0], "lifeline=on has no effect over https"));
    TAKEN(OF_OWN "lifeline=on a.py");
    assert_null(o.notices[0]);
    TAKEN(OF_OWN "hb=150ms a.py");
    assert_false(o.rdzv.access.https);
    REFUSED(OF_OWN "store_cert=/a,protocol=http a.py", "store_cert=/a: a store with a certificate");
    REFUSED(OF_OWN "store_key=/b a.py", "store_key: the certificate of the store is missing");
    REFUSED(OF_OWN "store_client_ca=/c a.py", "store_client_ca: the certificate of the store");
}

static void test_where_no_store_is_served_a_certificate_has_no_effect(void **state) {
    static const char *const lines[] = {OF_ETCD "store_cert=/a a.py",
                                        "rankrun --standalone --rdzv-conf store_cert=/a a.py",
                                        "rankrun --rdzv-conf store_cert=/a a.py"};
    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        TAKEN(lines[i]);
        assert_string_equal(o.notices[0], "--rdzv-conf: store_cert has no effect here");
        assert_null(o.rdzv.tls.cert);
    }
}

static void test_a_store_takes_its_certificate_as_options(void **state) {
    (void)state;
    TAKEN("rankrun store --cert /a --key /b --client-ca /c");
    assert_string_equal(o.rdzv.tls.cert, "/a");
    assert_string_equal(o.rdzv.tls.key, "/b");
    assert_string_equal(o.rdzv.tls.client_ca, "/c");
    TAKEN("rankrun store");
    assert_null(o.rdzv.tls.cert);
    REFUSED("rankrun store --key /b",
            "--key: the certificate of the store is missing: --cert FILE");
    REFUSED("rankrun store --client-ca /c", "--client-ca: the certificate of the store is missing");
    REFUSED("rankrun --cert /a a.py", "unknown option --cert");
}

static void test_an_embedded_store_has_a_token_that_workers_do_not_see(void **state) {
    static const char path[] = "/tmp/rankrun-test-token";
    static const char job[] = "rankrun --nnodes 2 --rdzv-endpoint=h";
    char line[256];
    (void)state;
    TAKEN("rankrun --nnodes 2 --rdzv-endpoint=h a.py");
    assert_null(o.rdzv.access.token);
    setenv("RANKRUN_STORE_TOKEN", "of-it", 1);
    snprintf(line, sizeof(line), "%s a.py", job);
    TAKEN(line);
    assert_string_equal(o.rdzv.access.token, "of-it");
    assert_null(getenv("RANKRUN_STORE_TOKEN"));
    setenv("RANKRUN_STORE_TOKEN", "of it", 1);
    REFUSED(line, "RANKRUN_STORE_TOKEN: a token has 1 to");
    /* An etcd has users; the token is not for workers there either. */
    setenv("RANKRUN_STORE_TOKEN", "t", 1);
    assert_int_equal(parse(OF_ETCD "token=x a.py"), 0);
    assert_non_null(strstr(o.notices[0], "token has no effect"));
    assert_null(o.rdzv.access.token);
    assert_null(getenv("RANKRUN_STORE_TOKEN"));

    assert_int_equal(file_write(path, "from-file\n", 10, NULL), 0);
    setenv("RANKRUN_STORE_TOKEN", "another", 1);
    snprintf(line, sizeof(line), "%s --rdzv-conf token_file=%s a.py", job, path);
    TAKEN(line);
    assert_string_equal(o.rdzv.access.token, "from-file");
    snprintf(line, sizeof(line), "rankrun store --token-file %s", path);
    TAKEN(line);
    assert_string_equal(o.rdzv.access.token, "from-file");
    assert_int_equal(file_write(path, "\n", 1, NULL), 0);
    REFUSED(line, ": a token has 1 to");
    assert_non_null(strstr(err.msg, path));
    unlink(path);
    REFUSED(line, "--token-file: ");
    /* TLS is spoken by what stands before it. */
    snprintf(line, sizeof(line), "%s --rdzv-conf protocol=https,cacert=/dev/null,token=x a.py",
             job);
    TAKEN(line);
    assert_true(o.rdzv.access.https);
    assert_string_equal(o.rdzv.access.cacert, "/dev/null");
    snprintf(line, sizeof(line), "%s --rdzv-conf key=/dev/null a.py", job);
    REFUSED(line, "its certificate is missing");
    snprintf(line, sizeof(line), "%s --rdzv-conf user=me a.py", job);
    TAKEN(line);
    assert_non_null(strstr(o.notices[0], "user has no effect"));
    snprintf(line, sizeof(line), "%s --rdzv-conf token=x a.py", job);
    TAKEN(line);
    assert_string_equal(o.rdzv.access.token, "x");
    assert_non_null(strstr(o.notices[0], "can read command lines"));
}

static void test_a_store_of_the_hosts_alone_has_a_token_that_is_drawn(void **state) {
    static const char *const theirs[] = {"rankrun -H a,b --rdzv-endpoint s:1 prog",
                                         "rankrun -H a,b "
                                         "--rdzv-backend etcd-v3 --rdzv-endpoint s:2379"
                                         " prog"};
    char first[128];
    (void)state;
    TAKEN("rankrun -H a,b prog");
    assert_int_equal(strlen(o.host_token), strlen("RANKRUN_STORE_TOKEN=") + 32);
    snprintf(first, sizeof(first), "%s", o.host_token);
    TAKEN("rankrun -H a,b --rdzv-backend static prog");
    assert_non_null(o.host_token);
    assert_string_not_equal(o.host_token, first);
    for (size_t i = 0; i < sizeof(theirs) / sizeof(*theirs); i++) {
        TAKEN(theirs[i]);
        assert_null(o.host_token);
    }
    setenv("RANKRUN_STORE_TOKEN", "said", 1);
    TAKEN("rankrun -H a,b prog");
    assert_null(o.host_token);
    assert_string_equal(getenv("RANKRUN_STORE_TOKEN"), "said"); /* it goes on to the hosts */
    unsetenv("RANKRUN_STORE_TOKEN");
}

static void test_under_slurm_a_store_is_asked_for_a_sealed_token(void **state) {
    (void)state;
    TAKEN("rankrun --nnodes 2 --rdzv-endpoint=h a.py");
    assert_null(o.rdzv.access.sealed);
    setenv("SLURM_JOB_ID", "7", 1);
    TAKEN("rankrun --nnodes 2 --rdzv-endpoint=h a.py");
    assert_non_null(o.rdzv.access.sealed);
    assert_null(store_access_token(&o.rdzv.access));
    snprintf(*o.rdzv.access.sealed, sizeof(*o.rdzv.access.sealed), "opened");
    assert_string_equal(store_access_token(&o.rdzv.access), "opened");
    TAKEN("rankrun --nnodes 2 --rdzv-endpoint=h --rdzv-conf token=x a.py");
    assert_null(o.rdzv.access.sealed);
    TAKEN(OF_ETCD "hb=500ms a.py");
    assert_null(o.rdzv.access.sealed);
    unsetenv("SLURM_JOB_ID");
    TAKEN("rankrun status --rdzv-endpoint h --rdzv-id j");
    assert_non_null(o.rdzv.access.sealed);
}

static void test_the_bytes_of_a_secret_leave_the_environment(void **state) {
    char *block;
    (void)state;
    setenv("RANKRUN_STORE_TOKEN", "of-the-job", 1);
    block = getenv("RANKRUN_STORE_TOKEN");
    TAKEN("rankrun --nnodes 2 --rdzv-endpoint=h a.py");
    assert_string_equal(o.rdzv.access.token, "of-the-job");
    for (size_t i = 0; i < strlen("of-the-job"); i++)
        assert_int_equal(block[i], 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(
            test_an_etcd_is_reached_with_certificates_by_either_of_torchruns_names, clear),
        cmocka_unit_test_teardown(
            test_a_password_comes_from_a_file_or_a_variable_that_workers_do_not_see, clear),
        cmocka_unit_test_teardown(test_a_store_that_is_served_with_a_certificate_is_asked_by_https,
                                  clear),
        cmocka_unit_test_teardown(test_where_no_store_is_served_a_certificate_has_no_effect, clear),
        cmocka_unit_test_teardown(test_a_store_takes_its_certificate_as_options, clear),
        cmocka_unit_test_teardown(test_an_embedded_store_has_a_token_that_workers_do_not_see,
                                  clear),
        cmocka_unit_test_teardown(test_a_store_of_the_hosts_alone_has_a_token_that_is_drawn, clear),
        cmocka_unit_test_teardown(test_under_slurm_a_store_is_asked_for_a_sealed_token, clear),
        cmocka_unit_test_teardown(test_the_bytes_of_a_secret_leave_the_environment, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
