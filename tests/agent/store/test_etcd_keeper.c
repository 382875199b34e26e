/* What the keeper of an etcd does, in which order, and what is left where one of its calls fails. The kernel is played by this file. */
#include "agent/store/etcd.h"
#include "base/sys/file.h"
#include "base/sys/process.h"
#include "tests/agent/store/traced.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>

static mode_t stdin_is;
static int interrupted; /* so often poll is, before it tells something */

static int fake_stat(int fd, struct stat *st) {
    assert_int_equal(fd, 0);
    st->st_mode = stdin_is;
    return trace_fails("fstat") ? -1 : 0;
}

static int fake_poll(const struct pollfd *fds, nfds_t n, int ms) {
    assert_int_equal(n, 2);
    assert_true(fds[0].events == POLLIN && fds[1].events == POLLIN && !fds[0].revents &&
                !fds[1].revents);
    trace_note("poll %d %d for %d", fds[0].fd, fds[1].fd, ms);
    errno = EBADF;
    if (trace_fails("poll"))
        return -1;
    errno = EINTR;
    return interrupted-- > 0 ? -1 : 1;
}

static int fake_mask(int how, const sigset_t *set, sigset_t *old) {
    assert_null(old);
    trace_note("mask %d %d %d", how == SIG_SETMASK, sigismember(set, SIGINT),
               sigismember(set, SIGTERM));
    return 0;
}

static int fake_dir(char *path, struct err *err) {
    trace_note("make %s", path);
    int code = trace_code("mkdtemp", err);
    if (!code)
        strcpy(strchr(path, 'X'), "12345678");
    return code;
}

static int fake_spawn(const struct process_spawn *s, struct process *ret, struct err *err) {
    BUF_FINI struct buf line = {0};
    assert_true(ret->pid == 0 && ret->pidfd == -1);
    assert_true(!s->file && !s->envp && !s->dir && !s->fds && !s->keep && !s->session &&
                !s->group && !s->in_child && s->death_signal == SIGKILL);
    for (const char *const *p = s->argv; *p; p++)
        buf_printf(&line, " %s", *p);
    trace_note("spawn%s", buf_str(&line));
    int code = trace_code("spawn", err);
    if (!code)
        *ret = (struct process){4711, 17};
    return code;
}

static int fake_reap(const struct process *p, int64_t timeout_ns, const int *status) {
    assert_null(status);
    trace_note("reap %d for %lld", (int)p->pid, (long long)timeout_ns);
    return 0;
}

#define fstat(fd, st)               fake_stat(fd, st)
#define poll(fds, n, ms)            fake_poll(fds, n, ms)
#define sigprocmask(how, set, old)  fake_mask(how, set, old)
#define prctl(what, name)           ((what) == PR_SET_NAME ? trace_note("name %s", name) : fail())
#define file_temp_base()            "/base"
#define file_make_temp_dir(p, err)  fake_dir(p, err)
#define file_remove_tree(p, err)    ((void)(err), trace_note("remove %s", p))
#define process_spawn(s, p, err)    fake_spawn(s, p, err)
#define process_signal(p, signo)    trace_note("kill %d %d", (int)(p)->pid, signo)
#define process_reap(p, ns, status) fake_reap(p, ns, status)
#define process_close(p)            trace_note("close %d", (p)->pidfd)
#define fprintf(to, fmt, text)      ((to) == stderr ? trace_note("say " fmt, text) : fail())
#include "agent/store/etcd_keeper.c"

static char *words[WORDS_MAX + 4];

/* A keeper of a program with so many words in all. */
static int keeper_of(size_t n, const char *failing) {
    static char own[] = ETCD_KEEPER_NAME, word[] = "w", first[] = "etcd";
    trace_begin(failing, 1);
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        words[i] = i > n ? NULL : i == 0 ? own : i == 1 ? first : word;
    return etcd_keeper_main(words);
}

#define BEGUN "mask 1 1 1\nname rankrun-etcd\nmake /base/rankrun_etcd_XXXXXXXX\n"
#define DIR   "/base/rankrun_etcd_12345678"
#define KEPT  BEGUN "spawn etcd w --data-dir " DIR "\n"
#define ENDED "kill 4711 9\nreap 4711 for -1\nclose 17\nremove " DIR "\n"

static void test_etcd_is_kept_until_either_end_and_its_folder_goes_last(void **state) {
    (void)state;
    stdin_is = S_IFIFO;
    assert_int_equal(keeper_of(2, ""), 0);
    trace_is(KEPT "poll 0 17 for -1\n" ENDED);
    interrupted = 2;
    assert_int_equal(keeper_of(2, ""), 0);
    trace_is(KEPT "poll 0 17 for -1\npoll 0 17 for -1\npoll 0 17 for -1\n" ENDED);
    assert_int_equal(keeper_of(2, "poll"), 0);
    trace_is(KEPT "poll 0 17 for -1\n" ENDED);
}

static void test_where_a_call_fails_nothing_is_left(void **state) {
    (void)state;
    stdin_is = S_IFIFO;
    assert_int_equal(keeper_of(2, "mkdtemp"), 1);
    trace_is(BEGUN "say mkdtemp failed\n\n");
    assert_int_equal(keeper_of(2, "spawn"), 1);
    trace_is(KEPT "remove " DIR "\nsay spawn failed\n\n");
    assert_int_equal(keeper_of(2, "fstat"), 64);
    trace_is("");
}

static void test_who_starts_it_by_hand_is_told_nothing_of_it(void **state) {
    (void)state;
    static const mode_t others[] = {S_IFREG, S_IFCHR, S_IFSOCK, S_IFDIR};
    stdin_is = S_IFIFO;
    assert_int_equal(keeper_of(0, ""), 64);
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        stdin_is = others[i];
        assert_int_equal(keeper_of(2, ""), 64);
    }
    trace_is("");
}

static void test_as_many_words_as_fit_are_passed_on(void **state) {
    (void)state;
    stdin_is = S_IFIFO;
    for (size_t n = 1; n <= WORDS_MAX + 1; n++) {
        BUF_FINI struct buf expected = {0};
        assert_int_equal(keeper_of(n, ""), 0);
        buf_puts(&expected, BEGUN "spawn etcd");
        for (size_t i = 1; i < n && i < WORDS_MAX; i++)
            buf_puts(&expected, " w");
        buf_puts(&expected, " --data-dir " DIR "\npoll 0 17 for -1\n" ENDED);
        trace_is(buf_str(&expected));
    }
    assert_int_equal(WORDS_MAX, 32);
}

static void test_it_is_known_by_its_name(void **state) {
    (void)state;
    static char own[32] = "rankrun-etcd", longer[32] = "rankrun-etcd2", shorter[32] = "rankrun-etc";
    assert_true(etcd_keeper_is_me((char *[]){own, NULL}));
    assert_false(etcd_keeper_is_me((char *[]){longer, NULL}));
    assert_false(etcd_keeper_is_me((char *[]){shorter, NULL}));
    assert_false(etcd_keeper_is_me((char *[]){NULL, own}));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_etcd_is_kept_until_either_end_and_its_folder_goes_last),
        cmocka_unit_test(test_where_a_call_fails_nothing_is_left),
        cmocka_unit_test(test_who_starts_it_by_hand_is_told_nothing_of_it),
        cmocka_unit_test(test_as_many_words_as_fit_are_passed_on),
        cmocka_unit_test(test_it_is_known_by_its_name),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
