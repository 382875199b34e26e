/* Which variables hold secrets, how their values are spelled, and what is covered of a tree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/sys/file.h"
#include "harness/ci/runner.h"
#include "harness/ci/secrets.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void test_a_secret_is_known_by_its_name(void **state) {
    (void)state;
    static const char *const secret[] = {
        "HF_TOKEN",  "AWS_SECRET_ACCESS_KEY", "db_password",
        "APIKEY",    "SSH_KEYS_FOR_DEPLOY",   "MY_CREDENTIALS_FILE",
        "PGPASSWORD"};
    static const char *const plain[] = {"HOME", "KEYBOARD", "PWD", "PATH", "LANG", "HOTKEYED_TOO"};
    for (size_t i = 0; i < sizeof(secret) / sizeof(*secret); i++)
        assert_true(secrets_is_name(secret[i]));
    for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
        assert_false(secrets_is_name(plain[i]));
    assert_true(secrets_is_name("MONKEYS_ON_TOUR")); /* better one too many */
}

static size_t covered(struct hidden *h, const char *text) {
    char *own = mem_strdup(text);
    size_t n = hidden_cover(h, own, strlen(own));
    free(own);
    return n;
}

static void test_a_value_is_covered_as_pages_spell_it(void **state) {
    (void)state;
    HIDDEN_FINI struct hidden h = {0};
    TEXTS_FINI struct texts names = {0};
    clearenv();
    setenv("API_TOKEN", "a\"b<c>_d", 1);
    setenv("DEPLOY_KEY", "-----BEGIN-----\nline one of it\nshort\n", 1);
    setenv("SHORT_TOKEN", "yes", 1);
    setenv("HARMLESS", "harmless", 1);
    secrets_take(&h, &names);
    assert_int_equal(names.n, 2);
    assert_int_equal(covered(&h, "a\"b<c>_d"), 1);
    assert_int_equal(covered(&h, "{\"x\":\"a\\\"b<c>_d\"}"), 1);
    assert_int_equal(covered(&h, "<p>a&quot;b&lt;c&gt;_d</p>"), 1);
    assert_int_equal(covered(&h, "a\"b&lt;c>\\_d"), 1);
    assert_int_equal(covered(&h, "it said: line one of it."), 1);
    assert_int_equal(covered(&h, "short yes harmless"), 0);
}

static void write_text(const struct folder *f, const char *name, const char *text, size_t n) {
    assert_int_equal(folder_write(f, name, text, n, NULL), 0);
}

/* Across two blocks, in a folder below, behind a zero; a link is left alone. */
static void test_a_tree_is_covered_whole(void **state) {
    (void)state;
    enum { BIG = (1 << 20) + 100 };
    char path[] = "/tmp/rq-secrets-XXXXXX", outside[] = "/tmp/rq-outside-XXXXXX";
    struct folder f = FOLDER_NONE;
    HIDDEN_FINI struct hidden h = {0};
    BUF_FINI struct buf text = {0};
    char *big = mem_array(char, BIG);
    hidden_add(&h, "hunter-22");
    memset(big, 'x', BIG);
    memcpy(big + (1 << 20) - 4, "hunter-22", 9);
    assert_non_null(mkdtemp(path));
    int fd = mkstemp(outside);
    assert_int_equal(write(fd, "hunter-22", 9), 9);
    close(fd);
    assert_int_equal(folder_open(&f, path, NULL), 0);
    assert_int_equal(folder_make(&f, "below/it", 0777, NULL), 0);
    write_text(&f, "big", big, BIG);
    write_text(&f, "below/it/.hidden", "a\0hunter-22\nb", 13);
    assert_int_equal(symlinkat(outside, f.fd, "link"), 0);
    assert_int_equal(secrets_cover_tree(&h, &f, NULL), 0);
    assert_int_equal(folder_read(&f, "big", BIG, &text, NULL), 0);
    assert_int_equal(text.len, BIG);
    assert_memory_equal(text.data + (1 << 20) - 6, "xx*********xx", 13);
    buf_clear(&text);
    assert_int_equal(folder_read(&f, "below/it/.hidden", 100, &text, NULL), 0);
    assert_memory_equal(text.data, "a\0*********\nb", 13);
    buf_clear(&text);
    assert_int_equal(file_read(outside, 100, &text, NULL), 0);
    assert_string_equal(buf_str(&text), "hunter-22");
    folder_close(&f);
    file_remove_tree(path, NULL);
    unlink(outside);
    free(big);
}

static void test_a_runner_is_known_by_its_sign(void **state) {
    (void)state;
    clearenv();
    assert_string_equal(runner_find()->name, "none");
    setenv("GITHUB_ACTIONS", "false", 1);
    assert_string_equal(runner_find()->name, "none");
    for (const struct runner *r = runners; r->sign; r++) {
        clearenv();
        setenv(r->sign, "true", 1);
        assert_ptr_equal(runner_find(), r);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_secret_is_known_by_its_name),
        cmocka_unit_test(test_a_value_is_covered_as_pages_spell_it),
        cmocka_unit_test(test_a_tree_is_covered_whole),
        cmocka_unit_test(test_a_runner_is_known_by_its_sign),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
