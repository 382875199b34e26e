/* presses: lines on their way to a run that takes faults by hand, a connection each, and their answers, while
 * the loop goes on. */
#pragma once

#include "base/sys/folder.h"
#include "base/sys/loop.h"

enum { PRESSES_MAX = 4, PRESS_ANSWER = 1024 };

enum press_end {
    PRESS_DONE,
    PRESS_REFUSED,   /* the run says why */
    PRESS_NOT_TAKEN, /* it takes nothing by hand */
    PRESS_BUSY,      /* too many are on their way */
    PRESS_GONE       /* the run has ended, or does not answer */
};

struct presses;
typedef void press_fn(void *arg, enum press_end end, const char *text);

/* run must outlive it. */
struct presses *presses_new(struct loop *loop, const struct folder *run);
/* Those that are on their way are told PRESS_GONE. NULL is allowed; returns NULL. */
struct presses *presses_free(struct presses *p);
/* fn is called once, perhaps before this returns. */
void presses_say(struct presses *p, const char *line, press_fn *fn, void *arg);
