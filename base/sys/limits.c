#include "base/sys/limits.h"

#include "base/sys/process.h"

#include "base/sys/file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static int64_t soft(int resource) {
    struct rlimit l;
    if (getrlimit((__rlimit_resource_t)resource, &l) < 0 || l.rlim_cur == RLIM_INFINITY)
        return -1;
    return l.rlim_cur > INT64_MAX ? -1 : (int64_t)l.rlim_cur;
}

int limits_want_stack(size_t bytes, struct err *err) {
    struct rlimit l;
    if (getrlimit(RLIMIT_STACK, &l) < 0 || l.rlim_cur == RLIM_INFINITY || l.rlim_cur >= bytes)
        return 0;
    rlim_t had = l.rlim_cur;
    l.rlim_cur = bytes;
    if (l.rlim_max >= bytes && setrlimit(RLIMIT_STACK, &l) == 0)
        return 0;
    return err_say(err, -ENOMEM, "the stack may have %llu kB here and needs %zu: ulimit -s 8192",
                   (unsigned long long)had / 1024, bytes / 1024);
}

int64_t limits_memory(void) {
    int64_t all = soft(RLIMIT_AS), data = soft(RLIMIT_DATA);
    return all < 0 || (data >= 0 && data < all) ? data : all;
}

int64_t limits_files(void) {
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) < 0 || l.rlim_max > INT64_MAX)
        return -1;
    return (int64_t)l.rlim_max;
}

/* ---- processes ---- */

/* "         0          0 4294967295": no user namespace but the first. */
static bool is_first_namespace(void) {
    unsigned long long inside = 1, outside = 1, n = 0;
    FILE *f = fopen("/proc/self/uid_map", "re");
    bool read = f && fscanf(f, "%llu %llu %llu", &inside, &outside, &n) == 3;
    if (f)
        fclose(f);
    return read && inside == 0 && outside == 0 && n == 4294967295U;
}

int64_t limits_processes(void) {
    return getuid() == 0 && is_first_namespace() ? -1 : soft(RLIMIT_NPROC);
}

int64_t limits_processes_used(void) {
    int64_t used = 0;
    pid_t *pids;
    size_t n = process_list(&pids);
    for (size_t i = 0; i < n; i++) {
        char path[64];
        struct stat st;
        struct process_look p;
        snprintf(path, sizeof(path), "/proc/%d", (int)pids[i]);
        if (stat(path, &st) == 0 && st.st_uid == getuid() && process_look(pids[i], &p) == 0)
            used += p.threads;
    }
    free(pids);
    return used;
}

/* ---- memory of the host ---- */

int64_t limits_killed_for_memory(void) {
    char line[128];
    long long n = -1;
    FILE *f = fopen("/proc/vmstat", "re");
    while (f && fgets(line, sizeof(line), f) && sscanf(line, "oom_kill %lld", &n) != 1)
        ;
    if (f)
        fclose(f);
    return n;
}

int64_t limits_host_memory(void) {
    return (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
}
