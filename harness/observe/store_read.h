/* store_read: what the harness itself reads in a store to see what a fault did to it. The words are
 * etcd's JSON gateway's, which rankrun's own store speaks too; the keys of a job are those of
 * leader.h. */
#pragma once

#include "base/err.h"

#include <stdint.h>

struct store_question {
    const char *address;
    uint16_t port;
    const char *word;   /* lease | lease-keys | revision | revision-gone | alarms | slowest */
    const char *run_id; /* of the job: lease, lease-keys */
    int64_t number;     /* lease-keys: of the lease; revision-gone: as revision has said;
                           slowest: ns */
};

/* lease: the lease that the keys of the job hang on; 0: none. lease-keys: how many keys of the job
 * hang on that one. revision: the newest, where the one before is kept; else 0. revision-gone: 1
 * when the one before that number is compacted, 0 when it is kept. alarms: how many members have
 * raised NOSPACE. slowest: how many ns the slowest answer took, of questions that follow one another
 * until one took that number at least, for some 2 s at most.
 *
 * Blocking, for a process that does nothing else. 0; -EINVAL: no such word; else as gateway_ask. err
 * is needed. */
int store_read_ask(const struct store_question *q, int64_t *ret, struct err *err);
