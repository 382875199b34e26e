/* Faults on real processes: spawn_worker_faults EXPERIMENT prints "ok", or says what went wrong. */
#include "faults/fault.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)                                                                           \
    do                                                                                             \
        if (!(condition)) {                                                                        \
            printf("%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);                   \
            exit(1);                                                                               \
        }                                                                                          \
    while (0)

static int ready[2];

static void say_ready(void) {
    if (write(ready[1], "r", 1) != 1)
        _exit(99);
}

/* ---- what the workers do ---- */

static void do_poll(void) {
    say_ready();
    poll(NULL, 0, 60000);
}

static void do_compute(void) {
    say_ready();
    for (volatile unsigned i = 0;; i++)
        ;
}

static void do_sleep(void) {
    struct timespec t = {60, 0};
    say_ready();
    nanosleep(&t, NULL);
}

static void do_stop(void) {
    say_ready();
    raise(SIGSTOP);
    pause();
}

static void *live_on(void *arg) {
    (void)arg;
    say_ready();
    for (;;)
        pause();
    return NULL;
}

/* The first thread is gone: the process is its other one. */
static void do_threads(void) {
    pthread_t t;
    if (pthread_create(&t, NULL, live_on, NULL) == 0)
        pthread_exit(NULL);
}

static void do_parent(void) {
    pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    say_ready();
    if (write(ready[1], &child, sizeof(child)) != sizeof(child))
        _exit(97);
    pause();
}

/* ---- the worker ---- */

static struct target worker(void (*work)(void)) {
    char byte;
    CHECK(pipe(ready) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setsid();
        work();
        _exit(98);
    }
    CHECK(pid > 0 && read(ready[0], &byte, 1) == 1);
    struct target t = {.kind = TARGET_WORKER, .name = "n0/0", .pid = pid};
    t.pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    CHECK(t.pidfd >= 0);
    return t;
}

static int inject(const char *fault, const struct target *t, const char *key, const char *value) {
    struct fault_arg v[] = {{key, value}};
    struct fault_args a = {.v = v, .n = 1};
    struct err err = {0};
    int r = fault_find(fault)->inject(t, &a, &err);
    if (r)
        fprintf(stderr, "%s\n", err.msg);
    return r;
}

static void exits(void (*work)(void)) {
    struct target t = worker(work);
    int status;
    CHECK(inject("worker-exit", &t, "code", "3") == 0);
    /* As its tracer it may have been waited for already. */
    pid_t got = waitpid(t.pid, &status, 0);
    CHECK(got == t.pid ? WIFEXITED(status) && WEXITSTATUS(status) == 3 : errno == ECHILD);
}

/* ---- experiments ---- */

static void poll_exits(void) {
    exits(do_poll);
}
static void compute_exits(void) {
    exits(do_compute);
}
static void sleep_exits(void) {
    exits(do_sleep);
}
static void threads_exit(void) {
    exits(do_threads);
}

static void stopped_exits(void) {
    struct target t = worker(do_stop);
    int status;
    CHECK(waitpid(t.pid, &status, WUNTRACED) == t.pid && WIFSTOPPED(status));
    CHECK(inject("worker-exit", &t, "code", "3") == 0);
}

/* The parent of a worker is not who makes it exit: the code must still reach it. */
static void parent_is_told(void) {
    struct target t;
    int told[2], code = 0;
    pid_t pid;
    CHECK(pipe(told) == 0);
    if (fork() == 0) {
        int status = 0;
        t = worker(do_poll);
        CHECK(write(told[1], &t.pid, sizeof(t.pid)) == sizeof(t.pid));
        waitpid(t.pid, &status, 0);
        code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        CHECK(write(told[1], &code, sizeof(code)) == sizeof(code));
        _exit(0);
    }
    CHECK(read(told[0], &pid, sizeof(pid)) == sizeof(pid));
    t = (struct target){.name = "n0/0", .pid = pid};
    t.pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    CHECK(inject("worker-exit", &t, "code", "7") == 0);
    CHECK(read(told[0], &code, sizeof(code)) == sizeof(code) && code == 7);
}

static void gone_is_no_exit(void) {
    struct target t = worker(do_poll);
    kill(t.pid, SIGKILL);
    CHECK(waitpid(t.pid, NULL, 0) == t.pid);
    CHECK(inject("worker-exit", &t, "code", "3") == -ESRCH);
}

static void hang_and_go_on(void) {
    struct target t = worker(do_compute);
    int status;
    const struct fault *f = fault_find("worker-hang");
    CHECK(inject("worker-hang", &t, "", "") == 0);
    CHECK(waitpid(t.pid, &status, WUNTRACED) == t.pid && WIFSTOPPED(status));
    CHECK(f->recover(&t, NULL, NULL) == 0);
    CHECK(waitpid(t.pid, &status, WCONTINUED) == t.pid && WIFCONTINUED(status));
    kill(t.pid, SIGKILL);
    CHECK(waitpid(t.pid, &status, 0) == t.pid);
    CHECK(f->recover(&t, NULL, NULL) == 0); /* it hangs no more */
    CHECK(inject("worker-hang", &t, "", "") == -ESRCH);
}

/* A data loader, say: it has the worker's process group. */
static void children_hang_too(void) {
    struct target t = worker(do_parent);
    pid_t child;
    int status;
    CHECK(read(ready[0], &child, sizeof(child)) == sizeof(child));
    CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    CHECK(inject("worker-hang", &t, "", "") == 0);
    kill(t.pid, SIGKILL); /* its child, which still stands, becomes ours */
    CHECK(waitpid(t.pid, &status, 0) == t.pid);
    CHECK(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
    kill(child, SIGKILL);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } experiments[] = {
        {"poll", poll_exits},      {"compute", compute_exits}, {"sleep", sleep_exits},
        {"threads", threads_exit}, {"stopped", stopped_exits}, {"parent", parent_is_told},
        {"gone", gone_is_no_exit}, {"hang", hang_and_go_on},   {"children", children_hang_too}};
    alarm(60);
    for (size_t i = 0; argc == 2 && i < sizeof(experiments) / sizeof(*experiments); i++)
        if (strcmp(argv[1], experiments[i].name) == 0) {
            experiments[i].run();
            puts("ok");
            return 0;
        }
    return 2;
}
