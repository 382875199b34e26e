/* runner: the CI server that has started us, as its environment says, and what it reads. */
#pragma once

#include <stdbool.h>

struct runner {
    const char *name;  /* "github" */
    const char *title; /* for people */
    const char *sign;  /* set and not "false" by it alone; NULL: of the one that is always there */
    const char *summary; /* names the variable that names the file a summary is added to; NULL */
    const char *outputs; /* the same of name=value lines; NULL */
    const char *only;    /* the batch report that no other reads; NULL: none */
    bool commands;       /* it obeys lines of standard output: annotations go there */
    const char *failed;  /* a line that opens what was printed, where something failed; NULL */
};

/* The first of the table whose sign is set. */
const struct runner *runner_find(void);
extern const struct runner runners[]; /* the last one has no sign */
