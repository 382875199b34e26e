#include "agent/store/quota.h"

#include "agent/core/kv.h"

enum { OVERHEAD = 256 }; /* of a key or an event, about */

static const int64_t LOOK_NS = 1000000000;

static void add_pair(void *arg, const struct kv_pair *pair) {
    size_t *sum = arg;
    *sum += pair->key.len + pair->value.len + OVERHEAD;
}

static void add_event(void *arg, const struct kv_event *event) {
    add_pair(arg, &event->pair);
}

static size_t measure(const struct kv *kv) {
    size_t sum = 0;
    kv_each(kv, add_pair, &sum);
    kv_each_event(kv, 0, add_event, &sum);
    return sum;
}

void quota_wrote(struct quota *q, struct kv *kv, size_t n) {
    q->written += n + OVERHEAD;
    if (q->written < q->max / 4)
        return;
    q->written = 0;
    if (measure(kv) > q->max / 2)
        kv_compact(kv, kv_revision(kv), NULL);
    q->full = measure(kv) > q->max / 4 * 3;
}

void quota_deleted(struct quota *q) {
    q->looked_at_ns = INT64_MIN / 2;
}

bool quota_is_full(struct quota *q, const struct kv *kv, int64_t now_ns) {
    if (q->full && now_ns - q->looked_at_ns >= LOOK_NS) {
        q->looked_at_ns = now_ns;
        q->full = measure(kv) > q->max / 4 * 3;
    }
    return q->full;
}
