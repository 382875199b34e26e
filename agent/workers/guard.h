/* guard: the process between the agent and its workers, seen from the agent.
 *
 * The guard is the workers' parent. It kills them when the agent is gone (its socket ends), when
 * the deadline passes, and when it is told to; and a kernel timer kills it - and by
 * PR_SET_PDEATHSIG the workers - when even it does not run any more. So no stopped, swapped out or
 * dead agent leaves a worker behind.
 *
 * The first one is a fork, made before the agent has a loop, a library at work or a thread. One
 * that takes the place of a dead guard is this program executed again under the name GUARD_NAME:
 * that is safe at any time, threads or not, and takes nothing along. main must therefore begin with
 * `if (guard_is_me(argv)) return guard_main();`.
 *
 * The agent becomes a subreaper. When a guard dies by its timer, what is left below it falls to the
 * agent, and the `dead` callback comes only when all of that is gone too. SIGCHLD and waitpid(-1)
 * of the process belong to this file from guard_attach on.
 *
 * One local worker group at a time: guard_start, then the callbacks in this order: started for each
 * (forked), running (all of them exec'ed) or exec_failed, exited for each, reaped. `reaped` means
 * that nothing of the group lives: no worker, no child of a worker, no orphan of one. It comes by
 * itself after the last worker has ended, asked for or not. */
#pragma once

#include "agent/workers/spec.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct guard;
struct loop;

#define GUARD_NAME "rankrun-guard"

/* Why the group was ended. The first reason stays, unless a deadline passed during the stop. */
enum guard_reason {
    GUARD_ENDED,   /* the workers ended by themselves */
    GUARD_STOPPED, /* guard_stop */
    GUARD_KILLED,  /* guard_kill */
    GUARD_FENCED,  /* the deadline passed */
    GUARD_REFUSED, /* nothing was started: the deadline had passed, or there was none */
};

struct guard_events {
    /* A worker was forked. The pidfd is the guard's (stays valid until `exited`). */
    void (*started)(void *arg, int local_rank, pid_t pid, int pidfd);
    /* All workers of the group have exec'ed. */
    void (*running)(void *arg);
    /* This one could not; `exited` with code 127 (not found) or 126 follows. */
    void (*exec_failed)(void *arg, int local_rank, const char *why);
    /* error: the text that the worker left in its error file (@record), or why it could not be
     * executed, or ""; before the first that fails stands what another had left earlier, which is
     * still busy with its end. ended_realtime_ns is for people and for "who failed first on this
     * node". */
    void (*exited)(void *arg, int local_rank, pid_t pid, int wait_status, const char *error,
                   int64_t ended_realtime_ns);
    void (*reaped)(void *arg, enum guard_reason reason);
    /* The guard itself has died, and with it the group, all of it: by its own timer (fenced), or by
     * somebody's hand. No `exited` or `reaped` comes for that group. guard_renew before the next
     * start. */
    void (*dead)(void *arg, pid_t pid, int wait_status, bool fenced);
};

/* Keeps argv, where a guard that is a fork writes its name for who lists processes. */
bool guard_is_me(char **argv);
/* The guard's own life; returns its exit code: the errno of what it cannot go on without, 64 where no
 * agent has started it, or 0. */
int guard_main(void);

/* Starts a guard; returns before it is set up. No thread may exist yet, and what the standard
 * library has buffered is not written twice. command: the caller's, kept. NULL with err: could not
 * fork. */
struct guard *guard_new(const struct worker_command *command, struct err *err);
/* Puts it on the loop; before the first start. ev must outlive the guard. */
void guard_attach(struct guard *g, struct loop *l, const struct guard_events *ev, void *arg);
/* A child of the agent that is none of the guard's: it and what is below it are left alone when
 * all others are killed. */
void guard_spare(struct guard *g, pid_t child);
/* After `dead` (also from inside it): a new guard, which knows no deadline. Nothing while the last
 * one lives, or is still being buried. */
int guard_renew(struct guard *g, struct err *err);
/* Kills whatever is alive, waits for the guard to end (5 s at most), removes scratch files. NULL is
 * allowed; returns NULL. The agent calls it last. */
struct guard *guard_free(struct guard *g);

/* Starts a group; refused with -EBUSY while one lives. Copies what it needs. */
int guard_start(struct guard *g, const struct worker_spec *spec, struct err *err);

/* CLOCK_BOOTTIME, absolute: at fence the guard kills the group, at hard the kernel kills the guard.
 * Later values only: an earlier one changes nothing. Cheap, to be called at every accepted beat. */
void guard_deadline(struct guard *g, int64_t fence_ns, int64_t hard_ns);

/* signo to each worker's process group (then SIGCONT, for one that is stopped), SIGKILL to all that
 * is left after grace_ms. A second call with a shorter grace shortens it. Nothing when none lives.
 */
void guard_stop(struct guard *g, int signo, int64_t grace_ms);
/* SIGKILL to everything below the guard. */
void guard_kill(struct guard *g);
/* Just the signal, to each worker's process group (SIGUSR1, SIGUSR2). */
void guard_signal(struct guard *g, int signo);

/* The same to one process below the guard, a worker or not. 0; -ESRCH: it is none of those, or has
 * ended; else what kill said. */
int guard_signal_one(const struct guard *g, pid_t pid, int signo);

/* Where the workers' output is kept when nobody said where; "": nowhere, or not yet. */
const char *guard_output_dir(const struct guard *g);

/* error_file_pass_on (error_file.h) for the worker that had this local rank in the newest group, or
 * for the one that had failed before it, with its own code: until guard_free. */
int guard_hand_on_error(const struct guard *g, int local_rank, int code, const char *to,
                        struct err *err);

/* Living processes of the group as far as the agent was told: 0 after reaped or dead. */
int guard_alive(const struct guard *g);
