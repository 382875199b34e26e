/* sighting: a moment at which a helper has seen something, and the message that tells of it. */
#pragma once

#include "base/json.h"
#include "base/sys/loop.h"

struct sighting {
    int64_t t_ns, late_ns; /* by CLOCK_MONOTONIC; by how much older what was seen may be */
};

struct sighting sighting_now(const struct loop *l);
/* Begins a message {op, t, late}, which whoever ends it sends; the text is the caller's. */
struct json_writer sighting_say(const struct sighting *s, struct buf *text, const char *op);
