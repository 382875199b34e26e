/* explore: the agents' real core (agent/core) and the real store (agent/core/kv.c) of a small job,
 * through every order in which things can happen within bounds. What is checked is what runs.
 *
 * States are kept once each: two that differ only in names, revisions and the time of day are one
 * (agent/core/canonical.h). In every state the invariants are judged (harness/invariants),
 * but for what hangs on times; at the end, whether from every state an end can be reached
 * without a further fault.
 *
 * Time moves in steps of one heartbeat, and only when nothing is left to do at this moment:
 * whatever takes longer than that is a fault (stopped, cut off, late, slow), and counted. At one
 * moment all orders are tried. docs/decisions/0025-exhaustive.md says why, and what this leaves
 * out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EXPLORE_AGENTS_MAX = 3, EXPLORE_BOUNDS_N = 12 };

/* What may happen besides the ordinary course, and how often at most by default. */
struct explore_bound {
    const char *name, *text;
    int usual;
};
const struct explore_bound *explore_bounds(void); /* EXPLORE_BOUNDS_N, in alphabetical order */
int explore_bound_find(const char *name);         /* -1: none */

struct explore_config {
    int agents, min, max; /* nodes */
    int rounds;           /* what comes after so many completed rounds is not looked at */
    int max_restarts;
    bool from_start;   /* else from where the first round is proposed, reached in one way */
    bool free_watches; /* they and reads may lag behind at no charge, as if always slow */
    int bounds[EXPLORE_BOUNDS_N];
    int together; /* of all these in one path, at most */
    uint64_t states_max;
    uint64_t memory_max; /* bytes */
    /* Told now and then; return false to stop. May be NULL. */
    bool (*seen)(void *arg, uint64_t states, uint64_t waiting, int depth);
    void *arg;
};
void explore_config_default(int agents, struct explore_config *ret);

enum explore_end {
    EXPLORE_COMPLETE, /* all of it, and nothing wrong */
    EXPLORE_VIOLATED,
    EXPLORE_STUCK, /* a state from which no end can be reached */
    EXPLORE_LIMIT, /* as far as states_max or memory_max allow, and nothing wrong so far */
    EXPLORE_STOPPED,
};

struct explore_result {
    enum explore_end end;
    uint64_t states, transitions, ends, bounded; /* ends: states in which all is over */
    int depth;
    uint64_t bytes; /* at most at one time */
    char text[512]; /* what is violated */
    char *path;     /* to it, one choice a line, for explore_replay; the caller frees it; or NULL */
};

void explore_run(const struct explore_config *config, struct explore_result *ret);

/* Takes the choices of a path and prints what comes of each, on standard output. Returns false with
 * a text when a line is no choice or is not possible there; ret->end says how it ends. */
bool explore_replay(const struct explore_config *config, const char *path,
                    struct explore_result *ret);
