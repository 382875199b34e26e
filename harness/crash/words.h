/* words: operations, deaths and losses in plain English. */
#pragma once

#include "base/buf.h"
#include "harness/crash/states.h"

/* "rename of latest.tmp to latest", "write of 4096 bytes at 0 to step-20/model.pt". */
void crash_words_operation(const struct disk_operation *o, struct buf *out);
/* When, what died, what was lost: "after operation 9 (rename of latest.tmp to latest), power loss on
 * ext4 or xfs: the bytes of step-20/model.pt were lost". */
void crash_words_way(const struct crash_states *s, const struct crash_way *way, struct buf *out);
/* What the state looks like where the losses have struck: "`latest` names an empty file". */
void crash_words_look(struct crash_states *s, const struct crash_way *way, struct buf *out);
