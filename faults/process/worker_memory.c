/* Gives a worker no more memory than it has. */
#include "faults/arguments.h"

#include "faults/mechanism/limit.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static int64_t more(const struct fault_args *a, struct err *err) {
    int64_t mib = 0;
    int r = fault_count(a, "more", "0", 0, 1 << 20, &mib, err);
    return r ? r : mib << 20;
}

static int check(const struct fault_args *a, struct err *err) {
    int64_t bytes = more(a, err);
    return bytes < 0 ? (int)bytes : 0;
}

/* What it has mapped now, and so much more. */
static int64_t lowest(pid_t pid, const struct fault_args *a, struct err *err) {
    char path[64];
    long pages = -1;
    int64_t bytes = more(a, err);
    snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%ld", &pages) != 1)
        pages = -1;
    if (f)
        fclose(f);
    if (pages < 0)
        return err_say(err, -ESRCH, "cannot read %s", path);
    return bytes < 0 ? bytes : pages * sysconf(_SC_PAGESIZE) + bytes;
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    if (t->pidfd < 0 || t->pid <= 0)
        return err_say(err, -ESRCH, "%s is not running", t->name);
    int64_t to = lowest(t->pid, a, err);
    int r = to < 0 ? (int)to : limit_lower(t->pid, RLIMIT_AS, (uint64_t)to, err);
    return r ? err_wrap(err, "%s: ", t->name) : 0;
}

static int recover(const struct target *t, const struct fault_args *a, struct err *err) {
    return limit_restore(t->pid, RLIMIT_AS, err);
}

const struct fault fault_worker_memory = {
    .name = "worker-memory",
    .summary = "a worker gets no more memory from its kernel: ENOMEM",
    .effects = EFFECT_HINDERS_WORKER | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_WORKER,
    .where = FAULT_IN_NODE,
    .evidence = EVIDENCE(limit_lowered),
    .params = (const struct fault_param[]){{"more", "int", "0", "how many MiB it still gets"}, {0}},
    .undo = "the worker has the limit that it had",
    .blast = "what it has stays; the next large allocation or thread fails",
    .example = "{when: {step: 20}, fault: worker-memory, with: {more: 16}, on: rank 1}",
    .check = check,
    .inject = inject,
    .recover = recover,
};
