/* root_cause: the worker by which a job failed, as told at the end: in a line on stderr, and, where
 * TORCHELASTIC_ERROR_FILE names a file to this agent itself, by handing on what that worker left in
 * its own: whoever started the agent reads it there, as it would torchrun's.
 *
 * Which worker it was is the store's word, so it is the same on all nodes; only its own node's
 * agent has its file, and the others leave theirs alone. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct failure;
struct guard;

/* The first worker of this node's last group that failed by itself; pid 0: none has. */
struct root_cause {
    int local_rank, wait_status;
    pid_t pid;
};

/* The first of a group that fails by itself; those that are stopped after it say nothing new. Says
 * so in a line. */
void root_cause_note(struct root_cause *c, int64_t round, int local_rank, pid_t pid, int status,
                     const char *error);

/* earlier: of a run that this agent took no part in. */
void root_cause_print(const struct failure *f, int64_t round, bool earlier);

/* Says what went wrong on stderr; no reason for the agent to end otherwise. node: this one's name.
 */
void root_cause_hand_on(const struct root_cause *c, const struct failure *f, const char *node,
                        const struct guard *g);
