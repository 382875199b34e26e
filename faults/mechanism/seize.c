#include "faults/mechanism/seize.h"

#include "faults/mechanism/registers.h"
#include "faults/mechanism/tracing.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int say(int r, pid_t pid, const char *what, struct err *err) {
    if (r == -ENOTSUP)
        return err_say(err, r,
                       "process %d runs code in which this build cannot make a call "
                       "(32-bit?)",
                       (int)pid);
    if (r == -ETIME)
        return err_say(err, r, "process %d has not answered for 5 s: it hangs in the kernel",
                       (int)pid);
    return r ? err_set(err, r, "make process %d call %s", (int)pid, what) : 0;
}

/* ---- an exit ---- */

/* Once it goes on, a signal that comes first is kept from it. A thread that was seized and is not
 * let go dies with its process. */
static int exit_thread(struct tracing *w, pid_t pid, pid_t tid, void *arg) {
    const struct seize_call *exit = arg;
    struct user_regs_struct regs;
    struct registers_poked poked;
    int status, r = registers_get(tid, &regs);
    r = r ? r : registers_make_call(tid, &regs, exit, &poked);
    if (r)
        return r;
    do {
        if (ptrace(PTRACE_CONT, tid, NULL, NULL) < 0)
            return -errno;
        r = tracing_wait(w, tid, &status);
    } while (r == 0 && WIFSTOPPED(status));
    return r;
}

int seize_exit(pid_t pid, int code, struct err *err) {
    struct seize_call exit = {.number = SYS_exit_group, .args = {(unsigned long)code}};
    char what[32];
    snprintf(what, sizeof(what), "exit_group(%d)", code);
    return say(tracing_any_thread(pid, exit_thread, &exit), pid, what, err);
}

/* ---- a call after which it goes on ---- */

enum { WORDS_MAX = SEIZE_DATA_MAX / sizeof(long) };

struct calling {
    struct seize_call call;
    long returned;
    long words[WORDS_MAX]; /* what stood where the data are */
};

/* Exchanges the words at this place for others. */
static int swap(pid_t tid, unsigned long at, long *words, size_t n) {
    for (size_t i = 0; i < n; i++) {
        errno = 0;
        long word = ptrace(PTRACE_PEEKDATA, tid, at + i * sizeof(long), NULL);
        if (errno || ptrace(PTRACE_POKEDATA, tid, at + i * sizeof(long), words[i]) < 0)
            return -errno;
        words[i] = word;
    }
    return 0;
}

/* One instruction. Signals that come first are kept: *ret_kept, a bit each. */
static int step(struct tracing *w, pid_t tid, uint64_t *ret_kept) {
    int status, r;
    do {
        if (ptrace(PTRACE_SINGLESTEP, tid, NULL, NULL) < 0)
            return -errno;
        r = tracing_wait(w, tid, &status);
        if (r == 0 && !WIFSTOPPED(status))
            return -ESRCH;
        if (r == 0 && WSTOPSIG(status) != SIGTRAP && status >> 16 == 0)
            *ret_kept |= UINT64_C(1) << (WSTOPSIG(status) - 1);
    } while (r == 0 && (WSTOPSIG(status) != SIGTRAP || status >> 16));
    return r;
}

static void send_kept(pid_t pid, pid_t tid, uint64_t kept) {
    for (int signo = 1; signo <= 64; signo++)
        if (kept >> (signo - 1) & 1)
            syscall(SYS_tgkill, pid, tid, signo);
}

/* Restores all that registers_make_call has changed, whatever became of the call. */
static int call_here(struct tracing *w, pid_t pid, pid_t tid, struct calling *c,
                     struct user_regs_struct *before) {
    struct user_regs_struct regs = *before;
    struct registers_poked poked;
    uint64_t kept = 0;
    int r = registers_make_call(tid, &regs, &c->call, &poked);
    if (r)
        return r;
    r = step(w, tid, &kept);
    if (r == 0 && (r = registers_get(tid, &regs)) == 0)
        c->returned = registers_returned(&regs);
    if (poked.written)
        ptrace(PTRACE_POKETEXT, tid, poked.at, poked.word);
    int restored = registers_set(tid, before);
    send_kept(pid, tid, kept);
    return r ? r : restored;
}

static int call_thread(struct tracing *w, pid_t pid, pid_t tid, void *arg) {
    struct calling *c = arg;
    struct user_regs_struct before;
    size_t n = (c->call.len + sizeof(long) - 1) / sizeof(long);
    int r = registers_get(tid, &before);
    if (r)
        return r;
    unsigned long at = registers_free_stack(&before);
    memset(c->words, 0, sizeof(c->words));
    if (c->call.data) {
        memcpy(c->words, c->call.data, c->call.len);
        if (c->call.link_to)
            c->words[c->call.link_at / sizeof(long)] = (long)(at + c->call.link_to);
        c->call.args[c->call.data_arg] = at;
    }
    r = swap(tid, at, c->words, n);
    if (r == 0) {
        r = call_here(w, pid, tid, c, &before);
        int restored = swap(tid, at, c->words, n);
        r = r ? r : restored;
    }
    if (r == 0)
        ptrace(PTRACE_DETACH, tid, NULL, NULL);
    return r;
}

long seize_call(pid_t pid, const struct seize_call *call, struct err *err) {
    struct calling c = {.call = *call};
    char what[32];
    if (call->len > SEIZE_DATA_MAX)
        return err_say(err, -EINVAL, "a call with %zu bytes of data, and %d are the most",
                       call->len, SEIZE_DATA_MAX);
    snprintf(what, sizeof(what), "system call %ld", call->number);
    int r = say(tracing_any_thread(pid, call_thread, &c), pid, what, err);
    return r ? r : c.returned;
}
