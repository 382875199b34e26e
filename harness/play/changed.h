/* changed: of what is to be run, what a change concerns. A scenario is left out only when it is known that
 * nothing of it has changed: its control run's record (harness/run/reads.h) says what the job reads, its
 * own files say the rest. Whatever cannot be known runs. */
#pragma once

#include "base/texts.h"
#include "harness/play/selection.h"
#include "harness/run/reads.h"

#include <stdio.h>

struct changed_names {
    bool asked;
    struct texts names;                  /* as given */
    struct texts left_names, left_files; /* of the scenarios that were left out */
    struct reads_tree tree;
    /* Of the newest control run that was asked about; the text is the selection's. */
    char last_key[65];
    const char *last_why;
};

/* "src/model.py", of the working directory or of the top of the repository. -EINVAL with the sentence. */
int changed_add(struct changed_names *c, const char *name, struct err *err);
/* One a line as git diff --name-only prints them, also in its quotes, or each ended by a NUL (-z). */
int changed_read(struct changed_names *c, int fd, struct err *err);

/* Why one with this record has to be run, in the arena; NULL: nothing that it reads has changed. record
 * NULL: there is none. *ret_stale: the record is not of what lies there now. Reads the tree. */
const char *changed_reason(const struct changed_names *c, const struct json *record,
                           struct arena *a, bool *ret_stale);

/* Leaves in the selection what has to be run, and says on out of each why it is, or is not. Has every
 * control run made anew whose record does not hold any more. bin: the folder of our programs. */
void changed_keep(struct changed_names *c, struct selection *s, const char *bin,
                  void (*name_commands)(struct selected *l), FILE *out);
void changed_fini(struct changed_names *c);
