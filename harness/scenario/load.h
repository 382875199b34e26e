/* load: the parts of scenario_load. Private to this room. */
#pragma once

#include "harness/scenario/reader.h"

key_read_fn load_timeline, load_checks, load_probes, load_probe_expects, load_log_expects,
    random_read, replay_read;

/* The text of the file into d->source; false after adding the error. */
bool source_read(const char *file, struct diagnostics *d);
/* Of any file into out; an error is of that place, and begins with `who`. */
bool source_read_into(const char *file, struct buf *out, struct place p, const char *who,
                      struct diagnostics *d);

/* Applies the set'th (from 1) --set "key=value" to the tree before it is read. */
void override_apply(struct arena *a, struct yaml *root, const char *text, int set,
                    struct diagnostics *d);
/* Puts a value of the file where the path leads, as a --set would. */
void override_put(struct arena *a, struct yaml *root, const char *path, const struct yaml *value,
                  struct diagnostics *d);

/* What no single key can tell: defaults that follow from other keys, and combinations that can
 * never come true. */
void validate(struct reader *r);
