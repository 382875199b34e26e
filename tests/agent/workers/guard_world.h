/* guard_world: the system as a guard sees it, played (tests/played.h): processes that live, leave others behind and end,
 * an agent that orders and listens, clocks and timers. What comes next is for the test to say, in played_poll. */
#pragma once

#include "tests/played.h"

#include "agent/workers/orders.h"
#include "agent/workers/vfork_spawn.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { GUARD = 50, FIRST_PID = 100, PROCESSES_MAX = 2000, ORDERS_MAX = 256, STEPS = 60 };

/* A worker, or what one has left behind: then group is the worker's. */
struct played_process {
    pid_t pid, group;
    int tag; /* -1: left behind */
    bool lives, grouped, reaped;
    int status; /* when it has ended */
};

static struct {
    int steps; /* that are left before the agent goes */
    int64_t boot_ns;
    int64_t fence_ns; /* the latest that was told; 0: none */
    int64_t timer_ns; /* 0: it is not armed */
    int64_t due_ns;   /* the page */
    struct played_process v[PROCESSES_MAX];
    int n;
    struct order orders[ORDERS_MAX];
    bool brings[ORDERS_MAX]; /* a descriptor */
    int first, last;
    bool gone, child_ended;
    int deaf, deaf_code; /* so many messages are not taken, and why */
    struct process_failure failures[64];
    int failures_n, failures_at;
    int holders; /* of the pipe of failures: who has not been executed yet */
    int workers; /* of the group that is started next */
    bool required;
    int timer_fd, signals_fd, failures_fd;
    char *stacks;
    size_t stacks_size;
    int starts, ends, groups, reaped;
    int type;        /* of the agent's socket */
    int64_t hard_ns; /* of the timer that kills */
    bool standard;   /* the standard streams are open */
    bool may_exit;
    struct arena arena; /* of a guard that may exit in the middle */
    jmp_buf out;
} world;

/* ---- processes ---- */

static struct played_process *add_process(pid_t group, int tag) {
    assert_true(world.n < PROCESSES_MAX);
    struct played_process *p = &world.v[world.n];
    *p = (struct played_process){.pid = FIRST_PID + world.n++, .tag = tag, .lives = true};
    p->group = group ? group : p->pid;
    p->grouped = draw(4) != 0;
    return p;
}

static void end_process(struct played_process *p, int status) {
    if (!p->lives)
        return;
    p->lives = false;
    p->status = status;
    world.child_ended = true;
}

static struct played_process *find_living(bool worker) {
    int from = world.n ? draw(world.n) : 0;
    for (int i = 0; i < world.n; i++) {
        struct played_process *p = &world.v[(from + i) % world.n];
        if (p->lives && (p->tag >= 0) == worker)
            return p;
    }
    return NULL;
}

static int played_kill(pid_t pid, int signo) {
    int reached = 0;
    for (int i = 0; i < world.n; i++) {
        struct played_process *p = &world.v[i];
        if (p->reaped || (pid < 0 ? p->group != -pid || !p->grouped : p->pid != pid))
            continue;
        reached++;
        if (signo == SIGKILL || (signo == SIGTERM && draw(2)))
            end_process(p, signo);
    }
    note("kill %d with %d: %d", (int)pid, signo, reached > 0);
    errno = draw(8) ? ESRCH : EPERM;
    return reached ? 0 : -1;
}

/* One pass may miss some, as others are forked meanwhile. */
static int played_signal_descendants(pid_t root, int signo) {
    note("signal all below %d with %d", (int)root, signo);
    for (int i = 0; i < world.n; i++)
        if (signo == SIGKILL && draw(4))
            end_process(&world.v[i], SIGKILL);
    return 0;
}

static pid_t played_waitpid(pid_t pid, int *status, int options) {
    bool any = false;
    for (int i = 0; i < world.n; i++) {
        struct played_process *p = &world.v[i];
        any |= !p->reaped;
        if (p->lives || p->reaped)
            continue;
        p->reaped = true;
        *status = p->status;
        world.holders -= p->tag >= 0 && world.holders > 0;
        note("wait for %d, %d: %d", (int)pid, options, (int)p->pid);
        return p->pid;
    }
    note("wait for %d, %d: %s", (int)pid, options, any ? "none yet" : "there is none");
    errno = ECHILD;
    return any ? 0 : -1;
}

static void note_texts(const char *what, const char *const *v) {
    buf_printf(&played.said, "  %s", what);
    for (; *v; v++)
        buf_printf(&played.said, " [%s]", *v);
    buf_putc(&played.said, '\n');
}

static int played_spawn(struct vfork_spawn *t, void *stack, struct process *ret) {
    assert_true(!world.required || world.boot_ns < world.fence_ns);
    t->argv[-1] = "the word before"; /* there is room for it */
    ((char *)stack)[0] = ((char *)stack)[VFORK_SPAWN_STACK - 1] = 'x';
    note_texts("program", t->argv);
    note_texts("with", t->envp);
    note_texts("of", t->files);
    world.boot_ns += draw(5) ? draw(1000) : draw(2000000000);
    bool not = fails("spawn %u: stack %td, out \"%s\", err \"%s\", keep %d, report %d, parent %d",
                     t->tag, (char *)stack - world.stacks, t->outputs[0], t->outputs[1], t->keep,
                     t->report, (int)t->parent);
    assert_true(played.open[t->report] && (t->keep == 0 || played.open[t->keep]));
    if (not || draw(12) == 0)
        return not ? -errno : -EAGAIN;
    struct played_process *p = add_process(0, (int)t->tag);
    world.holders++;
    world.starts++;
    *ret = (struct process){p->pid, played_open()};
    return 0;
}

static void played_process_close(struct process *p) {
    played_file_close(&p->pidfd);
}

/* ---- what is read ---- */

static int played_report_pipe(int ret[2]) {
    world.boot_ns += draw(4) ? 0 : draw(2000000000); /* the fence may pass meanwhile */
    if (fails("make a pipe"))
        return -errno;
    world.failures_fd = ret[0] = played_open_from(3);
    ret[1] = played_open_from(3);
    world.failures_n = world.failures_at = world.holders = 0;
    return 0;
}

static ssize_t read_failure(void *data, size_t size) {
    assert_int_equal(size, sizeof(struct process_failure));
    if (world.failures_at < world.failures_n) {
        memcpy(data, &world.failures[world.failures_at++], size);
        return (ssize_t)size;
    }
    errno = EAGAIN;
    return world.holders > 0 ? -1 : 0;
}

static ssize_t played_read(int fd, void *data, size_t size) {
    assert_true(played.open[fd]);
    ssize_t n = -1;
    errno = EAGAIN;
    if (fd == world.timer_fd && world.timer_ns && world.boot_ns >= world.timer_ns) {
        world.timer_ns = 0;
        n = sizeof(uint64_t);
        assert_int_equal(size, n);
    } else if (fd == world.signals_fd && world.child_ended) {
        world.child_ended = false;
        n = sizeof(struct signalfd_siginfo);
        assert_int_equal(size, n);
    } else if (fd == world.failures_fd) {
        n = read_failure(data, size);
    }
    note("read %d: %zd", fd, n);
    return n;
}

/* ---- the agent ---- */

static int played_receive(int sock, void *message, size_t size, int *ret_fd) {
    assert_int_equal(size, sizeof(struct order));
    *ret_fd = -1;
    if (world.first < world.last) {
        const struct order *o = &world.orders[world.first];
        memcpy(message, o, size);
        *ret_fd = world.brings[world.first++] ? played_open() : -1;
        if (o->kind == ORDER_DEADLINE && o->fence_ns > world.fence_ns)
            world.fence_ns = o->fence_ns;
        note("order %d of %d: %d %lld %lld %lld, brings %d", (int)o->kind, sock, o->signo,
             (long long)o->grace_ms, (long long)o->fence_ns, (long long)o->hard_ns, *ret_fd);
        return 1;
    }
    note("order of %d: %s", sock, world.gone ? "none any more" : "none yet");
    return world.gone ? 0 : -EAGAIN;
}

static int played_send(int sock, const void *message, size_t size, int fd) {
    const struct guard_report *r = message;
    assert_int_equal(size, sizeof(*r));
    assert_true(fd < 0 || played.open[fd]);
    int code = world.deaf ? world.deaf_code : 0;
    note("tell %d: %d, rank %d, pid %d, status %d, at %lld, descriptor %d: %d", sock, (int)r->kind,
         r->local_rank, r->pid, r->status, (long long)r->realtime_ns, fd, code);
    world.deaf -= world.deaf > 0;
    if (code == 0) {
        world.ends += r->kind == REPORT_EXITED && r->pid > 0;
        world.reaped += r->kind == REPORT_REAPED;
    }
    return code;
}

/* The launch is in the arena, so that who takes it must keep it. */
static int played_launch_read(int fd, struct arena *a, struct launch_order *ret, struct err *err) {
    static char *argv[] = {"train", "-x", NULL}, *other[] = {"/bin/other", NULL},
                *env[] = {"RANK=0", "KEPT=own", NULL}, *none[] = {NULL};
    bool not = fails("read a launch from %d", fd);
    played_shut(fd);
    *ret = (struct launch_order){0};
    if (not )
        return -errno;
    *ret = (struct launch_order){.deadline_required = world.required,
                                 .scratch = draw(2) ? "/tmp/scratch" : "",
                                 .sandbox = draw(2),
                                 .n = (uint32_t)world.workers};
    ret->workers = arena_array(world.may_exit ? &world.arena : a, struct launch_worker, ret->n);
    for (uint32_t i = 0; i < ret->n; i++)
        ret->workers[i] = (struct launch_worker){i == 1 ? other : argv, i ? env : none,
                                                 i ? "/logs/out" : "", i ? "" : "/logs/err"};
    return 0;
}

static int played_divide(struct err *err) {
    return fails("confine") ? -errno : 0;
}

/* ---- the kernel ---- */

static int played_getsockopt(int fd, int level, int name, void *value, socklen_t *len) {
    int type = world.type;
    assert_int_equal(*len, sizeof(type));
    if (fails("getsockopt %d %d %d", fd, level, name))
        return -1;
    memcpy(value, &type, sizeof(type));
    return 0;
}

static int played_fcntl(int fd, int command, ...) {
    va_list ap;
    va_start(ap, command);
    int arg = va_arg(ap, int);
    va_end(ap);
    assert_true(played.open[fd]);
    if (command != F_DUPFD_CLOEXEC) {
        note("fcntl %d %d %d", fd, command, arg);
        return 0;
    }
    return fails("duplicate %d from %d", fd, arg) ? -1 : played_open_from(arg);
}

static void *played_mmap(void *at, size_t size, int prot, int flags, int fd, off_t from) {
    if (fails("map %zu %d %d %d %lld", size, prot, flags, fd, (long long)from))
        return MAP_FAILED;
    assert_null(at);
    if (fd >= 0)
        return &world.due_ns;
    world.stacks_size = size;
    return world.stacks = malloc(size);
}

static int played_munmap(void *at, size_t size) {
    note("unmap %s of %zu", at == &world.due_ns ? "the page" : "stacks", size);
    if (at == &world.due_ns)
        return 0;
    assert_ptr_equal(at, world.stacks);
    assert_int_equal(size, world.stacks_size);
    free(at);
    world.stacks = NULL;
    return 0;
}

static void played_close_from(int low) {
    note("close all from %d", low);
    for (int fd = low; fd < PLAYED_FDS; fd++)
        played.open[fd] = false;
}

static int played_mask(int how, const sigset_t *set, sigset_t *old) {
    note("mask %d: CHLD %d, TERM %d", how, sigismember(set, SIGCHLD), sigismember(set, SIGTERM));
    assert_null(old);
    return 0;
}

static __sighandler_t played_signal(int signo, __sighandler_t handler) {
    note("signal %d %s", signo, handler == SIG_DFL ? "as ever" : "otherwise");
    return SIG_DFL;
}

static int played_signalfd(int fd, const sigset_t *set, int flags) {
    bool not = fails("signalfd %d: CHLD %d, TERM %d, flags %d", fd, sigismember(set, SIGCHLD),
                     sigismember(set, SIGTERM), flags);
    return world.signals_fd = not ? -1 : played_open();
}

static int played_timerfd(int clock, int flags) {
    return world.timer_fd = fails("timerfd %d %d", clock, flags) ? -1 : played_open();
}

static int64_t ns_of(const struct itimerspec *t) {
    assert_true(t->it_interval.tv_sec == 0 && t->it_interval.tv_nsec == 0);
    assert_true(t->it_value.tv_nsec >= 0 && t->it_value.tv_nsec < 1000000000);
    return t->it_value.tv_sec * INT64_C(1000000000) + t->it_value.tv_nsec;
}

static int played_arm(int fd, int flags, const struct itimerspec *t, struct itimerspec *old) {
    assert_true(fd == world.timer_fd && !old);
    note("timer %d at %lld", flags, (long long)ns_of(t));
    world.timer_ns = ns_of(t);
    return 0;
}

static int played_create(clockid_t clock, struct sigevent *e, timer_t *ret) {
    *ret = (timer_t)(uintptr_t)7;
    return fails("create a timer on %d: %d %d", (int)clock, e->sigev_notify, e->sigev_signo) ? -1
                                                                                             : 0;
}

static int played_hard(timer_t id, int flags, const struct itimerspec *t, struct itimerspec *old) {
    assert_true(id == (timer_t)(uintptr_t)7 && !old);
    note("hard timer %d at %lld, said %lld", flags, (long long)ns_of(t), (long long)world.due_ns);
    world.hard_ns = ns_of(t);
    return 0;
}

static int played_delete(timer_t id) {
    assert_true(id == (timer_t)(uintptr_t)7);
    note("delete the timer, said %lld", (long long)world.due_ns);
    return 0;
}

static int played_prctl(int option, ...) {
    va_list ap;
    va_start(ap, option);
    if (option == PR_SET_NAME)
        note("name %s", va_arg(ap, const char *));
    va_end(ap);
    return option != PR_SET_NAME && fails("prctl %d", option) ? -1 : 0;
}

static int64_t played_boottime(void) {
    return world.boot_ns;
}

static int64_t played_realtime(void) {
    return world.boot_ns + INT64_C(1700000000000000000);
}

static int played_remove(const char *path, struct err *err) {
    assert_null(err);
    note("remove %s", path);
    return 0;
}

static _Noreturn void played_exit(int code) {
    note("exit %d", code);
    assert_true(world.may_exit);
    longjmp(world.out, 1);
}

static int played_poll(struct pollfd *fds, nfds_t n, int timeout);
