/* What `rankrun outcome` makes of what agents have told and of how its command ended: each kind of end against each kind of file,
 * and each signal. The command is a double that is not started. */
#include "agent/outcome.h"

#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/line.h"
#include "base/sys/process.h"
#include "tests/agent/captured.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

enum { FILE_MAX = 16 << 20 };

static char dir[64];
static struct buf said;
static struct {
    int spawn_rc;
    const char *told;   /* what agents have added to the file */
    off_t size;         /* that it is made so long */
    bool takes_away;    /* the command takes the file away */
    const int *signals; /* that come while it runs, ended by 0 */
    int status;
} command;
static char path_told[PATH_MAX], printed[4096];
static const char *const argv_true[] = {"srun", "-N", "3", NULL};

/* ---- doubles ---- */

void line_say(const char *level, const char *what, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "%s, %s: ", level, what);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
}

int process_spawn(const struct process_spawn *s, struct process *ret, struct err *err) {
    const char *path = getenv(OUTCOME_VARIABLE);
    struct stat st;
    assert_ptr_equal(s->argv, argv_true);
    assert_false(s->file || s->envp || s->dir || s->fds || s->keep_n || s->session || s->group);
    str_copy(path_told, sizeof(path_told), path);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(st.st_size, 0);
    if (command.spawn_rc < 0)
        return err_say(err, command.spawn_rc, "srun cannot be started");
    if (command.told)
        assert_int_equal(file_write(path, command.told, strlen(command.told), NULL), 0);
    if (command.size)
        assert_int_equal(truncate(path, command.size), 0);
    if (command.takes_away)
        assert_int_equal(unlink(path), 0);
    *ret = (struct process){.pid = 4711, .pidfd = open("/dev/null", O_RDONLY | O_CLOEXEC)};
    return 0;
}

int process_reap(const struct process *p, int64_t timeout_ns, int *ret_status) {
    assert_int_equal(p->pid, 4711);
    assert_int_equal(timeout_ns, 0);
    if (command.signals && *command.signals)
        return -ETIME;
    *ret_status = command.status;
    return 0;
}

int sigwaitinfo(const sigset_t *set, siginfo_t *info) {
    assert_null(info);
    sigset_t blocked;
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    for (int i = 1; i < 32; i++) {
        bool wanted = i == SIGTERM || i == SIGINT || i == SIGHUP || i == SIGQUIT || i == SIGUSR1 ||
                      i == SIGUSR2 || i == SIGCONT || i == SIGCHLD;
        if (sigismember(set, i) != wanted || sigismember(&blocked, i) != wanted)
            fail_msg("signal %d is waited for: %d, blocked: %d", i, sigismember(set, i),
                     sigismember(&blocked, i));
    }
    return *command.signals++;
}

int process_signal(const struct process *p, int signo) {
    assert_int_equal(p->pid, 4711);
    buf_printf(&said, "passes %d on\n", signo);
    return 0;
}

void process_close(struct process *p) {
    if (p->pidfd >= 0)
        close(p->pidfd);
    buf_printf(&said, "ends with %d\n", (int)p->pid);
}

/* ---- tests ---- */

static int set_up(void **state) {
    (void)state;
    strcpy(dir, "/tmp/test_outcome_XXXXXX");
    assert_int_equal(file_make_temp_dir(dir, NULL), 0);
    memset(&command, 0, sizeof(command));
    buf_clear(&said);
    return 0;
}

static int tear_down(void **state) {
    sigset_t none;
    (void)state;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    unsetenv(OUTCOME_VARIABLE);
    assert_int_equal(rmdir(dir), 0); /* nothing is left there */
    buf_fini(&said);
    return 0;
}

static int run(struct err *err) {
    struct captured to_err;
    BUF_FINI struct buf out = {0};
    captured_begin(&to_err, stderr);
    int code = outcome_run(dir, argv_true, err);
    captured_end(&to_err, &out);
    str_copy(printed, sizeof(printed), buf_str(&out));
    return code;
}

#define EXITED(code) ((code) << 8)

static void test_what_agents_told_goes_before_how_the_command_ended(void **state) {
    static const struct {
        const char *told;
        int status, code;
        const char *says;
    } ways[] = {
        {"0\n", EXITED(0), 0, ""},
        {"0\n0\n", EXITED(0), 0, ""},
        {"0\n", EXITED(137), 0, "info, outcome: srun exited with 137, but the job succeeded\n"},
        {"0\n", SIGKILL, 0, "info, outcome: srun exited with 137, but the job succeeded\n"},
        {"1\n", EXITED(0), 1, "info, outcome: srun exited with 0, but the job failed\n"},
        {"0\n1\n0\n", EXITED(0), 1, "info, outcome: srun exited with 0, but the job failed\n"},
        {"3\n1\n", EXITED(3), 3, ""},
        {"1\n255\n", EXITED(255), 255, ""},
        {"256\n0\n", EXITED(0), 0, ""},
        {"-1\nx\n0\n", EXITED(0), 0, ""},
        {"7", EXITED(7), 7, ""},
        {NULL, EXITED(7), 7,
         "warning, outcome: no agent told the job's outcome; srun exited with 7\n"},
        {NULL, EXITED(0), 0,
         "warning, outcome: no agent told the job's outcome; srun exited with 0\n"},
        {"256\n", EXITED(4), 4,
         "warning, outcome: no agent told the job's outcome; srun exited with 4\n"},
        {"\n\n", SIGTERM, 143,
         "warning, outcome: no agent told the job's outcome; srun exited with 143\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
        struct err err = {0};
        command.told = ways[i].told;
        command.status = ways[i].status;
        assert_int_equal(run(&err), ways[i].code);
        assert_string_equal(printed, ways[i].says);
        assert_int_equal(err.code, 0);
        assert_int_equal(access(path_told, F_OK), -1);
        assert_true(str_starts(path_told, dir));
        assert_true(str_starts(path_told + strlen(dir), "/.rankrun-outcome."));
        assert_int_equal(strlen(path_told), strlen(dir) + strlen("/.rankrun-outcome.XXXXXX"));
        assert_string_equal(buf_str(&said), "ends with 4711\n");
        buf_clear(&said);
    }
}

static void test_a_file_that_cannot_be_read_is_told(void **state) {
    struct err err = {0};
    (void)state;
    command.takes_away = true;
    command.status = EXITED(5);
    assert_int_equal(run(&err), 5);
    assert_true(str_starts(printed, "warning, outcome: "));
    assert_non_null(strstr(printed, ".rankrun-outcome."));
    assert_non_null(strstr(printed, "No such file"));
    assert_non_null(strstr(printed, "no agent told the job's outcome; srun exited with 5\n"));
    command.takes_away = false;
    command.size = FILE_MAX + 1;
    assert_int_equal(run(&err), 5);
    assert_non_null(strstr(printed, ".rankrun-outcome."));
    command.size = FILE_MAX;
    assert_int_equal(run(&err), 5);
    assert_string_equal(printed,
                        "warning, outcome: no agent told the job's outcome; srun exited with 5\n");
}

static void test_signals_that_ask_to_end_are_handed_on(void **state) {
    static const int signals[] = {SIGCHLD, SIGTERM, -1,     SIGINT, SIGCHLD,
                                  SIGUSR1, SIGCONT, SIGHUP, 0};
    struct err err = {0};
    (void)state;
    command.signals = signals;
    command.told = "0\n";
    assert_int_equal(run(&err), 0);
    assert_string_equal(buf_str(&said), "passes 15 on\npasses 2 on\npasses 10 on\npasses 18 on\n"
                                        "passes 1 on\nends with 4711\n");
}

static void test_what_cannot_be_started_is_refused_and_leaves_nothing(void **state) {
    struct err err = {0};
    (void)state;
    command.spawn_rc = -ENOENT;
    assert_int_equal(run(&err), -EINVAL);
    assert_string_equal(err.msg, "srun cannot be started");
    assert_int_equal(access(path_told, F_OK), -1);
}

static void test_a_folder_where_no_file_can_be_made_is_named(void **state) {
    char real[64];
    struct err err = {0};
    (void)state;
    strcpy(real, dir);
    strcpy(dir, "/nowhere");
    path_told[0] = '\0';
    assert_int_equal(run(&err), -EINVAL);
    assert_string_equal(err.msg, "--dir /nowhere: No such file or directory");
    strcpy(dir, "/proc");
    assert_int_equal(run(&err), -EINVAL);
    assert_true(str_starts(err.msg, "--dir /proc: make a file there: "));
    assert_string_equal(path_told, "");
    strcpy(dir, real);
}

/* The file's own name takes 24 bytes more. */
static void test_a_folder_whose_name_is_too_long_is_refused(void **state) {
    enum { ADDED = 24 };
    char deep[PATH_MAX];
    struct err err = {0};
    size_t n = (size_t)snprintf(deep, sizeof(deep), "%s", dir), first = n;
    (void)state;
    while (n + ADDED + 1 < PATH_MAX - 1) {
        size_t part = PATH_MAX - 1 - ADDED - n < 250 ? PATH_MAX - 1 - ADDED - n : 200;
        deep[n] = '/';
        memset(deep + n + 1, 'd', part - 1);
        deep[n += part] = '\0';
        assert_int_equal(mkdir(deep, 0700), 0);
    }
    assert_int_equal(n, PATH_MAX - 1 - ADDED);
    command.told = "0\n";
    assert_int_equal(outcome_run(deep, argv_true, &err), 0);
    assert_int_equal(rmdir(deep), 0);
    strcat(deep, "d");
    assert_int_equal(mkdir(deep, 0700), 0);
    assert_int_equal(outcome_run(deep, argv_true, &err), -EINVAL);
    assert_int_equal(err.code, -ENAMETOOLONG);
    for (; n > first; *strrchr(deep, '/') = '\0', n = strlen(deep))
        assert_int_equal(rmdir(deep), 0);
}

static void tell(const char *path, int code) {
    struct captured to_err;
    BUF_FINI struct buf out = {0};
    captured_begin(&to_err, stderr);
    outcome_tell(path, code);
    captured_end(&to_err, &out);
    str_copy(printed, sizeof(printed), buf_str(&out));
}

static void test_each_agent_adds_its_code(void **state) {
    char path[96], link[96], fifo[96];
    BUF_FINI struct buf text = {0};
    (void)state;
    snprintf(path, sizeof(path), "%s/file", dir);
    snprintf(link, sizeof(link), "%s/link", dir);
    snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
    tell(NULL, 1);
    assert_string_equal(printed, "");
    tell(path, 1); /* it is not made here */
    assert_int_equal(access(path, F_OK), -1);
    assert_true(str_starts(printed, "warning, outcome: "));
    assert_true(str_starts(printed + strlen("warning, outcome: "), path));
    assert_true(str_ends(printed, ": No such file or directory; give rankrun outcome a --dir that "
                                  "the hosts of the job share\n"));
    assert_int_equal(file_write(path, "", 0, NULL), 0);
    tell(path, 0);
    assert_string_equal(printed, "");
    tell(path, 143);
    assert_int_equal(file_read(path, 100, &text, NULL), 0);
    assert_string_equal(buf_str(&text), "0\n143\n");
    assert_int_equal(symlink(path, link), 0);
    tell(link, 1);
    assert_non_null(strstr(printed, "link: "));
    assert_int_equal(mkfifo(fifo, 0600), 0);
    tell(fifo, 1); /* nobody reads it: it does not wait */
    assert_non_null(strstr(printed, "fifo: "));
    tell("/dev/full", 1);
    assert_non_null(strstr(printed, "/dev/full: No space left"));
    unlink(path), unlink(link), unlink(fifo);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        TEST(test_what_agents_told_goes_before_how_the_command_ended),
        TEST(test_a_file_that_cannot_be_read_is_told),
        TEST(test_signals_that_ask_to_end_are_handed_on),
        TEST(test_what_cannot_be_started_is_refused_and_leaves_nothing),
        TEST(test_a_folder_where_no_file_can_be_made_is_named),
        TEST(test_a_folder_whose_name_is_too_long_is_refused),
        TEST(test_each_agent_adds_its_code),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
