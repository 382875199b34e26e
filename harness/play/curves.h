/* curves: what a sweep shows, when all of its runs have been made: the table of its figures over the
 * value that was swept, and its picture as a file beside the run directories. */
#pragma once

#include "harness/play/selection.h"

#include <stdio.h>

struct curves_request {
    const struct selection *selection;
    const char *out;  /* where the run directories are */
    int64_t since_ns; /* runs that began before are somebody else's; monotonic clock */
    FILE *table;      /* NULL: only the picture */
    FILE *said;       /* for what else there is to say */
};

/* One after another for each file of the selection that was run at several points. Whatever does
 * not come to a curve (one point, several keys) is left out: the runs have been told already. */
void curves_tell(const struct curves_request *q);
