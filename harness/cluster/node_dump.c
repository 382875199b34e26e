#include "harness/cluster/node_dump.h"

#include "base/base64.h"
#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/namespace.h"
#include "base/sys/process.h"
#include "base/sys/signals.h"
#include "harness/carrier/frames.h"
#include "harness/carrier/process_dump.h"
#include "harness/cluster/sighting.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

struct node_dump {
    struct loop *loop;
    struct carrier *to;
    struct process child;
    int from; /* frames of the child's; -1: it is over */
    struct frame_stream frames;
    struct loop_source *on_frames, *on_late;
};

/* ---- the child ---- */

static void put_process(int to, pid_t pid, const char *name) {
    const struct sighting now = {.t_ns = clock_monotonic_ns()};
    BUF_FINI struct buf text = {0}, bytes = {0}, message = {0}, frame = {0};
    process_dump(pid, &text);
    base64_put(&bytes, buf_str(&text), text.len);
    struct json_writer w = sighting_say(&now, &message, "dumped");
    json_put_i64(&w, "pid", pid);
    json_put_string(&w, "name", name);
    json_put_string(&w, "bytes", buf_str(&bytes));
    json_end_object(&w);
    frame_put(&frame, message.data, message.len);
    file_write_all(to, frame.data, frame.len, NULL);
}

static void look_at_all(int to, pid_t helper) {
    pid_t *pids;
    size_t n = process_list_descendants(helper, &pids);
    char name[64];
    put_process(to, helper, "node");
    for (size_t i = 0; i < n; i++) {
        if (pids[i] == getpid())
            continue;
        process_name(pids[i], name, sizeof(name));
        put_process(to, pids[i], name);
    }
    _exit(0);
}

static int spawn(struct node_dump *d, struct err *err) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return err_set(err, -errno, "make a pipe");
    pid_t helper = getpid(), pid = fork();
    if (pid == 0) {
        namespace_die_with_parent();
        signal_reset();
        look_at_all(ends[1], helper);
    }
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return err_set(err, -errno, "fork");
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    d->from = ends[0];
    if (process_open(pid, &d->child, NULL) != 0)
        d->child = (struct process){pid, -1};
    return 0;
}

/* ---- what it has found ---- */

static void finish(struct node_dump *d, const char *error) {
    const struct sighting now = sighting_now(d->loop);
    BUF_FINI struct buf text = {0};
    struct json_writer w = sighting_say(&now, &text, "dumped");
    json_put_bool(&w, "done", true);
    json_put_string(&w, "error", error);
    json_end_object(&w);
    carrier_send(d->to, &text, NULL, 0, NULL);
    d->on_frames = loop_source_free(d->on_frames);
    loop_timer_off(d->on_late);
    file_close(&d->from);
}

static void on_frames(void *arg, int fd, int what) {
    struct node_dump *d = arg;
    char bytes[1 << 16];
    const char *text;
    size_t len;
    ssize_t n = read(fd, bytes, sizeof(bytes));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        finish(d, NULL);
        return;
    }
    frames_hear(&d->frames, bytes, (size_t)n);
    while (frames_take(&d->frames, &text, &len, NULL) == 1) {
        BUF_FINI struct buf message = {0};
        buf_put(&message, text, len);
        carrier_send(d->to, &message, NULL, 0, NULL);
    }
}

static void on_late(void *arg, int64_t now_ns) {
    struct node_dump *d = arg;
    process_signal(&d->child, SIGKILL);
    finish(d, "not all of it could be looked at in time");
}

/* ---- its life ---- */

struct node_dump *node_dump_begin(struct loop *l, struct carrier *to, int64_t budget_ns,
                                  struct err *err) {
    struct node_dump *d = mem_new(struct node_dump);
    *d = (struct node_dump){.loop = l, .to = to, .child = PROCESS_NONE, .from = -1};
    if (spawn(d, err) != 0)
        return node_dump_free(d);
    d->on_frames = loop_fd(l, d->from, LOOP_READ, on_frames, d);
    d->on_late = loop_timer(l, on_late, d);
    loop_timer_at(d->on_late, clock_monotonic_ns() + budget_ns);
    return d;
}

bool node_dump_is_over(const struct node_dump *d) {
    return d->from < 0;
}

struct node_dump *node_dump_free(struct node_dump *d) {
    if (!d)
        return NULL;
    loop_source_free(d->on_frames);
    loop_source_free(d->on_late);
    if (d->from >= 0)
        process_signal(&d->child, SIGKILL);
    process_close(&d->child);
    file_close(&d->from);
    frames_fini(&d->frames);
    free(d);
    return NULL;
}
