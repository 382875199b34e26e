/* process: a process is its pid and its pidfd, kept together.
 *
 * A pid alone may belong to somebody else by the time it is used; the pidfd never does. Everything
 * here works on Linux >= 5.10. Times are CLOCK_MONOTONIC nanoseconds, a timeout below 0 is for
 * ever.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct process {
    pid_t pid; /* as this process sees it; 0: none */
    int pidfd; /* readable when the process has ended; owned; -1: none */
};

#define PROCESS_NONE ((struct process){0, -1})

/* What to start. All zero but argv is a plain child: own environment, own directory, own standard
 * streams, every other descriptor closed, no signal blocked. */
struct process_spawn {
    const char *const *argv; /* NULL-ended; argv[0] is looked for in PATH */
    const char *file;        /* NULL: argv[0]; else what is executed under that name */
    const char *const *envp; /* NULL: the caller's environment */
    const char *dir;         /* NULL: the caller's directory */
    const int *fds;  /* NULL: inherited; else stdin, stdout, stderr, each > 2 or -1: inherited */
    const int *keep; /* further descriptors that stay open under their number */
    size_t keep_n;
    bool session;     /* setsid: a session and a process group of its own */
    bool group;       /* setpgid: a process group of its own */
    int death_signal; /* sent by the kernel when the thread that spawned it dies; 0: none */

    /* Runs in the child as the last thing before exec; returns 0 or a -errno. The child is a fork
     * of a process that may have threads: only async-signal-safe calls. */
    int (*in_child)(void *arg);
    void *in_child_arg;
};

/* Starts a child and returns when it has exec'ed, or with the errno of the call that failed in it
 * (-ENOENT: no such program); then nothing is left to wait for. */
int process_spawn(const struct process_spawn *s, struct process *ret, struct err *err);

/* The same for many children at once: returns after the fork. A child that cannot exec writes one
 * struct process_failure to report, which all of them share, and exits 127 (not found) or 126; the
 * reader sees its end when the last has exec'ed or failed (and the caller has closed its own copy).
 * report -1: nobody is told. */
struct process_failure {
    uint32_t tag;
    int32_t code; /* -errno */
};
int process_spawn_reporting(const struct process_spawn *s, int report, uint32_t tag,
                            struct process *ret, struct err *err);
/* A pipe that is closed on exec and lies above the standard streams; 0 or -errno. */
int process_report_pipe(int ret[2]);

/* Closes every descriptor from low on. */
void process_close_from(int low);

/* A pidfd for a process that is not ours or not made here; -ESRCH when there is none. */
int process_open(pid_t pid, struct process *ret, struct err *err);
/* The pid, as this process sees it, behind a pidfd that came from another namespace; 0: it has
 * ended, or cannot be seen from here. */
pid_t process_pid_of(int pidfd);
/* Closes the pidfd; the process goes on. NULL is allowed. Leaves PROCESS_NONE. */
void process_close(struct process *p);

/* 0, or -ESRCH when it has ended and been waited for, -EPERM. */
int process_signal(const struct process *p, int signo);
/* The same, and -ESRCH also for one that has ended and has not been waited for: the kernel takes a
 * signal for it, and nobody feels it. */
int process_signal_living(const struct process *p, int signo);

/* Waits until the process has ended. Returns 0, or -ETIME. Works for any process; a child stays to
 * be reaped. */
int process_wait_end(const struct process *p, int64_t timeout_ns);

/* Waits for a child of ours and reaps it; the wait status in *ret_status (may be NULL). -ETIME,
 * -ECHILD. */
int process_reap(const struct process *p, int64_t timeout_ns, int *ret_status);

/* A child that does nothing, for trials on a process of one's own; it ends with the caller. Its pid, for kill and waitpid;
 * -1 with errno. */
pid_t process_fork_idle(void);

/* What /proc/PID/stat says. */
struct process_look {
    char state; /* 'Z', 'X': it has ended */
    pid_t parent;
    int threads;
    uint64_t start_ticks; /* clock ticks since boot: with the pid it names a process for ever */
    int exit_code;        /* a wait status, of a zombie of our own user's */
};
/* 0, or -ESRCH when there is none. */
int process_look(pid_t pid, struct process_look *ret);
/* The processes that /proc shows: how many, and a list for free(). */
size_t process_list(pid_t **ret);
bool process_is_among(pid_t pid, const pid_t *pids, size_t n);

/* The wait status of a process that somebody else reaps, best effort. While it is a zombie
 * /proc/PID/stat tells it (same user, or root): -EAGAIN when it still runs, -ESRCH when it is gone.
 * After the reaping PIDFD_GET_INFO does, on Linux >= 6.15: -EOPNOTSUPP on an older kernel, -EAGAIN
 * before it was reaped (poll the pidfd with no events and wait for POLLHUP). */
int process_zombie_status(pid_t pid, int *ret_status);
int process_exit_info(int pidfd, int *ret_status);
/* Whether this kernel answers process_exit_info, found out with a child that ends at once. */
bool process_exit_info_works(void);

int process_start_ticks(pid_t pid, uint64_t *ret_ticks);
/* The inode of the pid namespace in which it runs; pid 0: the caller's. 0: it cannot be seen. */
unsigned long long process_pid_space(pid_t pid);

/* Sends signo to every living process that descends from root (root itself not), found by walking
 * /proc; returns how many it reached, zombies not counted. One pass: a process that was being
 * forked meanwhile is missed, so call again when a child of the caller has died, until none is
 * left. */
int process_signal_descendants(pid_t root, int signo);
/* The same but for one child and all below it; 0: none is spared. */
int process_signal_descendants_but(pid_t root, pid_t spared, int signo);
/* The living processes that descend from root (root itself not), as one look at /proc finds them:
 * how many, and a list for free(). */
size_t process_list_descendants(pid_t root, pid_t **ret);

/* From now on what loses its parent below the calling process becomes its child, not init's: a
 * descendant cannot leave. Returns 0 or a -errno. */
int process_adopt_orphans(void);
/* Kills and reaps all that descends from the calling process, which adopts orphans and has no other
 * thread: those that keep forking too, until there is no child left and so nothing below. 0, or
 * -ETIME: something hangs in the kernel. */
int process_end_descendants(int64_t timeout_ns);

/* What the kernel calls it (the first 15 bytes of its program's name, as a rule); "" when it has
 * gone. Returns buf. */
const char *process_name(pid_t pid, char *buf, size_t size);

/* The last number of a line of /proc/PID/task/TID/status, as of "NSpid:" in "NSpid: 4711 12", to that
 * base; 0: there is none. */
unsigned long long process_status_number(pid_t pid, pid_t tid, const char *key, int base);
/* Whether a mask of signals there has that one: "SigCgt:" those that it handles, "SigIgn:" ignores. */
bool process_has_signal(pid_t pid, const char *key, int signo);

/* "exit code 3", "SIGKILL", "SIGSEGV (core dumped)"; returns buf. */
const char *process_status_text(int status, char *buf, size_t size);
