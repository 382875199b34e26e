#include "harness/cluster/strays.h"

#include "agent/base/buf.h"
#include "agent/sys/file.h"

#include <dirent.h>
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

size_t strays_of(const char *scratch, struct process **ret) {
    struct buf wanted = {0};
    struct process *all = NULL, p;
    size_t n = 0;
    DIR *d = opendir("/proc");
    buf_printf(&wanted, "TMPDIR=%s/", scratch);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] < '1' || e->d_name[0] > '9' || atoi(e->d_name) == getpid() ||
            !is_of(e->d_name, buf_str(&wanted)) || process_open((pid_t)atoi(e->d_name), &p, NULL))
            continue;
        if (!is_of(e->d_name, buf_str(&wanted))) { /* the number has become somebody else's */
            process_close(&p);
            continue;
        }
        all = realloc(all, (n + 1) * sizeof(*all));
        if (!all)
            abort();
        all[n++] = p;
    }
    if (d)
        closedir(d);
    buf_fini(&wanted);
    *ret = all;
    return n;
}

void strays_free(struct process *all, size_t n) {
    for (size_t i = 0; i < n; i++)
        process_close(&all[i]);
    free(all);
}
