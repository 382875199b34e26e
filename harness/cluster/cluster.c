#include "harness/cluster/parts.h"

#include "agent/base/str.h"
#include "agent/sys/clock.h"
#include "agent/sys/file.h"
#include "agent/sys/namespace.h"
#include "agent/sys/signals.h"

#include <errno.h>
#include <limits.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const int64_t down_wait_ns = 10000000000;

/* ---- processes of our own ---- */

enum { CONTROL_FD = 3 };

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

/* In the child. What was open in the harness must not be held open in a node. */
static void become(const char *verb, int control, bool dies) __attribute__((noreturn));
static void become(const char *verb, int control, bool dies) {
    char *argv[] = {"rankquake", (char *)(uintptr_t)verb, "3", NULL};
    if (dies)
        namespace_die_with_parent();
    setsid(); /* Ctrl-C is the harness's to handle */
    int null = open("/dev/null", O_RDONLY);
    if (null >= 0 && null != CONTROL_FD)
        dup2(null, STDIN_FILENO);
    if (control == CONTROL_FD)
        fcntl(control, F_SETFD, 0);
    else if (dup2(control, CONTROL_FD) < 0)
        _exit(127);
    syscall(SYS_close_range, CONTROL_FD + 1, ~0U, 0);
    signal_reset();
    execv("/proc/self/exe", argv);
    _exit(127);
}

int cluster_spawn(const char *verb, int clone_flags, struct process *ret, int *ret_control,
                  struct err *err) {
    int ends[2], pidfd;
    int r = channel_pair(ends, err);
    if (r)
        return r;
    pid_t pid = namespace_fork(clone_flags, &pidfd, err);
    if (pid == 0)
        become(verb, ends[1], clone_flags != 0);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return pid;
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    *ret = (struct process){pid, pidfd};
    *ret_control = ends[0];
    return 0;
}

/* ---- making ---- */

static char *path_in(const char *dir, const char *name) {
    struct buf path = {0};
    buf_printf(&path, "%s/%s", dir, name);
    return path.data;
}

static int write_hosts(struct cluster *c, struct err *err) {
    struct buf text = {0};
    buf_puts(&text, "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n");
    for (size_t i = 0; i < c->plan->nodes_n; i++)
        buf_printf(&text, "%s %s\n", c->plan->nodes[i].addr, c->plan->nodes[i].name);
    int r = folder_write(c->run, "scratch/hosts", text.data, text.len, err);
    buf_fini(&text);
    return r;
}

/* The folder may have been moved, and another put in its place, by a job of the run before. */
static int find_dir(struct cluster *c, struct err *err) {
    struct stat held, found;
    c->dir = realpath(c->run->path, NULL);
    if (!c->dir || stat(c->dir, &found) < 0 || fstat(c->run->fd, &held) < 0)
        return err_set(err, -errno, "find %s", c->run->path);
    if (held.st_dev != found.st_dev || held.st_ino != found.st_ino)
        return err_say(err, -ESTALE, "%s is not the directory any more that it was", c->dir);
    return 0;
}

/* Nothing that somebody else has put there beforehand is used. */
static int make_scratch(struct cluster *c, struct err *err) {
    int r = find_dir(c, err);
    if (r)
        return r;
    c->scratch = path_in(c->dir, "scratch");
    c->shared = path_in(c->scratch, "shared");
    c->hosts = path_in(c->scratch, "hosts");
    if ((r = folder_remove(c->run, "scratch", err)) == 0)
        r = folder_make(c->run, "scratch/shared", 0777, err);
    return r ? r : write_hosts(c, err);
}

/* What nodes with a root file system of their own are given of ours and of the caller's. */
static int pack(struct cluster *c, struct err *err) {
    char bin[PATH_MAX], *to = path_in(c->scratch, "bin");
    int r = baggage_pack(&c->baggage, file_own_folder(bin, sizeof(bin)), to, err);
    c->show = visible_shown(c->dir);
    free(to);
    return r;
}

static int undo_writes(struct cluster *c, struct err *err) {
    if (c->isolation == &isolation_namespaces)
        return layer_begin(c->scratch, c->dir, &c->layer, err);
    return layer_copy(c->scratch, c->dir, &c->layer, err);
}

/* One that could not be made leaves nothing. */
static struct cluster *give_up(struct cluster *c) {
    c->layer = layer_end(c->layer);
    if (c->scratch)
        folder_remove(c->run, "scratch", NULL);
    return cluster_free(c);
}

struct cluster *cluster_new(const struct plan *p, const struct folder *dir, struct loop *l,
                            const struct cluster_callbacks *cb, void *arg, struct err *err) {
    struct cluster *c = calloc(1, sizeof(*c));
    if (!c)
        abort();
    *c = (struct cluster){.plan = p, .loop = l, .cb = *cb, .arg = arg, .run = dir};
    c->wire = (struct wire_link){.process = PROCESS_NONE, .fd = -1};
    list_init(&c->partitions);
    c->nodes = calloc(p->nodes_n + 1, sizeof(struct node *));
    if (!c->nodes)
        abort();
    c->isolation =
        p->isolation == ISOLATION_PROCESSES ? &isolation_processes : &isolation_namespaces;
    if (c->isolation->enter(c, err) != 0 || make_scratch(c, err) != 0)
        return give_up(c);
    c->before = cgroups_look();
    c->keep = visible_paths(p, c->dir);
    c->writable = visible_writable(c->dir);
    if (p->scenario->job.writes_undone && undo_writes(c, err) != 0)
        return give_up(c);
    if (p->rootfs && pack(c, err) != 0)
        return give_up(c);
    for (size_t i = 0; i < p->nodes_n; i++)
        c->nodes[c->nodes_n++] = node_new(c, &p->nodes[i], (int)i);
    return c;
}

int cluster_up(struct cluster *c, struct err *err) {
    int r = c->isolation->begin(c, err);
    for (size_t i = 0; i < c->nodes_n && r == 0; i++)
        if (c->nodes[i]->plan->on_at_start)
            r = node_start(c->nodes[i], false, err);
    return r;
}

void cluster_failed(struct cluster *c, const struct err *err) {
    if (c->has_failed || c->going_down)
        return;
    c->has_failed = true; /* what follows from it says nothing new */
    if (c->cb.failed)
        c->cb.failed(c->arg, err);
}

/* ---- taking down ---- */

struct left {
    char **v;
    size_t n;
};

void leave(struct left *l, const char *fmt, ...) {
    struct buf text = {0};
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    l->v = realloc(l->v, (l->n + 2) * sizeof(*l->v));
    if (!l->v)
        abort();
    l->v[l->n++] = text.data;
    l->v[l->n] = NULL;
}

void cluster_saw_cgroup(struct cluster *c, const char *path) {
    c->cgroups = realloc(c->cgroups, (c->cgroups_n + 1) * sizeof(*c->cgroups));
    char *copy = strdup(path);
    if (!c->cgroups || !copy)
        abort();
    c->cgroups[c->cgroups_n++] = copy;
}

/* One that a process of a node was seen in is the run's without doubt, and goes. */
static bool is_seen(const struct cluster *c, const char *path) {
    for (size_t i = 0; i < c->cgroups_n; i++)
        if (plan_is_below(c->cgroups[i], path))
            return true;
    return false;
}

static void look_for_cgroups(struct cluster *c, struct left *l) {
    char **found = cgroups_new(c->before);
    for (char **path = found; *path; path++) {
        if (!is_seen(c, *path) || cgroups_remove(*path) != 0)
            leave(l, "the cgroup %s, made while the run went on", *path);
        free(*path);
    }
    free(found);
}

static void look_for_left(struct cluster *c, struct left *l) {
    struct err err;
    leave(l, "%s", ""); /* so that the list is never NULL */
    for (size_t i = 0; i < c->nodes_n; i++) {
        struct node *n = c->nodes[i];
        if (n->init.pid)
            leave(l, "process %d, the first of %s", (int)n->init.pid, n->plan->name);
    }
    c->isolation->look(c, l);
    look_for_cgroups(c, l);
    if (!c->keep_scratch && folder_remove(c->run, "scratch", &err) != 0)
        leave(l, "%s (%s)", c->scratch, err.msg);
}

static void finish(struct cluster *c) {
    struct left l = {0};
    c->is_down = true;
    c->layer = layer_end(c->layer);
    c->on_deadline = loop_source_free(c->on_deadline);
    look_for_left(c, &l);
    if (c->cb.down)
        c->cb.down(c->arg, (const char *const *)l.v + 1);
    for (size_t i = 0; i < l.n; i++)
        free(l.v[i]);
    free(l.v);
}

static void on_deadline(void *arg, int64_t now_ns) {
    (void)now_ns;
    finish(arg);
}

/* First the nodes' processes, then the sockets they left, then what else their isolation is made
 * of. */
void cluster_settle(struct cluster *c) {
    if (!c->going_down || c->is_down)
        return;
    for (size_t i = 0; i < c->nodes_n; i++)
        if (c->nodes[i]->init.pid)
            return;
    for (size_t i = 0; i < c->nodes_n; i++)
        c->isolation->forget(c->nodes[i]);
    if (c->isolation->settled(c))
        loop_timer_at(c->on_deadline, 0);
}

void cluster_down(struct cluster *c) {
    if (c->going_down)
        return;
    c->going_down = true;
    c->on_deadline = loop_timer(c->loop, on_deadline, c);
    loop_timer_at(c->on_deadline, clock_monotonic_ns() + down_wait_ns);
    for (size_t i = 0; i < c->nodes_n; i++)
        node_kill(c->nodes[i]);
    cluster_settle(c);
}

struct cluster *cluster_free(struct cluster *c) {
    if (!c)
        return NULL;
    c->going_down = true;
    for (size_t i = 0; i < c->nodes_n; i++)
        node_free(c->nodes[i]);
    c->isolation->free(c);
    partitions_free(c);
    layer_end(c->layer);
    loop_source_free(c->on_deadline);
    visible_free(c->keep);
    visible_free(c->show);
    visible_free(c->writable);
    baggage_fini(&c->baggage);
    cgroups_free(c->before);
    for (size_t i = 0; i < c->cgroups_n; i++)
        free(c->cgroups[i]);
    free(c->cgroups);
    free(c->nodes);
    free(c->hosts);
    free(c->shared);
    free(c->scratch);
    free(c->dir);
    free(c);
    return NULL;
}

/* ---- asking ---- */

void cluster_keep(struct cluster *c) {
    c->keep_scratch = true;
}

const char *cluster_shared_dir(const struct cluster *c) {
    return c->shared;
}

const char *cluster_programs(const struct cluster *c, const char *bin) {
    return c->baggage.programs ? c->baggage.programs : bin;
}

struct node **cluster_nodes(const struct cluster *c) {
    return c->nodes;
}

struct node *cluster_node(const struct cluster *c, const char *name) {
    for (size_t i = 0; i < c->nodes_n; i++)
        if (str_eq(c->nodes[i]->plan->name, name))
            return c->nodes[i];
    return NULL;
}

void cluster_count(struct cluster *c) {
    c->isolation->count(c);
}

void cluster_bootstrap_port(struct cluster *c, uint16_t port) {
    if (c->isolation->bootstrap)
        c->isolation->bootstrap(c, port);
}
