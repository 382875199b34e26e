/* The far end of a launcher: what it makes of what comes, byte by byte, and how it ends. The agent is this program, started
 * anew (actor.h). */
#include "agent/hosts/remote.h"

#include "agent/hosts/remote_launch.h"
#include "base/sys/process.h"
#include "tests/agent/hosts/actor.h"
#include "tests/agent/hosts/calls.h"
#include "tests/agent/hosts/stage.h"

static char self[PATH_MAX], here[PATH_MAX];
static const char *const nothing[] = {NULL};
static int last_polled;

static int fresh(void **state) {
    (void)state;
    char pid[16];
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    setenv("LAUNCHER", pid, 1);
    setenv("HEARD", stage.paths[0], 1);
    calls = (struct calls){0};
    line_as_json(false);
    return 0;
}

/* The variables of this process are another's meanwhile, and so is its directory. */
static int play(int input, struct process *sender) {
    char *before[512] = {0};
    int saved = fcntl(0, F_DUPFD_CLOEXEC, 10);
    for (size_t i = 0; environ[i] && i < 511; i++)
        before[i] = environ[i];
    dup2(input, 0);
    close(input);
    stage_begin();
    int code = remote_main();
    last_polled = calls.polled;
    calls = (struct calls){0};
    if (sender) /* it may still have something to hear */
        process_reap(sender, -1, NULL);
    stage_end(0);
    clearenv();
    for (size_t i = 0; before[i]; i++)
        putenv(before[i]);
    assert_int_equal(chdir(here), 0);
    dup2(saved, 0);
    close(saved);
    return code;
}

/* A pipe with all that has been sent; its other end is in *ret. */
static int sent(const struct buf *b, int *ret) {
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    fcntl(ends[1], F_SETPIPE_SZ, STAGE_BYTES);
    assert_int_equal(syscall(SYS_write, ends[1], b->data, b->len), b->len);
    *ret = ends[1];
    return ends[0];
}

static int play_bytes(const struct buf *b) {
    int other, input = sent(b, &other);
    close(other);
    return play(input, NULL);
}

/* The sender says no more, and is there until it is over. */
static int launch(const struct remote_launch *e) {
    BUF_FINI struct buf b = {0};
    int other;
    remote_launch_write(e, &b);
    int code = play(sent(&b, &other), NULL);
    close(other);
    return code;
}

/* The sender does what its words say, and is gone then. */
static int launch_beside(const struct remote_launch *e, const char *const *words) {
    BUF_FINI struct buf b = {0};
    int other;
    struct process sender;
    struct err err = {0};
    remote_launch_write(e, &b);
    int input = sent(&b, &other);
    struct process_spawn s = {.argv = words,
                              .file = self,
                              .fds = (const int[]){-1, other, stage.fds[1]},
                              .death_signal = SIGKILL};
    if (process_spawn(&s, &sender, &err) < 0)
        fail_msg("%s", err.msg);
    close(other);
    int code = play(input, &sender);
    process_close(&sender);
    return code;
}

static void expect(int code, int wanted, const char *out, const char *said) {
    stage_assert("standard output", stage.said[0], out);
    stage_assert("standard error", stage.said[1], said);
    assert_int_equal(code, wanted);
}

#define HEAR "hear", "and warn"
#define AGENT(...)                                                                                 \
    (const char *const[]) {                                                                        \
        "rankrun", "agent", __VA_ARGS__, NULL                                                      \
    }

static void test_an_agents_end_is_its_own(void **state) {
    (void)state;
    static const struct {
        const char *word, *about;
        int code;
    } rows[] = {{"end", "0", 0},     {"end", "1", 1},   {"end", "64", 64},
                {"end", "255", 255}, {"die", "9", 137}, {"die", "15", 143}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct remote_launch e = {here, AGENT(rows[i].word, rows[i].about), nothing, false};
        expect(launch(&e), rows[i].code, "", "");
    }
}

/* It is where it was told to be, with variables that are over those that were there, and hears nothing. */
static void test_an_agent_gets_what_was_sent(void **state) {
    (void)state;
    const char *const env[] = {"OURS=sent", "NEW=a=b", "", NULL};
    struct remote_launch e = {stage.folder,
                              AGENT("where", "", "variable", "OURS", "variable", "NEW", "variable",
                                    "KEPT", "input", "", "handles", "2", "handles", "13", "handles",
                                    "15"),
                              env, false};
    char out[512];
    setenv("OURS", "of this login", 1);
    setenv("KEPT", "of this login", 1);
    snprintf(out, sizeof(out),
             "%s\nOURS is sent\nNEW is a=b\nKEPT is of this login\ninput /dev/null, 0 bytes\n"
             "signal 2 is as usual\nsignal 13 is as usual\nsignal 15 is as usual\n",
             stage.folder);
    expect(launch(&e), 0, out, "");
    calls.stops = true;
    expect(launch(&e), 0, out, "");
}

/* A command of its own is looked for in PATH, as what is typed is; an agent is this program, whatever it is called. */
static void test_a_plain_command_is_looked_for(void **state) {
    (void)state;
    char said[256], host[128] = "";
    gethostname(host, sizeof(host) - 1);
    struct remote_launch e = {"/", (const char *const[]){"sh", "-c", "pwd; exit 3", NULL}, nothing,
                              true};
    expect(launch(&e), 3, "/\n", "");
    e.argv = (const char *const[]){"no-such-program", NULL};
    snprintf(said, sizeof(said),
             "rankrun: host %s: execute no-such-program: No such file or directory\n", host);
    expect(launch(&e), 64, "", said);
}

static void test_signals_come_through_and_an_end_is_one(void **state) {
    (void)state;
    struct remote_launch two = {
        here, AGENT("say", "there", "await", "", "say", "", "await", "", "end", "4"), nothing,
        false};
    struct remote_launch one = {here, AGENT("say", "there", "await", "", "end", "5"), nothing,
                                false};
    const char *const *const both =
        AGENT("wait", "", "begin", "\n", HEAR, "wait", "", "begin", "\x0c", HEAR);
    expect(launch_beside(&two, both), 4, "", "heard signal 10\nheard signal 12\n");
    expect(launch_beside(&one, AGENT("wait", "", "begin", "\n", HEAR)), 5, "", "heard signal 10\n");
    expect(launch_beside(&one, AGENT("wait", "")), 5, "signal 15\n", "");
    expect(launch_beside(&two, AGENT("wait", "", "begin", "\n", HEAR, "wait", "")), 4,
           "signal 15\n", "heard signal 10\n");
}

/* What is at its end is looked at no more; and a signal of one's own is no message. */
static void test_nothing_is_read_that_was_not_said(void **state) {
    (void)state;
    struct remote_launch one = {here, AGENT("say", "there", "await", "", "end", "5"), nothing,
                                false};
    expect(launch_beside(&one, AGENT("wait", "")), 5, "signal 15\n", "");
    assert_int_equal(last_polled, -1);
    struct buf b = {0};
    int other;
    struct remote_launch e = {here, AGENT("say", "on", "end", "7"), nothing, false};
    remote_launch_write(&e, &b);
    buf_putc(&b, SIGCONT);
    int input = sent(&b, &other);
    calls.wakes = true;
    expect(play(input, NULL), 7, "on\n", "");
    assert_int_equal(last_polled, 0);
    close(other);
    buf_fini(&b);
}

static void test_an_agent_needs_an_input_of_nobody(void **state) {
    (void)state;
    char said[256], host[128] = "";
    struct remote_launch e = {here, AGENT("say", "on"), nothing, false};
    gethostname(host, sizeof(host) - 1);
    snprintf(said, sizeof(said), "rankrun: host %s: open /dev/null: Permission denied\n", host);
    calls.closed = "/dev/null";
    expect(launch(&e), 64, "", said);
}

/* A terminal sends it to all that it has in the foreground; what it means is told by the sender. */
static void test_a_terminals_signal_is_for_the_sender(void **state) {
    (void)state;
    struct remote_launch e = {here, AGENT("tell", "2", "tell", "13", "tell", "2", "end", "6"),
                              nothing, false};
    expect(launch(&e), 6, "", "");
}

static void test_what_cannot_be_begun_is_told_with_the_host(void **state) {
    (void)state;
    char said[512], host[128] = "", version[64] = "";
    struct buf b = {0}, short_of = {0};
    struct remote_launch e = {"/nowhere/at/all", AGENT("end", "0"), nothing, false};
    gethostname(host, sizeof(host) - 1);
    snprintf(said, sizeof(said),
             "rankrun: host %s: go to /nowhere/at/all (the directory in which the job was started "
             "must be there on every host): No such file or directory\n",
             host);
    expect(launch(&e), 64, "", said);
    remote_launch_write(&e, &b);
    snprintf(version, sizeof(version), "%s", strchr(b.data, ' ') + 1);
    buf_put(&short_of, b.data, b.len - 1);
    snprintf(said, sizeof(said), "rankrun: host %s: read what to do: Broken pipe\n", host);
    expect(play_bytes(&short_of), 64, "", said);
    buf_clear(&short_of);
    expect(play_bytes(&short_of), 64, "", said);
    buf_clear(&b);
    buf_puts(&b, "GET / HTTP/1.1 and more than a header has\n");
    snprintf(said, sizeof(said),
             "rankrun: host %s: what came is not from a rankrun of the same version (%s here)\n",
             host, version);
    expect(play_bytes(&b), 64, "", said);
    buf_fini(&b);
    buf_fini(&short_of);
}

int main(int argc, char **argv) {
    int code = actor_main(argc, argv);
    if (code >= 0)
        return code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_an_agents_end_is_its_own, fresh),
        cmocka_unit_test_setup(test_an_agent_gets_what_was_sent, fresh),
        cmocka_unit_test_setup(test_a_plain_command_is_looked_for, fresh),
        cmocka_unit_test_setup(test_signals_come_through_and_an_end_is_one, fresh),
        cmocka_unit_test_setup(test_nothing_is_read_that_was_not_said, fresh),
        cmocka_unit_test_setup(test_an_agent_needs_an_input_of_nobody, fresh),
        cmocka_unit_test_setup(test_a_terminals_signal_is_for_the_sender, fresh),
        cmocka_unit_test_setup(test_what_cannot_be_begun_is_told_with_the_host, fresh),
    };
    alarm(100); /* who hangs is ended */
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[n > 0 ? n : 0] = '\0';
    assert_non_null(getcwd(here, sizeof(here)));
    stage_open();
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    code = cmocka_run_group_tests(tests, NULL, NULL);
    stage_close();
    return code;
}
