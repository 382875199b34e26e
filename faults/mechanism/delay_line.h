/* delay_line: frames that are on their way and arrive later.
 *
 * Those of one direction arrive in the order in which they were sent, however long each was to
 * take, but for those that may be overtaken. Runs on a loop; single-threaded. */
#pragma once

#include "base/sys/loop.h"
#include "faults/mechanism/wire_rules.h"

#include <stddef.h>

struct delay_line;

struct delayed {
    int from, to; /* ports */
    unsigned plane;
    unsigned deeds; /* 1 << DEED_*: for who counts them when it lands */
    bool overtaken; /* it keeps nobody back */
    const unsigned char *message;
    size_t len;
};

/* A frame is due; it is the line's, and gone when this returns. */
typedef void delay_line_fn(void *arg, const struct delayed *frame);

/* In flight at once: what comes beyond is refused. */
enum { DELAY_LINE_BYTES_MAX = 64 << 20 };

struct delay_line *delay_line_new(struct loop *l, delay_line_fn *fn, void *arg);
struct delay_line *delay_line_free(struct delay_line *d); /* NULL is allowed; returns NULL */

/* Whether a frame of this direction is in flight that one which is not late must not overtake. */
bool delay_line_has(const struct delay_line *d, int from, int to);
/* Copies the frame. False: too much is in flight. */
bool delay_line_put(struct delay_line *d, const struct delayed *frame, int64_t due_ns);
