#include "harness/cluster/parts.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/namespace.h"
#include "base/sys/signals.h"
#include "harness/cluster/dead_man.h"
#include "harness/cluster/metadata.h"
#include "harness/cluster/power.h"

#include <errno.h>
#include <limits.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const int64_t down_wait_ns = 10000000000;
#define CLUSTER_LOCALHOST "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"

/* ---- processes of our own ---- */

enum { CONTROL_FD = 3, LANE_FD };

/* Its own descriptors, from CONTROL_FD on. */
struct given_ends {
    int v[2];
    int n;
};

static void place(const struct given_ends *g) {
    int high[2];
    for (int i = 0; i < g->n; i++)
        if ((high[i] = fcntl(g->v[i], F_DUPFD, LANE_FD + 1)) < 0)
            _exit(127);
    for (int i = 0; i < g->n; i++)
        if (dup2(high[i], CONTROL_FD + i) < 0)
            _exit(127);
    process_close_from(CONTROL_FD + g->n);
}

/* In the child. What was open in the harness must not be held open in a node. */
static void become(const char *verb, const struct given_ends *g, bool dies)
    __attribute__((noreturn));
static void become(const char *verb, const struct given_ends *g, bool dies) {
    char *argv[] = {"rankquake", (char *)(uintptr_t)verb, "3", g->n > 1 ? "4" : NULL, NULL};
    if (dies)
        namespace_die_with_parent();
    setsid(); /* Ctrl-C is the harness's to handle */
    int null = open("/dev/null", O_RDONLY);
    if (null >= 0)
        dup2(null, STDIN_FILENO);
    place(g);
    signal_reset();
    execv("/proc/self/exe", argv);
    _exit(127);
}

static int spawn(const char *verb, int clone_flags, const struct given_ends *g, struct process *ret,
                 struct err *err) {
    int pidfd;
    pid_t pid = namespace_fork(clone_flags, &pidfd, err);
    if (pid == 0)
        become(verb, g, clone_flags != 0);
    if (pid < 0)
        return pid;
    *ret = (struct process){pid, pidfd};
    return 0;
}

int cluster_spawn(const char *verb, int clone_flags, struct process *ret, int *ret_control,
                  struct err *err) {
    int ends[2];
    int r = channel_pair(ends, err);
    if (r)
        return r;
    r = spawn(verb, clone_flags, &(struct given_ends){{ends[1]}, 1}, ret, err);
    close(ends[1]);
    if (r) {
        close(ends[0]);
        return r;
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    *ret_control = ends[0];
    return 0;
}

int cluster_spawn_helper(int clone_flags, struct process *ret, struct carrier_ends *ret_ends,
                         struct err *err) {
    struct carrier_ends ends[2];
    int r = carrier_pair(ends, err);
    if (r)
        return r;
    r = spawn("node", clone_flags, &(struct given_ends){{ends[1].in, ends[1].lane}, 2}, ret, err);
    carrier_ends_close(&ends[1]);
    if (r)
        carrier_ends_close(&ends[0]);
    else
        *ret_ends = ends[0];
    return r;
}

/* ---- making ---- */

static int write_text(const struct cluster *c, const char *name, const char *text,
                      struct err *err) {
    return folder_write(c->run, name, text, strlen(text), err);
}

static const char *cloud_name(const struct cluster *c) {
    return plan_has_cloud(c->plan) ? METADATA_ADDRESS " " METADATA_NAME "\n" : "";
}

/* Each node knows itself, and asks the name server for all others. */
static int write_own_hosts(struct cluster *c, struct err *err) {
    int r = 0;
    for (size_t i = 0; i < c->plan->nodes_n && r == 0; i++) {
        const struct plan_node *n = &c->plan->nodes[i];
        char *name = mem_printf("scratch/hosts.%s", n->name);
        char *text = mem_printf(CLUSTER_LOCALHOST "%s %s\n%s", n->addr, n->name, cloud_name(c));
        r = write_text(c, name, text, err);
        free(name);
        free(text);
    }
    r = r ? r : write_text(c, "scratch/resolv.conf", "nameserver " PLAN_RESOLVER "\n", err);
    return r ? r : write_text(c, "scratch/nsswitch.conf", "hosts: files dns\n", err);
}

static int write_hosts(struct cluster *c, struct err *err) {
    BUF_FINI struct buf text = {0};
    if (plan_needs(c->plan) & FAULT_NEEDS_NAMES)
        return write_own_hosts(c, err);
    buf_puts(&text, CLUSTER_LOCALHOST);
    for (size_t i = 0; i < c->plan->nodes_n; i++)
        buf_printf(&text, "%s %s\n", c->plan->nodes[i].addr, c->plan->nodes[i].name);
    buf_puts(&text, cloud_name(c));
    return folder_write(c->run, "scratch/hosts", text.data, text.len, err);
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
    c->scratch = mem_printf("%s/scratch", c->dir);
    const char *disks = c->plan->disks ? c->plan->disks : "scratch";
    c->disk_root = mem_printf("%s/%s", c->dir, disks);
    c->shared = mem_printf("%s/shared", c->disk_root);
    char *shared = mem_printf("%s/shared", disks);
    if ((r = folder_remove(c->run, "scratch", err)) == 0)
        r = folder_make(c->run, "scratch", 0777, err);
    r = r ? r : folder_make(c->run, shared, 0777, err);
    free(shared);
    return r ? r : write_hosts(c, err);
}

/* What nodes with a root file system of their own are given of ours and of the caller's. */
static int pack(struct cluster *c, struct err *err) {
    char bin[PATH_MAX], *to = mem_printf("%s/bin", c->scratch);
    int r = bundle_pack(&c->bundle, file_own_folder(bin, sizeof(bin)), to, err);
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
    struct cluster *c = mem_new(struct cluster);
    *c = (struct cluster){.plan = p, .loop = l, .cb = *cb, .arg = arg, .run = dir};
    c->keeper = PROCESS_NONE;
    c->keeper_control = -1;
    c->disks = (struct disk_link){.process = PROCESS_NONE, .control = -1};
    c->wire = (struct wire_link){.process = PROCESS_NONE, .fd = -1};
    list_init(&c->partitions);
    c->nodes = mem_array(struct node *, p->nodes_n + 1);
    c->isolation = p->isolation == ISOLATION_HOSTS       ? &isolation_hosts
                   : p->isolation == ISOLATION_PROCESSES ? &isolation_processes
                                                         : &isolation_namespaces;
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

/* ---- a sign of life ---- */

static void on_beat(void *arg, int64_t now_ns) {
    struct cluster *c = arg;
    for (size_t i = 0; i < c->nodes_n; i++)
        if (c->nodes[i]->control)
            node_beat(c->nodes[i]);
    wire_link_beat(c);
    node_limits_beat(c);
    loop_timer_at(c->on_beat, now_ns + dead_man_beat_ns(c->plan->scenario->limits.dead_man_ns));
}

void cluster_left(struct cluster *c, const char *who, const struct json *left) {
    json_each(it, left) texts_add(&c->left, "%s: %s", who, json_string(it, ""));
}

void cluster_healed(struct cluster *c, const char *who, const struct json *said) {
    if (c->cb.healed && !c->going_down)
        c->cb.healed(c->arg, who, json_get_i64(said, "silent_ns", 0), json_get(said, "undone"));
}

/* Each step of Slurm has a daemon of its own, which ends when the controller has heard of the step's end. */
int64_t cluster_linger_ns(const struct plan *p) {
    return p->scenario->cluster.scheduler ? 10000000000 : 1000000000;
}

/* ---- up ---- */

int cluster_up(struct cluster *c, struct err *err) {
    c->on_beat = loop_timer(c->loop, on_beat, c);
    if (c->plan->scenario->limits.dead_man_ns)
        loop_timer_at(c->on_beat, 0);
    int r = c->isolation->begin(c, err);
    for (size_t i = 0; i < c->nodes_n && r == 0; i++)
        if (c->nodes[i]->plan->on_at_start)
            r = node_start(c->nodes[i], false, err);
    return r;
}

void cluster_failed(struct cluster *c, const struct err *err) {
    if (!c->going_down)
        cluster_lost(c, err);
}

void cluster_lost(struct cluster *c, const struct err *err) {
    if (c->has_failed || c->is_down)
        return;
    c->has_failed = true; /* what follows from it says nothing new */
    if (c->cb.failed)
        c->cb.failed(c->arg, err);
}

/* ---- taking down ---- */

void cluster_saw_cgroup(struct cluster *c, const char *path) {
    texts_add(&c->cgroups, "%s", path);
}

/* One that a process of a node was seen in is the run's without doubt, and goes. */
static bool is_seen(const struct cluster *c, const char *path) {
    for (size_t i = 0; i < c->cgroups.n; i++)
        if (plan_is_below(c->cgroups.v[i], path))
            return true;
    return false;
}

static void look_for_cgroups(struct cluster *c, struct texts *left) {
    TEXTS_FINI struct texts found = cgroups_new(&c->before);
    for (size_t i = 0; i < found.n; i++)
        if (!is_seen(c, found.v[i]) || cgroups_remove(found.v[i]) != 0)
            texts_add(left, "the cgroup %s, made while the run went on", found.v[i]);
}

static void look_for_left(struct cluster *c, struct texts *left) {
    struct err err;
    for (size_t i = 0; i < c->nodes_n; i++) {
        struct node *n = c->nodes[i];
        if (n->init.pid && !n->link) /* of other hosts c->isolation tells */
            texts_add(left, "process %d, the first of %s", (int)n->init.pid, n->plan->name);
    }
    for (size_t i = 0; i < c->left.n; i++)
        texts_add(left, "%s", c->left.v[i]);
    c->isolation->look(c, left);
    look_for_cgroups(c, left);
    if (!c->keep_scratch && folder_remove(c->run, "scratch", &err) != 0)
        texts_add(left, "%s (%s)", c->scratch, err.msg);
}

static void finish(struct cluster *c) {
    TEXTS_FINI struct texts left = {0};
    c->is_down = true;
    if (node_limits_end(c) != 0)
        texts_add(&left, "a cgroup of the harness's own, " CGROUPS_OF_NODES "%d-*", (int)getpid());
    disk_link_end(c);
    c->layer = layer_end(c->layer);
    c->on_deadline = loop_source_free(c->on_deadline);
    c->on_beat = loop_source_free(c->on_beat);
    look_for_left(c, &left);
    if (c->cb.down)
        c->cb.down(c->arg, texts_list(&left));
}

static void on_deadline(void *arg, int64_t now_ns) {
    finish(arg);
}

/* First the nodes' processes, then the sockets they left, then what else their isolation is made
 * of. */
void cluster_settle(struct cluster *c) {
    if (!c->going_down || c->is_down)
        return;
    for (size_t i = 0; i < c->nodes_n; i++)
        if (c->nodes[i]->init.pid || power_is_awaited(c->nodes[i]))
            return;
    for (size_t i = 0; i < c->nodes_n; i++)
        c->isolation->forget(c->nodes[i]);
    if (c->isolation->settled(c))
        loop_timer_at(c->on_deadline, 0);
}

/* Each of its commands, the end of the host and its new beginning. */
static int64_t power_wait_ns(const struct cluster *c) {
    for (size_t i = 0; i < c->nodes_n; i++)
        if (power_is_awaited(c->nodes[i]))
            return 4 * c->plan->scenario->cluster.power.within_ns;
    return 0;
}

void cluster_down(struct cluster *c) {
    if (c->going_down)
        return;
    c->going_down = true;
    c->on_deadline = loop_timer(c->loop, on_deadline, c);
    for (size_t i = 0; i < c->nodes_n; i++) {
        c->nodes[i]->bade |= c->nodes[i]->killed; /* what a fault has taken says no more */
        node_kill(c->nodes[i]);
        power_restore(c->nodes[i]);
    }
    loop_timer_at(c->on_deadline, clock_monotonic_ns() + down_wait_ns + power_wait_ns(c));
    cluster_settle(c);
}

struct cluster *cluster_free(struct cluster *c) {
    if (!c)
        return NULL;
    c->going_down = true;
    for (size_t i = 0; i < c->nodes_n; i++)
        node_free(c->nodes[i]);
    c->nodes_n = 0;
    node_limits_end(c);
    disk_link_end(c);
    c->isolation->free(c);
    partitions_free(c);
    layer_end(c->layer);
    loop_source_free(c->on_deadline);
    loop_source_free(c->on_beat);
    texts_fini(&c->keep);
    texts_fini(&c->show);
    texts_fini(&c->writable);
    bundle_fini(&c->bundle);
    texts_fini(&c->before);
    texts_fini(&c->cgroups);
    texts_fini(&c->left);
    free(c->nodes);
    free(c->shared);
    free(c->disk_root);
    free(c->scratch);
    free(c->dir);
    free(c);
    return NULL;
}

/* ---- asking ---- */

void cluster_keep(struct cluster *c) {
    c->keep_scratch = true;
}

void cluster_capture(struct cluster *c) {
    c->captures = true;
}

const char *cluster_shared_dir(const struct cluster *c) {
    return c->shared;
}

const char *cluster_programs(const struct cluster *c, const char *bin) {
    return c->bundle.programs ? c->bundle.programs : bin;
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
