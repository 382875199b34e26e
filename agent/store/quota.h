/* quota: how much the embedded store keeps, agents' keys and everybody else's apart: what others
 * write without end takes no room from a job.
 *
 * A run's key is one that an agent would write (key_is_of_a_run), with a value of at most
 * QUOTA_VALUE_MAX. It counts with QUOTA_KEY_LEAST bytes at least, so that one that is there, as a
 * beat is, may always be written anew. Where runs have taken three quarters of what is theirs a run
 * that is there and has a small part of it may still grow, as a job does whose nodes meet; others
 * may not, and none begins. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kv;
struct kv_txn;

enum { QUOTA_VALUE_MAX = 16 << 10, QUOTA_KEY_LEAST = 1 << 10 };

struct quota_limits {
    size_t runs_max, others_max, history_max; /* bytes */
};

struct quota {
    struct quota_limits limits;
    size_t written;       /* since the last look */
    size_t runs, others;  /* at the last look */
    int64_t looked_at_ns; /* when something was full */
    bool runs_full, others_full;
};

/* NULL: the transaction may be done. Else a sentence that says what is full. Looks again, once a
 * second at most, where something was. */
const char *quota_refuses(struct quota *q, const struct kv *kv, const struct kv_txn *txn,
                          int64_t now_ns);
/* A request of n bytes, which may have written all of them, was answered. Looks at what is kept
 * once enough may have come together. History goes first: watches that are behind are canceled and
 * begin anew. */
void quota_wrote(struct quota *q, struct kv *kv, size_t n);
/* Keys were deleted: it is looked at once more at once. */
void quota_deleted(struct quota *q);
