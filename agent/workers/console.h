/* console: which of the workers' streams are shown besides going into files, and with which header.
 */
#pragma once

#include "agent/base/arena.h"
#include "agent/base/err.h"
#include "agent/workers/output.h"
#include "agent/workers/spec.h"
#include "agent/workers/tee.h"

/* The header of a line: the prefix with ${role_name}, ${local_rank}, ${rank} and ${hostname} put
 * in; what else begins with $ stays. NULL: torchrun's, [<role><local rank>]: */
const char *console_header(const char *prefix, const struct worker_spec *s, int local_rank,
                           struct arena *a);
/* Before the workers of a round start. *tee is made when the first stream needs it. */
int console_begin(struct tee **tee, const struct output *o, const struct worker_spec *s,
                  struct err *err);
