/* console: which of the workers' streams are shown besides going into files, and with which header.
 */
#pragma once

#include "agent/workers/output.h"
#include "agent/workers/spec.h"
#include "agent/workers/tee.h"
#include "base/err.h"

/* Before the workers of a round start. *tee is made when the first stream needs it. */
int console_begin(struct tee **tee, const struct output *o, const struct worker_spec *s,
                  struct err *err);
