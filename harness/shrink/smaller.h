/* smaller: one scenario made of another that does or asks for less. Pure: what it comes to is for a
 * run to show, and whether it loads and can be planned for the loader and the plan.
 *
 * Each returns a scenario in the arena which shares all else with the one it was made of, so that
 * must live as long; NULL: there is nothing of the kind to take away. */
#pragma once

#include "harness/scenario/scenario.h"

/* Whether this check counts what exactly the faults of the timeline come to, so that with fewer of
 * them something else would have to be expected: world_sizes, restarts, lines that must come in a
 * log, an outcome that is not success. */
bool smaller_is_counted(const struct scenario *s, const char *check);

/* Without what is expected besides these checks (NULL-ended): nothing of it changes a run. */
struct scenario *smaller_expect(struct arena *a, const struct scenario *s,
                                const char *const *checks);
/* Without its probes; never NULL. */
struct scenario *smaller_probes(struct arena *a, const struct scenario *s);

/* Without those entries of the timeline, and the heals of their faults, for which gone is set too.
 * What came after one of them comes after what that came after, or where nothing else was said of
 * it, at that one's moment. A budget for one of them, and lines of a log after it, go with it. */
struct scenario *smaller_timeline(struct arena *a, const struct scenario *s, bool *gone);
/* No trigger asks for a round where it asks for something else as well. */
struct scenario *smaller_rounds(struct arena *a, const struct scenario *s);
/* Each entry that struck one target by draw names it: struck[i], "n1/0" or NULL. */
struct scenario *smaller_draws(struct arena *a, const struct scenario *s,
                               const char *const *struck);

/* Without those nodes, which nothing names; those behind them move up. nnodes becomes what is
 * left. */
struct scenario *smaller_cluster(struct arena *a, const struct scenario *s, const bool *gone);
struct scenario *smaller_workers(struct arena *a, const struct scenario *s, int per_node);

/* What can be simpler in one entry, in the order in which it is worth trying. */
#define SMALLER_PARTS(X)                                                                           \
    X(AFTER, "without after")                                                                      \
    X(ROUND, "without round")                                                                      \
    X(EVENT, "without the event")                                                                  \
    X(LOG, "without the line of the log")                                                          \
    X(FILE, "without the operation on a file")                                                     \
    X(SYSCALL, "without the system call")                                                          \
    X(STORE, "without the operation of the store")                                                 \
    X(PHASE, "without the phase")                                                                  \
    X(TIME, "without the time")                                                                    \
    X(STEP, "without the step")                                                                    \
    X(PLUS, "without plus")                                                                        \
    X(PATIENT, "without patient")                                                                  \
    X(WITHIN, "without within")                                                                    \
    X(NTH, "at the first")                                                                         \
    X(TIMES, "once")                                                                               \
    X(UNTIL, "without until")                                                                      \
    X(SOONER, "sooner")                                                                            \
    X(SHORTER, "for a shorter time")
enum smaller_part {
#define X(NAME, text) SMALLER_##NAME,
    SMALLER_PARTS(X)
#undef X
        SMALLER_PARTS_N
};
extern const char *const smaller_part_text[SMALLER_PARTS_N];

struct scenario *smaller_line(struct arena *a, const struct scenario *s, size_t line,
                              enum smaller_part part);

/* Of a job that takes --steps=N: half as many, where every step that is waited for is left. */
struct scenario *smaller_steps(struct arena *a, const struct scenario *s);
