/* The kernel's word, in /proc, that somebody stands still. */
#include "harness/run/evidence/evidence.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

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

/* T: every thread has been stopped, and the kernel says so. */
static bool stands_still(pid_t pid) {
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

static bool felt(struct act *a, struct bound *b) {
    (void)a;
    return stands_still(b->target.pid);
}

const struct evidence evidence_target_stopped = {
    .what = "every thread of the target stands still",
    .absent = "not every thread of it was seen to stand still",
    .unannounced = true,
    .felt = felt,
};
