#include "faults/mechanism/clone_gate.h"

#include "base/sys/process.h"
#include "base/sys/rights.h"
#include "faults/mechanism/call_watch.h"
#include "faults/mechanism/memory.h"
#include "faults/mechanism/seize.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SECCOMP_FILTER_FLAG_TSYNC_ESRCH
#define SECCOMP_FILTER_FLAG_TSYNC_ESRCH (1UL << 4)
#endif

enum { GATES_MAX = 64 };

static struct gate {
    pid_t pid;
    uint64_t start_ticks;
    int watch;
    atomic_uint closed; /* what is refused */
    atomic_bool used;   /* false: the place is free */
} gates[GATES_MAX];

/* ---- the thread that answers ---- */

/* Of clone3 they lie in the memory of who calls. */
static uint64_t flags_of(const struct watched_call *c) {
    uint64_t flags = 0;
#ifdef SYS_clone3
    if (c->nr == SYS_clone3)
        return memory_read(c->thread, c->args[0], &flags, sizeof(flags)) == 0 ? flags : 0;
#endif
    return c->nr == SYS_clone ? c->args[0] : 0;
}

static void refuse(int watch, uint64_t id) {
    union {
        struct seccomp_notif_resp answer;
        char room[1024]; /* of a newer kernel */
    } r = {0};
    r.answer.id = id;
    r.answer.error = -EAGAIN;
    ioctl(watch, SECCOMP_IOCTL_NOTIF_SEND, &r);
}

static void answer(struct gate *g, const struct watched_call *c) {
    unsigned what = flags_of(c) & CLONE_THREAD ? GATE_THREADS : GATE_PROCESSES;
    if (atomic_load(&g->closed) & what)
        refuse(g->watch, c->id);
    else
        call_watch_pass(g->watch, c->id);
}

/* Until nobody is watched any more: what the process has started may outlive it. */
static void *attend(void *arg) {
    struct gate *g = arg;
    struct pollfd p = {.fd = g->watch, .events = POLLIN};
    struct watched_call call;
    int r = 0;
    while (r >= 0 && poll(&p, 1, -1) >= 0) {
        r = call_watch_next(g->watch, &call);
        if (r > 0)
            answer(g, &call);
    }
    close(g->watch);
    atomic_store(&g->used, false);
    return NULL;
}

static int begin_thread(struct gate *g) {
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int r = pthread_create(&thread, NULL, attend, g);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r == 0)
        pthread_detach(thread);
    return -r;
}

/* ---- the watch ---- */

static const int clones[] = {
    SYS_clone,
#ifdef SYS_clone3
    SYS_clone3,
#endif
#ifdef SYS_fork /* calls that newer machines never had */
    SYS_fork,
    SYS_vfork,
#endif
};
enum { CLONES = sizeof(clones) / sizeof(*clones), CODE_MAX = 4 + 2 * CLONES };

/* What it is made to install: a struct sock_fprog, and its program behind it. */
struct installed {
    struct sock_fprog program;
    struct sock_filter code[CODE_MAX];
};
_Static_assert(sizeof(struct installed) <= SEIZE_DATA_MAX, "it lies on the stack of a thread");

static unsigned short put_code(struct sock_filter *code) {
    size_t n = 0;
    code[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, RIGHTS_OWN_ARCH, 0,
                                             (unsigned char)(1 + 2 * CLONES));
    code[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < CLONES; i++) {
        code[n++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)clones[i], 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    return (unsigned short)n;
}

static long install(pid_t pid, struct err *err) {
    struct installed i = {0};
    i.program.len = put_code(i.code);
    const struct seize_call call = {
        .number = SYS_seccomp,
        .args = {SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER |
                                              SECCOMP_FILTER_FLAG_TSYNC |
                                              SECCOMP_FILTER_FLAG_TSYNC_ESRCH},
        .data = &i,
        .len = sizeof(i),
        .data_arg = 2,
        .link_at = offsetof(struct sock_fprog, filter),
        .link_to = offsetof(struct installed, code),
    };
    const struct seize_call no_privileges = {.number = SYS_prctl, .args = {PR_SET_NO_NEW_PRIVS, 1}};
    long fd = seize_call(pid, &call, err);
    if (fd != -EACCES)
        return fd;
    fd = seize_call(pid, &no_privileges, err);
    return fd ? fd : seize_call(pid, &call, err);
}

/* Its descriptor of the watch becomes ours. */
static int take(pid_t pid, int pidfd, long its, struct err *err) {
    int fd = (int)syscall(SYS_pidfd_getfd, pidfd, (int)its, 0), code = -errno;
    const struct seize_call close_its = {.number = SYS_close, .args = {(unsigned long)its}};
    seize_call(pid, &close_its, NULL);
    return fd < 0 ? err_set(err, code, "take the watch of process %d", (int)pid) : fd;
}

static int make_watch(pid_t pid, int pidfd, struct err *err) {
    long fd = install(pid, err);
    if (fd == -EBUSY)
        return err_say(
            err, -EBUSY,
            "process %d has had this fault already, or its calls are watched for a `file` "
            "trigger or a cut at the sockets, and the kernel allows one watch",
            (int)pid);
    if (fd < 0 && err->code == 0)
        return err_set(err, (int)fd, "make process %d watch its calls", (int)pid);
    return fd < 0 ? (int)fd : take(pid, pidfd, fd, err);
}

/* ---- the gates ---- */

static struct gate *find(pid_t pid) {
    uint64_t ticks;
    if (process_start_ticks(pid, &ticks) != 0)
        return NULL;
    for (size_t i = 0; i < GATES_MAX; i++)
        if (atomic_load(&gates[i].used) && gates[i].pid == pid && gates[i].start_ticks == ticks)
            return &gates[i];
    return NULL;
}

static struct gate *find_free(void) {
    for (size_t i = 0; i < GATES_MAX; i++)
        if (!atomic_load(&gates[i].used))
            return &gates[i];
    return NULL;
}

int clone_gate_close(pid_t pid, int pidfd, unsigned what, struct err *err) {
    struct gate *g = find_free();
    struct err why = {0};
    if (!g)
        return err_say(err, -ENOSPC, "%d processes have this fault, and no more can", GATES_MAX);
    if (process_start_ticks(pid, &g->start_ticks) != 0)
        return err_say(err, -ESRCH, "process %d has ended", (int)pid);
    g->pid = pid;
    g->watch = make_watch(pid, pidfd, &why);
    if (g->watch < 0) {
        if (err)
            *err = why;
        return g->watch;
    }
    atomic_store(&g->closed, what);
    atomic_store(&g->used, true);
    int r = begin_thread(g);
    if (r == 0)
        return 0;
    close(g->watch);
    atomic_store(&g->used, false);
    return err_set(err, r, "start a thread");
}

int clone_gate_open(pid_t pid) {
    struct gate *g = find(pid);
    if (g)
        atomic_store(&g->closed, 0);
    return 0;
}
