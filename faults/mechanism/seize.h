/* seize: makes a running process do what its program never would, by ptrace. x86-64 and arm64.
 *
 * The process is stopped wherever it is, in a system call or in its own code, and continues with
 * one system call of ours. It need not cooperate, nor be linked with anything. The caller needs the
 * right to trace it (its own user, or CAP_SYS_PTRACE), and gets a SIGCHLD once more if some came
 * meanwhile. */
#pragma once

#include "base/err.h"

#include <sys/types.h>

/* Makes it call exit_group(code) and waits, at most some seconds, until it has. Returns 0; -ESRCH:
 * it has ended already; -EPERM, -ENOTSUP (it runs 32-bit code), -ETIME: it hangs in the kernel. */
int seize_exit(pid_t pid, int code, struct err *err);
