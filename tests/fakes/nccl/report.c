#include "tests/fakes/nccl/overrides.h"
#include "tests/fakes/nccl/report.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static int counts[REPORT_COUNTS];

void report_add(enum report_count what, int n) {
    __atomic_add_fetch(&counts[what], n, __ATOMIC_SEQ_CST);
}

static int count_entries(const char *dir, int (*counts_in)(const char *name)) {
    DIR *d = opendir(dir);
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));)
        if (*e->d_name != '.')
            n += counts_in(e->d_name);
    if (d)
        closedir(d);
    return n;
}

static int is_root(const char *task) {
    char path[300], name[32] = "";
    snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task);
    FILE *f = fopen(path, "r");
    if (f && !fgets(name, sizeof(name), f))
        *name = 0;
    if (f)
        fclose(f);
    return strcmp(name, "NCCL BootstrapR\n") == 0;
}

static int is_listener(const char *fd) {
    int listens = 0, domain = 0;
    socklen_t length = sizeof(int);
    if (getsockopt(atoi(fd), SOL_SOCKET, SO_DOMAIN, &domain, &length) < 0 || domain == AF_UNIX)
        return 0;
    length = sizeof(int);
    return getsockopt(atoi(fd), SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) == 0 && listens;
}

__attribute__((destructor)) static void report(void) {
    const char *rank = getenv("RANK");
    if (!*overrides()->report)
        return;
    FILE *f = fopen(overrides()->report, "a");
    if (!f)
        abort();
    fprintf(f, "rank %s ids %d communicators %d roots %d listeners %d\n", rank ? rank : "0",
            counts[REPORT_IDS], counts[REPORT_COMMUNICATORS],
            count_entries("/proc/self/task", is_root), count_entries("/proc/self/fd", is_listener));
    fclose(f);
}
