/* cases: what is planted into a recorded history, and what a check must then say, from a text file.
 *
 * tests/harness/judge/checks/cases/samples.txt is about the check samples. A case in it:
 *
 *     case two ranks count the same shard
 *     history worker-killed
 *     in "step":6, & "pid":121
 *     - [6,
 *     + [5,
 *     fail shard 5 of step 6 was counted twice in round 2: by rank 0 and rank 1
 *
 * It has a name, a history of tests/histories/ and its edits, if any, and ends with the answer and
 * a part of what the check says. Edits are made one after the other; every text goes to the end of
 * its line:
 *
 *     in A & B      what follows changes the lines that contain both A and B (A may be alone)
 *     - X           X goes, wherever it stands in them,
 *     + Y           and Y comes in its place
 *     drop A & B    these lines go
 *     after A & B   behind each of these lines come the records that follow:
 *     {"t":1, ...}  one a line, as in a history, but without "seq"
 *
 * The answer is fail, unknown, pass or skip. `under torchrun`, `under template`, `under slurm` and
 * `under legacy` (rankrun over torchelastic's legacy protocol) judge by what those promise, `check C` says that a case is about another check than its file, `exit N` what the
 * verdict comes to. Empty lines, and those that begin with #, are for readers. */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "harness/judge/checks/check.h"
#include "tests/harness/judge/checks/edit.h"

/* Whose promises are judged. */
enum dialect { DIALECT_STRICT, DIALECT_TORCHRUN, DIALECT_TEMPLATE, DIALECT_SLURM, DIALECT_LEGACY };

struct planted_case {
    const char *place; /* "FILE:LINE" of its first line */
    const char *name, *check, *history, *seen;
    enum finding_status status;
    enum dialect dialect;
    int exit_code; /* -1: any */
    struct edit edits[EDITS_MAX + 1];
    struct planted_case *next;
};

struct cases {
    struct arena arena;
    struct planted_case *first, *last;
};

/* Adds the cases of a text about this check (NULL: each names its own). Returns 0, or -EINVAL with
 * "FILE:LINE: " and what is wrong there. */
int cases_parse(struct cases *c, const char *file, const char *check, const char *text,
                struct err *err);

/* The same of a file. Returns 0 or a negative errno. */
int cases_read(struct cases *c, const char *file, const char *check, struct err *err);

/* The same of all files DIR/CHECK.txt; -EINVAL also where there is no such check. */
int cases_read_all(struct cases *c, const char *dir, struct err *err);

void cases_fini(struct cases *c);
