/* Children that end, watched as on a kernel whose pidfds do not tell how: spawn_pidfds EXPERIMENT.
 * They are reaped the moment they end, so that only the kernel's process events are left. Prints
 * "ok", or "skip: " and why they cannot be had here. */
#include "base/sys/clock.h"
#include "base/sys/process.h"
#include "harness/observe/pidfds.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PATIENCE_S = 60, MANY = 300, THREADS = 8, OVERFLOW = 64, UNKNOWN = 1000 };

#define MUST(x)                                                                                    \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            printf("line %d: %s (%s)\n", __LINE__, #x, strerror(errno));                           \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static struct loop *loop;
static struct history history;
static struct rounds rounds;
static struct recorder rec;
static struct pidfds *pidfds;
static size_t awaited;
static int queue_bytes; /* 0: as it is */
static int queue = -1;
static pid_t heard; /* 0: none */

static int no_zombie(pid_t pid, int *ret_status) {
    (void)pid, (void)ret_status;
    return -ESRCH;
}

static int no_info(int pidfd, int *ret_status) {
    (void)pidfd, (void)ret_status;
    return -EOPNOTSUPP;
}

static bool info_does_not_work(void) {
    return false;
}

static void set_room(int bytes) {
    MUST(setsockopt(queue, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)) == 0);
}

static int events_open(struct err *err) {
    queue = proc_events_open(err);
    if (queue >= 0 && queue_bytes)
        set_room(queue_bytes);
    return queue;
}

/* The turn of the loop ends when the end of the first thread of `heard` has been. */
static int events_read(int fd, struct proc_exit *ret) {
    int r = proc_events_read(fd, ret);
    if (r == 1 && heard && ret->thread == heard)
        loop_stop(loop);
    return r;
}

static const struct exit_sources as_of_old = {
    .zombie = no_zombie,
    .info = no_info,
    .info_works = info_does_not_work,
    .events_open = events_open,
    .events_read = events_read,
    .events_close = proc_events_close,
};

static void on_record(void *arg, const struct record *r, struct event_client *from) {
    (void)arg, (void)r, (void)from;
    if (history.n == awaited)
        loop_stop(loop);
}

static void on_ended(void *arg, pid_t pid) {
    (void)arg, (void)pid;
}

static void begin(void) {
    struct err err;
    int fd = proc_events_open(&err);
    if (fd < 0) {
        printf("skip: %s\n", err.msg);
        exit(0);
    }
    proc_events_close(fd);
    signal(SIGCHLD, SIG_IGN); /* children are reaped by the kernel, at once */
    MUST(loop = loop_new(NULL));
    MUST(history_create(&history, NULL, NULL) == 0);
    rounds_init(&rounds, true);
    rec = (struct recorder){&history, &rounds, on_record, NULL};
    pidfds = pidfds_new(loop, &rec, &as_of_old, on_ended, NULL);
    MUST(strcmp(pidfds_way(pidfds), "events") == 0);
}

static void end(void) {
    pidfds_free(pidfds);
    history_fini(&history);
    rounds_fini(&rounds);
    loop_free(loop);
}

static void await(size_t records) {
    awaited = records;
    MUST(loop_run(loop, NULL) == 0);
    MUST(history.n == records);
}

/* A child that waits for the other end of *ret_go to close, and then does its work. */
static pid_t start(void (*work)(int arg), int arg, int go[2]) {
    struct process p;
    int64_t since_ns = clock_monotonic_ns();
    pid_t pid = fork();
    MUST(pid >= 0);
    if (pid == 0) {
        char byte;
        close(go[1]);
        (void)!read(go[0], &byte, 1);
        work(arg);
        _exit(99);
    }
    MUST(process_open(pid, &p, NULL) == 0);
    pidfds_watch(pidfds, "n0", pid, p.pidfd, since_ns);
    return pid;
}

/* The code, minus the signal, UNKNOWN; of the one record of this process. */
static int end_of(pid_t pid) {
    int found = 0, end = 0;
    history_each(r, &history) {
        if (r->pid != pid)
            continue;
        found++;
        end = record_get(r, "unknown")  ? UNKNOWN
              : record_get(r, "signal") ? -(int)record_i64(r, "signal", 0)
                                        : (int)record_i64(r, "code", 999);
    }
    MUST(found == 1);
    return end;
}

static void exit_with(int code) {
    _exit(code);
}

static void die_on(int signo) {
    signal(signo, SIG_DFL);
    raise(signo);
}

static int end_of_one(void (*work)(int arg), int arg) {
    int go[2];
    MUST(pipe(go) == 0);
    pid_t pid = start(work, arg, go);
    close(go[1]);
    await(history.n + 1);
    close(go[0]);
    return end_of(pid);
}

static void ends(void) {
    begin();
    MUST(end_of_one(exit_with, 0) == 0);
    MUST(end_of_one(exit_with, 3) == 3);
    MUST(end_of_one(exit_with, 255) == 255);
    MUST(end_of_one(die_on, SIGKILL) == -SIGKILL);
    MUST(end_of_one(die_on, SIGTERM) == -SIGTERM);
    end();
}

static void many(void) {
    pid_t pids[MANY];
    int go[2];
    begin();
    MUST(pipe(go) == 0);
    for (int i = 0; i < MANY; i++)
        pids[i] = start(i % 3 ? exit_with : die_on, i % 3 ? i % 256 : SIGKILL, go);
    close(go[1]);
    await(MANY);
    for (int i = 0; i < MANY; i++)
        MUST(end_of(pids[i]) == (i % 3 ? i % 256 : -SIGKILL));
    close(go[0]);
    end();
}

static void *sleep_on(void *arg) {
    for (;;)
        pause();
    return arg;
}

static void exit_with_threads(int code) {
    pthread_t t;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&t, NULL, sleep_on, NULL) != 0)
            _exit(98);
    _exit(code);
}

static void threads(void) {
    begin();
    for (int i = 0; i < 20; i++)
        MUST(end_of_one(exit_with_threads, 10 + i) == 10 + i);
    end();
}

static int second_go[2];

static void *end_later(void *arg) {
    char byte;
    close(second_go[1]);
    (void)!read(second_go[0], &byte, 1);
    _exit(5);
    return arg;
}

static void leave_early(int unused) {
    pthread_t t;
    (void)unused;
    if (pthread_create(&t, NULL, end_later, NULL) == 0)
        pthread_exit(NULL);
}

static void left_early(void) {
    begin();
    int go[2];
    MUST(pipe(go) == 0 && pipe(second_go) == 0);
    pid_t pid = heard = start(leave_early, 0, go);
    close(go[1]);
    MUST(loop_run(loop, NULL) == 0); /* its first thread has left */
    heard = 0;
    MUST(history.n == 0 && pidfds_find(pidfds, pid) >= 0);
    close(second_go[1]);
    await(1);
    MUST(end_of(pid) == UNKNOWN);
    close(go[0]);
    close(second_go[0]);
    end();
}

/* A queue that holds a few: those told are told rightly, the others are unknown. */
static void overflow(void) {
    pid_t pids[OVERFLOW];
    int go[2], known = 0;
    queue_bytes = 1;
    begin();
    MUST(pipe(go) == 0);
    for (int i = 0; i < OVERFLOW; i++)
        pids[i] = start(exit_with, i, go);
    close(go[1]);
    for (int i = 0; i < OVERFLOW; i++) { /* nobody reads before all have ended */
        struct process p = {pids[i], pidfds_find(pidfds, pids[i])};
        MUST(process_wait_end(&p, -1) == 0);
    }
    pidfds_drain(pidfds);
    MUST(history.n == OVERFLOW);
    for (int i = 0; i < OVERFLOW; i++) {
        int end_seen = end_of(pids[i]);
        MUST(end_seen == i || end_seen == UNKNOWN);
        known += end_seen != UNKNOWN;
    }
    MUST(known < OVERFLOW);
    set_room(1 << 20); /* the ends of all other processes of the host go through it, too */
    MUST(end_of_one(exit_with, 7) == 7);
    close(go[0]);
    end();
}

static void refused(void) {
    struct err err;
    int fd = proc_events_open(&err);
    if (fd < 0 || geteuid() != 0) {
        printf("skip: %s\n", fd < 0 ? err.msg : "only root loses what it had");
        exit(0);
    }
    proc_events_close(fd);
    MUST(unshare(CLONE_NEWUSER) == 0);
    MUST(proc_events_open(&err) == -EPERM);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } experiments[] = {{"ends", ends},         {"many", many},
                       {"threads", threads},   {"left-early", left_early},
                       {"overflow", overflow}, {"refused", refused}};
    alarm(PATIENCE_S);
    for (size_t i = 0; argc == 2 && i < sizeof(experiments) / sizeof(*experiments); i++)
        if (strcmp(argv[1], experiments[i].name) == 0) {
            experiments[i].run();
            puts("ok");
            return 0;
        }
    return 2;
}
