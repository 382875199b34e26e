/* Faults on real processes: spawn_worker_faults EXPERIMENT prints "ok", or says what went wrong. */
#include "faults/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

/* Tells what it can do each time that it gets a byte: whether it opens a file, has memory, and how
 * long a file it writes. */
static int asked[2];

static void do_try(void) {
    signal(SIGXFSZ, SIG_IGN);
    say_ready();
    for (char byte; read(asked[0], &byte, 1) == 1;) {
        int fd = open("/dev/null", O_RDONLY), long_one = memfd_create("long", 0);
        void *memory = mmap(NULL, 1 << 28, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        char can[3] = {fd >= 0 ? 'f' : '-', memory != MAP_FAILED ? 'm' : '-', '-'};
        if (long_one >= 0 && ftruncate(long_one, 100000) == 0)
            can[2] = 'l';
        close(fd);
        close(long_one);
        if (memory != MAP_FAILED)
            munmap(memory, 1 << 28);
        if (write(ready[1], can, 3) != 3)
            _exit(96);
    }
}

/* Says a byte after each sleep, whatever else befalls it. */
static void do_naps(void) {
    struct timespec t = {0, 20000000};
    say_ready();
    for (;;) {
        if (nanosleep(&t, NULL) != 0)
            _exit(95);
        say_ready();
    }
}

/* Its second thread says a byte now and then; the first waits. */
static void *say_on(void *arg) {
    (void)arg;
    do_naps();
    return NULL;
}

static void do_talk(void) {
    pthread_t t;
    if (pthread_create(&t, NULL, say_on, NULL) == 0)
        pthread_join(t, NULL);
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

/* What it was in the midst of it does again, and what it computes is not touched. */
static void deaf_goes_on(void) {
    void (*const works[])(void) = {do_naps, do_compute, do_poll};
    for (int i = 0; i < 3; i++) {
        struct target t = worker(works[i]);
        int status;
        CHECK(inject("worker-deaf", &t, "signal", "SIGTERM") == 0);
        CHECK(kill(t.pid, SIGTERM) == 0);
        char byte[8];
        for (int said = 0; works[i] == do_naps && said < 8; said++)
            CHECK(read(ready[0], byte, 1) == 1);
        CHECK(kill(t.pid, SIGINT) == 0); /* to which it is not deaf */
        CHECK(waitpid(t.pid, &status, 0) == t.pid && WIFSIGNALED(status));
        CHECK(WTERMSIG(status) == SIGINT);
    }
}

static void slow_stands_and_runs(void) {
    struct target t = worker(do_naps);
    struct fault_arg v[] = {{"share", "50%"}, {"period", "20ms"}};
    const struct fault_args a = {.v = v, .n = 2};
    const struct fault *f = fault_find("worker-slow");
    int status;
    CHECK(f->inject(&t, &a, NULL) == 0);
    struct err err;
    CHECK(f->inject(&t, &a, &err) == -EBUSY);
    for (int turns = 0; turns < 5; turns++) {
        CHECK(waitpid(t.pid, &status, WUNTRACED) == t.pid && WIFSTOPPED(status));
        CHECK(waitpid(t.pid, &status, WCONTINUED) == t.pid && WIFCONTINUED(status));
    }
    CHECK(f->recover(&t, &a, NULL) == 0);
    CHECK(f->recover(&t, &a, NULL) == 0); /* again: nothing is left to undo */
    while (waitpid(t.pid, &status, WUNTRACED | WNOHANG) > 0)
        ;
    char byte[64];
    for (int said = 0; said < 10; said++)
        CHECK(read(ready[0], byte, 1) == 1);
    CHECK(f->inject(&t, &a, NULL) == 0);
    kill(t.pid, SIGKILL);
    CHECK(waitpid(t.pid, &status, 0) == t.pid && WIFSIGNALED(status));
    CHECK(f->recover(&t, &a, NULL) == 0);
}

/* Of a thread, as the kernel writes it. */
static char state_of(pid_t pid, pid_t tid) {
    char path[64], state = 0;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
    FILE *f = fopen(path, "r");
    CHECK(f && fscanf(f, "%*d (%*[^)]) %c", &state) == 1);
    fclose(f);
    return state;
}

static void one_thread_is_held(void) {
    struct target t = worker(do_talk);
    const struct fault *f = fault_find("worker-thread-hang");
    char byte;
    CHECK(f->inject(&t, NULL, NULL) == 0);
    CHECK(state_of(t.pid, t.pid) == 't');
    for (int said = 0; said < 5; said++)
        CHECK(read(ready[0], &byte, 1) == 1);
    CHECK(f->recover(&t, NULL, NULL) == 0);
    CHECK(state_of(t.pid, t.pid) != 't');
    kill(t.pid, SIGKILL);
    waitpid(t.pid, NULL, 0);
}

static void no_other_thread_to_hold(void) {
    struct target t = worker(do_poll);
    CHECK(inject("worker-thread-hang", &t, "thread", "newest") == -ESRCH);
    kill(t.pid, SIGKILL);
    waitpid(t.pid, NULL, 0);
}

/* Its parent must hear of its end while the fault lasts. */
static void held_can_be_killed(void) {
    struct target t;
    int told[2], code = 0;
    pid_t pid;
    CHECK(pipe(told) == 0);
    if (fork() == 0) {
        int status = 0;
        t = worker(do_poll);
        CHECK(write(told[1], &t.pid, sizeof(t.pid)) == sizeof(t.pid));
        waitpid(t.pid, &status, 0);
        code = WIFSIGNALED(status) ? WTERMSIG(status) : -1;
        CHECK(write(told[1], &code, sizeof(code)) == sizeof(code));
        _exit(0);
    }
    CHECK(read(told[0], &pid, sizeof(pid)) == sizeof(pid));
    t = (struct target){.name = "n0/0", .pid = pid};
    t.pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    CHECK(inject("worker-thread-hang", &t, "thread", "main") == 0);
    kill(pid, SIGKILL);
    CHECK(read(told[0], &code, sizeof(code)) == sizeof(code) && code == SIGKILL);
    CHECK(fault_find("worker-thread-hang")->recover(&t, NULL, NULL) == 0);
}

static void can(const char *what) {
    char said[4] = "";
    CHECK(write(asked[1], "?", 1) == 1 && read(ready[0], said, 3) == 3);
    if (strcmp(said, what) != 0) {
        printf("it can %s, not %s\n", said, what);
        exit(1);
    }
}

static void limits_hold_and_are_given_back(void) {
    static const struct {
        const char *fault, *can;
    } rows[] = {{"worker-fds", "-m-"}, {"worker-memory", "f-l"}, {"worker-file-size", "fm-"}};
    CHECK(pipe(asked) == 0);
    struct target t = worker(do_try);
    can("fml");
    for (int i = 0; i < 3; i++) {
        const struct fault *f = fault_find(rows[i].fault);
        CHECK(f->inject(&t, NULL, NULL) == 0);
        can(rows[i].can);
        struct err err;
        CHECK(f->inject(&t, NULL, &err) == -EBUSY);
        CHECK(f->recover(&t, NULL, NULL) == 0);
        can("fml");
        CHECK(f->recover(&t, NULL, NULL) == 0);
    }
    CHECK(fault_find("worker-fds")->inject(&t, NULL, NULL) == 0);
    kill(t.pid, SIGKILL);
    waitpid(t.pid, NULL, 0);
    CHECK(fault_find("worker-fds")->recover(&t, NULL, NULL) == 0);
}

static void the_child_alone_is_killed(void) {
    struct target t = worker(do_parent);
    pid_t child;
    int status;
    CHECK(read(ready[0], &child, sizeof(child)) == sizeof(child));
    CHECK(inject("worker-child-kill", &t, "", "") == 0);
    CHECK(inject("worker-child-kill", &t, "", "") == -ESRCH); /* a zombie is none */
    CHECK(waitpid(t.pid, &status, WNOHANG) == 0);
    kill(t.pid, SIGKILL);
    waitpid(t.pid, NULL, 0);
}

static unsigned char sound[4096];

static void do_look(void) {
    say_ready();
    for (char byte; read(asked[0], &byte, 1) == 1;)
        if (write(ready[1], sound, sizeof(sound)) != sizeof(sound))
            _exit(94);
}

/* The one bit that was named, and where none is named the one that the seed draws, twice the same. */
static void one_bit_is_flipped(void) {
    const struct fault *f = fault_find("memory-flip");
    struct fault_arg v[] = {{"region", "sound"}, {"offset", "77"}, {"bit", "3"}};
    unsigned char seen[4096];
    struct err err;
    CHECK(pipe(asked) == 0);
    struct target t = worker(do_look);
    CHECK(f->inject(&t, &(struct fault_args){.v = v, .n = 3}, &err) == -ESRCH);
    t.region.pid = t.pid;
    t.region.address = (uint64_t)(uintptr_t)sound;
    t.region.bytes = sizeof(sound);
    CHECK(f->inject(&t, &(struct fault_args){.v = v, .n = 3}, &err) == 0);
    CHECK(write(asked[1], "?", 1) == 1 && read(ready[0], seen, sizeof(seen)) == sizeof(seen));
    for (size_t i = 0; i < sizeof(seen); i++)
        CHECK(seen[i] == (i == 77 ? 1 << 3 : 0));
    v[1].value = "4096";
    CHECK(f->inject(&t, &(struct fault_args){.v = v, .n = 3}, &err) == -EINVAL);
    for (int again = 0; again < 2; again++)
        CHECK(f->inject(&t, &(struct fault_args){.v = v, .n = 1, .seed = 5}, &err) == 0);
    CHECK(write(asked[1], "?", 1) == 1 && read(ready[0], seen, sizeof(seen)) == sizeof(seen));
    for (size_t i = 0; i < sizeof(seen); i++)
        CHECK(seen[i] == (i == 77 ? 1 << 3 : 0));
    t.region.bytes = 0;
    CHECK(f->inject(&t, NULL, &err) == 0); /* somewhere in its longest mapping */
    kill(t.pid, SIGKILL);
    waitpid(t.pid, NULL, 0);
}

/* More of them, one after another, than can be in force at once: who ends takes the fault along, and
 * who is asked to undo it knows no number any more. */
static void many_end_with_their_fault(void) {
    static const char *const names[] = {"worker-slow", "worker-thread-hang", "worker-fds"};
    for (int i = 0; i < 900; i++) {
        const struct fault *f = fault_find(names[i % 3]);
        struct target t = worker(do_poll), gone = {.name = "n0/0", .pidfd = -1};
        CHECK(f->inject(&t, NULL, NULL) == 0);
        kill(t.pid, SIGKILL);
        waitpid(t.pid, NULL, 0);
        gone.pidfd = t.pidfd;
        CHECK(f->recover(&gone, NULL, NULL) == 0);
        close(t.pidfd);
        close(ready[0]);
        close(ready[1]);
    }
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } experiments[] = {{"poll", poll_exits},
                       {"compute", compute_exits},
                       {"sleep", sleep_exits},
                       {"threads", threads_exit},
                       {"stopped", stopped_exits},
                       {"parent", parent_is_told},
                       {"gone", gone_is_no_exit},
                       {"hang", hang_and_go_on},
                       {"children", children_hang_too},
                       {"deaf", deaf_goes_on},
                       {"slow", slow_stands_and_runs},
                       {"held", one_thread_is_held},
                       {"one-thread", no_other_thread_to_hold},
                       {"held-killed", held_can_be_killed},
                       {"limits", limits_hold_and_are_given_back},
                       {"child", the_child_alone_is_killed},
                       {"bit", one_bit_is_flipped},
                       {"many", many_end_with_their_fault}};
    alarm(60);
    for (size_t i = 0; argc == 2 && i < sizeof(experiments) / sizeof(*experiments); i++)
        if (strcmp(argv[1], experiments[i].name) == 0) {
            experiments[i].run();
            puts("ok");
            return 0;
        }
    return 2;
}
