/* Lets a node start no more processes and threads than a few. */
#include "faults/arguments.h"

#include "faults/mechanism/tree.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

static int read_more(const struct fault_args *a, int64_t *ret, struct err *err) {
    return fault_count(a, "more", "0", 0, 1 << 20, ret, err);
}

static int check(const struct fault_args *a, struct err *err) {
    int64_t more;
    return read_more(a, &more, err);
}

/* Threads of all processes of a user: what RLIMIT_NPROC counts. */
static int64_t threads_of(uid_t uid) {
    int64_t n = 0;
    DIR *d = opendir("/proc");
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[300];
        struct stat st;
        snprintf(path, sizeof(path), "/proc/%s/task", e->d_name);
        if (atoi(e->d_name) > 0 && stat(path, &st) == 0 && st.st_uid == uid)
            n += (int64_t)st.st_nlink - 2;
    }
    if (d)
        closedir(d);
    return n;
}

static int64_t those_and_more(pid_t pid, void *arg) {
    char path[64];
    struct stat st;
    snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    return stat(path, &st) == 0 ? threads_of(st.st_uid) + *(const int64_t *)arg : -1;
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    int64_t more = 0;
    int r = read_more(a, &more, err);
    r = r ? r : t->ops->limit(t->node, NODE_LIMIT_PIDS, more, err);
    if (r == -ENOTSUP)
        r = tree_limit(t->pid, RLIMIT_NPROC, those_and_more, &more, err);
    return r ? err_wrap(err, "%s: ", t->name) : 0;
}

static int recover(const struct target *t, const struct fault_args *a, struct err *err) {
    tree_unlimit(t->pid, RLIMIT_NPROC);
    return t->ops->unlimit(t->node, NODE_LIMIT_PIDS, err);
}

const struct fault fault_node_pids = {
    .name = "node-pids",
    .summary = "a node can start no more processes and threads: fork() fails with EAGAIN",
    .effects = EFFECT_HINDERS_NODE | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_NODE,
    .where = FAULT_IN_HARNESS,
    .limits = 1u << NODE_LIMIT_PIDS,
    .evidence = EVIDENCE(node_forks_refused),
    .params =
        (const struct fault_param[]){{"more", "int", "0", "how many it can still start"}, {0}},
    .undo = "it can start as many as before, and its control group is removed",
    .blast =
        "what runs goes on; a new round, a data loader or a thread cannot begin there; without "
        "control groups the user's processes are counted (RLIMIT_NPROC), and root is not held",
    .example = "{when: {step: 20}, fault: node-pids, on: n2, for: 5s}",
    .check = check,
    .inject = inject,
    .recover = recover,
};
