#include "harness/cluster/cgroups.h"

#include "agent/base/str.h"
#include "agent/sys/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TABLE_MAX = 64 << 20, DEPTH_MAX = 64 };

struct cgroups {
    char **v; /* sorted once all are there */
    size_t n, room;
};

static void add(struct cgroups *c, char *path) {
    if (c->n + 1 >= c->room) {
        c->room = c->room ? c->room * 2 : 64;
        c->v = realloc(c->v, c->room * sizeof(*c->v));
        if (!c->v)
            abort();
    }
    c->v[c->n++] = path;
    c->v[c->n] = NULL;
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool has(const struct cgroups *c, const char *path) {
    return c->n && bsearch(&path, c->v, c->n, sizeof(*c->v), by_text);
}

static char *below(const char *dir, const char *name) {
    struct buf path = {0};
    buf_printf(&path, "%s/%s", dir, name);
    return path.data;
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
    struct buf table = {0};
    char *save = NULL;
    if (file_read("/proc/self/mountinfo", TABLE_MAX, &table, NULL) == 0)
        for (char *line = strtok_r(table.data, "\n", &save); line;
             line = strtok_r(NULL, "\n", &save))
            if (read_hierarchy(line, &h))
                fn(arg, &h);
    buf_fini(&table);
}

/* "4:memory:/a" or "0::/a": a hierarchy by the first of its controllers, and the place in it. */
struct place {
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
    struct place *p = arg;
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
static bool place_of(const char *line, struct place *ret) {
    const char *colon = strchr(line, ':');
    *ret = (struct place){.controllers = colon ? colon + 1 : ""};
    each_hierarchy(find_path, ret);
    return *ret->path;
}

/* ---- what is in them ---- */

/* A doctor's own, of another process and for a moment, are nobody's. */
static void walk(struct cgroups *c, const char *dir, int depth) {
    struct stat st;
    DIR *d = depth < DEPTH_MAX ? opendir(dir) : NULL;
    for (struct dirent *e; d && (e = readdir(d));) {
        if (*e->d_name == '.' || e->d_type != DT_DIR || str_starts(e->d_name, "rankquake-doctor-"))
            continue;
        char *path = below(dir, e->d_name);
        walk(c, path, depth + 1);
        if (lstat(path, &st) == 0 && st.st_uid == geteuid())
            add(c, path);
        else
            free(path);
    }
    if (d)
        closedir(d);
}

static void walk_own(struct cgroups *c, const char *line) {
    struct place p;
    if (place_of(line, &p))
        walk(c, p.path, 0);
}

struct cgroups *cgroups_look(void) {
    struct cgroups *c = calloc(1, sizeof(*c));
    if (!c)
        abort();
    char *save = NULL;
    struct buf own = {0};
    if (file_read("/proc/self/cgroup", TABLE_MAX, &own, NULL) == 0)
        for (char *line = strtok_r(own.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
            walk_own(c, line);
    buf_fini(&own);
    if (c->n)
        qsort(c->v, c->n, sizeof(*c->v), by_text);
    return c;
}

struct cgroups *cgroups_free(struct cgroups *c) {
    for (size_t i = 0; c && i < c->n; i++)
        free(c->v[i]);
    if (c)
        free(c->v);
    free(c);
    return NULL;
}

/* What cannot be read is taken for somebody's. */
static bool holds_processes(const char *dir) {
    char *procs = below(dir, "cgroup.procs");
    struct buf text = {0};
    bool holds = file_read(procs, TABLE_MAX, &text, NULL) != 0 || text.len;
    buf_fini(&text);
    free(procs);
    DIR *d = holds ? NULL : opendir(dir);
    for (struct dirent *e; d && !holds && (e = readdir(d));)
        if (*e->d_name != '.' && e->d_type == DT_DIR) {
            char *path = below(dir, e->d_name);
            holds = holds_processes(path);
            free(path);
        }
    if (d)
        closedir(d);
    return holds;
}

static bool has_above(const struct cgroups *c, const char *path) {
    for (size_t i = 0; i < c->n; i++) {
        size_t n = strlen(c->v[i]);
        if (strncmp(path, c->v[i], n) == 0 && path[n] == '/')
            return true;
    }
    return false;
}

char **cgroups_new(const struct cgroups *before) {
    struct cgroups *now = cgroups_look(), found = {0};
    add(&found, NULL); /* so that the list is never NULL */
    found.n = 0;
    for (size_t i = 0; i < now->n; i++)
        if (!has(before, now->v[i]) && !has_above(&found, now->v[i]) && !holds_processes(now->v[i]))
            add(&found, strdup(now->v[i]));
    cgroups_free(now);
    return found.v;
}

int cgroups_remove(const char *path) {
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));)
        if (*e->d_name != '.' && e->d_type == DT_DIR) {
            char *child = below(path, e->d_name);
            cgroups_remove(child);
            free(child);
        }
    if (d)
        closedir(d);
    return rmdir(path) == 0 ? 0 : -errno;
}

/* ---- of processes ---- */

static void put_of(struct json_writer *w, struct cgroups *told, const char *own, char *its) {
    char *save = NULL;
    for (char *line = strtok_r(its, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        struct place p;
        size_t n = strlen(line);
        const char *same = strstr(own, line);
        bool known = (same && (same[n] == '\n' || !same[n])) || !place_of(line, &p);
        for (size_t i = 0; i < told->n && !known; i++)
            known = str_eq(told->v[i], p.path);
        if (known)
            continue;
        add(told, strdup(p.path));
        json_put_string(w, NULL, p.path);
    }
}

void cgroups_put_of(struct json_writer *w, const pid_t *pids, size_t n) {
    struct cgroups told = {0};
    struct buf own = {0};
    char path[64];
    int r = file_read("/proc/self/cgroup", TABLE_MAX, &own, NULL);
    for (size_t i = 0; r == 0 && i < n; i++) {
        struct buf its = {0};
        snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pids[i]);
        if (file_read(path, TABLE_MAX, &its, NULL) == 0)
            put_of(w, &told, buf_str(&own), its.data);
        buf_fini(&its);
    }
    buf_fini(&own);
    for (size_t i = 0; i < told.n; i++)
        free(told.v[i]);
    free(told.v);
}
