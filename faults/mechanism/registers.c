#include "faults/mechanism/registers.h"

#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#if defined(__x86_64__)

enum { CODE_64 = 0x33 };
static const long syscall_insn = 0x050f, insn_mask = 0xffff;

static int put_insn(pid_t tid, unsigned long at, struct registers_poked *ret) {
    errno = 0;
    long word = ptrace(PTRACE_PEEKTEXT, tid, at, NULL);
    if (errno || ptrace(PTRACE_POKETEXT, tid, at, (word & ~insn_mask) | syscall_insn) < 0)
        return -errno;
    *ret = (struct registers_poked){.at = at, .written = true, .word = word};
    return 0;
}

/* Where there is a system call instruction: the one it is in, or one put where it stands. Memory
 * that is written this way is the process's own copy. */
static int find_insn(pid_t tid, unsigned long pc, struct registers_poked *ret) {
    errno = 0;
    long word = ptrace(PTRACE_PEEKTEXT, tid, pc - 2, NULL);
    *ret = (struct registers_poked){.at = pc - 2};
    if (errno == 0 && (word & insn_mask) == syscall_insn)
        return 0;
    return put_insn(tid, pc, ret);
}

int registers_get(pid_t tid, struct user_regs_struct *ret) {
    if (ptrace(PTRACE_GETREGS, tid, NULL, ret) < 0)
        return -errno;
    return ret->cs == CODE_64 ? 0 : -ENOTSUP;
}

int registers_set(pid_t tid, struct user_regs_struct *r) {
    return ptrace(PTRACE_SETREGS, tid, NULL, r) < 0 ? -errno : 0;
}

unsigned long registers_free_stack(const struct user_regs_struct *r) {
    return (r->rsp - 1024) & ~15UL;
}

long registers_returned(const struct user_regs_struct *r) {
    return (long)r->rax;
}

int registers_make_call(pid_t tid, struct user_regs_struct *r, const struct seize_call *c,
                        struct registers_poked *ret) {
    int found = find_insn(tid, r->rip, ret);
    if (found)
        return found;
    r->rip = ret->at;
    r->rax = (unsigned long)c->number;
    r->rdi = c->args[0];
    r->rsi = c->args[1];
    r->rdx = c->args[2];
    r->r10 = c->args[3];
    r->r8 = c->args[4];
    r->r9 = c->args[5];
    r->orig_rax = (unsigned long)-1; /* in no system call: nothing to restart */
    return registers_set(tid, r);
}

int registers_end_behind(pid_t tid, const struct registers_poked *p) {
    const long ud2 = 0x0b0f;
    return ptrace(PTRACE_POKETEXT, tid, p->at + 2, ud2) < 0 ? -errno : 0;
}

/* Where it stood is what the call would return to, so that a debugger sees who called. */
int registers_call_null(pid_t tid, struct user_regs_struct *r) {
    r->rsp -= sizeof(long);
    if (ptrace(PTRACE_POKEDATA, tid, r->rsp, r->rip) < 0)
        return -errno;
    r->rip = 0;
    r->orig_rax = (unsigned long)-1;
    return registers_set(tid, r);
}

int registers_call(pid_t tid, struct user_regs_struct *r, uint64_t function, unsigned long arg) {
    r->rsp = registers_free_stack(r) - sizeof(long);
    if (ptrace(PTRACE_POKEDATA, tid, r->rsp, 0L) < 0)
        return -errno;
    r->rip = function;
    r->rdi = arg;
    r->rax = 0;
    r->eflags &= ~0x400UL; /* a function may rely on the direction being clear */
    r->orig_rax = (unsigned long)-1;
    return registers_set(tid, r);
}

bool registers_at_null(const struct user_regs_struct *r) {
    return r->rip == 0;
}

long registers_in_call(const struct user_regs_struct *r) {
    return (long)r->orig_rax;
}

static const unsigned long vector_set = NT_X86_XSTATE;

#elif defined(__aarch64__)

enum { INSN = 4 };
static const long syscall_insn = 0xd4000001, insn_mask = 0xffffffff;

static int put_insn(pid_t tid, unsigned long at, struct registers_poked *ret) {
    errno = 0;
    long word = ptrace(PTRACE_PEEKTEXT, tid, at, NULL);
    if (errno || ptrace(PTRACE_POKETEXT, tid, at, (word & ~insn_mask) | syscall_insn) < 0)
        return -errno;
    *ret = (struct registers_poked){.at = at, .written = true, .word = word};
    return 0;
}

int registers_get(pid_t tid, struct user_regs_struct *ret) {
    struct iovec v = {ret, sizeof(*ret)};
    if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &v) < 0)
        return -errno;
    return v.iov_len == sizeof(*ret) ? 0 : -ENOTSUP;
}

int registers_set(pid_t tid, struct user_regs_struct *r) {
    struct iovec v = {r, sizeof(*r)};
    return ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &v) < 0 ? -errno : 0;
}

unsigned long registers_free_stack(const struct user_regs_struct *r) {
    return (r->sp - 1024) & ~15UL;
}

long registers_returned(const struct user_regs_struct *r) {
    return (long)r->regs[0];
}

/* Never where it stands: a system call that was interrupted stands at its own instruction, and the
 * kernel may make restart_syscall of what it finds there. */
int registers_make_call(pid_t tid, struct user_regs_struct *r, const struct seize_call *c,
                        struct registers_poked *ret) {
    int put = put_insn(tid, r->pc + INSN, ret);
    if (put && (put = put_insn(tid, r->pc - INSN, ret)))
        return put;
    r->pc = ret->at;
    r->regs[8] = (unsigned long)c->number;
    for (int i = 0; i < 6; i++)
        r->regs[i] = c->args[i];
    return registers_set(tid, r);
}

int registers_end_behind(pid_t tid, const struct registers_poked *p) {
    return ptrace(PTRACE_POKETEXT, tid, p->at + INSN, 0L) < 0 ? -errno : 0; /* udf #0 */
}

int registers_call_null(pid_t tid, struct user_regs_struct *r) {
    r->regs[30] = r->pc;
    r->pc = 0;
    return registers_set(tid, r);
}

int registers_call(pid_t tid, struct user_regs_struct *r, uint64_t function, unsigned long arg) {
    r->sp = registers_free_stack(r);
    r->pc = function;
    r->regs[0] = arg;
    r->regs[30] = 0;
    return registers_set(tid, r);
}

bool registers_at_null(const struct user_regs_struct *r) {
    return r->pc == 0;
}

/* The kernel does not say in the registers whether it is in one: x8 is all there is. */
long registers_in_call(const struct user_regs_struct *r) {
    return (long)r->regs[8];
}

static const unsigned long vector_set = NT_PRFPREG;

#else

int registers_get(pid_t tid, struct user_regs_struct *ret) {
    return -ENOTSUP;
}

int registers_set(pid_t tid, struct user_regs_struct *r) {
    return -ENOTSUP;
}

unsigned long registers_free_stack(const struct user_regs_struct *r) {
    return 0;
}

long registers_returned(const struct user_regs_struct *r) {
    return -ENOTSUP;
}

int registers_make_call(pid_t tid, struct user_regs_struct *r, const struct seize_call *c,
                        struct registers_poked *ret) {
    return -ENOTSUP;
}

int registers_call_null(pid_t tid, struct user_regs_struct *r) {
    return -ENOTSUP;
}

int registers_end_behind(pid_t tid, const struct registers_poked *p) {
    return -ENOTSUP;
}

int registers_call(pid_t tid, struct user_regs_struct *r, uint64_t function, unsigned long arg) {
    return -ENOTSUP;
}

bool registers_at_null(const struct user_regs_struct *r) {
    return false;
}

long registers_in_call(const struct user_regs_struct *r) {
    return -1;
}

static const unsigned long vector_set = 0;

#endif

int registers_get_vector(pid_t tid, struct registers_vector *ret) {
    struct iovec v = {ret->bytes, sizeof(ret->bytes)};
    if (ptrace(PTRACE_GETREGSET, tid, vector_set, &v) < 0)
        return -errno;
    ret->n = v.iov_len;
    return 0;
}

int registers_set_vector(pid_t tid, struct registers_vector *vector) {
    struct iovec v = {vector->bytes, vector->n};
    return ptrace(PTRACE_SETREGSET, tid, vector_set, &v) < 0 ? -errno : 0;
}
