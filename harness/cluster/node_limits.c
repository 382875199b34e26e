/* What runs on a node held to a limit together, in a control group of version 1 or 2. It is made
 * below the harness's own, and taken away when the limit is lifted, when the node is off, and by a
 * process of its own when the harness dies. The node's first process stays outside: it must do what
 * is asked of it also when nothing else on the node can. */
#include "harness/cluster/parts.h"

#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PERIOD_US = 20000 };

static const int64_t end_wait_ns = 5000000000;

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

/* ---- the keeper ---- */

/* from: where those are at home who are put into it; may be NULL. */
static int tell_keeper(struct cluster *c, const char *key, const char *path, const char *from,
                       struct err *err) {
    BUF_FINI struct buf text = {0};
    struct json_writer w = {.out = &text};
    json_object(&w, NULL);
    json_put_string(&w, key, path);
    json_put_string(&w, "from", from);
    json_put_i64(&w, "dead_man", c->plan->scenario->limits.dead_man_ns);
    json_end_object(&w);
    return channel_send(c->keeper_control, &text, NULL, 0, err);
}

void node_limits_beat(struct cluster *c) {
    if (c->keeper.pid)
        tell_keeper(c, "beat", "", NULL, NULL);
}

static int start_keeper(struct cluster *c, struct err *err) {
    return c->keeper.pid ? 0 : cluster_spawn("cgroups", 0, &c->keeper, &c->keeper_control, err);
}

int node_limits_end(struct cluster *c) {
    int status = 0;
    for (size_t i = 0; i < c->nodes_n; i++)
        node_unlimit_all(c->nodes[i]);
    file_close(&c->keeper_control);
    if (!c->keeper.pid)
        return 0;
    int r = process_reap(&c->keeper, end_wait_ns, &status);
    process_close(&c->keeper);
    return r || status ? -EBUSY : 0;
}

/* ---- a control group ---- */

/* Version 2 gives a controller only to those below a place that holds no process itself, so where
 * the harness has a place of its own the new one is beside it. */
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

static int make_group(struct node *n, enum node_limit what, bool *ret_unified, struct err *err) {
    struct cluster *c = n->cluster;
    char *parent = parent_of(controllers[what], ret_unified);
    if (!parent)
        return err_say(err, -ENOTSUP, "no control group here has the controller %s",
                       controllers[what]);
    char *path =
        mem_printf("%s/" CGROUPS_OF_NODES "%d-%llx-%s-%s", parent, (int)getpid(),
                   (unsigned long long)clock_monotonic_ns(), n->plan->name, controllers[what]);
    free(parent);
    char *own = cgroups_own(controllers[what], ret_unified);
    int r = start_keeper(c, err);
    r = r ? r : tell_keeper(c, "made", path, own, err);
    free(own);
    if (r == 0 && mkdir(path, 0755) != 0)
        r = err_set(err, -ENOTSUP, "make the control group %s", path);
    if (r) {
        free(path);
        return r;
    }
    n->cgroups[what] = path;
    return 0;
}

static int set_cpu(const char *group, bool unified, int64_t percent, struct err *err) {
    char text[64];
    int64_t quota = percent * PERIOD_US / 100;
    snprintf(text, sizeof(text), unified ? "%lld %d" : "%lld", (long long)quota, PERIOD_US);
    if (unified)
        return write_to(group, "cpu.max", text, err);
    char period[16];
    snprintf(period, sizeof(period), "%d", PERIOD_US);
    int r = write_to(group, "cpu.cfs_period_us", period, err);
    return r ? r : write_to(group, "cpu.cfs_quota_us", text, err);
}

/* What was had before stays charged where it was. Nothing of the rest goes into swap. */
static int set_memory(const char *group, bool unified, int64_t bytes, struct err *err) {
    char text[32];
    snprintf(text, sizeof(text), "%lld", (long long)bytes);
    int r = write_to(group, unified ? "memory.max" : "memory.limit_in_bytes", text, err);
    if (r == 0 && unified)
        write_to(group, "memory.swap.max", "0", NULL);
    else if (r == 0)
        write_to(group, "memory.memsw.limit_in_bytes", text, NULL);
    return r;
}

/* So many more than are in it by now. */
static int set_pids(const char *group, int64_t more, struct err *err) {
    char text[32];
    int64_t now = read_from(group, "pids.current");
    snprintf(text, sizeof(text), "%lld", (long long)((now < 0 ? 0 : now) + more));
    return write_to(group, "pids.max", text, err);
}

/* Until a look finds nobody new: who is in it forks into it. */
static int put_all(const struct node *n, const char *group, struct err *err) {
    pid_t *put = NULL;
    size_t put_n = 0, fresh = 1;
    int r = 0;
    while (fresh && r == 0) {
        pid_t *pids;
        size_t all = process_list_descendants(n->init.pid, &pids);
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
        return err_say(err, -ESRCH, "nothing runs on %s", n->plan->name);
    return r ? err_set(err, r, "put what runs on %s into %s", n->plan->name, group) : 0;
}

int node_limit(struct node *n, enum node_limit what, int64_t value, struct err *err) {
    bool unified;
    if (n->cgroups[what])
        return err_say(err, -EBUSY, "%s has such a limit already", n->plan->name);
    int r = make_group(n, what, &unified, err);
    if (r)
        return r;
    const char *group = n->cgroups[what];
    if (what == NODE_LIMIT_CPU)
        r = set_cpu(group, unified, value, err);
    else if (what == NODE_LIMIT_MEMORY)
        r = set_memory(group, unified, value, err);
    r = r ? r : put_all(n, group, err);
    if (r == 0 && what == NODE_LIMIT_PIDS)
        r = set_pids(group, value, err);
    if (r)
        node_unlimit(n, what, NULL);
    return r;
}

/* ---- its end ---- */

int node_unlimit(struct node *n, enum node_limit what, struct err *err) {
    char *group = n->cgroups[what];
    bool unified;
    if (!group)
        return 0;
    char *own = cgroups_own(controllers[what], &unified);
    int r = own ? cgroups_release(group, own) : -ENOENT;
    if (r == 0 || r == -ENOENT)
        tell_keeper(n->cluster, "gone", group, NULL, NULL); /* else it does what is left */
    r = r == -ENOENT ? 0 : r;
    if (r)
        err_set(err, r, "take away the control group %s", group);
    n->cgroups[what] = NULL;
    free(group);
    free(own);
    return r;
}

void node_unlimit_all(struct node *n) {
    for (int i = 0; i < NODE_LIMITS_N; i++)
        node_unlimit(n, (enum node_limit)i, NULL);
}
