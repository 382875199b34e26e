#include "agent/store/metrics.h"

#include "agent/core/kv.h"
#include "agent/store/limits/bounds.h"
#include "base/str.h"

#include <inttypes.h>

static const char *const kinds[METRICS_KINDS] = {
    "other",        "kv/range",      "kv/put",           "kv/deleterange",
    "kv/txn",       "kv/compaction", "lease/grant",      "lease/keepalive",
    "lease/revoke", "watch",         "rankrun/lifeline", METRICS_PATH + 1,
};
static const int statuses[METRICS_STATUSES] = {200, 400, 401, 403, 404,
                                               405, 412, 429, 0 /* others */};

static size_t kind_of(const char *path) {
    const char *name = str_starts(path, "/v3/") ? path + 4 : path + (path[0] == '/');
    for (size_t i = 1; i < METRICS_KINDS; i++)
        if (str_eq(name, kinds[i]))
            return i;
    return 0;
}

void metrics_count(struct metrics *m, const char *path, int status) {
    size_t s = 0;
    while (s < METRICS_STATUSES - 1 && statuses[s] != status)
        s++;
    m->requests[kind_of(path)][s]++;
}

void metrics_head(struct buf *out, const char *name, const char *type, const char *help) {
    buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put(struct buf *out, const char *name, const char *type, uint64_t value,
                const char *help) {
    metrics_head(out, name, type, help);
    buf_printf(out, "%s %" PRIu64 "\n", name, value);
}

/* A kind that was never asked for is there with 0, so that its rate is known from the start. */
static void put_requests(struct buf *out, const struct metrics *m) {
    static const char name[] = "rankrun_store_requests_total";
    metrics_head(out, name, "counter", "Requests that were answered, by kind and HTTP status.");
    for (size_t k = 0; k < METRICS_KINDS; k++)
        for (size_t s = 0; s < METRICS_STATUSES; s++) {
            if (!m->requests[k][s] && s)
                continue;
            buf_printf(out, "%s{kind=\"%s\",code=\"", name, kinds[k]);
            if (statuses[s])
                buf_printf(out, "%d", statuses[s]);
            else
                buf_puts(out, "other");
            buf_printf(out, "\"} %" PRIu64 "\n", m->requests[k][s]);
        }
}

static void put_bounds(struct buf *out, const struct bounds *b) {
    static const char name[] = "rankrun_store_bounded_total";
    metrics_head(out, name, "counter", "How often somebody was kept within a limit, by which.");
    for (int i = 0; i < BOUNDS; i++)
        buf_printf(out, "%s{bound=\"%s\"} %" PRIu64 "\n", name, bounds_name((enum store_bound)i),
                   b->hits[i]);
}

void metrics_put(struct buf *out, const struct metrics *m, const struct metrics_now *now,
                 struct kv *kv) {
    metrics_head(out, "rankrun_build_info", "gauge", "1, with the version of rankrun.");
    buf_puts(out, "rankrun_build_info{version=\"" RANKQUAKE_VERSION "\"} 1\n");
    put(out, "rankrun_store_revision", "gauge", (uint64_t)kv_revision(kv),
        "Revision of the store: grows by one with each write.");
    put(out, "rankrun_store_compact_revision", "gauge", (uint64_t)kv_compact_revision(kv),
        "The oldest revision that a watch can begin at.");
    put(out, "rankrun_store_keys", "gauge", kv_count(kv), "Keys that are there.");
    put(out, "rankrun_store_watches", "gauge", now->watches, "Watches that are open.");
    put(out, "rankrun_store_lifelines", "gauge", now->lifelines,
        "Lifelines of agents that are open.");
    put(out, "rankrun_store_connections", "gauge", now->connections, "Connections that are open.");
    put(out, "rankrun_store_held_bytes", "gauge", now->held,
        "Bytes of requests that have not come whole, and of answers that nobody takes.");
    put(out, "rankrun_store_agent_connections", "gauge", now->agents,
        "Connections that have asked about a run that is there.");
    put(out, "rankrun_store_full", "gauge", now->full,
        "1 when no more runs may begin, and only small ones may grow.");
    put(out, "rankrun_store_others_full", "gauge", now->others_full,
        "1 when nothing more may be written but by runs.");
    put(out, "rankrun_store_connections_total", "counter", m->accepted,
        "Connections that were taken.");
    put(out, "rankrun_store_handshakes_failed_total", "counter", m->handshakes_failed,
        "TLS handshakes that failed.");
    put(out, "rankrun_store_received_bytes_total", "counter", m->received,
        "Bytes that clients sent.");
    put(out, "rankrun_store_sent_bytes_total", "counter", m->sent, "Bytes that clients were sent.");
    put_requests(out, m);
    if (now->bounds)
        put_bounds(out, now->bounds);
    metrics_put_jobs(out, kv);
}
