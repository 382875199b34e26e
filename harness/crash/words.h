/* words: operations, deaths and losses in plain English. Operations are counted from 1, without
 * what was there before, so that point N is "after operation N". */
#pragma once

#include "base/buf.h"
#include "harness/crash/states.h"

/* Of the operation with this index; 0: it is a DISK_HAD. Of a point: of the last one before it. */
size_t crash_words_number(const struct crash_states *s, size_t operation);

/* "rename of latest.tmp to latest", "write of 4096 bytes at 0 to step-20/model.pt". */
void crash_words_operation(const struct disk_operation *o, struct buf *out);
/* Of what was left out: "1234", or "more than 10^15". */
void crash_words_many(double n, struct buf *out);
/* "`latest`"; the directory itself has no name, and is called so. */
void crash_words_path(const char *path, struct buf *out);
/* "power loss", "the death of rank 1". */
void crash_words_death(const struct crash_states *s, const struct crash_way *way, struct buf *out);
/* "the bytes of step-20/model.pt, the rename of latest.tmp to latest"; "nothing". */
void crash_words_lost(const struct crash_states *s, const struct crash_way *way, struct buf *out);
/* All of it: "after operation 9 (rename of latest.tmp to latest), power loss on ext4 or xfs: lost
 * were the bytes of step-20/model.pt". */
void crash_words_way(const struct crash_states *s, const struct crash_way *way, struct buf *out);
/* What is there, where it differs most from what was asked for: "`latest` is an empty file". */
void crash_words_look(struct crash_states *s, const struct crash_way *way, struct buf *out);
