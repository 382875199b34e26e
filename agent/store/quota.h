/* quota: how much the embedded store keeps. A job of a thousand nodes has less than a megabyte;
 * this is for clients that write without end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kv;

enum { QUOTA_MAX = 256 << 20 };

struct quota {
    size_t max;           /* bytes */
    size_t written;       /* since the last look */
    int64_t looked_at_ns; /* when it was full */
    bool full;
};

/* A request of n bytes, which may have written all of them, was answered. Looks at what is kept
 * once enough may have come together. History goes first: watches that are behind are canceled and
 * begin anew. */
void quota_wrote(struct quota *q, struct kv *kv, size_t n);
/* Keys were deleted: it is looked at once more at once. */
void quota_deleted(struct quota *q);
/* Whether nothing may be added. Looks again, once a second at most, when it was so. */
bool quota_is_full(struct quota *q, const struct kv *kv, int64_t now_ns);
