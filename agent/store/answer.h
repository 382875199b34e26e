/* answer: what the embedded store says to one request that is no watch. */
#pragma once

#include "agent/base/buf.h"
#include "agent/core/kv.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A job has two or three; each call that names one looks through all. */
enum { ANSWER_LEASES_MAX = 8192 };

struct answer {
    int status;       /* HTTP */
    struct buf body;  /* JSON; the caller frees it */
    bool adds, takes; /* it may have added to what is kept, have taken away from it */
};

/* gRPC's codes as etcd's gateway uses them, with the HTTP status each becomes. */
enum answer_code {
    ANSWER_INVALID = 3,    /* 400 */
    ANSWER_NOT_FOUND = 5,  /* 404 */
    ANSWER_CONDITION = 9,  /* 412 */
    ANSWER_FULL = 8,       /* 429 */
    ANSWER_RANGE = 11,     /* 400 */
    ANSWER_METHOD = 12,    /* 405 */
    ANSWER_STRANGER = 16,  /* 401 */
    ANSWER_NO_ROUTE = 104, /* 404, plain */
};

/* path begins with /v3/. full: what would add to what is kept is refused. Never fails: what is
 * wrong with the request is the answer. */
void answer_request(struct answer *ret, struct kv *kv, const char *path, const char *body, size_t n,
                    int64_t now_ns, bool full);
void answer_refuse(struct answer *ret, enum answer_code code, const char *message);
