#include "agent/store/watch.h"

void watch_open(struct watch *w, struct kv *kv, struct kv_bytes key, struct kv_bytes range_end,
                int64_t start_revision, void (*due)(struct watch *w)) {
    w->due = due;
    w->kv = kv_watch_new(kv, key, range_end, start_revision, w);
}

void watch_close(struct watch *w) {
    w->kv = kv_watch_free(w->kv);
}

void watch_tell(struct kv *kv) {
    for (struct kv_watch *k; (k = kv_watch_ready(kv));) {
        struct watch *w = kv_watch_owner(k);
        w->due(w);
    }
}
