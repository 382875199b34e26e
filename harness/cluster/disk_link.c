/* The harness's end of the connection to the process that serves the disks (disk_keeper.h). */
#include "harness/cluster/parts.h"

#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"

#include <errno.h>
#include <poll.h>

/* Milliseconds as a rule, and longer where much is to be taken back. */
static const int64_t answer_wait_ns = 10000000000, end_wait_ns = 5000000000;

bool disk_link_is_wanted(const struct cluster *c) {
    return plan_needs(c->plan) & FAULT_NEEDS_DISK;
}

static void on_end(void *arg, int fd, int what) {
    struct cluster *c = arg;
    struct err err;
    loop_fd_set(c->disks.on_end, 0);
    if (c->going_down)
        return;
    err_say(&err, -ECHILD, "the process that serves the disks of the nodes has died");
    cluster_failed(c, &err);
}

static int start(struct cluster *c, struct err *err) {
    if (c->disks.process.pid)
        return 0;
    int r = cluster_spawn("disk", 0, &c->disks.process, &c->disks.control, err);
    if (r == 0)
        c->disks.on_end = loop_fd(c->loop, c->disks.process.pidfd, LOOP_READ, on_end, c);
    return r;
}

static int ask(struct cluster *c, const struct buf *text, struct message *ret, struct err *err) {
    int64_t until = clock_monotonic_ns() + answer_wait_ns;
    int r = channel_send(c->disks.control, text, NULL, 0, err);
    while (r == 0 && (r = channel_receive(c->disks.control, ret, err)) == 0) {
        struct pollfd p = {.fd = c->disks.control, .events = POLLIN};
        int64_t left = until - clock_monotonic_ns();
        if (left <= 0 || (poll(&p, 1, (int)(left / 1000000) + 1) < 0 && errno != EINTR))
            return err_say(err, -ETIME, "the disks: no answer for 10 s");
    }
    if (r < 0)
        return err_wrap(err, "the disks: "), r;
    const char *error = json_get_string(ret->json, "error", NULL);
    if (!error)
        return 0;
    err_say(err, -EIO, "%s", error);
    message_fini(ret);
    return -EIO;
}

static void put(struct buf *text, const struct node *n, const char *op) {
    struct json_writer w = {.out = text};
    json_object(&w, NULL);
    json_put_string(&w, "op", op);
    json_put_string(&w, "node", n->plan->name);
    json_put_string(&w, "disk", n->disk);
    json_put_string(&w, "shared", n->cluster->shared);
    json_end_object(&w);
}

int disk_link_mount(struct node *n, int ret_mounts[2], struct err *err) {
    struct cluster *c = n->cluster;
    struct message m;
    BUF_FINI struct buf text = {0};
    ret_mounts[0] = ret_mounts[1] = -1;
    if (!disk_link_is_wanted(c))
        return 0;
    int r = start(c, err);
    if (r)
        return r;
    put(&text, n, "mount");
    r = ask(c, &text, &m, err);
    if (r)
        return r;
    ret_mounts[0] = message_take_fd(&m, 0);
    ret_mounts[1] = message_take_fd(&m, 1);
    message_fini(&m);
    return 0;
}

int disk_link_off(struct node *n, struct err *err) {
    struct message m;
    BUF_FINI struct buf text = {0};
    if (!n->cluster->disks.process.pid)
        return 0;
    put(&text, n, "off");
    int r = ask(n->cluster, &text, &m, err);
    if (r == 0)
        message_fini(&m);
    return r;
}

void disk_link_end(struct cluster *c) {
    c->disks.on_end = loop_source_free(c->disks.on_end);
    file_close(&c->disks.control);
    if (c->disks.process.pid)
        process_reap(&c->disks.process, end_wait_ns, NULL);
    process_close(&c->disks.process);
}
