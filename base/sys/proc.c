#include "base/sys/proc.h"

#include "base/sys/process.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

/* The third field of stat, behind a name that may hold anything. */
static char state_of(const char *path) {
    char line[512];
    FILE *f = fopen(path, "re");
    const char *got = f ? fgets(line, sizeof(line), f) : NULL;
    const char *after = got ? strrchr(line, ')') : NULL;
    if (f)
        fclose(f);
    return after && after[1] == ' ' ? after[2] : 0;
}

bool proc_stands_still(pid_t pid) {
    char path[300];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    bool any = false, all = true;
    for (struct dirent *d; tasks && (d = readdir(tasks));) {
        if (atoi(d->d_name) <= 0)
            continue;
        snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", (int)pid, d->d_name);
        any = true;
        all &= state_of(path) == 'T';
    }
    if (tasks)
        closedir(tasks);
    return any && all;
}

struct proc_times proc_thread_times(pid_t pid, pid_t tid) {
    char path[80];
    long long ran, waited;
    struct proc_times ret = {0};
    snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%lld %lld", &ran, &waited) == 2)
        ret = (struct proc_times){ran, waited};
    if (f)
        fclose(f);
    return ret;
}

struct proc_times proc_times(pid_t pid) {
    struct proc_times all = {0};
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    for (struct dirent *d; tasks && (d = readdir(tasks));) {
        pid_t tid = (pid_t)atoi(d->d_name);
        struct proc_times one = tid > 0 ? proc_thread_times(pid, tid) : (struct proc_times){0};
        all.ran_ns += one.ran_ns;
        all.waited_ns += one.waited_ns;
    }
    if (tasks)
        closedir(tasks);
    return all;
}

bool proc_has_held_thread(pid_t pid) {
    char path[300];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    bool any = false;
    for (struct dirent *d; tasks && !any && (d = readdir(tasks));) {
        snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", (int)pid, d->d_name);
        any = atoi(d->d_name) > 0 && state_of(path) == 't';
    }
    if (tasks)
        closedir(tasks);
    return any;
}

bool proc_all_stand_still(pid_t root) {
    pid_t *pids;
    size_t n = process_list_descendants(root, &pids), still = 0;
    while (still < n && proc_stands_still(pids[still]))
        still++;
    free(pids);
    return n && still == n;
}

static bool read_mask(const char *line, const char *key, uint64_t *ret) {
    size_t n = strlen(key);
    if (strncmp(line, key, n) != 0)
        return false;
    *ret = strtoull(line + n, NULL, 16);
    return true;
}

bool proc_signals(pid_t pid, struct proc_signals *ret) {
    char path[64], line[256];
    int found = 0;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        found += read_mask(line, "ShdPnd:", &ret->pending) ||
                 read_mask(line, "SigBlk:", &ret->blocked) ||
                 read_mask(line, "SigIgn:", &ret->ignored) ||
                 read_mask(line, "SigCgt:", &ret->caught);
    if (f)
        fclose(f);
    return found == 4;
}

int proc_call_filters(pid_t pid) {
    static const char key[] = "Seccomp_filters:";
    char path[64], line[256];
    int found = -1;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, key, sizeof(key) - 1) == 0)
            found = atoi(line + sizeof(key) - 1);
    if (f)
        fclose(f);
    return found;
}

/* "202 0x7f.. .." is the number of the call that it is in. */
static bool is_in_futex(const char *path) {
    long nr = -1;
    FILE *f = fopen(path, "re");
    bool in_call = f && fscanf(f, "%ld", &nr) == 1;
    if (f)
        fclose(f);
    return in_call && nr == SYS_futex;
}

struct proc_threads proc_threads(pid_t pid) {
    struct proc_threads found = {0};
    char path[300];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    for (struct dirent *d; tasks && (d = readdir(tasks));) {
        if (atoi(d->d_name) <= 0)
            continue;
        snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", (int)pid, d->d_name);
        char state = state_of(path);
        snprintf(path, sizeof(path), "/proc/%d/task/%s/syscall", (int)pid, d->d_name);
        found.held += state == 't';
        found.running += state == 'R';
        found.waiting += state == 'S' && is_in_futex(path);
    }
    if (tasks)
        closedir(tasks);
    return found;
}

/* "45 0x5 0x7f.. 0x1 .." is the call that it is in, and what it was given. */
static bool read_call(pid_t pid, pid_t tid, struct proc_thread *ret, unsigned long args[3]) {
    char path[300];
    snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
    *ret = (struct proc_thread){.tid = tid, .state = state_of(path), .call = -1};
    snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
    FILE *f = fopen(path, "re");
    int n = f ? fscanf(f, "%ld %lx %lx %lx", &ret->call, &args[0], &args[1], &args[2]) : 0;
    if (f)
        fclose(f);
    return ret->state && n == 4;
}

bool proc_thread(pid_t pid, pid_t tid, struct proc_thread *ret) {
    unsigned long args[3];
    read_call(pid, tid, ret, args);
    return ret->state;
}

bool proc_waits_for_byte(pid_t pid, struct proc_thread *ret) {
    char path[64];
    unsigned long args[3];
    bool found = false;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    for (struct dirent *d; tasks && !found && (d = readdir(tasks));)
        found = atoi(d->d_name) > 0 && read_call(pid, atoi(d->d_name), ret, args) &&
                (ret->call == SYS_recvfrom || ret->call == SYS_read) && args[2] == 1;
    if (tasks)
        closedir(tasks);
    return found;
}
