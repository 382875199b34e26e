/* Faults on real processes: spawn_worker_faults EXPERIMENT prints "ok", or says what went wrong. */
#include "faults/fault.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/procfs.h>
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

/* Likewise, whether it starts a process and a thread. */
static void *do_nothing(void *arg) {
    return arg;
}

static void do_start(void) {
    say_ready();
    for (char byte; read(asked[0], &byte, 1) == 1;) {
        pthread_t t;
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        bool thread = pthread_create(&t, NULL, do_nothing, NULL) == 0;
        char can[3] = {child > 0 ? 'p' : '-', thread ? 't' : '-', ' '};
        if (child > 0)
            waitpid(child, NULL, 0);
        if (thread)
            pthread_join(t, NULL);
        if (write(ready[1], can, 3) != 3)
            _exit(96);
    }
}

static void leave(int signo) {
    (void)signo;
    _exit(7);
}

/* It has handlers of its own for the signals by which one crashes. */
static void do_handle(void) {
    signal(SIGSEGV, leave);
    signal(SIGABRT, leave);
    do_poll();
}

/* It ignores and blocks them, as far as that is possible. */
static void do_ignore(void) {
    sigset_t both;
    sigemptyset(&both);
    sigaddset(&both, SIGABRT);
    sigaddset(&both, SIGSEGV);
    sigprocmask(SIG_BLOCK, &both, NULL);
    signal(SIGABRT, SIG_IGN);
    signal(SIGSEGV, SIG_IGN);
    do_compute();
}

/* Its second thread lives on in another place. */
static void do_two(void) {
    pthread_t t;
    if (pthread_create(&t, NULL, live_on, NULL) == 0)
        for (;;)
            pause();
}

/* It says a byte whenever it gets one, and how many children it can wait for. */
static void do_answer(void) {
    say_ready();
    for (char byte; read(asked[0], &byte, 1) == 1;) {
        char none = waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD ? 'n' : 'c';
        if (write(ready[1], &none, 1) != 1)
            _exit(93);
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

/* ---- crashes ---- */

static unsigned char sound[4096] __attribute__((aligned(4096)));

/* Bytes of its memory, as the core has them; 0: it has none at that address. */
static size_t in_core(int core, const void *address, void *ret, size_t n) {
    Elf64_Ehdr e;
    Elf64_Phdr p;
    uint64_t at = (uint64_t)(uintptr_t)address;
    CHECK(pread(core, &e, sizeof(e), 0) == sizeof(e) && memcmp(e.e_ident, ELFMAG, SELFMAG) == 0);
    CHECK(e.e_type == ET_CORE);
    for (int i = 0; i < e.e_phnum; i++) {
        CHECK(pread(core, &p, sizeof(p), (off_t)(e.e_phoff + (size_t)i * sizeof(p))) == sizeof(p));
        if (p.p_type == PT_LOAD && at >= p.p_vaddr && at - p.p_vaddr + n <= p.p_filesz)
            return (size_t)pread(core, ret, n, (off_t)(at - p.p_vaddr + p.p_offset));
    }
    return 0;
}

/* How many threads it shows, and of the first what signal it got. */
static int threads_in_core(int core, int *ret_signal) {
    Elf64_Ehdr e;
    Elf64_Phdr p;
    char notes[1 << 17];
    int found = 0;
    CHECK(pread(core, &e, sizeof(e), 0) == sizeof(e));
    CHECK(pread(core, &p, sizeof(p), (off_t)e.e_phoff) == sizeof(p) && p.p_type == PT_NOTE);
    CHECK(p.p_filesz <= sizeof(notes));
    CHECK(pread(core, notes, p.p_filesz, (off_t)p.p_offset) == (ssize_t)p.p_filesz);
    for (size_t at = 0; at + sizeof(Elf64_Nhdr) < p.p_filesz;) {
        Elf64_Nhdr n;
        struct elf_prstatus s;
        memcpy(&n, notes + at, sizeof(n));
        CHECK(n.n_type != NT_PRSTATUS || n.n_descsz >= sizeof(s));
        if (n.n_type == NT_PRSTATUS && found++ == 0) {
            memcpy(&s, notes + at + sizeof(n) + 8, sizeof(s));
            *ret_signal = s.pr_cursig;
        }
        at += sizeof(n) + 8 + ((n.n_descsz + 3) & ~3U);
    }
    return found;
}

/* Its wait status; -1: its tracer, which we are, has waited for it already. */
static int crashes(const char *fault, void (*work)(void), int core, const char *mib) {
    struct fault_arg v[] = {{"core", mib}};
    struct target t = worker(work);
    struct err err = {0};
    int status = -1;
    t.keep = core;
    if (fault_find(fault)->inject(&t, &(struct fault_args){.v = v, .n = 1}, &err) != 0)
        printf("%s\n", err.msg);
    CHECK(err.code == 0);
    return waitpid(t.pid, &status, 0) == t.pid ? status : -1;
}

static void one_crashes(const char *fault, int signo) {
    int core = memfd_create("core", 0), status, got = 0;
    unsigned char seen[4096];
    memset(sound, 0x5a, sizeof(sound)); /* its own, as it is a copy of us */
    status = crashes(fault, do_two, core, "512");
    CHECK(status == -1 || (WIFSIGNALED(status) && WTERMSIG(status) == signo));
    CHECK(threads_in_core(core, &got) == 2 && got == signo);
    CHECK(in_core(core, sound, seen, sizeof(seen)) == sizeof(seen));
    CHECK(memcmp(seen, sound, sizeof(seen)) == 0);
    CHECK(ftruncate(core, 0) == 0);
    status = crashes(fault, do_ignore, core, "0"); /* nobody can ignore it, and there is no room */
    CHECK(status == -1 || (WIFSIGNALED(status) && WTERMSIG(status) == signo));
    CHECK(threads_in_core(core, &got) == 1 && in_core(core, sound, seen, sizeof(seen)) == 0);
    CHECK(ftruncate(core, 0) == 0);
    status = crashes(fault, do_handle, core, "512"); /* its handler runs, and there is no core */
    CHECK(status == -1 || (WIFEXITED(status) && WEXITSTATUS(status) == 7));
    CHECK(lseek(core, 0, SEEK_END) == 0);
}

static void aborts(void) {
    one_crashes("worker-abort", SIGABRT);
}
static void faults_in_memory(void) {
    one_crashes("worker-segfault", SIGSEGV);
}

/* ---- processes and threads ---- */

static void none_can_be_started(void) {
    static const struct {
        const char *of, *can;
    } rows[] = {{"both", "-- "}, {"processes", "-t "}, {"threads", "p- "}};
    const struct fault *f = fault_find("worker-processes");
    for (int i = 0; i < 3; i++) {
        CHECK(pipe(asked) == 0);
        struct target t = worker(do_start);
        struct err err;
        can("pt ");
        CHECK(inject("worker-processes", &t, "of", rows[i].of) == 0);
        can(rows[i].can);
        CHECK(f->inject(&t, NULL, &err) == -EBUSY); /* the kernel allows one watch */
        can(rows[i].can);
        CHECK(f->recover(&t, NULL, NULL) == 0);
        can("pt ");
        CHECK(f->recover(&t, NULL, NULL) == 0);
        kill(t.pid, SIGKILL);
        waitpid(t.pid, NULL, 0);
        CHECK(f->recover(&t, NULL, NULL) == 0);
    }
}

/* ---- orphans ---- */

static pid_t only_child(pid_t pid) {
    char path[64];
    int child = 0;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *f = fopen(path, "r");
    CHECK(f && fscanf(f, "%d", &child) == 1);
    fclose(f);
    return child;
}

/* The worker knows of nothing; its child hears no signal, outlives it and has what it had open. */
static void orphan_lives_on(void) {
    const struct fault *f = fault_find("worker-orphan");
    struct pollfd open_still;
    char byte;
    CHECK(pipe(asked) == 0 && prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    struct target t = worker(do_answer), gone = {.name = "n0/0", .pidfd = -1};
    CHECK(f->inject(&t, NULL, NULL) == 0);
    CHECK(write(asked[1], "?", 1) == 1 && read(ready[0], &byte, 1) == 1 && byte == 'n');
    pid_t child = only_child(t.pid);
    CHECK(getsid(child) == child);
    kill(child, SIGTERM);
    kill(child, SIGSTOP);
    kill(child, SIGCONT);
    kill(t.pid, SIGKILL);
    CHECK(waitpid(t.pid, NULL, 0) == t.pid);
    close(ready[1]);
    open_still = (struct pollfd){.fd = ready[0], .events = POLLIN};
    CHECK(poll(&open_still, 1, 200) == 0); /* and it says nothing */
    CHECK(waitpid(child, NULL, WNOHANG) == 0);
    gone.pidfd = t.pidfd;
    CHECK(f->recover(&gone, NULL, NULL) == 0);
    int status;
    CHECK(waitpid(child, &status, 0) == child && WTERMSIG(status) == SIGKILL);
    CHECK(f->recover(&gone, NULL, NULL) == 0);
}

static void orphan_of_one_that_computes(void) {
    const struct fault *f = fault_find("worker-orphan");
    struct target t = worker(do_naps);
    char byte;
    CHECK(f->inject(&t, NULL, NULL) == 0);
    for (int said = 0; said < 5; said++)
        CHECK(read(ready[0], &byte, 1) == 1);
    pid_t child = only_child(t.pid);
    CHECK(f->recover(&t, NULL, NULL) == 0);
    CHECK(kill(child, 0) != 0 || state_of(child, child) == 'Z');
    kill(t.pid, SIGKILL);
    waitpid(t.pid, NULL, 0);
}

/* ---- Python's lock ---- */

static void no_python(void) {
    struct target t = worker(do_poll);
    CHECK(inject("worker-gil-hang", &t, "", "") == -ENOTSUP);
    CHECK(state_of(t.pid, t.pid) != 't');
    kill(t.pid, SIGKILL);
    waitpid(t.pid, NULL, 0);
}

/* Its second thread says a byte now and then, as a heartbeat does; the first computes in C. */
static const char python[] = "import os, threading, time, hashlib\n"
                             "def beat():\n"
                             "    while True:\n"
                             "        os.write(1, b'b')\n"
                             "        time.sleep(0.01)\n"
                             "threading.Thread(target=beat, daemon=True).start()\n"
                             "while True:\n"
                             "    os.read(0, 1)\n"
                             "    os.write(1, b'r')\n";

static void do_python(void) {
    dup2(asked[0], 0);
    dup2(ready[1], 1);
    execlp("python3", "python3", "-c", python, NULL);
    say_ready();
}

static char hears(int wait_ms) {
    struct pollfd p = {.fd = ready[0], .events = POLLIN};
    char byte;
    return poll(&p, 1, wait_ms) == 1 && read(ready[0], &byte, 1) == 1 ? byte : 0;
}

static void nobody_runs_python(void) {
    const struct fault *f = fault_find("worker-gil-hang");
    CHECK(pipe(asked) == 0);
    struct target t = worker(do_python);
    if (hears(30000) != 'b')
        exit(2); /* no Python */
    CHECK(f->inject(&t, NULL, NULL) == 0);
    while (hears(0)) /* what was said before */
        ;
    CHECK(state_of(t.pid, t.pid) == 't');
    CHECK(hears(300) == 0);
    CHECK(f->recover(&t, NULL, NULL) == 0);
    CHECK(hears(30000) == 'b');
    CHECK(write(asked[1], "?", 1) == 1);
    for (char byte = 0; byte != 'r';)
        CHECK((byte = hears(30000)));
    CHECK(f->inject(&t, NULL, NULL) == 0); /* again, and it ends meanwhile */
    kill(t.pid, SIGKILL);
    waitpid(t.pid, NULL, 0);
    CHECK(f->recover(&t, NULL, NULL) == 0);
}

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
                       {"abort", aborts},
                       {"segfault", faults_in_memory},
                       {"start", none_can_be_started},
                       {"orphan", orphan_lives_on},
                       {"orphan-naps", orphan_of_one_that_computes},
                       {"no-python", no_python},
                       {"python", nobody_runs_python},
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
