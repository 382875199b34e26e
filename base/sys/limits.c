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

/* ---- neighbours, which all networks of this kernel have in common ---- */

/* The column of that name in a line of names; -1: there is none. */
static int column_of(const char *names, const char *wanted) {
    size_t n = strlen(wanted);
    int column = 0;
    for (const char *at = names + strspn(names, " \n"); *at; column++) {
        size_t len = strcspn(at, " \n");
        if (len == n && strncmp(at, wanted, n) == 0)
            return column;
        at += len;
        at += strspn(at, " \n");
    }
    return -1;
}

/* That column of a line of hexadecimal numbers. */
static int64_t number_in(const char *line, int column) {
    char *end;
    for (; column > 0; column--) {
        strtoull(line, &end, 16);
        line = end;
    }
    return (int64_t)strtoull(line, &end, 16);
}

int64_t limits_table_fulls(FILE *f) {
    char line[1024];
    int64_t n = -1;
    int column = fgets(line, sizeof(line), f) ? column_of(line, "table_fulls") : -1;
    while (column >= 0 && fgets(line, sizeof(line), f))
        n = (n < 0 ? 0 : n) + number_in(line, column);
    return n;
}

int64_t limits_neighbours_refused(void) {
    FILE *f = fopen("/proc/net/stat/arp_cache", "re");
    int64_t n = f ? limits_table_fulls(f) : -1;
    if (f)
        fclose(f);
    return n;
}

int64_t limits_neighbours(void) {
    long long n = -1;
    FILE *f = fopen("/proc/sys/net/ipv4/neigh/default/gc_thresh3", "re");
    if (f && fscanf(f, "%lld", &n) != 1)
        n = -1;
    if (f)
        fclose(f);
    return n;
}
