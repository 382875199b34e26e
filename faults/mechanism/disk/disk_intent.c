#include "faults/mechanism/disk/disk_intent.h"

#include "base/buf.h"
#include "base/sys/file.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

/* A thread that has asked is on its way to sleep; until it sleeps its line says "running". */
enum { TRIES = 1000 };

static const int looks[] = {
#ifdef SYS_stat
    SYS_stat,       SYS_lstat,      SYS_access, SYS_readlink,
#endif
    SYS_fstat,      SYS_newfstatat, SYS_statx,  SYS_faccessat,
    SYS_readlinkat, SYS_getxattr,   SYS_chdir,  SYS_lgetxattr,
#ifdef SYS_faccessat2
    SYS_faccessat2,
#endif
};

static bool is_look(int call) {
    for (size_t i = 0; i < sizeof(looks) / sizeof(*looks); i++)
        if (looks[i] == call)
            return true;
    return false;
}

enum disk_intent disk_intent_read(const char *line) {
    unsigned long long v[4] = {0};
    int call;
    if (sscanf(line, "%d %llx %llx %llx", &call, &v[0], &v[1], &v[2]) < 4)
        return DISK_INTENT_OTHER;
    if (is_look(call))
        return DISK_LOOKS;
    if (call == SYS_execve)
        return DISK_OPENS;
#ifdef SYS_open
    if (call == SYS_open)
        return v[1] & O_CREAT ? DISK_INTENT_OTHER : DISK_OPENS;
#endif
    return call == SYS_openat && !(v[2] & O_CREAT) ? DISK_OPENS : DISK_INTENT_OTHER;
}

enum disk_intent disk_intent_of(int thread) {
    char path[40];
    if (thread <= 0)
        return DISK_INTENT_OTHER;
    snprintf(path, sizeof(path), "/proc/%d/syscall", thread);
    for (int i = 0; i < TRIES; i++) {
        BUF_FINI struct buf line = {0};
        if (file_read(path, 4096, &line, NULL) != 0)
            return DISK_INTENT_OTHER;
        if (strncmp(buf_str(&line), "running", 7) != 0)
            return disk_intent_read(buf_str(&line));
        sched_yield();
    }
    return DISK_INTENT_OTHER;
}
