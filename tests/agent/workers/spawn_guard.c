/* How groups are started and ended while everybody lives. */
#include "tests/agent/workers/guard_fixture.h"

#include <dirent.h>
#include <limits.h>
#include <sys/socket.h>
#include <sys/stat.h>

static bool exited_with(int status, int code) {
    return WIFEXITED(status) && WEXITSTATUS(status) == code;
}

static void workers_exit(void) {
    begin("exit $((3 + LOCAL_RANK))");
    worker_command.no_python = true;
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

static void stop_with_grace(void) {
    begin_ready("trap 'exit 42' TERM; sh -c 'echo; exec sleep 1000' & wait");
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

/* The worker is a shell, which ends by the signal at once; what it runs has the worker's time. */
static void child_has_grace(void) {
    begin_ready(
        "(trap 'sleep 0.1; echo; exit 0' TERM; echo; while :; do sleep 0.01; done); exit 1");
    start(1, false);
    wait_ready(1);
    guard_stop(seen.guard, SIGTERM, 60000);
    wait_ready(1); /* it came to its word */
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
    worker_command.no_python = true;
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

/* A worker that hangs before its exec, in the opening of a log: the guard does as it is told. */
static void hanging_output(void) {
    static const uint8_t to_file[] = {STREAM_OUT, STREAM_OUT};
    char logs[PATH_MAX], fifo[PATH_MAX];
    snprintf(logs, sizeof(logs), "%s/logs", scratch);
    begin("exec sleep 1000");
    worker_command.output = (struct worker_output){.log_dir = logs, .to_file = to_file};
    start(1, false); /* makes the folder of the run */
    guard_kill(seen.guard);
    wait_for(&seen.reaped, 1);
    struct dirent **names;
    int n = scandir(logs, &names, NULL, alphasort);
    MUST(n == 3);
    snprintf(fifo, sizeof(fifo), "%.2000s/%s/attempt_1/1", logs, names[2]->d_name);
    while (n > 0)
        free(names[--n]);
    free(names);
    MUST(file_make_dirs(fifo, 0777, NULL) == 0);
    strcat(fifo, "/stdout.log");
    MUST(mkfifo(fifo, 0666) == 0);
    restart_count = 1;
    start(2, false);
    wait_for(&seen.started, 2);
    MUST(seen.running == 0);
    guard_kill(seen.guard);
    wait_for(&seen.reaped, 1);
    MUST(seen.running == 0 && seen.exec_failed == 0 && WTERMSIG(seen.statuses[1]) == SIGKILL);
    MUST(file_remove_tree(logs, NULL) == 0);
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

/* Held by the guard and by each worker, above what a shell uses, until the last of them is gone. */
static void lifeline_held(void) {
    int ends[2];
    char byte;
    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    begin_ready("ls -l /proc/self/fd | grep -q '7[0-9][0-9] -> socket' || exit 9; "
                "exec 3>/dev/null 4>&3; echo; while :; do sleep 1000; done");
    lifeline = ends[0];
    start(2, false);
    wait_ready(2);
    close(ends[0]); /* the agent's own */
    MUST(recv(ends[1], &byte, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    guard_kill(seen.guard);
    wait_for(&seen.reaped, 1);
    MUST(recv(ends[1], &byte, 1, 0) == 0);
    end_agent();
}

static void read_all(const char *path, struct buf *ret) {
    buf_clear(ret);
    MUST(file_read(path, 1 << 16, ret, NULL) == 0);
}

/* How often a line stands in a text that begins and ends with a line feed. */
static int times_in(const struct buf *text, const char *line) {
    char whole[256];
    int n = 0;
    snprintf(whole, sizeof(whole), "\n%s\n", line);
    for (const char *at = buf_str(text); (at = strstr(at, whole)); at++)
        n++;
    return n;
}

/* All of the agent's, and over it its own. */
static void environment(void) {
    char file[PATH_MAX];
    struct buf text = {0};
    snprintf(file, sizeof(file), "%s/environment", scratch);
    setenv("SAID_TO", file, 1);
    setenv("RANK", "77", 1);
    setenv("RANKS", "78", 1);
    setenv("RAN", "79", 1);
    setenv("KEPT", "a = b", 1);
    setenv("EMPTY", "", 1);
    begin("{ echo; env; } >$SAID_TO");
    start(1, false);
    wait_for(&seen.reaped, 1);
    read_all(file, &text);
    MUST(times_in(&text, "RANK=0") == 1 && times_in(&text, "RANK=77") == 0);
    MUST(times_in(&text, "RANKS=78") == 1 && times_in(&text, "RAN=79") == 1);
    MUST(times_in(&text, "KEPT=a = b") == 1 && times_in(&text, "EMPTY=") == 1);
    MUST(times_in(&text, "TORCHELASTIC_RUN_ID=test") == 1);
    MUST(unlink(file) == 0);
    buf_fini(&text);
    end_agent();
}

/* The run's folder below it. */
static void only_folder(const char *dir, char *ret, size_t size) {
    struct dirent **names;
    int n = scandir(dir, &names, NULL, alphasort);
    MUST(n == 3);
    snprintf(ret, size, "%.2000s/%s", dir, names[2]->d_name);
    while (n > 0)
        free(names[--n]);
    free(names);
}

static void must_hold(const char *dir, const char *name, const char *must) {
    char path[PATH_MAX];
    struct buf text = {0};
    snprintf(path, sizeof(path), "%.2000s/%s", dir, name);
    read_all(path, &text);
    MUST(strcmp(buf_str(&text), must) == 0);
    buf_fini(&text);
}

/* Each stream into its file and on the console, with its prefix; lines with a needle once more. */
static void streams(void) {
    static const uint8_t both[] = {STREAM_OUT | STREAM_ERR, STREAM_OUT | STREAM_ERR};
    static const uint8_t shown[] = {STREAM_OUT, STREAM_ERR};
    static const char *const loss[] = {"loss", NULL}, *const bad[] = {"bad", "NaN", NULL};
    char logs[PATH_MAX], run[PATH_MAX], out[PATH_MAX], err[PATH_MAX];
    snprintf(logs, sizeof(logs), "%s/logs", scratch);
    snprintf(out, sizeof(out), "%s/out", scratch);
    snprintf(err, sizeof(err), "%s/err", scratch);
    int keep_out = dup(1), keep_err = dup(2);
    int to_out = open(out, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    int to_err = open(err, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    MUST(dup2(to_out, 1) == 1 && dup2(to_err, 2) == 2);
    begin("echo loss $RANK; echo other; echo NaN $RANK >&2; echo fine >&2");
    worker_command.output = (struct worker_output){.log_dir = logs,
                                                   .to_file = both,
                                                   .tee = shown,
                                                   .prefix = "<${rank}/${local_rank}>",
                                                   .out_needles = loss,
                                                   .err_needles = bad};
    start(2, false);
    wait_for(&seen.reaped, 1);
    end_agent();
    MUST(dup2(keep_out, 1) == 1 && dup2(keep_err, 2) == 2);
    close(to_out), close(to_err), close(keep_out), close(keep_err);
    only_folder(logs, run, sizeof(run));
    must_hold(run, "attempt_0/0/stdout.log", "loss 0\nother\n");
    must_hold(run, "attempt_0/1/stdout.log", "loss 1\nother\n");
    must_hold(run, "attempt_0/0/stderr.log", "NaN 0\nfine\n");
    must_hold(run, "attempt_0/1/stderr.log", "NaN 1\nfine\n");
    must_hold(run, "attempt_0/filtered_stdout.log", "loss 0\n");
    must_hold(run, "attempt_0/filtered_stderr.log", "NaN 1\n");
    must_hold(scratch, "out", "<0/0>loss 0\n<0/0>other\n");
    must_hold(scratch, "err", "<1/1>NaN 1\n<1/1>fine\n");
    MUST(unlink(out) == 0 && unlink(err) == 0 && file_remove_tree(logs, NULL) == 0);
}

static const struct experiment experiments[] = {
    EXPERIMENT(again_and_again), EXPERIMENT(child_has_grace), EXPERIMENT(error_file),
    EXPERIMENT(grandchildren),   EXPERIMENT(hanging_output),  EXPERIMENT(left_behind),
    EXPERIMENT(lifeline_held),   EXPERIMENT(no_such_program), EXPERIMENT(other_signals),
    EXPERIMENT(own_session),     EXPERIMENT(stop_ignored),    EXPERIMENT(stop_reaches_stopped),
    EXPERIMENT(stop_shortened),  EXPERIMENT(stop_with_grace), EXPERIMENT(workers_exit),
    EXPERIMENT(environment),     EXPERIMENT(streams),         {NULL, NULL},
};

int main(int argc, char **argv) {
    return guard_fixture_main(experiments, argc, argv);
}
