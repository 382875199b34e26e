/* transcript: the exchange of a simulated run, for people: who asked the store for what and when,
 * what came back, what watches told, what workers did. Beats, leases and timers are left out. */
#pragma once

#include "base/buf.h"
#include "harness/sim/simulation.h"

#include <stdarg.h>

enum { TRANSCRIPT_NAMES = 64 };

struct transcript {
    struct buf *out;
    struct {
        char uid[UID_SIZE], name[24];
    } names[TRANSCRIPT_NAMES]; /* of sessions, in the order in which they were begun */
    int n_names;
    struct {
        int node;
        uint64_t id;
    } shown[TRANSCRIPT_NAMES]; /* the newest transactions that are told, with their answers */
    int n_shown;
};

/* All take a run without one, and do nothing then. */
void transcript_line(struct sim *c, int node, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));
void transcript_action(struct sim *c, int node, const struct action *a);
void transcript_event(struct sim *c, int node, const struct event *e);
