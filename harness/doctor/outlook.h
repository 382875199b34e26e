/* outlook: what becomes of a fault on this host, by the answers to the questions: each mechanism
 * has been tried once, and a fault can be injected where all that it needs was seen to work. */
#pragma once

#include "harness/doctor/host_question.h"

enum outlook_kind {
    OUTLOOK_WORKS, /* in namespaces */
    OUTLOOK_LESS,  /* on nodes that are processes of the host: `why` says how it differs */
    OUTLOOK_CANNOT,
    OUTLOOK_OPEN, /* it was to be tried, and the trial came to nothing */
    OUTLOOKS_N
};

struct outlook {
    enum outlook_kind kind;
    const char *why, *fix; /* NULL where there is nothing to say; as long as the answers */
};

/* Answers, in the order of host_questions. */
struct outlook outlook_of(const struct fault *f, const struct question_result *answers);
