/* said: the parts of the check of that name. Each returns false with the finding filled where what was
 * said is not what was seen. */
#pragma once

#include "harness/judge/checks/check.h"

#define SAID_BROKEN                                                                                \
    "What the launcher says of its rounds, failures, members and outcome is what was seen."

struct said_trial {
    const struct trial *t;
    const struct agent_end *agents;
    size_t agents_n;
    int64_t lines, answers; /* that were compared */
};

/* What is said and what was seen of one thing; a negative one is not known. Lists end with {0}. */
struct said_number {
    const char *what;
    int64_t said, seen;
};

/* The agent of that node, where it had one in the run, no fault has ended or asked to leave, and it ended
 * with the outcome, 0 or 1, and all it has printed was looked through. NULL: not so, or that is open. */
const struct agent_end *said_whole_agent(const struct said_trial *s, const char *node);

bool said_lines(struct said_trial *s, struct finding *f);
bool said_events(struct said_trial *s, struct finding *f);
bool said_status(struct said_trial *s, struct finding *f);
