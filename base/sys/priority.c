#include "base/sys/priority.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/resource.h>

enum { RAISED = -10 };

static bool raised;
static int ordinary;

void priority_raise(void) {
    errno = 0;
    int now = getpriority(PRIO_PROCESS, 0);
    if (raised || (now == -1 && errno) || now <= RAISED)
        return;
    ordinary = now;
    raised = setpriority(PRIO_PROCESS, 0, RAISED) == 0;
}

void priority_restore(void) {
    if (raised)
        setpriority(PRIO_PROCESS, 0, ordinary);
}
