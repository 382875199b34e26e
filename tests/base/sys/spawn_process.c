/* The body of test_process: each name on the command line is one experiment in a process of its
 * own. Prints "ok" and exits 0, or says what was wrong. */
#include "base/sys/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const int64_t second_ns = 1000000000;

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("line %d: %s\n", __LINE__, #condition);                                         \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static int run(const char *const *argv) {
    struct process p;
    struct err err = {0};
    int status = -1;
    struct process_spawn s = {.argv = argv};
    MUST(process_spawn(&s, &p, &err) == 0);
    MUST(process_reap(&p, 10 * second_ns, &status) == 0);
    process_close(&p);
    return status;
}

static void exit_code(void) {
    char text[64];
    const char *argv[] = {"sh", "-c", "exit 7", NULL};
    int status = run(argv);
    MUST(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    MUST(strcmp(process_status_text(status, text, sizeof(text)), "exit code 7") == 0);
}

static void no_such_program(void) {
    struct process p = PROCESS_NONE;
    struct err err = {0};
    const char *argv[] = {"/no/such/program", NULL};
    struct process_spawn s = {.argv = argv};
    MUST(process_spawn(&s, &p, &err) == -ENOENT);
    MUST(strstr(err.msg, "/no/such/program") != NULL);
    MUST(p.pidfd == -1);
    MUST(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

/* A descriptor without CLOEXEC must not reach the child, unless it is to be kept. */
static void descriptors(void) {
    int a = fcntl(1, F_DUPFD, 210), b = fcntl(1, F_DUPFD, 220), c = fcntl(1, F_DUPFD_CLOEXEC, 230);
    const char *script = "[ ! -e /dev/fd/210 ] && [ -e /dev/fd/220 ] && [ -e /dev/fd/230 ]";
    const char *argv[] = {"sh", "-c", script, NULL};
    int keep[] = {c, b}, status;
    struct process p;
    struct process_spawn s = {.argv = argv, .keep = keep, .keep_n = 2};
    MUST(a == 210 && b == 220 && c == 230);
    MUST(process_spawn(&s, &p, NULL) == 0);
    MUST(process_reap(&p, 10 * second_ns, &status) == 0);
    MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void streams_directory_environment(void) {
    int ends[2], status;
    char text[64] = "";
    MUST(pipe(ends) == 0);
    const char *argv[] = {"sh", "-c", "pwd; echo $A", NULL};
    const char *envp[] = {"A=b", NULL};
    int fds[3] = {-1, ends[1], -1};
    struct process p;
    struct process_spawn s = {.argv = argv, .envp = envp, .dir = "/", .fds = fds, .session = true};
    MUST(process_spawn(&s, &p, NULL) == 0);
    MUST(getsid(p.pid) == p.pid);
    close(ends[1]);
    MUST(process_reap(&p, 10 * second_ns, &status) == 0);
    MUST(read(ends[0], text, sizeof(text) - 1) == 4);
    MUST(strcmp(text, "/\nb\n") == 0);
}

static void death_signal(void) {
    MUST(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    int ends[2];
    MUST(pipe2(ends, O_CLOEXEC) == 0);
    pid_t middle = fork();
    if (middle == 0) {
        struct process p;
        const char *argv[] = {"sleep", "1000", NULL};
        struct process_spawn s = {.argv = argv, .death_signal = SIGKILL};
        MUST(process_spawn(&s, &p, NULL) == 0);
        MUST(write(ends[1], &p.pid, sizeof(p.pid)) == sizeof(p.pid));
        _exit(0);
    }
    pid_t pid;
    int status;
    MUST(read(ends[0], &pid, sizeof(pid)) == sizeof(pid));
    MUST(waitpid(middle, &status, 0) == middle);
    MUST(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
}

static void outcome_seen_by_others(void) {
    struct process p;
    int status = -1;
    uint64_t ticks = 0;
    const char *argv[] = {"sleep", "1000", NULL};
    struct process_spawn s = {.argv = argv};
    MUST(process_spawn(&s, &p, NULL) == 0);
    MUST(process_start_ticks(p.pid, &ticks) == 0 && ticks > 0);
    MUST(process_wait_end(&p, 0) == -ETIME);
    MUST(process_zombie_status(p.pid, &status) == -EAGAIN);
    MUST(process_signal(&p, SIGTERM) == 0);
    MUST(process_wait_end(&p, 10 * second_ns) == 0);
    MUST(process_zombie_status(p.pid, &status) == 0 && status == SIGTERM);
    int before = process_exit_info(p.pidfd, &status);
    MUST(before == -EAGAIN || before == -EOPNOTSUPP);
    status = -1;
    MUST(process_reap(&p, 0, &status) == 0 && status == SIGTERM);
    MUST(process_zombie_status(p.pid, &status) == -ESRCH);
    status = -1;
    int after = process_exit_info(p.pidfd, &status);
    MUST((after == 0 && status == SIGTERM) || after == -EOPNOTSUPP);
    MUST(process_exit_info_works() == (after == 0));
    MUST(process_signal(&p, SIGTERM) == -ESRCH);
}

/* A tree that changes session and loses its middle is found all the same below a subreaper. */
static void descendants(void) {
    MUST(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    struct process p;
    int ends[2];
    char byte[2];
    MUST(pipe(ends) == 0);
    int fds[3] = {-1, ends[1], -1};
    const char *argv[] = {"sh", "-c",
                          "setsid sh -c 'echo; exec sleep 1000' & sleep 1000 & echo; exit 0", NULL};
    struct process_spawn s = {.argv = argv, .fds = fds};
    MUST(process_spawn(&s, &p, NULL) == 0);
    MUST(process_reap(&p, 10 * second_ns, NULL) == 0);
    MUST(read(ends[0], byte, 1) == 1 && read(ends[0], byte, 1) == 1);
    MUST(process_signal_descendants(getpid(), 0) == 2);
    MUST(process_signal_descendants(getpid(), SIGKILL) == 2);
    while (waitpid(-1, NULL, 0) > 0)
        ;
    MUST(process_signal_descendants(getpid(), 0) == 0);
}

/* Forks a child that does the same, and ends; every pid lives for some microseconds only. */
static void run_away(int ready) __attribute__((noreturn));
static void run_away(int ready) {
    for (int tell = 1;; tell = 0) {
        if (fork() != 0)
            _exit(0);
        if (tell && write(ready, "x", 1) != 1)
            _exit(1);
    }
}

/* A tree over sessions, one that is stopped, and one that keeps running away. */
static void end_descendants(void) {
    int ends[2];
    char byte[3];
    MUST(pipe(ends) == 0 && process_adopt_orphans() == 0);
    if (fork() == 0)
        run_away(ends[1]);
    if (fork() == 0) {
        setsid();
        MUST(write(ends[1], "x", 1) == 1);
        raise(SIGSTOP);
        _exit(0);
    }
    if (fork() == 0) {
        if (fork() == 0) {
            setsid();
            signal(SIGTERM, SIG_IGN);
            MUST(write(ends[1], "x", 1) == 1);
            for (;;)
                pause();
        }
        _exit(0);
    }
    for (int i = 0; i < 3; i++)
        MUST(read(ends[0], byte, 1) == 1);
    MUST(process_end_descendants(20 * second_ns) == 0);
    MUST(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
    MUST(process_signal_descendants(getpid(), 0) == 0);
    MUST(process_end_descendants(0) == 0); /* there is nothing left to end */
}

static const struct {
    const char *name;
    void (*run)(void);
} experiments[] = {
    {"exit-code", exit_code},
    {"no-such-program", no_such_program},
    {"descriptors", descriptors},
    {"streams-directory-environment", streams_directory_environment},
    {"death-signal", death_signal},
    {"outcome-seen-by-others", outcome_seen_by_others},
    {"descendants", descendants},
    {"end-descendants", end_descendants},
};

int main(int argc, char **argv) {
    alarm(30);
    for (size_t i = 0; argc > 1 && i < sizeof(experiments) / sizeof(experiments[0]); i++)
        if (strcmp(experiments[i].name, argv[1]) == 0) {
            experiments[i].run();
            puts("ok");
            return 0;
        }
    puts("no such experiment");
    return 1;
}
