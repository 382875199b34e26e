#include "harness/cluster/strays.h"

#include "agent/base/buf.h"
#include "agent/sys/file.h"

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ENVIRONMENT_MAX = 4 << 20 };

static bool is_of(const char *pid, const char *wanted) {
    char path[300];
    struct buf env = {0};
    bool is = false;
    snprintf(path, sizeof(path), "/proc/%s/environ", pid);
    if (file_read(path, ENVIRONMENT_MAX, &env, NULL) == 0)
        for (const char *at = buf_str(&env), *end = at + env.len; at < end && !is;
             at += strlen(at) + 1)
            is = strncmp(at, wanted, strlen(wanted)) == 0;
    buf_fini(&env);
    return is;
}

size_t strays_of(const char *scratch, pid_t **ret) {
    struct buf wanted = {0};
    pid_t *pids = calloc(1, sizeof(*pids));
    size_t n = 0;
    DIR *d = opendir("/proc");
    buf_printf(&wanted, "TMPDIR=%s/", scratch);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] < '1' || e->d_name[0] > '9' || atoi(e->d_name) == getpid() ||
            !is_of(e->d_name, buf_str(&wanted)))
            continue;
        pids = realloc(pids, (n + 1) * sizeof(*pids));
        if (!pids)
            abort();
        pids[n++] = (pid_t)atoi(e->d_name);
    }
    if (d)
        closedir(d);
    buf_fini(&wanted);
    *ret = pids;
    return n;
}

void strays_end(const pid_t *pids, size_t n) {
    for (size_t i = 0; i < n; i++)
        kill(pids[i], SIGKILL);
}
