/* seize: makes a running process do what its program never would, by ptrace. x86-64 and arm64.
 *
 * The process is stopped wherever it is, in a system call or in its own code, and makes one system
 * call of ours. It need not cooperate, nor be linked with anything. The caller needs the
 * right to trace it (its own user, or CAP_SYS_PTRACE), and gets a SIGCHLD once more if some came
 * meanwhile. */
#pragma once

#include "base/err.h"

#include <sys/types.h>

/* Makes it call exit_group(code) and waits, at most some seconds, until it has. Returns 0; -ESRCH:
 * it has ended already; -EPERM, -ENOTSUP (it runs 32-bit code), -ETIME: it hangs in the kernel. */
int seize_exit(pid_t pid, int code, struct err *err);

/* Makes one of its threads do this call and then go on as if nothing had been; what it was in the
 * midst of, it does again. data: `len` bytes, at most SEIZE_DATA_MAX, which lie on its stack
 * meanwhile, and their address is the argument of this number; NULL: none. Returns what the call
 * returned, a -errno too; or the errors of seize_exit, with `err` set. */
enum { SEIZE_DATA_MAX = 256 };
struct seize_call {
    long number;
    unsigned long args[6];
    const void *data;
    size_t len;
    int data_arg;
    /* The word of data at link_at becomes the address of the byte at link_to; link_to 0: none. */
    size_t link_at, link_to;
};
long seize_call(pid_t pid, const struct seize_call *call, struct err *err);
