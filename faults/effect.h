/* effect: what a fault does to the world, as data. Each fault declares its effects, the run records
 * them when the fault comes in force, and whoever must know what a fault means asks for them: a
 * plan for what is left to hit, a check for whom an end may be charged to, a draw for what can
 * happen to a node. No file outside this folder knows a fault by its name.
 *
 * The words are those of the history, and never change. */
#pragma once

#include "base/json.h"

#include <stddef.h>

/* X(NAME, word, what it says of a fault) */
#define EFFECTS(X)                                                                                 \
    X(ENDS_WORKER, "ends-worker", "a worker's process is gone")                                    \
    X(OWN_EXIT, "own-exit", "by an exit of its own, with a status")                                \
    X(STOPS_WORKER, "stops-worker", "a worker lives and does not run")                             \
    X(HINDERS_WORKER, "hinders-worker", "a worker cannot do something that it could do")           \
    X(LEAVES_PROCESS, "leaves-process", "a process of the job outlives who started it")            \
    X(HINDERS_NODE, "hinders-node", "a node cannot do something that it could do")                 \
    X(ENDS_AGENT, "ends-agent", "a node's agent is gone, the node stays up")                       \
    X(ENDS_NODE, "ends-node", "all processes of a node are gone")                                  \
    X(STARTS_NODE, "starts-node", "a node that was off is on")                                     \
    X(SILENCES_NODE, "silences-node", "nothing more comes from a node")                            \
    X(STALLS_NODE, "stalls-node", "a node lives and does not run")                                 \
    X(ASKS_TO_LEAVE, "asks-to-leave", "an agent is asked to leave, and leaves in order")           \
    X(PARTS_NETWORK, "parts-network", "nodes do not reach each other")                             \
    X(IMPAIRS_NETWORK, "impairs-network", "frames arrive late, changed or not at all")             \
    X(ENDS_STORE, "ends-store", "a program that serves the store is gone")                         \
    X(HINDERS_STORE, "hinders-store", "a store answers late, wrongly or not at all")               \
    X(DAMAGES_DISK, "damages-disk", "a disk fails, lies or forgets")                               \
    X(DAMAGES_MEMORY, "damages-memory", "a process computes with what it has not written")         \
    X(MOVES_CLOCK, "moves-clock", "a clock does not say the time")                                 \
    X(SLOWS, "slows", "processes run slower than they could")                                      \
    X(LOUD, "loud", "peers notice: by a signal, a FIN or a RST")                                   \
    X(SILENT, "silent", "nobody is told")                                                          \
    X(LASTING, "lasting", "it ends when it is undone")

enum effect_number {
#define X(name, word, text) EFFECT_NUMBER_##name,
    EFFECTS(X)
#undef X
        EFFECTS_N
};

/* A set of effects is the sum of these. */
enum effect {
#define X(name, word, text) EFFECT_##name = 1 << EFFECT_NUMBER_##name,
    EFFECTS(X)
#undef X
    /* The node's agent does not come back by itself, and how it ends is not judged. */
    EFFECTS_TAKE_AGENT = EFFECT_ENDS_AGENT | EFFECT_ENDS_NODE | EFFECT_ASKS_TO_LEAVE,
};

struct effect_word {
    const char *word, *text;
};
extern const struct effect_word effect_words[EFFECTS_N];

/* Of the fault of that name; 0: there is none. */
unsigned fault_effects(const char *name);
/* The name of the fault that has just these effects, in any cluster; of several the first in the alphabet. There
 * must be one. */
const char *fault_that(unsigned effects);
/* The names of all faults, in alphabetical order; NULL-ended. */
const char *const *fault_names(void);

/* The words of a set, as a member of an object that is being written. */
void effects_put(struct json_writer *w, const char *key, unsigned effects);
/* Of such a list. Words that are not known here count for nothing. */
unsigned effects_take(const struct json *list);
