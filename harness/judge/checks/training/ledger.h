/* ledger: which rank counted which shards at which step, as the job's step events say. */
#pragma once

#include "harness/judge/checks/check.h"

struct ledger_entry {
    const struct worker *worker;
    const struct record *record;
    const struct json *shards; /* NULL: not said */
    int64_t step, samples;     /* samples -1: not said */
};

struct shard_ledger {
    struct ledger_entry *v; /* by round, then step, then as received */
    size_t n;
    int shards; /* the highest number of a shard that was ever counted, and one */
};

enum { LEDGER_SHARDS_MAX = 65536, LEDGER_SAMPLES_MAX = 1 << 30 }; /* more is not believed */

void ledger_read(struct shard_ledger *l,
                 const struct trial *t); /* lives as long as the trial's arena */
/* By round (number - 1): the last of its steps that is in what the job ends with; a round that
 * resumes from step R makes void whatever earlier rounds made after R. INT64_MAX: all of them. Lives
 * as long as the trial's arena. */
const int64_t *ledger_horizons(const struct trial *t);
/* The first worker of which events were lost; NULL: none. */
const struct worker *ledger_lost(const struct trial *t);
/* The end of the group that begins at `from`: the entries of one round and step. */
size_t ledger_group(const struct shard_ledger *l, size_t from);
