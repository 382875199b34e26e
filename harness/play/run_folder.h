/* run_folder: the directory of a run, as it is before anything has happened in it. */
#pragma once

#include "base/buf.h"
#include "base/sys/folder.h"
#include "harness/plan/plan.h"

int run_folder_write(const struct folder *dir, const char *name, const struct buf *text,
                     struct err *err);
/* scenario.yaml and what else is known before. */
int run_folder_put_inputs(const struct plan *p, const struct folder *dir, struct err *err);
/* Says in err how another place is named; returns code. */
int run_folder_elsewhere(int code, struct err *err);
