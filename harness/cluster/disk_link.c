/* The harness's end of the connection to the process that serves the disks (disk_keeper.h). */
#include "harness/cluster/parts.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

/* Milliseconds as a rule, and longer where much is to be taken back. */
static const int64_t answer_wait_ns = 10000000000, end_wait_ns = 5000000000;

bool disk_link_is_wanted(const struct cluster *c) {
    return plan_has_disks(c->plan);
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

static bool is_told(const struct message *m) {
    return str_eq(json_get_string(m->json, "op", ""), "struck");
}

static void on_message(void *arg, int fd, int what) {
    struct cluster *c = arg;
    struct message m;
    int r;
    while ((r = channel_receive(fd, &m, NULL)) > 0) {
        if (is_told(&m))
            node_disk_struck(c, m.json);
        message_fini(&m);
    }
    if (r < 0)
        loop_fd_set(c->disks.on_message, 0); /* on_end says the rest */
}

void disk_link_hear(struct cluster *c) {
    for (size_t i = 0; i < c->disks.queue_n; i++) {
        node_disk_struck(c, c->disks.queue[i].json);
        message_fini(&c->disks.queue[i]);
    }
    c->disks.queue_n = 0;
}

static void on_queue(void *arg, int64_t now_ns) {
    disk_link_hear(arg);
}

static int start(struct cluster *c, struct err *err) {
    if (c->disks.process.pid)
        return 0;
    int r = cluster_spawn("disk", 0, &c->disks.process, &c->disks.control, err);
    if (r)
        return r;
    c->disks.on_end = loop_fd(c->loop, c->disks.process.pidfd, LOOP_READ, on_end, c);
    c->disks.on_message = loop_fd(c->loop, c->disks.control, LOOP_READ, on_message, c);
    c->disks.on_queue = loop_timer(c->loop, on_queue, c);
    return 0;
}

/* What it tells meanwhile is dealt with when whoever asks is done. */
static int receive(struct cluster *c, struct message *ret, struct err *err) {
    int r;
    while ((r = channel_receive(c->disks.control, ret, err)) > 0 && is_told(ret)) {
        mem_push(c->disks.queue, c->disks.queue_n) = *ret;
        loop_timer_at(c->disks.on_queue, clock_monotonic_ns());
    }
    return r;
}

static int ask(struct cluster *c, const struct buf *text, struct message *ret, struct err *err) {
    int64_t until = clock_monotonic_ns() + answer_wait_ns;
    int r = channel_send(c->disks.control, text, NULL, 0, err);
    while (r == 0 && (r = receive(c, ret, err)) == 0) {
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
    json_put_bool(&w, "losing", n->cluster->plan->scenario->cluster.disk == DISK_SPEC_LOSING);
    json_end_object(&w);
}

static int tell(struct node *n, const struct buf *text, struct err *err) {
    struct message m;
    int r = ask(n->cluster, text, &m, err);
    if (r == 0)
        message_fini(&m);
    return r;
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
    BUF_FINI struct buf text = {0};
    if (!n->cluster->disks.process.pid)
        return 0;
    put(&text, n, "off");
    return tell(n, &text, err);
}

void disk_link_let_go(struct node *n) {
    BUF_FINI struct buf text = {0};
    if (!n->cluster->disks.process.pid)
        return;
    put(&text, n, "let-go");
    tell(n, &text, NULL);
}

int disk_link_rule(struct node *n, const struct disk_rule *rule, enum node_place place, bool on,
                   struct err *err) {
    BUF_FINI struct buf text = {0};
    struct json_writer w = {.out = &text};
    json_object(&w, NULL);
    json_put_string(&w, "op", "rule");
    json_put_string(&w, "node", n->plan->name);
    json_put_bool(&w, "own", place == NODE_DISK);
    json_put_bool(&w, "on", on);
    disk_rule_put(rule, &w);
    json_end_object(&w);
    return tell(n, &text, err);
}

void disk_link_end(struct cluster *c) {
    struct disk_link *l = &c->disks;
    l->on_end = loop_source_free(l->on_end);
    l->on_message = loop_source_free(l->on_message);
    l->on_queue = loop_source_free(l->on_queue);
    for (size_t i = 0; i < l->queue_n; i++)
        message_fini(&l->queue[i]);
    free(l->queue);
    l->queue = NULL;
    l->queue_n = 0;
    file_close(&l->control);
    if (l->process.pid)
        process_reap(&l->process, end_wait_ns, NULL);
    process_close(&l->process);
}
