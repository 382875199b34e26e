/* outcall: an out-of-process call. A child answers questions, so that whatever hangs there (a
 * driver, a file system) does not hang the caller. It is a fork of the caller that runs a function,
 * and it ends when the caller does.
 *
 * A question and an answer are each a text of any length. One question at a time. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/sys/process.h"

struct outcall {
    struct process child; /* pid 0: there is none, or none any more */
    int fd;
};

#define OUTCALL_NONE ((struct outcall){{0, -1}, -1})

/* Runs in the child, for each question; appends the answer. state is what begin has returned. */
struct outcall_work {
    void *(*begin)(void); /* before the first question; NULL: nothing to begin */
    void (*answer)(void *state, const char *question, struct buf *ret);
};

/* The caller must have no threads. Every descriptor but the standard ones is closed in the
 * child. */
int outcall_open(struct outcall *ret, const struct outcall_work *work, struct err *err);
/* Appends the answer to *ret. -ETIME: none within budget_ns; -EPIPE: the child has ended. In both
 * cases it is killed, and every later question answers -EPIPE. */
int outcall_ask(struct outcall *a, const char *question, int64_t budget_ns, struct buf *ret,
                struct err *err);
/* A child that hangs in the kernel is left to it. Leaves OUTCALL_NONE. */
void outcall_close(struct outcall *a);
