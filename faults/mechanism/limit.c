#include "faults/mechanism/limit.h"

#include "base/sys/process.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>

enum { LIMITS_MAX = 256 };

static struct limit {
    pid_t pid; /* 0: free */
    uint64_t start_ticks;
    int resource;
    struct rlimit before;
} limits[LIMITS_MAX];

/* A number may have been given anew. */
static bool is_still(const struct limit *l) {
    uint64_t ticks;
    return l->pid && process_start_ticks(l->pid, &ticks) == 0 && ticks == l->start_ticks;
}

static struct limit *find(pid_t pid, int resource) {
    for (size_t i = 0; pid && i < LIMITS_MAX; i++)
        if (limits[i].pid == pid && limits[i].resource == resource)
            return &limits[i];
    return NULL;
}

/* Free, or of a process that has ended with its limit. */
static struct limit *find_free(void) {
    for (size_t i = 0; i < LIMITS_MAX; i++)
        if (!is_still(&limits[i]))
            return &limits[i];
    return NULL;
}

int limit_lower(pid_t pid, int resource, uint64_t to, struct err *err) {
    struct limit *l = find(pid, resource), made = {.pid = pid, .resource = resource};
    if (l && is_still(l))
        return err_say(err, -EBUSY, "process %d has such a limit already", (int)pid);
    l = l ? l : find_free();
    if (!l)
        return err_say(err, -ENOSPC, "%d limits are lowered, and no more can be", LIMITS_MAX);
    if (process_start_ticks(pid, &made.start_ticks) != 0 ||
        prlimit(pid, (__rlimit_resource_t)resource, NULL, &made.before) != 0)
        return err_set(err, -ESRCH, "read a limit of process %d", (int)pid);
    struct rlimit lower = made.before;
    lower.rlim_cur = to < lower.rlim_cur ? to : lower.rlim_cur;
    if (prlimit(pid, (__rlimit_resource_t)resource, &lower, NULL) != 0)
        return err_set(err, -errno, "lower a limit of process %d", (int)pid);
    *l = made;
    return 0;
}

int limit_restore(pid_t pid, int resource, struct err *err) {
    struct limit *l = find(pid, resource);
    int r = 0;
    if (!l)
        return 0;
    if (is_still(l) && prlimit(pid, (__rlimit_resource_t)resource, &l->before, NULL) != 0 &&
        errno != ESRCH)
        r = err_set(err, -errno, "restore a limit of process %d", (int)pid);
    l->pid = 0;
    return r;
}
