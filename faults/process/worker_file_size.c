/* Lets a worker write no long files. */
#include "faults/arguments.h"

#include "faults/mechanism/limit.h"

#include <errno.h>
#include <sys/resource.h>

static int64_t lowest(pid_t pid, const struct fault_args *a, struct err *err) {
    int64_t bytes = 0;
    int r = fault_count(a, "bytes", "4096", 0, INT64_C(1) << 50, &bytes, err);
    return r ? r : bytes;
}

static int check(const struct fault_args *a, struct err *err) {
    int64_t bytes = lowest(0, a, err);
    return bytes < 0 ? (int)bytes : 0;
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    if (t->pidfd < 0 || t->pid <= 0)
        return err_say(err, -ESRCH, "%s is not running", t->name);
    int64_t to = lowest(t->pid, a, err);
    int r = to < 0 ? (int)to : limit_lower(t->pid, RLIMIT_FSIZE, (uint64_t)to, err);
    return r ? err_wrap(err, "%s: ", t->name) : 0;
}

static int recover(const struct target *t, const struct fault_args *a, struct err *err) {
    return limit_restore(t->pid, RLIMIT_FSIZE, err);
}

const struct fault fault_worker_file_size = {
    .name = "worker-file-size",
    .summary =
        "a worker can write no file longer than so many bytes: SIGXFSZ, or EFBIG and a short file",
    .effects = EFFECT_HINDERS_WORKER | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_WORKER,
    .where = FAULT_IN_NODE,
    .evidence = EVIDENCE(limit_lowered),
    .params =
        (const struct fault_param[]){{"bytes", "int", "4096", "how long a file may become"}, {0}},
    .undo = "the worker has the limit that it had",
    .blast =
        "a checkpoint ends in the midst of a file; so does a log that the worker writes itself",
    .example = "{when: {step: 20}, fault: worker-file-size, with: {bytes: 1000}, on: rank 0}",
    .check = check,
    .inject = inject,
    .recover = recover,
};
