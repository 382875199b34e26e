#include "harness/verbs/watch/pursuit.h"

#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "harness/run/presence.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BLOCK = 1 << 16, LINE_MAX_BYTES = 4 << 20 };

struct pursuit {
    struct loop *loop;
    const struct folder *run;
    struct pursuit_calls calls;
    struct loop_source *on_changes, *on_death, *soon;
    int inotify, file, harness; /* -1: none */
    int watch;                  /* of the file */
    bool control;               /* it is the control run's */
    bool ended;
    struct history history;
    struct buf held; /* read, and not yet a whole line */
};

/* ---- which history ---- */

static void close_file(struct pursuit *f) {
    if (f->file < 0)
        return;
    inotify_rm_watch(f->inotify, f->watch);
    file_close(&f->file);
    history_fini(&f->history);
    f->history = (struct history){0};
    buf_clear(&f->held);
}

static int watch_file(struct pursuit *f, struct err *err) {
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", f->file); /* it and no other */
    f->watch = inotify_add_watch(f->inotify, path, IN_MODIFY);
    return f->watch < 0 ? err_set(err, -errno, "follow the history of %s", f->run->path) : 0;
}

static int open_history(struct pursuit *f, bool control, struct err *err) {
    int fd = folder_open_file(f->run, control ? "control/history.jsonl" : "history.jsonl", err);
    if (fd < 0)
        return fd;
    f->calls.begin(f->calls.arg);
    close_file(f);
    f->file = fd;
    f->control = control;
    return watch_file(f, err);
}

/* The harness that lives; none: nothing is written any more. */
static void find_harness(struct pursuit *f) {
    ARENA_FINI struct arena a = {0};
    struct presence p;
    if (presence_read_living(f->run, &a, &p) == 0)
        f->harness = (int)syscall(SYS_pidfd_open, p.harness.pid, 0);
}

/* ---- reading ---- */

static void finish(struct pursuit *f, const char *why) {
    if (f->ended)
        return;
    f->ended = true;
    f->calls.end(f->calls.arg, why);
}

static bool take_line(struct pursuit *f, const char *line, size_t len) {
    struct err err = {0};
    if (history_take(&f->history, line, len, &err) < 0) {
        finish(f, err.msg);
        return false;
    }
    f->calls.record(f->calls.arg, f->history.records[f->history.n - 1]);
    return true;
}

static void take_lines(struct pursuit *f) {
    size_t at = 0;
    const char *end;
    while (!f->ended && f->held.len > at &&
           (end = memchr(f->held.data + at, '\n', f->held.len - at))) {
        size_t len = (size_t)(end + 1 - (f->held.data + at));
        if (!take_line(f, f->held.data + at, len))
            return;
        at += len;
    }
    buf_consume(&f->held, at);
    if (f->held.len > LINE_MAX_BYTES)
        finish(f, "a line of the history is longer than 4 MB; no record is");
}

static void read_all(struct pursuit *f) {
    static char block[BLOCK];
    ssize_t n;
    while (!f->ended && f->file >= 0 && (n = read(f->file, block, sizeof(block))) > 0) {
        buf_put(&f->held, block, (size_t)n);
        take_lines(f);
    }
}

static bool is_over(const struct pursuit *f) {
    return history_newest(&f->history, SOURCE_HARNESS, "health") != NULL;
}

/* Reads what there is; behind the control run's history comes the run's. */
static void look(struct pursuit *f) {
    struct err err = {0};
    read_all(f);
    if (!f->ended && f->control && folder_has(f->run, "history.jsonl")) {
        if (open_history(f, false, &err) < 0)
            finish(f, err.msg);
        read_all(f);
    }
    if (f->ended)
        return;
    f->calls.rest(f->calls.arg);
    if (!f->control && is_over(f))
        finish(f, NULL);
    else if (f->harness < 0)
        finish(f, f->control && is_over(f)
                      ? "the control run was the last: verdict.json says why"
                      : "its harness has ended before its history did: rankquake clean takes away "
                        "what it has left");
}

static void on_changes(void *arg, int fd, int what) {
    char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    while (read(fd, events, sizeof(events)) > 0)
        ;
    look(arg);
}

static void on_death(void *arg, int fd, int what) {
    struct pursuit *f = arg;
    f->on_death = loop_source_free(f->on_death);
    file_close(&f->harness);
    look(f);
}

static void on_soon(void *arg, int64_t now) {
    look(arg);
}

/* ---- all ---- */

static int open_any(struct pursuit *f, struct err *err) {
    bool control =
        !folder_has(f->run, "history.jsonl") && folder_has(f->run, "control/history.jsonl");
    return open_history(f, control, err);
}

static int begin(struct pursuit *f, struct err *err) {
    f->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (f->inotify < 0)
        return err_set(err, -errno, "ask the kernel what changes in %s", f->run->path);
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", f->run->fd);
    if (inotify_add_watch(f->inotify, path, IN_CREATE | IN_MOVED_TO | IN_DELETE) < 0)
        return err_set(err, -errno, "ask the kernel what changes in %s", f->run->path);
    find_harness(f);
    return open_any(f, err);
}

struct pursuit *pursuit_new(struct loop *loop, const struct folder *run,
                            const struct pursuit_calls *calls, struct err *err) {
    struct pursuit *f = mem_new(struct pursuit);
    *f = (struct pursuit){
        .loop = loop, .run = run, .calls = *calls, .inotify = -1, .file = -1, .harness = -1};
    if (begin(f, err) < 0)
        return pursuit_free(f);
    f->on_changes = loop_fd(loop, f->inotify, LOOP_READ, on_changes, f);
    if (f->harness >= 0)
        f->on_death = loop_fd(loop, f->harness, LOOP_READ, on_death, f);
    f->soon = loop_timer(loop, on_soon, f);
    loop_timer_at(f->soon, clock_monotonic_ns());
    return f;
}

struct pursuit *pursuit_free(struct pursuit *f) {
    if (!f)
        return NULL;
    loop_source_free(f->on_changes);
    loop_source_free(f->on_death);
    loop_source_free(f->soon);
    close_file(f);
    file_close(&f->inotify);
    file_close(&f->harness);
    buf_fini(&f->held);
    free(f);
    return NULL;
}
