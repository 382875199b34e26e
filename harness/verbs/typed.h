/* typed: a command typed behind "--", for the verbs that take one. */
#pragma once

#include "harness/run/control.h"
#include "harness/scenario/generate.h"
#include "harness/verbs.h"

struct typed {
    struct command command;
    struct generated generated;
    const char **sets; /* KEY=VALUE of --set and of the options that stand for one; NULL-ended */
};

/* Takes apart what stands behind "--" and decides what it is tried on. Returns 0, or the exit code
 * after saying what is wrong. All of it lives in the arena and in a. */
int typed_read(struct arena *arena, const struct arguments *a, struct typed *ret);

/* The scenario of it, without faults and without what the sets say, as text. */
void typed_put(const struct typed *t, struct buf *out);
/* That text loaded with these sets (NULL: none), to be freed with scenario_free. NULL: with what is
 * wrong added to d, or with nothing where no file could be written. */
struct scenario *typed_load(const struct typed *t, const char *const *sets, struct diagnostics *d);

/* The control run that was kept of the very same job with what the sets say; else, with
 * *ret_other, the one that `try` or a `run` of what init wrote has kept of this command with other
 * sets: it tells how long the job takes, but not what a job observed otherwise would show. `bin` is the folder of our programs.
 * False: neither. */
bool typed_find_control(const struct typed *t, const char *bin, struct control *ret,
                        bool *ret_other);
/* Keeps it for who types the command with other sets. What cannot be kept is not missed. */
void typed_keep_control(const struct typed *t, const char *bin, const struct control *c);

/* The same for `run FILE -- CMD`: adds to the sets what puts the command in place of the file's
 * job, and says what of the command is not used. */
int typed_replace(struct arena *arena, const struct arguments *a, const char **sets,
                  const char ***ret_sets);

/* The command as one line that a shell takes. */
void typed_print(char *const *words, struct buf *out);
