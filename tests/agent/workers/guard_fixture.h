/* An agent with a real guard and real workers, for the programs that test_guard spawns: each name
 * on their command line is one experiment, in a process of its own. It prints "ok" and exits 0, or
 * says what was wrong. */
#pragma once

#include "agent/workers/guard.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/loop.h"
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

/* Says what was wrong and leaves nothing behind: an orphan would keep the pipe of the test open. */
static void give_up(int line, const char *what) {
    printf("line %d: %s (errno %d)\n", line, what, errno);
    fflush(stdout);
    process_signal_descendants(getpid(), SIGKILL);
    _exit(1);
}

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            give_up(__LINE__, #condition);                                                         \
    } while (0)

static void on_alarm(int signo) {
    (void)signo;
    give_up(0, "it hangs");
}

static const int64_t ms_ns = 1000000, second_ns = 1000000000;

/* What the guard has said so far. */
static struct {
    struct loop *loop;
    struct guard *guard;
    int started, running, exec_failed, exited, reaped, dead;
    pid_t pids[16];
    int statuses[16];
    char error[1024], why[256];
    enum guard_reason reason;
    pid_t dead_pid;
    bool dead_fenced;
} seen;

static void on_started(void *arg, int local_rank, pid_t pid, int pidfd) {
    (void)arg;
    MUST(pidfd >= 0 && fcntl(pidfd, F_GETFD) == FD_CLOEXEC);
    seen.started++;
    seen.pids[local_rank] = pid;
    loop_stop(seen.loop);
}

static void on_running(void *arg) {
    (void)arg;
    seen.running++;
    loop_stop(seen.loop);
}

static void on_exec_failed(void *arg, int local_rank, const char *why) {
    (void)arg;
    (void)local_rank;
    seen.exec_failed++;
    snprintf(seen.why, sizeof(seen.why), "%s", why);
}

static void on_exited(void *arg, int local_rank, pid_t pid, int status, const char *error,
                      int64_t realtime_ns) {
    (void)arg;
    MUST(pid == seen.pids[local_rank] && realtime_ns > 0);
    seen.exited++;
    seen.statuses[local_rank] = status;
    snprintf(seen.error, sizeof(seen.error), "%s", error);
    loop_stop(seen.loop);
}

static void on_reaped(void *arg, enum guard_reason reason) {
    (void)arg;
    seen.reaped++;
    seen.reason = reason;
    loop_stop(seen.loop);
}

static void on_dead(void *arg, pid_t pid, int status, bool fenced) {
    (void)arg;
    MUST(WIFSIGNALED(status));
    seen.dead++;
    seen.dead_pid = pid;
    seen.dead_fenced = fenced;
    loop_stop(seen.loop);
}

static const struct guard_events events = {
    .started = on_started,
    .running = on_running,
    .exec_failed = on_exec_failed,
    .exited = on_exited,
    .reaped = on_reaped,
    .dead = on_dead,
};

/* Turns the loop until *count has come to n; the alarm of main is the deadline. */
static void wait_for(const int *count, int n) {
    while (*count < n)
        MUST(loop_run(seen.loop, NULL) == 0);
}

static struct worker_command worker_command;

static void begin_agent(const char *const *command) {
    worker_command = (struct worker_command){.words = command};
    struct err err = {0};
    seen.guard = guard_new(&worker_command, &err);
    MUST(seen.guard);
    seen.loop = loop_new(&err);
    MUST(seen.loop);
    guard_attach(seen.guard, seen.loop, &events, NULL);
}

/* For the groups that are started from then on; 0: none. */
static int lifeline;
static int restart_count;
/* Scratch files go where they can be counted: none may be left, unless agent and guard both died
 * by SIGKILL. */
static char scratch[] = "/tmp/spawn_guard_XXXXXXXX";

static void start(int workers, bool deadline) {
    struct err err = {0};
    static uint64_t round;
    struct worker_spec s = {
        .run_id = "test",
        .round = ++round,
        .world_size = workers,
        .group_world_size = 1,
        .master_addr = "127.0.0.1",
        .master_port = 29500,
        .local_world_size = workers,
        .role = "default",
        .role_world_size = workers,
        .deadline_required = deadline,
        .lifeline = lifeline,
        .restart_count = restart_count,
    };
    seen.started = seen.running = seen.exec_failed = seen.exited = seen.reaped = seen.dead = 0;
    if (guard_start(seen.guard, &s, &err) < 0) {
        puts(err.msg);
        exit(1);
    }
}

static void end_agent(void) {
    guard_free(seen.guard);
    loop_free(seen.loop);
    MUST(process_signal_descendants(getpid(), 0) == 0);
    MUST(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

static const char *shell[4] = {"sh", "-c"};

static void begin(const char *script) {
    shell[2] = script;
    begin_agent(shell);
}

/* The worker has said that its trap is set before anybody stops it. */
static int ready_pipe[2];

static void wait_ready(int n) {
    char byte;
    while (n-- > 0)
        MUST(read(ready_pipe[0], &byte, 1) == 1);
}

static void begin_ready(const char *script) {
    MUST(pipe2(ready_pipe, O_CLOEXEC) == 0);
    int keep = dup(1);
    MUST(dup2(ready_pipe[1], 1) == 1); /* the guard and the workers inherit it */
    begin(script);
    MUST(dup2(keep, 1) == 1);
    close(keep);
    close(ready_pipe[1]);
}

struct experiment {
    const char *name;
    void (*run)(void);
};

#define EXPERIMENT(name)                                                                           \
    { #name, name }

static bool run(const struct experiment *experiments, const char *name) {
    for (; experiments->name; experiments++)
        if (strcmp(experiments->name, name) == 0) {
            experiments->run();
            return true;
        }
    return false;
}

static int guard_fixture_main(const struct experiment *experiments, int argc, char **argv) {
    if (guard_is_me(argv))
        return guard_main();
    MUST(argc > 1 && file_make_temp_dir(scratch, NULL) == 0);
    setenv("TMPDIR", scratch, 1);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    signal(SIGALRM, on_alarm);
    alarm(30);
    MUST(run(experiments, argv[1]));
    MUST(rmdir(scratch) == 0 || (strcmp(argv[1], "all_stopped") == 0 && errno == ENOTEMPTY));
    file_remove_tree(scratch, NULL);
    puts("ok");
    return 0;
}
