/* namespace: kernel namespaces, with root or without. See namespaces(7), user_namespaces(7).
 *
 * Without root a process first moves into a user namespace of its own, where it is root over what
 * it makes itself; the uid on the host stays what it was. Nothing made here has a name outside: it
 * ends with its last process. Every error names what the host refuses and the fix. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The calling process may make namespaces as it is: root's way. */
bool namespace_needs_no_user(void);

/* Makes sure that the calling process may make namespaces: nothing to do with CAP_SYS_ADMIN and
 * CAP_NET_ADMIN, else it moves into a user namespace of its own. The process must not have threads.
 * Returns 0 or a -errno (-EPERM, -ENOSPC: the host forbids it). */
int namespace_enter(struct err *err);
/* The same, but there the caller has the uid and gid that it has on the host, and all rights until
 * it executes a program. */
int namespace_enter_as_oneself(struct err *err);

/* fork into new namespaces (CLONE_NEWPID | CLONE_NEWNET ...). Returns like fork: 0 in the child,
 * the child's pid with *ret_pidfd (close-on-exec, the caller's) in the parent, -errno on failure.
 * The child should exec soon: it has run no atfork handlers. */
pid_t namespace_fork(int clone_flags, int *ret_pidfd, struct err *err);

/* The calling process dies by SIGKILL when the thread that forked it does. Call first thing in the
 * child; a parent that was already gone by then must be noticed by other means (EOF of a pipe). */
void namespace_die_with_parent(void);

/* Calls fn in a child, which ends then: what it changes of itself ends with it. In new namespaces
 * where there are flags. Returns what fn does, with its error, or a -errno. */
int namespace_try(int clone_flags, int (*fn)(void *arg, struct err *err), void *arg,
                  struct err *err);

/* Tries in a child, and leaves nothing behind, all that a node needs: the namespaces, an own /proc,
 * a pair of virtual network cards and a packet socket on it. Returns 0, or -ENOTSUP with the
 * sentence. */
int namespace_check(struct err *err);

/* Moves the calling process, which must not have threads, into a time namespace of its own, whose
 * monotonic and boot clocks are so far ahead of the host's; below 0: behind, but not before their
 * beginning. Returns 0 or a -errno (-ERANGE: before it). */
int namespace_shift_uptime(int64_t monotonic_ns, int64_t boottime_ns, struct err *err);
/* How far those of a process are ahead, by the kernel's word in /proc. False: it does not say. */
bool namespace_uptime_of(pid_t pid, int64_t *ret_monotonic_ns, int64_t *ret_boottime_ns);
/* Tries it in a child. 0, or -ENOTSUP with the sentence. */
int namespace_check_uptime(struct err *err);
/* The same for what the caller starts from now on, as root, while its own clocks stay what they are. */
int namespace_shift_uptime_below(int64_t monotonic_ns, int64_t boottime_ns, struct err *err);
int namespace_check_uptime_below(struct err *err);

/* The process is in the namespace of that kind ("pid", "user") that the caller is in. */
bool namespace_is_shared(pid_t pid, const char *kind);
