#include "agent/hosts/remote_launch.h"

#include "base/str.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static const char *const argv[] = {"rankrun", "--nnodes=2", "--", "a b", "", NULL};
static const char *const env[] = {"A=1", "B=x\ny", NULL};

/* What is read from a stream of these bytes. */
static int read_back(const void *data, size_t n, struct arena *a, struct remote_launch *e,
                     struct err *err) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], data, n), n);
    close(ends[1]);
    int code = remote_launch_read(ends[0], a, e, err);
    close(ends[0]);
    return code;
}

static void test_a_remote_launch_comes_whole_and_what_follows_is_left(void **state) {
    (void)state;
    struct buf b = {0};
    struct arena a = {0};
    struct remote_launch e = {"/the/dir", argv, env};
    struct err err = {0};
    int ends[2];
    char next = 0;
    remote_launch_write(&e, &b);
    buf_putc(&b, 15);
    memset(&e, 0, sizeof(e));
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], b.data, b.len), b.len);
    assert_int_equal(remote_launch_read(ends[0], &a, &e, &err), 0);
    assert_string_equal(e.dir, "/the/dir");
    for (size_t i = 0; argv[i]; i++)
        assert_string_equal(e.argv[i], argv[i]);
    assert_null(e.argv[5]);
    assert_string_equal(e.env[1], "B=x\ny");
    assert_null(e.env[2]);
    assert_int_equal(read(ends[0], &next, 1), 1);
    assert_int_equal(next, 15);
    close(ends[0]);
    close(ends[1]);
    arena_fini(&a);
    buf_fini(&b);
}

static void test_a_remote_launch_that_is_cut_or_changed_is_refused(void **state) {
    (void)state;
    struct buf b = {0};
    struct remote_launch e = {"/the/dir", argv, env}, got;
    remote_launch_write(&e, &b);
    for (size_t n = 0; n < b.len; n++) {
        struct arena a = {0};
        struct err err = {0};
        assert_true(read_back(b.data, n, &a, &got, &err) < 0);
        assert_true(err.msg[0]);
        arena_fini(&a);
    }
    for (size_t at = 0; at < 128; at += 7) {
        struct arena a = {0};
        struct err err = {0};
        char was = b.data[at];
        b.data[at] = (char)0xff;
        if (was) /* behind a number nobody looks */
            assert_true(read_back(b.data, b.len, &a, &got, &err) < 0);
        b.data[at] = was;
        arena_fini(&a);
    }
    buf_fini(&b);
}

static void test_what_describes_this_host_is_not_sent(void **state) {
    (void)state;
    struct arena a = {0};
    bool ours = false;
    setenv("HOSTNAME", "here", 1);
    setenv("SSH_AUTH_SOCK", "/tmp/x", 1);
    setenv("NCCL_DEBUG", "INFO", 1);
    const char *const *sent = remote_launch_environment(&a, "OF=us");
    for (size_t i = 0; sent[i]; i++) {
        assert_false(str_starts(sent[i], "HOSTNAME="));
        assert_false(str_starts(sent[i], "SSH_"));
        ours |= str_eq(sent[i], "NCCL_DEBUG=INFO");
    }
    assert_true(ours);
    arena_fini(&a);
}

int main(int argc, char **argv_) {
    if (argc > 1)
        cmocka_set_test_filter(argv_[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_remote_launch_comes_whole_and_what_follows_is_left),
        cmocka_unit_test(test_a_remote_launch_that_is_cut_or_changed_is_refused),
        cmocka_unit_test(test_what_describes_this_host_is_not_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
