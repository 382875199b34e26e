/* asked: SIGTERM, which is read and not delivered, and when it must be obeyed. */
#pragma once

#include "base/err.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct asked {
    int told_fd; /* readable: asked to end; -1: not open */
    int end_fd;  /* readable: no more time for what has been begun */
    int stop_fd; /* of the thread that waits until then; -1: none, end_fd is told_fd */
    int64_t grace_ns;
    pthread_t thread;
};

#define ASKED_CLOSED ((struct asked){.told_fd = -1, .end_fd = -1, .stop_fd = -1})

/* From here on the process has SIGTERM pending and goes on; what waits looks at end_fd. */
int asked_open(struct asked *ret, struct err *err);

/* What has been begun when SIGTERM comes may take so long from then on. a stays where it is. */
int asked_allow(struct asked *a, int64_t grace_ns, struct err *err);

bool asked_is(const struct asked *a);
void asked_close(struct asked *a);
