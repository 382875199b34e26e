/* What runs on a node held to a limit together, in a control group of version 1 or 2. It is made
 * below the harness's own, and taken away when the limit is lifted, when the node is off, and by a
 * process of its own when the harness dies. The node's first process stays outside: it must do what
 * is asked of it also when nothing else on the node can. */
#include "harness/cluster/parts.h"

#include "base/mem.h"
#include "base/sys/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const int64_t end_wait_ns = 5000000000;

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

/* ---- a limit ---- */

static int begin(struct node *n, struct limit_group *g, int64_t value, struct err *err) {
    struct cluster *c = n->cluster;
    int r = start_keeper(c, err);
    r = r ? r : tell_keeper(c, "made", g->path, g->home, err);
    return r ? r : limit_group_begin(g, n->plan->name, n->init.pid, value, err);
}

int node_limit(struct node *n, enum node_limit what, int64_t value, struct err *err) {
    struct limit_group *g = &n->limits[what];
    char owner[64];
    if (n->link)
        return err_say(err, -EINVAL,
                       "%s is on another host, and its helper there holds it to limits",
                       n->plan->name);
    if (g->path)
        return err_say(err, -EBUSY, "%s has such a limit already", n->plan->name);
    snprintf(owner, sizeof(owner), "%d-%s", (int)getpid(), n->plan->name);
    int r = limit_group_name(what, owner, g, err);
    if (r)
        return r;
    r = begin(n, g, value, err);
    if (r)
        node_unlimit(n, what, NULL);
    return r;
}

/* Of what cannot be taken away the keeper does what is left. */
int node_unlimit(struct node *n, enum node_limit what, struct err *err) {
    struct limit_group *g = &n->limits[what];
    if (!g->path)
        return 0;
    char *path = mem_strdup(g->path);
    int r = limit_group_end(g, err);
    if (r)
        limit_group_fini(g);
    else
        tell_keeper(n->cluster, "gone", path, NULL, NULL);
    free(path);
    return r;
}

void node_unlimit_all(struct node *n) {
    for (int i = 0; i < NODE_LIMITS_N; i++)
        node_unlimit(n, (enum node_limit)i, NULL);
}
