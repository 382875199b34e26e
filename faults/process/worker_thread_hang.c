/* Holds one thread of a worker while its others run. */
#include "faults/fault.h"

#include "base/str.h"
#include "base/sys/file.h"
#include "faults/mechanism/keeper.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static int check(const struct fault_args *a, struct err *err) {
    const char *thread = fault_arg(a, "thread", "main");
    if (!str_eq(thread, "main") && !str_eq(thread, "newest"))
        return err_say(err, -EINVAL, "thread: \"%s\" is none; write main or newest", thread);
    return 0;
}

/* 0: it has no other thread. */
static pid_t newest(pid_t pid) {
    char path[64];
    pid_t found = 0;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    FILE_CLOSE_DIR DIR *tasks = opendir(path);
    for (struct dirent *d; tasks && (d = readdir(tasks));) {
        pid_t tid = (pid_t)atoi(d->d_name);
        found = tid != pid && tid > found ? tid : found;
    }
    return found;
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    bool main = str_eq(fault_arg(a, "thread", "main"), "main");
    if (t->pidfd < 0 || t->pid <= 0)
        return err_say(err, -ESRCH, "%s is not running", t->name);
    const struct keeper_of of = {
        .pid = t->pid, .pidfd = t->pidfd, .tid = main ? t->pid : newest(t->pid)};
    if (!of.tid)
        return err_say(err, -ESRCH, "%s has one thread only", t->name);
    int r = keeper_start(&keeper_hold, &of, err);
    return r ? err_wrap(err, "%s: ", t->name) : 0;
}

static int recover(const struct target *t, const struct fault_args *a, struct err *err) {
    return keeper_stop(&keeper_hold, t->pid, err);
}

const struct fault fault_worker_thread_hang = {
    .name = "worker-thread-hang",
    .summary = "one thread of a worker stands still, with the locks that it holds; the others run",
    .effects = EFFECT_STOPS_WORKER | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_WORKER,
    .needs = FAULT_NEEDS_TRACE,
    .where = FAULT_IN_NODE,
    .evidence = EVIDENCE(thread_held),
    .params =
        (const struct fault_param[]){{"thread", "string", "main",
                                      "main: the first, which holds Python's interpreter lock "
                                      "as a rule; newest: the last that it has started"},
                                     {0}},
    .undo = "the thread goes on where it stood, if the worker still lives",
    .blast = "a heartbeat of another thread goes on, so that the worker looks healthy",
    .example = "{when: {step: 20}, fault: worker-thread-hang, on: rank 1}",
    .check = check,
    .inject = inject,
    .recover = recover,
};
