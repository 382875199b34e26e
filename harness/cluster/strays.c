#include "harness/cluster/strays.h"

#include "agent/base/mem.h"
#include "harness/cluster/mark.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

static bool is_among(pid_t pid, const pid_t *pids, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (pids[i] == pid)
            return true;
    return false;
}

size_t strays_of(const char *mark, struct process **ret) {
    struct process *all = NULL, p;
    pid_t *below;
    size_t n = 0, below_n = process_list_descendants(getpid(), &below);
    DIR *d = opendir("/proc");
    for (struct dirent *e; d && (e = readdir(d));) {
        pid_t pid = (pid_t)atoi(e->d_name);
        if (pid <= 0 || pid == getpid() || is_among(pid, below, below_n) ||
            !mark_is_carried(mark, pid) || process_open(pid, &p, NULL))
            continue;
        if (!mark_is_carried(mark, pid)) { /* the number has become somebody else's */
            process_close(&p);
            continue;
        }
        mem_push(all, n) = p;
    }
    if (d)
        closedir(d);
    free(below);
    *ret = all;
    return n;
}

void strays_free(struct process *all, size_t n) {
    for (size_t i = 0; i < n; i++)
        process_close(&all[i]);
    free(all);
}
