#include "faults/mechanism/orphan.h"

#include "base/str.h"
#include "base/sys/process.h"
#include "faults/mechanism/registers.h"
#include "faults/mechanism/tracing.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ORPHANS_MAX = 64 };
static const int64_t end_wait_ns = 5000000000;

static struct orphan {
    bool used;
    struct process of; /* whose it is; its number may be given anew when it has ended */
    struct process self;
    char name[64];
} orphans[ORPHANS_MAX];

/* ---- one call of a thread that stands still ---- */

/* Lets it make this call; a child that it starts stands still from its beginning. Signals that come
 * meanwhile are sent again. Returns what the call has returned. */
static int make_call(struct tracing *w, pid_t pid, pid_t tid, struct user_regs_struct *regs,
                     const struct seize_call *c, struct registers_poked *poked, pid_t *ret_child,
                     long *ret) {
    int status = 0, r = registers_make_call(tid, regs, c, poked);
    while (r == 0) {
        if (ptrace(PTRACE_SINGLESTEP, tid, NULL, NULL) < 0)
            return -errno;
        r = tracing_wait(w, tid, &status);
        if (r || !WIFSTOPPED(status))
            return r ? r : -ESRCH;
        unsigned long child;
        if (status >> 16 == PTRACE_EVENT_CLONE &&
            ptrace(PTRACE_GETEVENTMSG, tid, NULL, &child) == 0 && ret_child)
            *ret_child = (pid_t)child;
        if (status >> 16)
            continue;
        if (WSTOPSIG(status) == SIGTRAP)
            break;
        syscall(SYS_tgkill, pid, tid, WSTOPSIG(status));
    }
    r = r ? r : registers_get(tid, regs);
    if (r == 0)
        *ret = registers_returned(regs);
    return r;
}

/* ---- the child ---- */

/* It makes two calls, of which the second never ends: every signal is blocked, and of its program it
 * must run nothing. */
static int settle(struct tracing *w, pid_t child) {
    const struct seize_call session = {.number = SYS_setsid}, wait = {.number = SYS_ppoll};
    const uint64_t all = UINT64_MAX;
    struct user_regs_struct regs;
    struct registers_poked poked;
    long returned;
    int status, r = tracing_wait(w, child, &status);
    if (r || !WIFSTOPPED(status))
        return r ? r : -ESRCH;
    if (ptrace(PTRACE_SETSIGMASK, child, sizeof(all), &all) < 0)
        return -errno;
    r = registers_get(child, &regs);
    r = r ? r : make_call(w, child, child, &regs, &session, &poked, NULL, &returned);
    r = r ? r : registers_make_call(child, &regs, &wait, &poked);
    r = r ? r : registers_end_behind(child, &poked);
    if (r == 0 && ptrace(PTRACE_DETACH, child, NULL, NULL) < 0)
        r = -errno;
    return r;
}

struct making {
    pid_t child;
};

static int make_in_thread(struct tracing *w, pid_t pid, pid_t tid, void *arg) {
    /* No flags and no signal: a process, of which nobody is told. */
    const struct seize_call clone = {.number = SYS_clone};
    struct making *m = arg;
    struct user_regs_struct before, regs;
    struct registers_poked poked = {0};
    long returned = 0;
    int r = registers_get(tid, &before);
    if (r || ptrace(PTRACE_SETOPTIONS, tid, NULL, PTRACE_O_TRACECLONE) < 0)
        return r ? r : -errno;
    regs = before;
    r = make_call(w, pid, tid, &regs, &clone, &poked, &m->child, &returned);
    if (poked.written)
        ptrace(PTRACE_POKETEXT, tid, poked.at, poked.word);
    int restored = registers_set(tid, &before);
    ptrace(PTRACE_SETOPTIONS, tid, NULL, 0);
    r = r ? r : restored ? restored : returned < 0 ? (int)returned : 0;
    if (m->child) {
        int settled = settle(w, m->child);
        if (settled)
            kill(m->child, SIGKILL);
        r = r ? r : settled;
    }
    if (r == 0)
        ptrace(PTRACE_DETACH, tid, NULL, NULL);
    return r;
}

/* ---- those that there are ---- */

static bool has_ended(const struct process *p) {
    struct pollfd end = {.fd = p->pidfd, .events = POLLIN};
    return poll(&end, 1, 0) != 0;
}

static void forget(struct orphan *o) {
    process_close(&o->self);
    process_close(&o->of);
    o->used = false;
}

static struct orphan *find_free(void) {
    for (size_t i = 0; i < ORPHANS_MAX; i++) {
        if (orphans[i].used && has_ended(&orphans[i].self))
            forget(&orphans[i]);
        if (!orphans[i].used)
            return &orphans[i];
    }
    return NULL;
}

int orphan_make(pid_t pid, int pidfd, const char *name, struct err *err) {
    struct making m = {0};
    struct orphan *o = find_free();
    if (!o)
        return err_say(err, -ENOSPC, "%d orphans live, and no more can", ORPHANS_MAX);
    int r = tracing_any_thread(pid, make_in_thread, &m);
    if (r)
        return err_set(err, r, "make process %d start a child", (int)pid);
    r = process_open(m.child, &o->self, err);
    if (r)
        return r;
    o->of = (struct process){pid, fcntl(pidfd, F_DUPFD_CLOEXEC, 3)};
    o->used = true;
    str_copy(o->name, sizeof(o->name), name);
    return 0;
}

static int end(struct orphan *o, struct err *err) {
    int r = process_signal(&o->self, SIGKILL);
    r = r == -ESRCH ? 0 : r ? r : process_wait_end(&o->self, end_wait_ns);
    if (r)
        return err_set(err, r, "kill the orphan %d", (int)o->self.pid);
    forget(o);
    return 0;
}

static bool is_of(const struct orphan *o, pid_t pid, const char *name) {
    return o->used && str_eq(o->name, name) && (pid ? o->of.pid == pid : has_ended(&o->of));
}

int orphan_end(pid_t pid, const char *name, struct err *err) {
    int r = 0;
    for (size_t i = 0; i < ORPHANS_MAX; i++) {
        int ended = is_of(&orphans[i], pid, name) ? end(&orphans[i], err) : 0;
        r = r ? r : ended;
    }
    return r;
}
