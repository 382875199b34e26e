/* Nodes as trees of processes of this host, each on an address of the loopback, for hosts that
 * refuse namespaces. The node helper adopts every orphan below it, so that whatever the node's
 * program starts stays its descendant, and ends them all when its channel closes: also when the
 * harness was killed. No right is needed that an ordinary user has not. */
#include "harness/cluster/parts.h"

#include "base/mem.h"
#include "base/sys/unix_address.h"
#include "harness/cluster/cut.h"
#include "harness/cluster/mark.h"
#include "harness/cluster/strays.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* After SIGKILL only a process that hangs in the kernel takes longer. */
static const int64_t END_WAIT_NS = 1000000000;

/* What survives a helper that was killed comes to us: it is found wherever it has gone and whatever
 * environment it has. */
static int enter(struct cluster *c, struct err *err) {
    int r = process_adopt_orphans();
    return r ? err_set(err, r, "become the one whom orphans come to") : 0;
}

static int begin(struct cluster *c, struct err *err) {
    c->cut = cut_new(c);
    return 0;
}

/* ---- a node ---- */

/* The name of a socket has little room; where the run directory's is too long, the socket has a name
 * of its own among the abstract ones, in no directory. By way of the helper's /proc a job that has
 * fewer rights than the helper would not find it. */
static void name_paths(struct node *n) {
    char drawn[UNIX_ADDRESS_MAX];
    const char *scratch = n->cluster->scratch;
    free(n->events);
    free(n->tmp);
    n->tmp = mem_printf("%s/%s" PROCESSES_TMP, scratch, n->plan->name);
    n->events = mem_printf("%s/%s" PROCESSES_EVENTS, scratch, n->plan->name);
    if (unix_address_fits(n->events))
        return;
    free(n->events);
    unix_address_draw(n->plan->name, drawn);
    n->events = mem_strdup(drawn);
}

static int spawn(struct node *n, struct err *err) {
    int r = cluster_spawn_helper(0, &n->init, &n->ends, err);
    if (r)
        return r;
    name_paths(n);
    const char *name = n->tmp + strlen(n->cluster->dir) + 1;
    r = folder_remove(n->cluster->run, name, err);
    return r ? r : folder_make(n->cluster->run, name, 0777, err);
}

static void put_setup(const struct node *n, struct json_writer *w) {
    json_put_string(w, "isolation", "processes");
    json_put_string(w, "dir", n->cluster->scratch);
    json_put_string(w, "addr", n->plan->addr);
    if (unix_address_is_abstract(n->events))
        json_put_string(w, "events", n->events);
}

static int ready(struct node *n, struct message *m, struct err *err) {
    node_up(n);
    return 0;
}

/* The helper sees the end of its channel; what it still has to say can be read. */
static void kill_node(struct node *n) {
    carrier_shut(n->control);
}

static void forget(struct node *n) {
    if (n->cluster->cut)
        cut_forget(n->cluster->cut, n);
}

static void ended(struct node *n) {
}

/* ---- the cluster ---- */

static bool settled(struct cluster *c) {
    return true;
}

static void end_one(struct texts *left, const struct process *p) {
    texts_add(left, "process %d, of a node whose helper was killed", (int)p->pid);
    process_signal(p, SIGKILL);
}

/* The program of a node has a session of its own, and so has all below it; what the harness starts
 * for itself has ours. Each is held before the first is ended: an agent's end is the others'. */
static void end_survivors(struct texts *left) {
    pid_t *pids, own = getsid(0);
    size_t n = process_list_descendants(getpid(), &pids), held = 0;
    struct process *all = mem_array(struct process, n);
    for (size_t i = 0; i < n; i++)
        if (getsid(pids[i]) != own && process_open(pids[i], &all[held], NULL) == 0)
            held++;
    for (size_t i = 0; i < held; i++)
        end_one(left, &all[i]);
    for (size_t i = 0; i < held; i++)
        process_wait_end(&all[i], END_WAIT_NS);
    for (size_t i = 0; i < held; i++) /* all of them are our children by now */
        process_reap(&all[i], 0, NULL);
    strays_free(all, held);
    free(pids);
}

/* Those that did not come to us are known by their environment. */
static void look(struct cluster *c, struct texts *left) {
    struct process *all;
    end_survivors(left);
    size_t n = strays_of(mark_own(), &all);
    for (size_t i = 0; i < n; i++)
        end_one(left, &all[i]);
    strays_free(all, n);
}

static void free_all(struct cluster *c) {
    c->cut = cut_free(c->cut);
}

static void count(struct cluster *c) {
    cut_count(c->cut);
}

/* ---- mechanisms of faults ---- */

static int silence(struct node *n, bool on, struct err *err) {
    n->silent = on;
    int r = cut_apply(n->cluster, err);
    if (r && on) { /* it is not in force, and nothing of it may be */
        n->silent = false;
        cut_apply(n->cluster, NULL);
    }
    return r;
}

/* Closed by their last holder, the node's connections send a FIN to peers that do not hear it. */
static int destroy_sockets(struct node *n, struct err *err) {
    cut_let_die(n->cluster->cut, n);
    return 0;
}

const struct isolation_ops isolation_processes = {
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
    .bootstrap = cut_bootstrap,
    .silence = silence,
    .link = cut_apply,
    .destroy_sockets = destroy_sockets,
};
