/* One command on several hosts, of which something cannot be had: what was started is ended, and it is told what it was. */
#include "tests/agent/hosts/play.h"

static void cannot(const struct given *given, size_t n, int code, const char *text) {
    memset(&err, 0, sizeof(err));
    assert_int_equal(play(given, n), code);
    stage_assert("the error", err.msg, text);
    assert_int_equal(err.code, code);
    assert_true(fcntl(0, F_GETFD) >= 0); /* what was never opened is not closed */
}

static void test_what_cannot_be_started_ends_what_was(void **state) {
    (void)state;
    const struct given two[] = {HOST(HERE, "await", ""), HOST(REACHED, "end", "0")};
    spec.ssh = "/nowhere/ssh -v";
    cannot(two, 2, -ENOENT, "host 240.0.0.1: execute /nowhere/ssh: No such file or directory");
    spec.ssh = an_ssh;
    for (int k = 1; k <= 8; k++) {
        char text[2 * PATH_MAX];
        const char *name = k > 4 ? REACHED : HERE;
        if (k % 4)
            snprintf(text, sizeof(text), "make pipes for host %s: Too many open files", name);
        else
            snprintf(text, sizeof(text), "host %s: start %s: make a pipe: Too many open files",
                     name, self);
        text[sizeof(err.msg) - 1] = '\0';
        calls.fails = k;
        calls.code = EMFILE;
        cannot(two, 2, -EMFILE, text);
    }
}

static void test_a_program_without_a_place_starts_nothing(void **state) {
    (void)state;
    char before[PATH_MAX], gone[96];
    calls.lost = true;
    cannot(ONE(HERE, "end", "0"), -ENOENT,
           "find the current directory and program: No such file or directory");
    snprintf(gone, sizeof(gone), "%s/gone", stage.folder);
    assert_non_null(getcwd(before, sizeof(before)));
    assert_int_equal(mkdir(gone, 0700) | chdir(gone) | rmdir(gone), 0);
    cannot(ONE(HERE, "end", "0"), -ENOENT,
           "find the current directory and program: No such file or directory");
    assert_int_equal(chdir(before), 0);
}

/* Whatever cannot be watched, nobody is waited for in vain, and what was started is ended. */
static void test_what_cannot_be_watched_ends_all(void **state) {
    (void)state;
    const struct given two[] = {HOST(HERE, "await", ""), HOST(REACHED, "await", "")};
    const struct given well[] = {HOST(HERE, "say", "a"), HOST(REACHED, "say", "b")};
    expect(well, 2, 0, "[127.0.0.1] a\n[240.0.0.1] b\n", "");
    assert_int_equal(watched, 9);
    for (int k = 1; k <= 9; k++) {
        watched = 0;
        fails = k;
        cannot(two, 2, -ENOSPC,
               "watch a descriptor (fs.epoll.max_user_watches): No space left on device");
    }
    fails = 0;
    no_loop = true;
    cannot(two, 2, -EMFILE, "make an event loop: Too many open files");
}

/* Nothing is looked for again and again while nothing happens. */
static void test_who_has_all_is_left_alone(void **state) {
    (void)state;
    expect(ONE(HERE, "say", "a", "say", "b", "say", "c"), 0,
           "[127.0.0.1] a\n[127.0.0.1] b\n[127.0.0.1] c\n", "");
    assert_int_equal(watched, 6); /* three signals, two streams, an end */
}

static void test_a_stream_that_breaks_is_at_its_end(void **state) {
    (void)state;
    static const int passing[] = {EINTR, EAGAIN};
    calls.breaks = EIO;
    expect(ONE(HERE, "begin", "a", "end", "4"), 4, "",
           "rankrun: host 127.0.0.1: read what it says: Input/output error\n"
           "rankrun: host 127.0.0.1: read what it says: Input/output error\n"
           "rankrun: host 127.0.0.1: its agent ended with code 4\n");
    for (int i = 0; i < 2; i++) {
        calls.breaks = passing[i];
        calls.for_now = true;
        expect(ONE(HERE, "say", "a"), 0, "[127.0.0.1] a\n", "");
    }
}

/* It would wait for what to do for ever. */
static void test_who_cannot_be_told_hears_that_nothing_comes(void **state) {
    (void)state;
    static const int errors[] = {EPIPE, ENOSPC};
    for (int i = 0; i < 2; i++) {
        calls.unheard = errors[i];
        assert_int_equal(play(ONE(HERE, "await", "")), 64);
        assert_non_null(strstr(stage.said[1], ": read what to do: Broken pipe\n"));
        assert_non_null(
            strstr(stage.said[1], "rankrun: host 127.0.0.1: its agent ended with code 64\n"));
    }
}

int main(int argc, char **argv) {
    int code;
    if (play_begin(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_what_cannot_be_started_ends_what_was, fresh),
        cmocka_unit_test_setup(test_a_program_without_a_place_starts_nothing, fresh),
        cmocka_unit_test_setup(test_what_cannot_be_watched_ends_all, fresh),
        cmocka_unit_test_setup(test_who_has_all_is_left_alone, fresh),
        cmocka_unit_test_setup(test_a_stream_that_breaks_is_at_its_end, fresh),
        cmocka_unit_test_setup(test_who_cannot_be_told_hears_that_nothing_comes, fresh),
    };
    code = cmocka_run_group_tests(tests, NULL, NULL);
    stage_close();
    return code;
}
