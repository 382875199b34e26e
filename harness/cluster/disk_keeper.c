#include "harness/cluster/disk_keeper.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "faults/mechanism/disk/disk.h"
#include "harness/carrier/channel.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

/* A node that is on. */
struct kept_node {
    char *name;
    struct disk *disk;
    size_t slot, shared_slot;
};

struct disk_keeper {
    int control;
    struct disk *shared;
    struct kept_node *v;
    size_t n;
};

/* By any thread of a disk. Whoever reads it is slower than the disk: then the disk waits. */
static void tell_struck(void *arg, const struct disk_struck *s) {
    const struct disk_keeper *k = arg;
    BUF_FINI struct buf text = {0};
    struct json_writer w = {.out = &text};
    json_object(&w, NULL);
    json_put_string(&w, "op", "struck");
    json_put_string(&w, "node", s->node);
    json_put_i64(&w, "rule", s->rule);
    json_put_i64(&w, "verdict", s->verdict);
    json_put_i64(&w, "does", s->does);
    json_put_i64(&w, "pid", s->pid);
    json_put_i64(&w, "errno", s->error);
    json_put_string(&w, "path", s->path);
    json_end_object(&w);
    channel_send(k->control, &text, NULL, 0, NULL); /* nobody hears it: we end with the harness */
}

/* What could be lost lies beside the directory: the scratch folder has both. */
static int open_disk(struct disk_keeper *k, struct disk **ret, const char *dir,
                     enum disk_losing losing, struct err *err) {
    char *held = mem_printf("%s.held", dir);
    struct disk_options o = {.losing = losing, .held = held, .struck = tell_struck, .arg = k};
    int r = disk_open(ret, dir, &o, err);
    free(held);
    return r;
}

static struct kept_node *find(struct disk_keeper *k, const char *name) {
    for (size_t i = 0; i < k->n; i++)
        if (str_eq(k->v[i].name, name))
            return &k->v[i];
    return NULL;
}

/* Each life of a node has a mount of its own: no page that the kernel has kept survives it. */
static int mount_both(struct disk_keeper *k, const struct json *m, int ret_fds[2],
                      struct err *err) {
    const char *name = json_get_string(m, "node", "");
    bool losing = json_get_bool(m, "losing", false);
    struct kept_node n = {0};
    if (find(k, name))
        return err_say(err, -EBUSY, "%s has its disks already", name);
    int r = k->shared ? 0
                      : open_disk(k, &k->shared, json_get_string(m, "shared", ""),
                                  losing ? DISK_LOSES_BYTES : DISK_KEEPS, err);
    r = r ? r
          : open_disk(k, &n.disk, json_get_string(m, "disk", ""), losing ? DISK_LOSES : DISK_KEEPS,
                      err);
    r = r ? r : disk_mount(n.disk, name, &ret_fds[0], &n.slot, err);
    r = r ? r : disk_mount(k->shared, name, &ret_fds[1], &n.shared_slot, err);
    if (r)
        return r;
    n.name = mem_strdup(name);
    mem_push(k->v, k->n) = n;
    return 0;
}

static int power_off(struct disk_keeper *k, const struct json *m, struct err *err) {
    struct kept_node *n = find(k, json_get_string(m, "node", ""));
    if (!n)
        return 0;
    int r = disk_power_off(n->disk, n->slot, err);
    int s = disk_power_off(k->shared, n->shared_slot, r ? NULL : err);
    disk_close(n->disk, NULL);
    free(n->name);
    *n = k->v[--k->n];
    return r ? r : s;
}

static int rule(struct disk_keeper *k, const struct json *m, struct err *err) {
    const char *name = json_get_string(m, "node", "");
    struct kept_node *n = find(k, name);
    struct disk_rule r;
    if (!n)
        return err_say(err, -ESRCH, "%s has no disks", name);
    disk_rule_take(m, &r);
    bool own = json_get_bool(m, "own", false);
    struct disk *d = own ? n->disk : k->shared;
    size_t slot = own ? n->slot : n->shared_slot;
    if (json_get_bool(m, "on", false))
        disk_rule_add(d, slot, &r);
    else
        disk_rule_drop(d, slot, r.id);
    return 0;
}

static int let_go(struct disk_keeper *k, const struct json *m) {
    struct kept_node *n = find(k, json_get_string(m, "node", ""));
    if (n) {
        disk_let_go(n->disk, n->slot);
        disk_let_go(k->shared, n->shared_slot);
    }
    return 0;
}

static int answer(struct disk_keeper *k, struct message *m) {
    struct err err = {0};
    int fds[2] = {-1, -1};
    const char *op = json_get_string(m->json, "op", "");
    bool mounts = str_eq(op, "mount");
    int r = mounts                 ? mount_both(k, m->json, fds, &err)
            : str_eq(op, "rule")   ? rule(k, m->json, &err)
            : str_eq(op, "let-go") ? let_go(k, m->json)
                                   : power_off(k, m->json, &err);
    BUF_FINI struct buf text = {0};
    struct json_writer w = {.out = &text};
    json_object(&w, NULL);
    json_put_string(&w, "error", r ? err.msg : NULL);
    json_end_object(&w);
    r = channel_send(k->control, &text, fds, r == 0 && mounts ? 2 : 0, NULL);
    file_close(&fds[0]);
    file_close(&fds[1]);
    return r;
}

int disk_keeper_run(int control, struct err *err) {
    struct disk_keeper k = {.control = control};
    struct message m;
    int r = 0;
    /* Whoever is no root makes mounts in a namespace of his own alone. */
    if (unshare(CLONE_NEWNS) != 0)
        return err_set(err, -errno, "make a mount namespace");
    signal(SIGPIPE, SIG_IGN);
    umask(0); /* the kernel has taken the callers' already */
    while (r >= 0) {
        struct pollfd p = {.fd = control, .events = POLLIN};
        if (poll(&p, 1, -1) < 0 && errno == EINTR)
            continue;
        r = channel_receive(control, &m, NULL);
        if (r > 0) {
            r = answer(&k, &m);
            message_fini(&m);
        }
    }
    return 0;
}
