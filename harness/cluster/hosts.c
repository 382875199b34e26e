/* Nodes on hosts of their own, which a provider reaches: each is a tree of processes below a helper
 * there. What is here of a node is the command that reaches its helper, and ends when that does. */
#include "harness/cluster/parts.h"

#include "base/mem.h"
#include "base/sys/file.h"
#include "base/sys/unix_address.h"
#include "harness/carrier/host_process.h"
#include "harness/cluster/far_cut.h"
#include "harness/cluster/far_rules.h"
#include "harness/cluster/host_link.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int enter(struct cluster *c, struct err *err) {
    return 0;
}

static int begin(struct cluster *c, struct err *err) {
    c->far_cut = far_cut_new(c);
    return 0;
}

/* ---- a node ---- */

/* A file system that hosts share need not know sockets. */
static void name_paths(struct node *n) {
    char drawn[UNIX_ADDRESS_MAX];
    free(n->events);
    free(n->tmp);
    n->tmp = mem_printf("%s/%s" PROCESSES_TMP, n->cluster->scratch, n->plan->name);
    unix_address_draw(n->plan->name, drawn);
    n->events = mem_strdup(drawn);
}

/* Where somebody else's job is to write: on its host it is another user's. */
static int open_up(const struct node *n, const char *name, struct err *err) {
    struct folder f;
    int r = folder_make(n->cluster->run, name, 0777, err);
    if (r || n->plan->host->hello.uid == geteuid())
        return r;
    r = folder_enter(&f, n->cluster->run, name, err);
    if (r)
        return r;
    r = fchmod(f.fd, 01777) != 0 ? err_set(err, -errno, "let others write into %s", f.path) : 0;
    folder_close(&f);
    return r;
}

static int make_folders(struct node *n, struct err *err) {
    const struct cluster *c = n->cluster;
    size_t dir = strlen(c->dir) + 1;
    char *logs = mem_printf("logs/%s", n->plan->name);
    int r = folder_remove(c->run, n->tmp + dir, err);
    r = r ? r : open_up(n, n->tmp + dir, err);
    r = r ? r : open_up(n, n->disk + dir, err);
    r = r ? r : open_up(n, c->shared + dir, err);
    r = r ? r : open_up(n, logs, err);
    free(logs);
    return r;
}

static int spawn(struct node *n, struct err *err) {
    name_paths(n);
    int r = make_folders(n, err);
    return r ? r : host_link_start(n, err);
}

/* Ours lie there where they lie here. */
const char *hosts_probe(const struct node *n) {
    static char path[PATH_MAX + 16];
    char folder[PATH_MAX];
    snprintf(path, sizeof(path), "%s/rankprobe", file_own_folder(folder, sizeof(folder)));
    return path;
}

static void put_setup(const struct node *n, struct json_writer *w) {
    char folder[PATH_MAX];
    json_put_string(w, "isolation", "processes");
    json_put_string(w, "dir", "/");
    json_put_string(w, "addr", n->plan->addr);
    json_put_string(w, "events", n->events);
    json_put_string(w, "run", n->cluster->dir);
    json_put_string(w, "probe", hosts_probe(n));
    json_put_string(w, "shared", n->cluster->shared);
    json_put_string(w, "disk", n->disk);
    json_put_string(w, "given", n->cluster->given);
    if (node_clock_is_wanted(n))
        json_put_string(w, "clock", file_own_folder(folder, sizeof(folder)));
}

static int ready(struct node *n, struct message *m, struct err *err) {
    host_link_arm(n->link);
    int r = far_rules_say_again(n, err);
    return r ? r : host_link_ready(n->link, err);
}

/* The helper sees the end of what is said, ends all that is there, and tells what it could not. */
static void kill_node(struct node *n) {
    if (n->control)
        carrier_shut(n->control);
}

static void ended(struct node *n) {
}

static void forget(struct node *n) {
}

/* ---- the cluster ---- */

static bool settled(struct cluster *c) {
    return true;
}

/* Who cannot be told to end does so by itself. */
static void look(struct cluster *c, struct texts *left) {
    for (size_t i = 0; i < c->nodes_n; i++) {
        struct node *n = c->nodes[i];
        if (!n->init.pid)
            continue;
        texts_add(left,
                  "%s on %s, which does not answer any more: its helper there ends it when it has "
                  "heard nothing for %d s",
                  n->plan->name, n->plan->host->name,
                  (int)(c->plan->scenario->limits.dead_man_ns / 1000000000));
        process_signal(&n->init, SIGKILL);
    }
}

static void free_all(struct cluster *c) {
    c->far_cut = far_cut_free(c->far_cut);
    far_calls_forget_wanted(c);
    host_process_forget_all();
}

static void count(struct cluster *c) {
    far_cut_count(c->far_cut);
}

static void bootstrap(struct cluster *c, uint16_t port) {
    far_cut_bootstrap(c->far_cut, port);
}

/* ---- mechanisms of faults ---- */

static int silence(struct node *n, bool on, struct err *err) {
    n->silent = on;
    int r = far_cut_apply(n->cluster->far_cut, err);
    if (r && on)
        n->silent = false;
    return r;
}

static int link_up(struct cluster *c, struct err *err) {
    return far_cut_apply(c->far_cut, err);
}

/* Their last holder has ended; its kernel tells the peers. */
static int destroy_sockets(struct node *n, struct err *err) {
    return 0;
}

const struct isolation_ops isolation_hosts = {
    .enter = enter,
    .begin = begin,
    .spawn = spawn,
    .put_setup = put_setup,
    .ready = ready,
    .kill = kill_node,
    .ended = ended,
    .forget = forget,
    .settled = settled,
    .look = look,
    .free = free_all,
    .count = count,
    .bootstrap = bootstrap,
    .silence = silence,
    .link = link_up,
    .uptimes = true,
    .destroy_sockets = destroy_sockets,
};
