/* Lets a worker open no more descriptors. */
#include "faults/fault.h"

#include "faults/mechanism/limit.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* The lowest number that is free: the next descriptor would get it. */
static int64_t lowest(pid_t pid, const struct fault_args *a, struct err *err) {
    char path[64];
    int fd = 0;
    do
        snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd++);
    while (readlink(path, (char[1]){0}, 1) >= 0);
    return errno == ENOENT ? fd - 1 : err_set(err, -errno, "read %s", path);
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    if (t->pidfd < 0 || t->pid <= 0)
        return err_say(err, -ESRCH, "%s is not running", t->name);
    int64_t to = lowest(t->pid, a, err);
    int r = to < 0 ? (int)to : limit_lower(t->pid, RLIMIT_NOFILE, (uint64_t)to, err);
    return r ? err_wrap(err, "%s: ", t->name) : 0;
}

static int recover(const struct target *t, const struct fault_args *a, struct err *err) {
    return limit_restore(t->pid, RLIMIT_NOFILE, err);
}

const struct fault fault_worker_fds = {
    .name = "worker-fds",
    .summary = "a worker can open no more files, sockets or pipes: EMFILE",
    .effects = EFFECT_HINDERS_WORKER | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_WORKER,
    .where = FAULT_IN_NODE,
    .evidence = EVIDENCE(limit_lowered),
    .params = (const struct fault_param[]){{0}},
    .undo = "the worker has the limit that it had",
    .blast = "what it has open stays; the next checkpoint, connection or child fails",
    .example = "{when: {step: 20}, fault: worker-fds, on: rank 1}",
    .inject = inject,
    .recover = recover,
};
