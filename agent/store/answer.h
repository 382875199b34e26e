/* answer: what the embedded store says to one request that is no watch. */
#pragma once

#include "agent/core/kv.h"
#include "agent/store/gateway.h"
#include "base/arena.h"
#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ANSWER_LEASES_MAX =
        8192, /* a job has two or three; each call that names one looks through all */
    ANSWER_COST_MAX = 128 << 10, /* keys that one request looks at: a few milliseconds */
    ANSWER_PIECE = 64 << 10,     /* bytes: what is longer is written as it is read */
};

struct quota;

struct answer {
    int status;       /* HTTP */
    struct buf body;  /* JSON, or its beginning */
    bool adds, takes; /* it may have added to what is kept, have taken away from it */
    bool refused_full;
    bool asks_run; /* set before: of_run is asked for */
    bool of_run;   /* it asked about the keys of one run, which is there, and about nothing else */
    bool more;     /* answer_more writes the rest */
    struct arena arena;
    struct kv_hold *hold; /* what the rest shows; NULL: nothing */
    struct gateway_answer rest;
};

/* Writes the next piece behind what is in out. Returns whether it was the last. */
bool answer_more(struct answer *a, struct buf *out);
/* Before kv is freed. */
void answer_fini(struct answer *a, struct kv *kv);

/* gRPC's codes as etcd's gateway uses them, with the HTTP status each becomes. */
enum answer_code {
    ANSWER_INVALID = 3,    /* 400 */
    ANSWER_NOT_FOUND = 5,  /* 404 */
    ANSWER_FORBIDDEN = 7,  /* 403 */
    ANSWER_CONDITION = 9,  /* 412 */
    ANSWER_FULL = 8,       /* 429 */
    ANSWER_RANGE = 11,     /* 400 */
    ANSWER_METHOD = 12,    /* 405 */
    ANSWER_STRANGER = 16,  /* 401 */
    ANSWER_NO_ROUTE = 104, /* 404, plain */
};

/* path begins with /v3/. quota: what would go beyond it is refused; NULL: nothing is. Never fails:
 * what is wrong with the request is the answer. */
void answer_request(struct answer *ret, struct kv *kv, const char *path, const char *body, size_t n,
                    int64_t now_ns, struct quota *quota);
/* About one run and nothing else: key and range_end are within it, and it is there. */
bool answer_is_of_run(const struct kv *kv, struct kv_bytes key, struct kv_bytes range_end);
void answer_refuse(struct answer *ret, enum answer_code code, const char *message);
