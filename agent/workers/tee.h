/* tee: what workers write into their log files is shown on the console as well, line by line, each
 * with a header ("[trainer0]:").
 *
 * A thread of its own follows the files: the kernel tells it of changes (inotify), and a console
 * that takes nothing (a pager, a full pipe) holds up the thread, never the agent, and never a
 * worker, which writes into its file. What is not shown yet lies in the file; memory is bounded.
 * A carriage return ends a line too, so that a progress bar is not one line for ever. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct tee;

struct tee_stream {
    const char *path;   /* is made, empty, if it is not there */
    int fd;             /* where lines go: 1 or 2 */
    const char *header; /* before each line */
    /* Lines that hold one of these go to this file too; NULL: none. NULL-ended. */
    const char *const *needles;
    const char *filtered_path;
};

/* Starts the thread. NULL with err when the kernel gives no inotify. */
struct tee *tee_new(struct err *err);
/* Follows a file from its beginning; everything in the stream is copied. */
int tee_follow(struct tee *t, const struct tee_stream *s, struct err *err);
/* Nobody writes into what is followed any more: it is shown to its end and closed. Returns at once.
 */
void tee_end(struct tee *t);
/* Shows the rest and ends. A console that has taken nothing for patience_ns is left alone: false
 * then, else true. NULL is allowed. */
bool tee_free(struct tee *t, int64_t patience_ns);
