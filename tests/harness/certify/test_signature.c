#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "harness/certify/signature.h"

#include "base/sys/descriptors.h"
#include "base/sys/file.h"
#include "base/sys/process.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const int64_t KEY_WAIT_NS = INT64_C(60) * 1000000000;

static char dir[64], key[80], signers[80];
static struct buf text, signature;

static bool has_keygen(void) {
    return access("/usr/bin/ssh-keygen", X_OK) == 0;
}

static int make_key(void) {
    struct process p;
    struct process_spawn s = {.argv = (const char *const[]){"ssh-keygen", "-q", "-t", "ed25519",
                                                            "-N", "", "-C", "", "-f", key, NULL},
                              .fds = (int[]){-1, -1, 2}};
    int status;
    if (process_spawn(&s, &p, NULL) < 0)
        return -1;
    int r = process_reap(&p, KEY_WAIT_NS, &status);
    process_close(&p);
    return r == 0 && status == 0 ? 0 : -1;
}

static int allow_key(void) {
    BUF_FINI struct buf line = {0};
    char public[100];
    snprintf(public, sizeof(public), "%s.pub", key);
    buf_puts(&line, "ops@example ");
    return file_read(public, 4096, &line, NULL) < 0
               ? -1
               : file_write_atomic(signers, line.data, line.len, NULL);
}

static int set_up(void **state) {
    (void)state;
    strcpy(dir, "/tmp/test_signature_XXXXXX");
    if (file_make_temp_dir(dir, NULL) < 0)
        return -1;
    snprintf(key, sizeof(key), "%s/key", dir);
    snprintf(signers, sizeof(signers), "%s/signers", dir);
    buf_puts(&text, "{\"certificate\":1}\n");
    if (!has_keygen())
        return 0;
    return make_key() < 0 || allow_key() < 0 ? -1 : signature_make(key, &text, &signature, NULL);
}

static int tear_down(void **state) {
    (void)state;
    buf_fini(&text);
    buf_fini(&signature);
    return file_remove_tree(dir, NULL);
}

static int check(void) {
    struct signature_judged of;
    struct err err = {0};
    return signature_check(signers, "20261129120000Z", &text, &signature, &of, &err);
}

static void test_what_was_signed_is_good(void **state) {
    (void)state;
    if (!has_keygen())
        skip();
    assert_int_equal(check(), SIGNATURE_GOOD);
}

/* ssh-keygen takes version 0 for version 1: one bit of the 44th byte. */
static void test_one_bit_that_is_another_is_bad(void **state) {
    (void)state;
    if (!has_keygen())
        skip();
    for (size_t i = 0; i < signature.len; i++)
        for (int bit = 0; bit < 8; bit++) {
            signature.data[i] ^= (char)(1 << bit);
            if (check() != SIGNATURE_BAD)
                fail_msg("bit %d of byte %zu: not refused", bit, i);
            signature.data[i] ^= (char)(1 << bit);
        }
}

static void test_of_another_text_is_bad(void **state) {
    (void)state;
    if (!has_keygen())
        skip();
    buf_putc(&text, '\n');
    assert_int_equal(check(), SIGNATURE_BAD);
    text.len--;
}

int main(void) {
    descriptors_open_standard(); /* those of the processes that are started here */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_signed_is_good),
        cmocka_unit_test(test_one_bit_that_is_another_is_bad),
        cmocka_unit_test(test_of_another_text_is_bad),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
