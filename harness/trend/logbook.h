/* logbook: a trend file, to which entries are only ever added.
 *
 * It is one file of a line for each entry, or a directory with a file for each, which two branches
 * can add to without a conflict. Several may add at the same time. A file that was cut off, in
 * whatever place, costs the entries that were cut and no other: they are named, and what is added
 * afterwards begins a line of its own. */
#pragma once

#include "base/texts.h"
#include "harness/trend/entry.h"

enum { LOGBOOK_BYTES_MAX = 1 << 30 };

struct logbook {
    struct arena arena;
    struct trend_entry **v; /* by time; each run once */
    size_t n;
    struct texts damaged; /* a sentence for each line or file that was left out */
};

/* -ENOENT: there is none. Lines that are no entries are no error. */
int logbook_read(struct logbook *ret, const char *path, struct err *err);
void logbook_fini(struct logbook *l);

/* Adds those that are not there yet, *ret_added of them, all or, with an error, none of a file;
 * makes a missing file, a missing directory where path ends in a slash. They are on the disk when it
 * returns. */
int logbook_add(const char *path, const struct trend_entry *v, size_t n, size_t *ret_added,
                struct err *err);
