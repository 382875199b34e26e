/* Nodes as sets of namespaces, and the wire between their cards. */
#include "harness/cluster/parts.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/namespace.h"
#include "base/sys/netlink.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static int enter(struct cluster *c, struct err *err) {
    c->as_root = namespace_needs_no_user();
    return namespace_enter(err);
}

/* ---- a node ---- */

static int spawn(struct node *n, struct err *err) {
    n->events = n->events ? n->events : mem_strdup(CLUSTER_EVENTS_PATH);
    n->tmp = n->tmp ? n->tmp : mem_strdup("/tmp");
    return cluster_spawn_helper(CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWUTS |
                                    CLONE_NEWIPC,
                                &n->init, &n->ends, err);
}

static void put_root(struct json_writer *w, const struct node *n) {
    char *name_servers = realpath("/etc/resolv.conf", NULL);
    json_object(w, "root");
    json_put_string(w, "dir", n->plan->rootfs);
    json_put_strings(w, "show", texts_list(&n->cluster->show));
    json_put_string(w, "programs", n->cluster->bundle.programs);
    json_put_strings(w, "libraries", texts_list(&n->cluster->bundle.libraries));
    json_put_string(w, "name_servers", name_servers ? name_servers : "");
    json_put_string(w, "home", getenv("HOME") ? getenv("HOME") : "");
    json_end_object(w);
    free(name_servers);
}

/* A folder of the caller's environment that lies where a node has its own. */
static void put_dirs(struct json_writer *w) {
    const char *temporary = getenv("TMPDIR");
    json_put_strings(
        w, "dirs",
        (const char *[]){temporary && str_starts(temporary, "/tmp/") ? temporary : NULL, NULL});
}

static void put_seal(struct json_writer *w, const struct cluster *c) {
    json_object(w, "seal");
    json_put_bool(w, "root", c->as_root);
    json_put_strings(w, "writable", texts_list(&c->writable));
    json_end_object(w);
}

/* By what the node knows names: files of the scratch directory (write_hosts). */
static void put_names(struct json_writer *w, const struct node *n) {
    bool asks = plan_needs(n->cluster->plan) & FAULT_NEEDS_NAMES;
    char *hosts =
        mem_printf("%s/hosts%s%s", n->cluster->scratch, asks ? "." : "", asks ? n->plan->name : "");
    char *resolv = mem_printf("%s/resolv.conf", n->cluster->scratch);
    char *nsswitch = mem_printf("%s/nsswitch.conf", n->cluster->scratch);
    json_put_string(w, "hosts", hosts);
    json_put_string(w, "resolv", asks ? resolv : NULL);
    json_put_string(w, "nsswitch", asks ? nsswitch : NULL);
    free(hosts);
    free(resolv);
    free(nsswitch);
}

static void put_setup(const struct node *n, struct json_writer *w) {
    json_put_string(w, "isolation", "namespaces");
    if (!n->cluster->plan->scenario->cluster.privileged)
        put_seal(w, n->cluster);
    put_names(w, n);
    json_put_strings(w, "keep", n->plan->rootfs ? NULL : texts_list(&n->cluster->keep));
    if (n->plan->rootfs)
        put_root(w, n);
    put_dirs(w);
}

static int ready(struct node *n, struct message *m, struct err *err) {
    FILE_CLOSE int netns = message_take_fd(m, 2);
    n->diag = message_take_fd(m, 1);
    n->state = NODE_WIRING;
    return wire_link_add_port(n->cluster, n, netns, err);
}

void node_wired(struct node *n, const char *error) {
    struct err err;
    if (error) {
        err_say(&err, -EIO, "the wire: %s", error);
        node_failed(n, &err);
        return;
    }
    n->wired = true;
    if (n->state == NODE_WIRING && node_say_net(n, &err) != 0)
        node_failed(n, &err);
}

/* All that lives in a pid namespace dies with its first process. */
static void kill_node(struct node *n) {
    process_signal(&n->init, SIGKILL);
}

static void forget(struct node *n) {
    if (n->diag >= 0)
        netlink_destroy_sockets(n->diag, NULL);
    file_close(&n->diag);
}

static void ended(struct node *n) {
    if (n->silent)
        forget(n);
}

/* ---- the cluster ---- */

/* The network namespaces of the nodes, as the wire tells, then the wire itself. */
static bool settled(struct cluster *c) {
    for (size_t i = 0; i < c->nodes_n; i++)
        if (c->nodes[i]->wired)
            return false;
    wire_link_end(c);
    return !c->wire.process.pid;
}

static void look(struct cluster *c, struct texts *left) {
    for (size_t i = 0; i < c->nodes_n; i++)
        if (c->nodes[i]->wired)
            texts_add(left, "the network namespace of %s and its card", c->nodes[i]->plan->name);
    if (c->wire.process.pid)
        texts_add(left, "process %d, the wire", (int)c->wire.process.pid);
}

static void free_all(struct cluster *c) {
    wire_link_fini(&c->wire);
}

/* ---- mechanisms of faults ---- */

static int silence(struct node *n, bool on, struct err *err) {
    int r = wire_link_silence(n->cluster, n, on, err);
    if (r == 0)
        n->silent = on;
    return r;
}

static int destroy_sockets(struct node *n, struct err *err) {
    int r = n->diag < 0 ? 0 : netlink_destroy_sockets(n->diag, err);
    return r < 0 ? r : 0;
}

const struct isolation_ops isolation_namespaces = {
    .enter = enter,
    .begin = wire_link_start,
    .spawn = spawn,
    .put_setup = put_setup,
    .ready = ready,
    .kill = kill_node,
    .ended = ended,
    .forget = forget,
    .settled = settled,
    .look = look,
    .free = free_all,
    .count = wire_link_count,
    .bootstrap = wire_link_bootstrap,
    .silence = silence,
    .link = wire_link_partitions,
    .impairs = true,
    .uptimes = true,
    .destroy_sockets = destroy_sockets,
    .forget_connections = connections_forget,
};
