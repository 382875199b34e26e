#include "harness/cluster/limit_group.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/process.h"
#include "harness/cluster/cgroups.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PERIOD_US = 20000, COUNTS_MAX = 1 << 16 };

static const char *const controllers[NODE_LIMITS_N] = {
    [NODE_LIMIT_CPU] = "cpu", [NODE_LIMIT_MEMORY] = "memory", [NODE_LIMIT_PIDS] = "pids"};

static int write_to(const char *group, const char *file, const char *text, struct err *err) {
    char *path = mem_printf("%s/%s", group, file);
    int r = file_write(path, text, strlen(text), err);
    free(path);
    return r;
}

static int64_t read_from(const char *group, const char *file) {
    BUF_FINI struct buf text = {0};
    char *path = mem_printf("%s/%s", group, file);
    int r = file_read(path, 64, &text, NULL);
    free(path);
    return r == 0 ? strtoll(buf_str(&text), NULL, 10) : -1;
}

/* ---- where ---- */

/* Version 2 gives a controller only to those below a place that holds no process itself, so where
 * the caller has a place of its own the new one is beside it. */
static bool offers(const char *parent, const char *controller) {
    char on[32], *path = mem_printf("%s/cgroup.subtree_control", parent);
    BUF_FINI struct buf text = {0};
    snprintf(on, sizeof(on), "+%s", controller);
    file_write(path, on, strlen(on), NULL); /* a wish: it may be on already */
    int r = file_read(path, 4096, &text, NULL);
    free(path);
    return r == 0 && strstr(buf_str(&text), controller);
}

/* Where a group may be made; for free(). NULL: nowhere. */
static char *parent_of(const char *controller, bool *ret_unified) {
    char *own = cgroups_own(controller, ret_unified);
    if (!own || !*ret_unified || offers(own, controller))
        return own;
    char *slash = strrchr(own, '/');
    if (slash)
        *slash = '\0';
    if (slash && offers(own, controller))
        return own;
    free(own);
    return NULL;
}

int limit_group_name(enum node_limit what, const char *owner, struct limit_group *ret,
                     struct err *err) {
    bool unified;
    char *parent = parent_of(controllers[what], &unified);
    if (!parent)
        return err_say(err, -ENOTSUP, "no control group here has the controller %s",
                       controllers[what]);
    *ret = (struct limit_group){.what = what, .unified = unified};
    ret->path = mem_printf("%s/" CGROUPS_OF_NODES "%s-%llx-%s", parent, owner,
                           (unsigned long long)clock_monotonic_ns(), controllers[what]);
    ret->home = cgroups_own(controllers[what], &unified);
    free(parent);
    return 0;
}

/* ---- its limit ---- */

static int set_cpu(const struct limit_group *g, int64_t percent, struct err *err) {
    char text[64], period[16];
    int64_t quota = percent * PERIOD_US / 100;
    snprintf(text, sizeof(text), g->unified ? "%lld %d" : "%lld", (long long)quota, PERIOD_US);
    if (g->unified)
        return write_to(g->path, "cpu.max", text, err);
    snprintf(period, sizeof(period), "%d", PERIOD_US);
    int r = write_to(g->path, "cpu.cfs_period_us", period, err);
    return r ? r : write_to(g->path, "cpu.cfs_quota_us", text, err);
}

/* What was had before stays charged where it was. Nothing of the rest goes into swap. */
static int set_memory(const struct limit_group *g, int64_t bytes, struct err *err) {
    char text[32];
    snprintf(text, sizeof(text), "%lld", (long long)bytes);
    int r = write_to(g->path, g->unified ? "memory.max" : "memory.limit_in_bytes", text, err);
    if (r == 0 && g->unified)
        write_to(g->path, "memory.swap.max", "0", NULL);
    else if (r == 0)
        write_to(g->path, "memory.memsw.limit_in_bytes", text, NULL);
    return r;
}

/* So many more than are in it by now. */
static int set_pids(const struct limit_group *g, int64_t more, struct err *err) {
    char text[32];
    int64_t now = read_from(g->path, "pids.current");
    snprintf(text, sizeof(text), "%lld", (long long)((now < 0 ? 0 : now) + more));
    return write_to(g->path, "pids.max", text, err);
}

/* ---- who is in it ---- */

/* Until a look finds nobody new: who is in it forks into it. */
static int put_all(const char *group, const char *name, pid_t root, struct err *err) {
    pid_t *put = NULL;
    size_t put_n = 0, fresh = 1;
    int r = 0;
    while (fresh && r == 0) {
        pid_t *pids;
        size_t all = process_list_descendants(root, &pids);
        fresh = 0;
        for (size_t i = 0; i < all && r == 0; i++) {
            if (process_is_among(pids[i], put, put_n))
                continue;
            fresh++;
            r = cgroups_put(group, pids[i]);
            r = r == -ESRCH ? 0 : r;
        }
        free(put);
        put = pids;
        put_n = all;
    }
    free(put);
    if (r == 0 && !put_n)
        return err_say(err, -ESRCH, "nothing runs on %s", name);
    return r ? err_set(err, r, "put what runs on %s into %s", name, group) : 0;
}

int limit_group_begin(const struct limit_group *g, const char *name, pid_t root, int64_t value,
                      struct err *err) {
    int r = 0;
    if (mkdir(g->path, 0755) != 0)
        return err_set(err, -ENOTSUP, "make the control group %s", g->path);
    if (g->what == NODE_LIMIT_CPU)
        r = set_cpu(g, value, err);
    else if (g->what == NODE_LIMIT_MEMORY)
        r = set_memory(g, value, err);
    r = r ? r : put_all(g->path, name, root, err);
    return r || g->what != NODE_LIMIT_PIDS ? r : set_pids(g, value, err);
}

/* ---- its end ---- */

void limit_group_fini(struct limit_group *g) {
    free(g->path);
    free(g->home);
    *g = (struct limit_group){0};
}

int limit_group_end(struct limit_group *g, struct err *err) {
    int r = !g->path ? -ENOENT : g->home ? cgroups_release(g->path, g->home) : -ENOENT;
    if (r && r != -ENOENT)
        return err_set(err, r, "take away the control group %s", g->path);
    limit_group_fini(g);
    return 0;
}

/* ---- what the kernel counts ---- */

static void count_in(const struct limit_group *g, const char *file, struct buf *out) {
    BUF_FINI struct buf text = {0};
    char *path = mem_printf("%s/%s", g->path, file);
    if (file_read(path, COUNTS_MAX, &text, NULL) == 0)
        buf_put(out, buf_str(&text), text.len);
    free(path);
}

void limit_group_count(const struct limit_group *g, struct buf *out) {
    static const char *const files[NODE_LIMITS_N] = {
        [NODE_LIMIT_CPU] = "cpu.stat", [NODE_LIMIT_PIDS] = "pids.events"};
    bool memory = g->what == NODE_LIMIT_MEMORY;
    if (g->path)
        count_in(g, memory ? g->unified ? "memory.events" : "memory.oom_control" : files[g->what],
                 out);
}

/* ---- whether one can be had ---- */

static int try_on(struct limit_group *g, pid_t pid, struct err *err) {
    struct err why;
    int r = mkdir(g->path, 0755) != 0 ? err_set(&why, -errno, "make %s", g->path) : 0;
    if (r == 0 && (r = cgroups_put(g->path, pid)) != 0)
        err_set(&why, r, "put a process into %s", g->path);
    if (r == 0)
        r = g->what == NODE_LIMIT_CPU      ? set_cpu(g, 50, &why)
            : g->what == NODE_LIMIT_MEMORY ? set_memory(g, 64 << 20, &why)
                                           : set_pids(g, 1, &why);
    struct err stays;
    int ended = limit_group_end(g, &stays);
    if (r == 0 && ended == 0)
        return 0;
    if (ended) {
        rmdir(g->path);
        limit_group_fini(g);
    }
    return err_say(err, -ENOTSUP,
                   "%s: it takes root, or a control group that is delegated to this user",
                   r ? why.msg : stays.msg);
}

int limit_group_check(enum node_limit what, struct err *err) {
    struct limit_group g;
    char owner[LIMIT_OWNER_MAX];
    limit_group_owner(getpid(), owner);
    int r = limit_group_name(what, owner, &g, err);
    if (r)
        return r;
    pid_t pid = process_fork_idle();
    if (pid < 0) {
        limit_group_fini(&g);
        return err_set(err, -ENOTSUP, "fork");
    }
    r = try_on(&g, pid, err);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return r;
}

/* ---- of whom they are ---- */

void limit_group_owner(pid_t pid, char ret[LIMIT_OWNER_MAX]) {
    uint64_t start = 0;
    process_start_ticks(pid, &start);
    snprintf(ret, LIMIT_OWNER_MAX, "%llu.%d.%llu", process_pid_space(pid), (int)pid,
             (unsigned long long)start);
}

static int clear_in(const char *parent, const char *begins) {
    int stay = 0;
    FILE_CLOSE_DIR DIR *d = opendir(parent);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (!str_starts(e->d_name, begins))
            continue;
        char *path = mem_printf("%s/%s", parent, e->d_name);
        int r = cgroups_clear(path);
        stay += r && r != -ENOENT;
        free(path);
    }
    return stay;
}

int limit_group_clear_of(const char *owner) {
    char *begins = mem_printf(CGROUPS_OF_NODES "%s-", owner);
    int stay = 0;
    for (int i = 0; i < NODE_LIMITS_N; i++) {
        bool unified;
        char *own = cgroups_own(controllers[i], &unified), *slash = own ? strrchr(own, '/') : NULL;
        stay += own ? clear_in(own, begins) : 0;
        if (slash && unified) {
            *slash = '\0';
            stay += clear_in(own, begins);
        }
        free(own);
    }
    free(begins);
    return stay;
}
