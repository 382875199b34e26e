/* vfork_spawn: the start of a worker, up to its exec.
 *
 * A fork copies page tables, and afterwards each page that either side writes: a third of what it
 * costs to start a worker. Here the child has the guard's memory until it has exec'ed, as the
 * children of posix_spawn(3) have, but nobody waits for it: a program, or a folder for its output,
 * on a disk that hangs never hangs the guard.
 *
 * So two processes run in one memory with the thread-local variables of one. The child makes
 * system calls itself (the C library would write errno, which is the guard's), has a stack of its
 * own and writes nowhere else. What struct vfork_spawn points to, and the stack, must stay as they
 * are until the child has exec'ed or ended: the pipe of failures tells. */
#pragma once

#include "base/arena.h"
#include "base/sys/process.h"

#include <stdint.h>
#include <sys/types.h>

enum { VFORK_SPAWN_STACK = 16384 };

struct vfork_spawn {
    const char *const *files; /* vfork_spawn_files of argv[0] */
    const char **argv;        /* NULL-ended, with an element before it that is the child's */
    const char *const *envp;  /* all of it */
    const char *outputs[2];   /* files for stdout and stderr, emptied; "": inherited */
    int keep;     /* a descriptor that stays open besides the standard streams; 0: none */
    int report;   /* gets a struct process_failure when it cannot exec; closed by exec */
    uint32_t tag; /* of that */
    pid_t parent; /* the caller */
};

/* Where a program of that name may be, in order, NULL-ended: itself when it has a slash, else in
 * each folder of PATH. As execvp(3) does, of the calling process. */
const char *const *vfork_spawn_files(const char *name, struct arena *a);

/* Starts it, in a session of its own, with no signal blocked, killed by the kernel when the calling
 * thread ends. stack: VFORK_SPAWN_STACK bytes. All signals must be blocked in the caller. Returns
 * 0, or -errno when there is no child; one that cannot exec reports it and exits 127 (not found) or
 * 126. */
int vfork_spawn_begin(struct vfork_spawn *t, void *stack, struct process *ret);
