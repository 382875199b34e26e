#include "harness/cluster/cgroups.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TABLE_MAX = 64 << 20, DEPTH_MAX = 64 };

/* After SIGKILL only a process that hangs in the kernel takes longer. */
static const int64_t end_wait_ns = 5000000000;

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool has(const struct texts *c, const char *path) {
    return c->n && bsearch(&path, c->v, c->n, sizeof(*c->v), by_text);
}

/* ---- the hierarchies ---- */

/* One line of mountinfo: "36 35 0:29 /root /at rw,.. shared:1 - cgroup2 source rw,..". */
struct hierarchy {
    char root[PATH_MAX], at[PATH_MAX], type[64], options[1024];
};

static bool read_hierarchy(char *line, struct hierarchy *h) {
    const char *rest = strstr(line, " - ");
    return rest && sscanf(line, "%*s %*s %*s %4095s %4095s", h->root, h->at) == 2 &&
           sscanf(rest, " - %63s %*s %1023s", h->type, h->options) == 2 &&
           str_starts(h->type, "cgroup");
}

static void each_hierarchy(void (*fn)(void *arg, const struct hierarchy *h), void *arg) {
    static struct hierarchy h;
    BUF_FINI struct buf table = {0};
    char *save = NULL;
    if (file_read("/proc/self/mountinfo", TABLE_MAX, &table, NULL) == 0)
        for (char *line = strtok_r(table.data, "\n", &save); line;
             line = strtok_r(NULL, "\n", &save))
            if (read_hierarchy(line, &h))
                fn(arg, &h);
}

/* "4:memory:/a" or "0::/a": a hierarchy by the first of its controllers, and the place in it. */
struct cgroups_place {
    const char *controllers;
    char path[2 * PATH_MAX];
};

static bool is_of(const struct hierarchy *h, const char *controllers, size_t n) {
    if (!n)
        return str_eq(h->type, "cgroup2");
    for (const char *at = h->options; (at = strstr(at, controllers)); at++)
        if (at > h->options && at[-1] == ',' && (at[n] == ',' || !at[n]))
            return str_eq(h->type, "cgroup");
    return false;
}

/* A mount shows what is below its root. */
static void find_path(void *arg, const struct hierarchy *h) {
    struct cgroups_place *p = arg;
    char first[256];
    const char *colon = strchr(p->controllers, ':'), *inside;
    size_t n = strcspn(p->controllers, ",:"),
           root = strcmp(h->root, "/") == 0 ? 0 : strlen(h->root);
    if (!colon || n >= sizeof(first) || *p->path || strncmp(colon + 1, h->root, root) != 0)
        return;
    inside = colon + 1 + root;
    if (*inside && *inside != '/')
        return;
    snprintf(first, sizeof(first), "%.*s", (int)n, p->controllers);
    if (is_of(h, first, n))
        snprintf(p->path, sizeof(p->path), "%s%s", h->at, str_eq(inside, "/") ? "" : inside);
}

/* False: its hierarchy is not mounted, or not this part of it. */
static bool place_of(const char *line, struct cgroups_place *ret) {
    const char *colon = strchr(line, ':');
    *ret = (struct cgroups_place){.controllers = colon ? colon + 1 : ""};
    each_hierarchy(find_path, ret);
    return *ret->path;
}

/* A line of /proc/self/cgroup that names it among its controllers. */
static bool names_controller(const char *line, const char *controller) {
    const char *list = strchr(line, ':'), *end = list ? strchr(list + 1, ':') : NULL;
    size_t n = strlen(controller);
    for (const char *at = list; end && at < end; at = strpbrk(at + 1, ",:"))
        if (strncmp(at + 1, controller, n) == 0 && (at[n + 1] == ',' || at[n + 1] == ':'))
            return true;
    return false;
}

/* Version 2 says in each place which controllers it has. */
static bool has_controller(const char *path, const char *controller) {
    BUF_FINI struct buf text = {0};
    char *file = mem_printf("%s/cgroup.controllers", path), *save = NULL;
    int r = file_read(file, TABLE_MAX, &text, NULL);
    free(file);
    if (r == 0 && text.len)
        for (char *word = strtok_r(text.data, " \n", &save); word;
             word = strtok_r(NULL, " \n", &save))
            if (str_eq(word, controller))
                return true;
    return false;
}

char *cgroups_own(const char *controller, bool *ret_unified) {
    char *save = NULL, *found = NULL;
    BUF_FINI struct buf own = {0};
    if (file_read("/proc/self/cgroup", TABLE_MAX, &own, NULL) != 0 || !own.len)
        return NULL;
    for (char *line = strtok_r(own.data, "\n", &save); line && !found;
         line = strtok_r(NULL, "\n", &save)) {
        struct cgroups_place p;
        bool unified = strstr(line, "::"), named = names_controller(line, controller);
        if ((!unified && !named) || !place_of(line, &p) ||
            (unified && !has_controller(p.path, controller)))
            continue;
        found = mem_strdup(p.path);
        *ret_unified = unified;
    }
    return found;
}

/* ---- what is in them ---- */

/* A doctor's own, of another process and for a moment, are nobody's; those in which a harness holds
 * its nodes it takes away itself. */
static void walk(struct texts *c, const char *dir, int depth) {
    struct stat st;
    FILE_CLOSE_DIR DIR *d = depth < DEPTH_MAX ? opendir(dir) : NULL;
    for (struct dirent *e; d && (e = readdir(d));) {
        if (*e->d_name == '.' || e->d_type != DT_DIR ||
            str_starts(e->d_name, "rankquake-doctor-") || str_starts(e->d_name, CGROUPS_OF_NODES))
            continue;
        char *path = mem_printf("%s/%s", dir, e->d_name);
        walk(c, path, depth + 1);
        if (lstat(path, &st) == 0 && st.st_uid == geteuid())
            texts_take(c, path);
        else
            free(path);
    }
}

static void walk_nodes(struct texts *c, const char *dir, int depth) {
    struct stat st;
    FILE_CLOSE_DIR DIR *d = depth < DEPTH_MAX ? opendir(dir) : NULL;
    for (struct dirent *e; d && (e = readdir(d));) {
        if (*e->d_name == '.' || e->d_type != DT_DIR)
            continue;
        char *path = mem_printf("%s/%s", dir, e->d_name);
        if (!str_starts(e->d_name, CGROUPS_OF_NODES))
            walk_nodes(c, path, depth + 1);
        else if (lstat(path, &st) == 0 && st.st_uid == geteuid())
            texts_add(c, "%s", path);
        free(path);
    }
}

static void walk_hierarchy(void *arg, const struct hierarchy *h) {
    walk_nodes(arg, h->at, 0);
}

struct texts cgroups_of_nodes(void) {
    struct texts c = {0};
    each_hierarchy(walk_hierarchy, &c);
    return c;
}

static void walk_own(struct texts *c, const char *line) {
    struct cgroups_place p;
    if (place_of(line, &p))
        walk(c, p.path, 0);
}

struct texts cgroups_look(void) {
    struct texts c = {0};
    char *save = NULL;
    BUF_FINI struct buf own = {0};
    if (file_read("/proc/self/cgroup", TABLE_MAX, &own, NULL) == 0)
        for (char *line = strtok_r(own.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
            walk_own(&c, line);
    if (c.n)
        qsort(c.v, c.n, sizeof(*c.v), by_text);
    return c;
}

/* What cannot be read is taken for somebody's. */
static bool holds_processes(const char *dir) {
    char *procs = mem_printf("%s/cgroup.procs", dir);
    BUF_FINI struct buf text = {0};
    bool holds = file_read(procs, TABLE_MAX, &text, NULL) != 0 || text.len;
    free(procs);
    FILE_CLOSE_DIR DIR *d = holds ? NULL : opendir(dir);
    for (struct dirent *e; d && !holds && (e = readdir(d));)
        if (*e->d_name != '.' && e->d_type == DT_DIR) {
            char *path = mem_printf("%s/%s", dir, e->d_name);
            holds = holds_processes(path);
            free(path);
        }
    return holds;
}

static bool has_above(const struct texts *c, const char *path) {
    for (size_t i = 0; i < c->n; i++) {
        size_t n = strlen(c->v[i]);
        if (strncmp(path, c->v[i], n) == 0 && path[n] == '/')
            return true;
    }
    return false;
}

struct texts cgroups_new(const struct texts *before) {
    TEXTS_FINI struct texts now = cgroups_look();
    struct texts found = {0};
    for (size_t i = 0; i < now.n; i++)
        if (!has(before, now.v[i]) && !has_above(&found, now.v[i]) && !holds_processes(now.v[i]))
            texts_add(&found, "%s", now.v[i]);
    return found;
}

int cgroups_remove(const char *path) {
    FILE_CLOSE_DIR DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));)
        if (*e->d_name != '.' && e->d_type == DT_DIR) {
            char *child = mem_printf("%s/%s", path, e->d_name);
            cgroups_remove(child);
            free(child);
        }
    return rmdir(path) == 0 ? 0 : -errno;
}

int cgroups_put(const char *path, pid_t pid) {
    char text[16], *file = mem_printf("%s/cgroup.procs", path);
    int n = snprintf(text, sizeof(text), "%d", (int)pid);
    int r = file_write(file, text, (size_t)n, NULL);
    free(file);
    return r;
}

enum { PIDS_MAX = 4096 };

/* Kills those that are in it now, and waits for their end. Returns how many there were. */
static int kill_all(const char *path) {
    struct process all[PIDS_MAX];
    BUF_FINI struct buf text = {0};
    char *file = mem_printf("%s/cgroup.procs", path), *save = NULL;
    int n = 0;
    if (file_read(file, TABLE_MAX, &text, NULL) == 0 && text.len)
        for (char *line = strtok_r(text.data, "\n", &save); line && n < PIDS_MAX;
             line = strtok_r(NULL, "\n", &save))
            if (process_open((pid_t)atoi(line), &all[n], NULL) == 0)
                n++;
    free(file);
    for (int i = 0; i < n; i++)
        process_signal(&all[i], SIGKILL);
    for (int i = 0; i < n; i++) {
        process_wait_end(&all[i], end_wait_ns);
        process_close(&all[i]);
    }
    return n;
}

/* Who has ended may still be on its way out, and is no number any more. */
int cgroups_clear(const char *path) {
    int64_t until_ns = clock_monotonic_ns() + end_wait_ns;
    int r;
    do {
        kill_all(path);
        r = rmdir(path) == 0 ? 0 : -errno;
    } while (r == -EBUSY && clock_monotonic_ns() < until_ns && sched_yield() == 0);
    return r;
}

/* ---- who is held to a limit is let go ---- */

enum { ROUNDS_MAX = 1000 };

static void write_to(const char *group, const char *file, const char *text) {
    char *path = mem_printf("%s/%s", group, file);
    file_write(path, text, strlen(text), NULL);
    free(path);
}

/* Whoever comes to be meanwhile is moved in the next turn. */
static int move_out(const char *group, const char *to) {
    char *path = mem_printf("%s/cgroup.procs", group);
    int r = 0, turn = 0;
    for (bool any = true; any && r == 0 && turn < ROUNDS_MAX; turn++) {
        BUF_FINI struct buf text = {0};
        char *save = NULL;
        any = false;
        r = file_read(path, 1 << 20, &text, NULL);
        if (r || !text.len)
            break;
        for (char *line = strtok_r(text.data, "\n", &save); line;
             line = strtok_r(NULL, "\n", &save)) {
            int moved = cgroups_put(to, (pid_t)atoi(line));
            any = true;
            r = moved && moved != -ESRCH ? moved : r;
        }
    }
    free(path);
    return r;
}

/* What is in the way of its own end, a limit of processes or of time, goes first. */
static void open_up(const char *group) {
    write_to(group, "cpu.cfs_quota_us", "-1");
    write_to(group, "cpu.max", "max");
}

int cgroups_release(const char *path, const char *to) {
    open_up(path);
    int r = move_out(path, to);
    return r ? r : cgroups_remove(path);
}

/* ---- of processes ---- */

static void put_of(struct json_writer *w, struct texts *told, const char *own, char *its) {
    char *save = NULL;
    for (char *line = strtok_r(its, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        struct cgroups_place p;
        size_t n = strlen(line);
        const char *same = strstr(own, line);
        bool ours = strstr(line, "/" CGROUPS_OF_NODES);
        bool known = ours || (same && (same[n] == '\n' || !same[n])) || !place_of(line, &p);
        if (known || texts_has(told, p.path))
            continue;
        texts_add(told, "%s", p.path);
        json_put_string(w, NULL, p.path);
    }
}

void cgroups_put_of(struct json_writer *w, const pid_t *pids, size_t n) {
    TEXTS_FINI struct texts told = {0};
    BUF_FINI struct buf own = {0};
    char path[64];
    int r = file_read("/proc/self/cgroup", TABLE_MAX, &own, NULL);
    for (size_t i = 0; r == 0 && i < n; i++) {
        BUF_FINI struct buf its = {0};
        snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pids[i]);
        if (file_read(path, TABLE_MAX, &its, NULL) == 0)
            put_of(w, &told, buf_str(&own), its.data);
    }
}
