/* decisions: what agents decided in a run, by kinds: what head said in the store, what the agent
 * had just heard, and what it did. A seed is worth what it reaches of these that others do not:
 * draw.c has its weights from them. */
#pragma once

#include <stdint.h>

enum {
    DECISION_PHASES = 5,
    DECISION_EVENTS = 16,
    DECISION_ACTS = 48,
    DECISIONS_N = DECISION_PHASES * DECISION_EVENTS * DECISION_ACTS,
    DECISION_WORDS = DECISIONS_N / 64,
};

struct action;
struct event;

/* The place of one; -1: it is no decision, but asks, waits or tells people. */
int decision_place(int phase, const struct event *ev, const struct action *a);
