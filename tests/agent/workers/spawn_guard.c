/* The body of test_guard: each name on the command line is one experiment, in which this process is
 * an agent with a real guard and real workers. Prints "ok" and exits 0, or says what was wrong.
 *
 * An experiment that must survive its agent runs it in a child ("agent-..."), is itself a
 * subreaper, and so sees whatever is left over. */
#include "agent/options.h"
#include "agent/sys/clock.h"
#include "agent/sys/file.h"
#include "agent/sys/loop.h"
#include "agent/sys/process.h"
#include "agent/workers/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("line %d: %s (errno %d)\n", __LINE__, #condition, errno);                       \
            fflush(stdout);                                                                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

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
} seen;

static void on_started(void *arg, int local_rank, pid_t pid, int pidfd) {
    (void)arg;
    MUST(pidfd >= 0 && fcntl(pidfd, F_GETFD) == FD_CLOEXEC);
    seen.started++;
    seen.pids[local_rank] = pid;
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

static void on_dead(void *arg, int status) {
    (void)arg;
    MUST(WIFSIGNALED(status));
    seen.dead++;
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

static struct options options;

static void begin_agent(const char *const *command) {
    options = (struct options){.command = command};
    struct err err = {0};
    seen.guard = guard_new(&options, &err);
    MUST(seen.guard);
    seen.loop = loop_new(&err);
    MUST(seen.loop);
    guard_attach(seen.guard, seen.loop, &events, NULL);
}

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

static bool exited_with(int status, int code) {
    return WIFEXITED(status) && WEXITSTATUS(status) == code;
}

static void workers_exit(void) {
    begin("exit $((3 + LOCAL_RANK))");
    options.no_python = true;
    start(3, false);
    wait_for(&seen.reaped, 1);
    MUST(seen.started == 3 && seen.exited == 3 && seen.running == 1);
    for (int i = 0; i < 3; i++)
        MUST(exited_with(seen.statuses[i], 3 + i));
    MUST(seen.reason == GUARD_ENDED && guard_alive(seen.guard) == 0);
    end_agent();
}

static void own_session(void) {
    begin("exec sleep 1000");
    start(2, false);
    wait_for(&seen.running, 1);
    for (int i = 0; i < 2; i++)
        MUST(getsid(seen.pids[i]) == seen.pids[i]);
    guard_kill(seen.guard);
    wait_for(&seen.reaped, 1);
    MUST(seen.reason == GUARD_KILLED && WTERMSIG(seen.statuses[1]) == SIGKILL);
    end_agent();
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

static void stop_with_grace(void) {
    begin_ready("trap 'exit 42' TERM; echo; sleep 1000 & wait");
    start(2, false);
    wait_ready(2);
    guard_stop(seen.guard, SIGTERM, 60000);
    wait_for(&seen.reaped, 1);
    MUST(exited_with(seen.statuses[0], 42) && exited_with(seen.statuses[1], 42));
    MUST(seen.reason == GUARD_STOPPED);
    end_agent();
}

static void stop_ignored(void) {
    begin_ready("trap '' TERM; echo; while :; do sleep 1000; done");
    start(2, false);
    wait_ready(2);
    int64_t before = clock_monotonic_ns();
    guard_stop(seen.guard, SIGTERM, 200);
    wait_for(&seen.reaped, 1);
    MUST(clock_monotonic_ns() - before >= 200 * ms_ns);
    MUST(WTERMSIG(seen.statuses[0]) == SIGKILL && WTERMSIG(seen.statuses[1]) == SIGKILL);
    MUST(seen.reason == GUARD_STOPPED);
    end_agent();
}

static void stop_shortened(void) {
    begin_ready("trap '' TERM; echo; while :; do sleep 1000; done");
    start(1, false);
    wait_ready(1);
    guard_stop(seen.guard, SIGTERM, 600000);
    guard_stop(seen.guard, SIGTERM, 0);
    wait_for(&seen.reaped, 1);
    MUST(WTERMSIG(seen.statuses[0]) == SIGKILL);
    end_agent();
}

static void stop_reaches_stopped(void) {
    begin("exec sleep 1000");
    start(1, false);
    wait_for(&seen.running, 1);
    kill(seen.pids[0], SIGSTOP);
    guard_stop(seen.guard, SIGTERM, 600000);
    wait_for(&seen.reaped, 1);
    MUST(WTERMSIG(seen.statuses[0]) == SIGTERM);
    end_agent();
}

static void other_signals(void) {
    begin_ready("trap 'exit 5' USR1; echo; while :; do sleep 0.01; done");
    start(1, false);
    wait_ready(1);
    guard_signal(seen.guard, SIGUSR1);
    wait_for(&seen.reaped, 1);
    MUST(exited_with(seen.statuses[0], 5) && seen.reason == GUARD_ENDED);
    end_agent();
}

/* One orphan in the worker's group, one that has left it, one in a session below that. */
static void grandchildren(void) {
    begin_ready("sleep 1000 & setsid sh -c 'sleep 1000 & echo; exec setsid sleep 1000' &"
                "exec sleep 1000");
    start(2, false);
    wait_ready(2);
    guard_stop(seen.guard, SIGTERM, 60000);
    wait_for(&seen.reaped, 1);
    MUST(WTERMSIG(seen.statuses[0]) == SIGTERM && seen.reason == GUARD_STOPPED);
    MUST(process_signal_descendants(getpid(), 0) == 1); /* the guard */
    end_agent();
}

/* Workers that end by themselves and leave something behind are cleaned up after as well. */
static void left_behind(void) {
    begin_ready("setsid sleep 1000 & sleep 1000 & exit 0");
    start(2, false);
    wait_for(&seen.reaped, 1);
    MUST(exited_with(seen.statuses[0], 0) && seen.reason == GUARD_ENDED);
    end_agent();
}

static void no_such_program(void) {
    static const char *const command[] = {"/no/such/program", NULL};
    begin_agent(command);
    options.no_python = true;
    start(2, false);
    wait_for(&seen.reaped, 1);
    MUST(seen.exec_failed == 2 && seen.exited == 2 && seen.running == 0);
    MUST(exited_with(seen.statuses[0], 127) && exited_with(seen.statuses[1], 127));
    MUST(strstr(seen.error, "/no/such/program: No such file") && strcmp(seen.error, seen.why) == 0);
    end_agent();
}

static void error_file(void) {
    begin("printf '{\"message\": {\"message\": \"ValueError: bad\", \"extraInfo\": {}}}' "
          "> $TORCHELASTIC_ERROR_FILE; exit 1");
    start(1, false);
    wait_for(&seen.reaped, 1);
    MUST(strcmp(seen.error, "ValueError: bad") == 0);
    end_agent();
}

static void again_and_again(void) {
    begin("exec sleep 1000");
    for (int i = 0; i < 20; i++) {
        start(8, false);
        if (i % 2)
            wait_for(&seen.running, 1);
        guard_stop(seen.guard, SIGTERM, 60000);
        wait_for(&seen.reaped, 1);
        MUST(seen.started == 8 && seen.exited == 8);
    }
    end_agent();
}

static void deadline_passed(void) {
    begin("exec sleep 1000");
    start(2, true);
    wait_for(&seen.reaped, 1);
    MUST(seen.reason == GUARD_REFUSED && seen.started == 0);
    int64_t now = clock_boottime_ns();
    guard_deadline(seen.guard, now - 1, now + 3600 * second_ns);
    start(2, true);
    wait_for(&seen.reaped, 1);
    MUST(seen.reason == GUARD_REFUSED && seen.started == 0);
    end_agent();
}

/* Moved on twice, then forgotten: the guard kills at the fence and lives on. */
static void fence(void) {
    begin("exec sleep 1000");
    int64_t now = clock_boottime_ns();
    guard_deadline(seen.guard, now + 200 * ms_ns, now + 3600 * second_ns);
    start(2, true);
    wait_for(&seen.running, 1);
    guard_deadline(seen.guard, now + 400 * ms_ns, now + 3600 * second_ns);
    guard_deadline(seen.guard, now + 300 * ms_ns, now + 3600 * second_ns); /* earlier: nothing */
    wait_for(&seen.reaped, 1);
    MUST(clock_boottime_ns() >= now + 400 * ms_ns);
    MUST(seen.reason == GUARD_FENCED && WTERMSIG(seen.statuses[0]) == SIGKILL && !seen.dead);
    start(1, true);
    wait_for(&seen.reaped, 1);
    MUST(seen.reason == GUARD_REFUSED);
    now = clock_boottime_ns();
    guard_deadline(seen.guard, now + 3600 * second_ns, now + 7200 * second_ns);
    start(1, true);
    wait_for(&seen.running, 1);
    end_agent();
}

static pid_t guard_of(pid_t worker) {
    char path[64];
    struct buf b = {0};
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)worker);
    MUST(file_read(path, 4096, &b, NULL) == 0);
    int parent = 0;
    MUST(sscanf(strrchr(buf_str(&b), ')'), ") %*c %d", &parent) == 1);
    buf_fini(&b);
    return parent;
}

/* A guard that does not run any more: the kernel kills it, and by it the workers; their orphans
 * fall to the agent. A new guard serves the next round. */
static void guard_stopped(void) {
    begin_ready("setsid sleep 1000 & echo; exec sleep 1000");
    int64_t now = clock_boottime_ns();
    guard_deadline(seen.guard, now + 300 * ms_ns, now + 400 * ms_ns);
    start(2, true);
    wait_ready(2);
    wait_for(&seen.running, 1);
    kill(guard_of(seen.pids[0]), SIGSTOP);
    wait_for(&seen.dead, 1);
    MUST(clock_boottime_ns() >= now + 400 * ms_ns);
    MUST(seen.exited == 0 && seen.reaped == 0 && guard_alive(seen.guard) == 0);
    MUST(process_signal_descendants(getpid(), 0) == 0);
    struct err err = {0};
    MUST(guard_renew(seen.guard, &err) == 0);
    shell[2] = "exec sleep 1000";
    start(2, false);
    wait_for(&seen.running, 1);
    end_agent();
}

static void guard_killed(void) {
    begin_ready("setsid sleep 1000 & echo; exec sleep 1000");
    start(2, false);
    wait_ready(2);
    wait_for(&seen.running, 1);
    kill(guard_of(seen.pids[0]), SIGKILL);
    wait_for(&seen.dead, 1);
    MUST(process_signal_descendants(getpid(), 0) == 0);
    end_agent();
}

/* ---- agents that die ---- */

struct victim {
    pid_t agent, guard, workers[2];
};

/* In a child: an agent with two workers and an orphan each, which then only sits there. */
static void be_victim(int report, int64_t hard_after_ns) {
    begin_ready("setsid sleep 1000 & echo; exec sleep 1000");
    int64_t now = clock_boottime_ns();
    if (hard_after_ns)
        guard_deadline(seen.guard, now + hard_after_ns - 100 * ms_ns, now + hard_after_ns);
    start(2, hard_after_ns > 0);
    wait_ready(2);
    wait_for(&seen.running, 1);
    struct victim v = {getpid(), guard_of(seen.pids[0]), {seen.pids[0], seen.pids[1]}};
    MUST(write(report, &v, sizeof(v)) == sizeof(v));
    for (;;)
        pause();
}

static struct victim make_victim(int64_t hard_after_ns) {
    int ends[2];
    struct victim v;
    MUST(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 && pipe2(ends, O_CLOEXEC) == 0);
    if (fork() == 0) {
        alarm(60);
        be_victim(ends[1], hard_after_ns);
    }
    close(ends[1]);
    MUST(read(ends[0], &v, sizeof(v)) == sizeof(v));
    close(ends[0]);
    return v;
}

/* Waits until this process, a subreaper, has no descendant any more; the alarm is the deadline. */
static void wait_nobody(void) {
    while (waitpid(-1, NULL, 0) > 0)
        ;
    MUST(errno == ECHILD);
}

static void agent_killed(void) {
    struct victim v = make_victim(0);
    kill(v.agent, SIGKILL);
    wait_nobody();
}

static void agent_killed_guard_stopped(void) {
    struct victim v = make_victim(0);
    kill(v.guard, SIGSTOP);
    kill(v.agent, SIGKILL);
    wait_nobody();
}

/* All of them stopped: the guard's timer ends guard and workers. The orphans that only a running
 * agent or guard could find are left, and are counted here. */
static void all_stopped(void) {
    struct victim v = make_victim(500 * ms_ns);
    struct process guard, workers[2];
    MUST(process_open(v.guard, &guard, NULL) == 0);
    for (int i = 0; i < 2; i++)
        MUST(process_open(v.workers[i], &workers[i], NULL) == 0);
    kill(v.agent, SIGSTOP);
    kill(v.guard, SIGSTOP);
    for (int i = 0; i < 2; i++)
        kill(v.workers[i], SIGSTOP);
    MUST(process_wait_end(&guard, 20 * second_ns) == 0);
    for (int i = 0; i < 2; i++)
        MUST(process_wait_end(&workers[i], 20 * second_ns) == 0);
    kill(v.agent, SIGCONT);
    kill(v.agent, SIGKILL);
    process_signal_descendants(getpid(), SIGKILL);
    wait_nobody();
}

/* An agent that is stopped alone: the guard itself kills at the fence, orphans too. */
static void agent_stopped(void) {
    struct victim v = make_victim(500 * ms_ns);
    struct process workers[2];
    for (int i = 0; i < 2; i++)
        MUST(process_open(v.workers[i], &workers[i], NULL) == 0);
    kill(v.agent, SIGSTOP);
    for (int i = 0; i < 2; i++)
        MUST(process_wait_end(&workers[i], 20 * second_ns) == 0);
    kill(v.agent, SIGKILL);
    wait_nobody();
}

#define EXPERIMENT(name)                                                                           \
    { #name, name }
static const struct {
    const char *name;
    void (*run)(void);
} experiments[] = {
    EXPERIMENT(again_and_again),
    EXPERIMENT(agent_killed),
    EXPERIMENT(agent_killed_guard_stopped),
    EXPERIMENT(agent_stopped),
    EXPERIMENT(all_stopped),
    EXPERIMENT(deadline_passed),
    EXPERIMENT(error_file),
    EXPERIMENT(fence),
    EXPERIMENT(grandchildren),
    EXPERIMENT(guard_killed),
    EXPERIMENT(guard_stopped),
    EXPERIMENT(left_behind),
    EXPERIMENT(no_such_program),
    EXPERIMENT(other_signals),
    EXPERIMENT(own_session),
    EXPERIMENT(stop_ignored),
    EXPERIMENT(stop_reaches_stopped),
    EXPERIMENT(stop_shortened),
    EXPERIMENT(stop_with_grace),
    EXPERIMENT(workers_exit),
};

/* Scratch files go where they can be counted: none may be left, unless agent and guard both died
 * by SIGKILL. */
static char scratch[] = "/tmp/spawn_guard_XXXXXXXX";

static bool run(const char *name) {
    for (size_t i = 0; i < sizeof(experiments) / sizeof(experiments[0]); i++)
        if (strcmp(experiments[i].name, name) == 0) {
            experiments[i].run();
            return true;
        }
    return false;
}

int main(int argc, char **argv) {
    if (guard_is_me(argv))
        return guard_main();
    MUST(argc > 1 && file_make_temp_dir(scratch, NULL) == 0);
    setenv("TMPDIR", scratch, 1);
    alarm(60);
    MUST(run(argv[1]));
    MUST(rmdir(scratch) == 0 || (strcmp(argv[1], "all_stopped") == 0 && errno == ENOTEMPTY));
    file_remove_tree(scratch, NULL);
    puts("ok");
    return 0;
}
