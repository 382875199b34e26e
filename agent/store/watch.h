/* watch: who is behind a watch of a kv. A kv may be shared by the server's streams and by the store
 * of this process, and has one list of those that are due: so each owner says how it is told. */
#pragma once

#include "agent/core/kv.h"

struct watch {
    struct kv_watch *kv;
    void (*due)(struct watch *w); /* takes the events; may end this or any other watch */
};

void watch_open(struct watch *w, struct kv *kv, struct kv_bytes key, struct kv_bytes range_end,
                int64_t start_revision, void (*due)(struct watch *w));
void watch_close(struct watch *w); /* one that was never opened, too */

/* Tells all that are due. */
void watch_tell(struct kv *kv);
