#include "agent/hosts/remote_launch.h"

#include "base/str.h"
#include "tests/agent/hosts/calls.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
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

/* ---- headers ---- */

enum { HEADER = 32 };

/* One that is right but for a header, which is this number. */
static int read_with(int header, const char *number, struct err *err) {
    struct buf b = {0};
    struct arena a = {0};
    struct remote_launch e = {"/the/dir", argv, env, false}, got = {0};
    remote_launch_write(&e, &b);
    memset(b.data + header * HEADER, 0, HEADER);
    memcpy(b.data + header * HEADER, number, strlen(number));
    int code = read_back(b.data, b.len, &a, &got, err);
    if (!code && header == 1)
        assert_int_equal(got.plain, number[0] - '0');
    arena_fini(&a);
    buf_fini(&b);
    return code;
}

/* Of each number the last that may be, of which more must come, and the first that may not. */
static void test_each_number_is_bounded(void **state) {
    (void)state;
    static const struct {
        int header;
        const char *number;
        int code;
    } rows[] = {
        {1, "0", 0},
        {1, "1", 0},
        {1, "2", -EBADMSG},
        {1, "-1", -EBADMSG},
        {1, "", -EBADMSG},
        {2, "5", 0},
        {2, "0", -EBADMSG},
        {2, "4", -EBADMSG},
        {2, "6", -EBADMSG},
        {2, "65536", -EBADMSG},
        {2, "65537", -EBADMSG},
        {3, "2", 0},
        {3, "1", -EBADMSG},
        {3, "3", -EBADMSG},
        {3, "65537", -EBADMSG},
        {3, "x", -EBADMSG},
        {4, "16777216", -EPIPE},
        {4, "16777217", -EBADMSG},
        {4, "0", -EBADMSG},
        {4, "-5", -EBADMSG},
        {4, "11111111111111111111111111111111", -EBADMSG},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct err err = {0};
        int code = read_with(rows[i].header, rows[i].number, &err);
        if (code != rows[i].code)
            fail_msg("header %d, %s: %d and not %d", rows[i].header, rows[i].number, code,
                     rows[i].code);
        assert_string_equal(err.msg, code == 0        ? ""
                                     : code == -EPIPE ? "read what to do: Broken pipe"
                                                      : "read what to do: Bad message");
    }
}

/* As many of both as there may be, and no more than that. */
static void test_as_many_words_come_as_may_be(void **state) {
    (void)state;
    enum { MOST = 1 << 16 };
    static const char *words[MOST + 2];
    for (int more = 0; more < 4; more++) {
        struct buf b = {0};
        struct arena a = {0};
        struct err err = {0};
        int ends[2];
        for (int i = 0; i < MOST + (more & 1); i++)
            words[i] = "w";
        words[MOST + (more & 1)] = NULL;
        struct remote_launch e = {"/", more & 2 ? argv : words, more & 2 ? words : env, true}, got;
        remote_launch_write(&e, &b);
        assert_int_equal(pipe(ends), 0);
        fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
        assert_int_equal(write(ends[1], b.data, b.len), b.len);
        close(ends[1]);
        int code = remote_launch_read(ends[0], &a, &got, &err);
        assert_int_equal(code, more & 1 ? -EBADMSG : 0);
        close(ends[0]);
        arena_fini(&a);
        buf_fini(&b);
    }
}

static void test_a_body_ends_where_its_last_word_does(void **state) {
    (void)state;
    struct buf b = {0};
    struct remote_launch e = {"/the/dir", argv, env, false}, got = {0};
    remote_launch_write(&e, &b);
    for (size_t at = 5 * HEADER; at < b.len; at++) {
        struct arena a = {0};
        struct err err = {0};
        char was = b.data[at];
        b.data[at] = was ? was : 'x'; /* an end that is missing */
        int code = read_back(b.data, b.len, &a, &got, &err);
        assert_int_equal(code, was ? 0 : -EBADMSG);
        b.data[at] = was ? '\0' : was; /* one too many */
        code = read_back(b.data, b.len, &a, &got, &err);
        assert_int_equal(code, was ? -EBADMSG : 0);
        b.data[at] = was;
        arena_fini(&a);
    }
    buf_fini(&b);
}

/* Nothing to do, and what was sent by another program, or by another version. */
static void test_what_is_no_launch_is_refused(void **state) {
    (void)state;
    struct buf b = {0};
    struct arena a = {0};
    struct err err = {0};
    const char *const nothing[] = {NULL};
    struct remote_launch e = {"/the/dir", nothing, env, false}, got = {.dir = "as it was"};
    remote_launch_write(&e, &b);
    assert_int_equal(read_back(b.data, b.len, &a, &got, &err), -EBADMSG);
    assert_string_equal(err.msg, "read what to do: Bad message");
    char said[200], was[HEADER];
    memcpy(was, b.data, HEADER);
    snprintf(said, sizeof(said), "what came is not from a rankrun of the same version (%s here)",
             strchr(was, ' ') + 1);
    for (size_t i = 0; i <= strlen(was); i++) {
        memcpy(b.data, was, HEADER);
        b.data[i] = (char)(b.data[i] + 1);
        assert_int_equal(read_back(b.data, b.len, &a, &got, &err), -EBADMSG);
        assert_string_equal(err.msg, said);
    }
    memset(b.data, 'r', HEADER);
    assert_int_equal(read_back(b.data, b.len, &a, &got, &err), -EBADMSG);
    assert_string_equal(err.msg, said);
    assert_string_equal(got.dir, "as it was");
    arena_fini(&a);
    buf_fini(&b);
}

/* What does not come, and is no end either, is another error. */
static void test_an_error_of_the_stream_is_told(void **state) {
    (void)state;
    struct arena a = {0};
    struct remote_launch got = {.dir = "as it was"};
    struct err err = {0};
    assert_int_equal(remote_launch_read(-1, &a, &got, &err), -EBADF);
    assert_string_equal(err.msg, "read what to do: Bad file descriptor");
    assert_string_equal(got.dir, "as it was");
    arena_fini(&a);
}

/* In short pieces, and with a signal now and then. */
static void test_pieces_make_a_whole(void **state) {
    (void)state;
    struct buf b = {0};
    struct arena a = {0};
    struct err err = {0};
    static char long_word[5001];
    memset(long_word, 'x', sizeof(long_word) - 1);
    const char *const words[] = {"a", long_word, NULL};
    struct remote_launch e = {"/the/dir", words, env, true}, got = {0};
    remote_launch_write(&e, &b);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], b.data, b.len), b.len);
    close(ends[1]);
    calls.stops = true;
    int code = remote_launch_read(ends[0], &a, &got, &err);
    calls.stops = false;
    close(ends[0]);
    assert_int_equal(code, 0);
    assert_string_equal(got.argv[1], long_word);
    assert_null(got.argv[2]);
    assert_true(got.plain);
    for (size_t n = 4 * HEADER; n < 4 * HEADER + 2; n++) { /* a signal, and then the end */
        assert_int_equal(pipe(ends), 0);
        assert_int_equal(write(ends[1], b.data, n), n);
        close(ends[1]);
        calls.stops = true;
        code = remote_launch_read(ends[0], &a, &got, &err);
        calls.stops = false;
        close(ends[0]);
        assert_int_equal(code, -EPIPE);
    }
    arena_fini(&a);
    buf_fini(&b);
}

/* ---- variables ---- */

/* Each name that stays here, and beside it those that are longer or shorter by a letter. */
static void test_each_variable_goes_or_stays_by_its_name(void **state) {
    (void)state;
    static const char *const all[] = {"SSH_X=1",     "-SSHX=1",        "XDG_RUNTIME=1",
                                      "-XDG=1",      "DBUS_A=1",       "-DBUSY=1",
                                      "HOSTNAME=1",  "-HOSTNAMES=1",   "-HOST=1",
                                      "DISPLAY=1",   "-DISPLAYS=1",    "HOME=1",
                                      "-HOMES=1",    "LOGNAME=1",      "-LOGNAME2=1",
                                      "USER=1",      "-USERS=1",       "SHELL=1",
                                      "-SHELLS=1",   "MAIL=1",         "-MAILS=1",
                                      "PWD=1",       "-PWDS=1",        "OLDPWD=1",
                                      "-OLDPWDS=1",  "SHLVL=1",        "-SHLVLS=1",
                                      "TERM=1",      "-TERMINFO=1",    "_=1",
                                      "-_A=1",       "XAUTHORITY=1",   "-XAUTH=1",
                                      "RANKQUAKE_A", "RANKQUAKE_A=1",  "-RANKQUAKES=1",
                                      "TMPDIR=1",    "-TMPDIRS=1",     "NO_VALUE",
                                      "-EMPTY=",     "-RANKRUN_A=x=y", NULL};
    char **before = environ, *copy[64] = {0};
    struct arena a = {0};
    size_t n = 0, k = 0;
    for (; all[n]; n++)
        copy[n] = (char *)(uintptr_t)(all[n] + (all[n][0] == '-'));
    environ = copy;
    const char *const *sent = remote_launch_environment(&a, NULL);
    const char *const *more = remote_launch_environment(&a, "HOME=of a token");
    environ = before;
    for (size_t i = 0; i < n; i++)
        if (all[i][0] == '-') {
            assert_string_equal(sent[k], all[i] + 1);
            assert_string_equal(more[k], all[i] + 1);
            k++;
        }
    assert_null(sent[k]);
    assert_string_equal(more[k], "HOME=of a token");
    assert_null(more[k + 1]);
    arena_fini(&a);
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
    alarm(100); /* who hangs is ended */
    if (argc > 1)
        cmocka_set_test_filter(argv_[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_remote_launch_comes_whole_and_what_follows_is_left),
        cmocka_unit_test(test_a_remote_launch_that_is_cut_or_changed_is_refused),
        cmocka_unit_test(test_each_number_is_bounded),
        cmocka_unit_test(test_as_many_words_come_as_may_be),
        cmocka_unit_test(test_a_body_ends_where_its_last_word_does),
        cmocka_unit_test(test_what_is_no_launch_is_refused),
        cmocka_unit_test(test_an_error_of_the_stream_is_told),
        cmocka_unit_test(test_pieces_make_a_whole),
        cmocka_unit_test(test_each_variable_goes_or_stays_by_its_name),
        cmocka_unit_test(test_what_describes_this_host_is_not_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
