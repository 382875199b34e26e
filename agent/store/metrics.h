/* metrics: how the embedded store and the jobs in it stand, as text for Prometheus (exposition
 * format 0.0.4, https://prometheus.io/docs/instrumenting/exposition_formats/).
 *
 *     GET /metrics
 *
 * Names are listed in docs/torchrun.md. What is told of a job is read from its keys when somebody
 * asks: nothing is counted twice, and nobody pays for it in between. */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define METRICS_PATH "/metrics"
#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct bounds;
struct kv;

enum { METRICS_KINDS = 12, METRICS_STATUSES = 9 };

/* Since the store was started. */
struct metrics {
    uint64_t requests[METRICS_KINDS][METRICS_STATUSES];
    uint64_t received, sent; /* bytes, of connections that are closed by now too */
    uint64_t accepted;       /* connections */
    uint64_t handshakes_failed;
};

/* What is so now. */
struct metrics_now {
    size_t connections, watches, lifelines;
    size_t agents;               /* connections of theirs */
    size_t held;                 /* bytes, see agent/store/limits/ledger.h */
    bool full, others_full;      /* see agent/store/quota.h */
    const struct bounds *bounds; /* NULL: none is told */
};

/* One request to path was answered with this HTTP status. */
void metrics_count(struct metrics *m, const char *path, int status);

/* The store's own, then the jobs'. */
void metrics_put(struct buf *out, const struct metrics *m, const struct metrics_now *now,
                 struct kv *kv);

/* metrics_jobs.c: of every run that has keys in kv. kv is only read. */
void metrics_put_jobs(struct buf *out, struct kv *kv);

/* "# HELP ..." and "# TYPE ..." of one name; type: counter, gauge. */
void metrics_head(struct buf *out, const char *name, const char *type, const char *help);
