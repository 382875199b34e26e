/* paces: how long each phase of a recovery took in earlier runs of the same scenario, with the same
 * values. A phase that takes more than twice their median and a second more is told below the
 * headline, at the check pace: it fails nobody, for the machine may be another or a busy one. Where
 * the harness itself was late meanwhile, by a tenth of that, nothing is said.
 *
 * The record is a file in the cache, of the newest runs that ended with exit code 0 and in which
 * nothing was slower, so a slower phase is told in every run until it is as quick again, or
 * accepted: by a change of the scenario, or by `renew`. What was told is kept in the run's directory
 * too, for its reports. */
#pragma once

#include "base/sys/folder.h"
#include "harness/judge/verdict.h"

struct paces_spec {
    const char *file; /* the record */
    const struct scenario *scenario;
    const struct history *history;
    const struct rounds *rounds;
    const struct folder *run; /* its path is absolute */
    bool renew;               /* earlier runs are forgotten, once they have been compared with */
};

/* Marks the finding of pace in v. Returns 0, also where there is no record yet, or a -errno: then
 * nothing is compared with the next time. */
int paces_take(const struct paces_spec *s, struct verdict *v, struct err *err);

/* Marks it in v, which was judged again, as it was marked when this run was made. */
void paces_recall(const struct folder *run, struct verdict *v);
