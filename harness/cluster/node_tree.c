/* A node that is a tree of processes, from its root: nothing of the host is moved or covered, and
 * only what descends from here is looked at, counted and ended. */
#include "harness/cluster/node_helper.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/mount.h"
#include "base/sys/namespace.h"
#include "base/sys/process.h"
#include "base/sys/rights.h"
#include "harness/cluster/parts.h"
#include "harness/cluster/shm_watch.h"
#include "harness/host/host_cut.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* After SIGKILL only a process that hangs in the kernel takes longer. */
static const int64_t end_wait_ns = 5000000000;

/* There is one node in a process. */
static struct {
    char name[64], addr[64], events[128];
    int shm;
    bool privileged;
} self = {.shm = -1};

/* ---- what is its own ---- */

struct inodes {
    uint64_t *v;
    size_t n;
};

static void add_inode(void *arg, pid_t pid, int fd, uint64_t inode) {
    struct inodes *all = arg;
    mem_push(all->v, all->n) = inode;
}

/* A socket without a descriptor, one that waits for its end, is known by the address at either end:
 * who called has none of its own. */
static bool is_ours(void *arg, const struct socket_line *s) {
    const struct inodes *all = arg;
    for (size_t i = 0; i < all->n; i++)
        if (all->v[i] == s->inode)
            return true;
    return !s->inode && (str_eq(s->local, self.addr) || str_eq(s->remote, self.addr));
}

static struct inodes inodes_of(const pid_t *pids, size_t n) {
    struct inodes all = {0};
    for (size_t i = 0; i < n; i++)
        sockets_held(pids[i], add_inode, &all);
    return all;
}

static void put_sockets(struct json_writer *w, uint16_t port) {
    pid_t *pids;
    size_t n = process_list_descendants(getpid(), &pids);
    struct inodes all = inodes_of(pids, n);
    sockets_put(w, port, is_ours, &all);
    free(all.v);
    free(pids);
}

static void put_leftovers(struct json_writer *w) {
    pid_t *pids;
    size_t n = process_list_descendants(getpid(), &pids);
    struct inodes all = inodes_of(pids, n);
    shm_watch_read(self.shm);
    char **shm = shm_watch_left();
    leftovers_put(w, &(struct leftovers){
                         .pids = pids, .pids_n = n, .is_ours = is_ours, .arg = &all, .shm = shm});
    free(shm);
    free(all.v);
    free(pids);
}

/* ---- its life ---- */

/* In a mount namespace, which is all that such a node has of its own then. */
static int attach_disks(const struct node_disks *disks, struct err *err) {
    if (unshare(CLONE_NEWNS) != 0)
        return err_set(err, -errno, "make a mount namespace");
    int r = mount_make_private(err);
    return r ? r : node_disks_attach(disks, err);
}

/* On another host: this process keeps the host's clocks, by which it stamps. */
static int shift_uptime(const struct json *json, struct err *err) {
    int64_t uptime_ns = json_get_i64(json, "uptime", 0),
            boottime_ns = json_get_i64(json, "boottime", 0), monotonic_ns = 0;
    if (uptime_ns) {
        monotonic_ns = uptime_ns - clock_monotonic_ns();
        boottime_ns = uptime_ns - clock_boottime_ns();
    }
    return monotonic_ns || boottime_ns
               ? namespace_shift_uptime_below(monotonic_ns, boottime_ns, err)
               : 0;
}

/* The scratch directory is made the working directory, so that the socket in it can be named
 * however long its path is. */
static int setup(const struct json *json, const struct node_disks *disks, struct err *err) {
    const char *dir = json_get_string(json, "dir", "/");
    str_copy(self.name, sizeof(self.name), json_get_string(json, "name", "node"));
    str_copy(self.addr, sizeof(self.addr), json_get_string(json, "addr", ""));
    snprintf(self.events, sizeof(self.events), "%s" PROCESSES_EVENTS, self.name);
    str_copy(self.events, sizeof(self.events), json_get_string(json, "events", self.events));
    int r = disks->paths ? attach_disks(disks, err) : 0;
    r = r ? r : shift_uptime(json, err);
    if (r)
        return r;
    if (chdir(dir) != 0)
        return err_set(err, -errno, "go to %s", dir);
    r = process_adopt_orphans();
    if (r)
        return err_set(err, r, "become the one whom orphans come to");
    self.shm = shm_watch_open();
    return 0;
}

static int ready(int ret_fds[CHANNEL_FDS_MAX], size_t *ret_n, struct err *err) {
    unlink(self.events); /* of an earlier life */
    ret_fds[0] = node_listen(self.events, err);
    *ret_n = ret_fds[0] >= 0;
    return ret_fds[0] < 0 ? ret_fds[0] : 0;
}

static int notice(void) {
    return self.shm;
}

static void noticed(void) {
    shm_watch_read(self.shm);
}

/* ---- its program ---- */

/* Its processes are among all others of the host's: one kill(-1) would end the user's session, as
 * root the machine. */
static int confine_me(void *arg) {
    return self.privileged ? 0 : rights_confine_signals();
}

static void starting(struct process_spawn *s, bool privileged) {
    self.privileged = privileged;
    s->in_child = confine_me;
}

/* Whose a file is can be seen as long as somebody has it open. */
static void end(struct texts *left) {
    pid_t *pids = NULL;
    char name[32];
    shm_watch_read(self.shm);
    bool hangs = process_end_descendants(end_wait_ns) != 0;
    size_t n = hangs ? process_list_descendants(getpid(), &pids) : 0;
    for (size_t i = 0; i < n; i++)
        texts_add(left, "process %d (%s), which hangs in the kernel", (int)pids[i],
                  process_name(pids[i], name, sizeof(name)));
    free(pids);
    shm_watch_remove();
    file_close(&self.shm);
}

const struct habitat habitat_processes = {
    .name = "processes",
    .setup = setup,
    .ready = ready,
    .notice = notice,
    .noticed = noticed,
    .starting = starting,
    .put_sockets = put_sockets,
    .put_leftovers = put_leftovers,
    .heal = host_cut_mend_descendants,
    .end = end,
};
