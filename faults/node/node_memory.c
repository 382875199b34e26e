/* Lets a node run out of memory. */
#include "faults/arguments.h"

#include "faults/mechanism/tree.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static int read_bytes(const struct fault_args *a, int64_t *ret, struct err *err) {
    int64_t mib = 0;
    int r = fault_count(a, "more", "4", 1, 1 << 20, &mib, err);
    *ret = mib << 20;
    return r;
}

static int check(const struct fault_args *a, struct err *err) {
    int64_t bytes;
    return read_bytes(a, &bytes, err);
}

/* What a process has mapped now, and so much more. */
static int64_t mapped_and_more(pid_t pid, void *arg) {
    char path[64];
    long pages = -1;
    snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%ld", &pages) != 1)
        pages = -1;
    if (f)
        fclose(f);
    return pages < 0 ? -1 : pages * sysconf(_SC_PAGESIZE) + *(const int64_t *)arg;
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    int64_t bytes = 0;
    int r = read_bytes(a, &bytes, err);
    r = r ? r : t->ops->limit(t->node, NODE_LIMIT_MEMORY, bytes, err);
    if (r == -ENOTSUP)
        r = tree_limit(t->pid, RLIMIT_AS, mapped_and_more, &bytes, err);
    return r ? err_wrap(err, "%s: ", t->name) : 0;
}

static int recover(const struct target *t, const struct fault_args *a, struct err *err) {
    tree_unlimit(t->pid, RLIMIT_AS);
    return t->ops->unlimit(t->node, NODE_LIMIT_MEMORY, err);
}

const struct fault fault_node_memory = {
    .name = "node-memory",
    .summary = "a node runs out of memory: the kernel kills the largest of its processes",
    .effects = EFFECT_HINDERS_NODE | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_NODE,
    .where = FAULT_IN_HARNESS,
    .limits = 1u << NODE_LIMIT_MEMORY,
    .evidence = EVIDENCE(node_out_of_memory),
    .params =
        (const struct fault_param[]){
            {"more", "int", "4", "how many MiB it still gets, for all of its processes together"},
            {0}},
    .undo = "it has as much as before, and its control group is removed; who was killed stays dead",
    .blast =
        "its agent, its workers and the store if it is there; without control groups nobody is "
        "killed: each of them is refused what goes beyond (RLIMIT_AS)",
    .example = "{when: {step: 20}, fault: node-memory, with: {more: 8}, on: n2, for: 5s}",
    .check = check,
    .inject = inject,
    .recover = recover,
};
