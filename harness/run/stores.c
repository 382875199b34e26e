#include "harness/run/engine.h"

#include "agent/base/str.h"
#include "agent/sys/clock.h"
#include "agent/sys/file.h"
#include "harness/launch/launcher.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

/* Agents are started when every store answers. It says so in its log, which is looked at whenever
 * it grows: one that runs may yet find that its port is taken. */
static const int64_t READY_WAIT_NS = 60000000000;

enum { LOG_MAX = 16 << 20, LINE_MAX_BYTES = 4096 };

struct stores_watch {
    struct engine *engine;
    const char *line; /* of a store that is ready */
    int inotify;
    struct loop_source *on_log, *deadline;
    size_t awaited;
    const struct node **ready;
    size_t ready_n;
};

static void set_ready(struct stores_watch *s, const struct node *n) {
    for (size_t i = 0; i < s->ready_n; i++)
        if (s->ready[i] == n)
            return;
    s->ready[s->ready_n++] = n;
    if (s->ready_n == s->awaited)
        loop_timer_off(s->deadline);
}

bool stores_ready(const struct stores_watch *s) {
    return s->ready_n == s->awaited;
}

static const char *log_of(struct stores_watch *s, const struct node *n) {
    return arena_printf(&s->engine->arena, "logs/%s/store.log", node_plan(n)->name);
}

static void look(struct stores_watch *s, const struct node *n) {
    struct buf text = {0};
    if (folder_read(s->engine->spec->folder, log_of(s, n), LOG_MAX, &text, NULL) == 0 &&
        strstr(buf_str(&text), s->line))
        set_ready(s, n);
    buf_fini(&text);
}

static void look_at_all(struct stores_watch *s) {
    struct node **nodes;
    size_t n = cluster_nodes(s->engine->cluster, &nodes);
    for (size_t i = 0; i < n; i++)
        if (node_plan(nodes[i])->is_store && node_program_pid(nodes[i]))
            look(s, nodes[i]);
}

static void on_log(void *arg, int fd, int what) {
    struct stores_watch *s = arg;
    char events[4096];
    (void)what;
    while (read(fd, events, sizeof(events)) > 0)
        ;
    look_at_all(s);
    if (stores_ready(s)) {
        loop_source_free(s->on_log);
        s->on_log = NULL;
        engine_start_job(s->engine);
    }
}

static void on_deadline(void *arg, int64_t now) {
    struct stores_watch *s = arg;
    struct err err;
    (void)now;
    err_say(&err, -ETIMEDOUT, "the store does not answer %lld s after its start; see %s/logs",
            (long long)(READY_WAIT_NS / 1000000000), s->engine->spec->folder->path);
    engine_fail(s->engine, &err);
}

/* The last line that was written, for a sentence. */
static void last_line(struct stores_watch *s, const struct node *n, char ret[200]) {
    struct buf text = {0};
    if (folder_read_last(s->engine->spec->folder, log_of(s, n), 1, LINE_MAX_BYTES, &text, NULL) !=
        0)
        buf_puts(&text, "it said nothing");
    snprintf(ret, 200, "%.*s", (int)strcspn(buf_str(&text), "\n"), buf_str(&text));
    buf_fini(&text);
}

void stores_started(struct stores_watch *s, const struct node *n) {
    if (!s->on_log || stores_ready(s))
        return;
    char path[64];
    FILE_CLOSE int log = folder_open_file(s->engine->spec->folder, log_of(s, n), NULL);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", log);
    inotify_add_watch(s->inotify, path, IN_MODIFY);
    look_at_all(s);
}

void stores_ended(struct stores_watch *s, const struct node *n) {
    struct err err;
    char line[200];
    if (s->engine->phase != ENGINE_STARTING)
        return;
    last_line(s, n, line);
    err_say(&err, -ENOEXEC, "the store on %s ended before the job was started: %s",
            node_plan(n)->name, line);
    engine_fail(s->engine, &err);
}

struct stores_watch *stores_new(struct engine *e, struct err *err) {
    struct stores_watch *s = arena_new(&e->arena, struct stores_watch);
    s->engine = e;
    s->line = store_ready_line(e->plan);
    for (size_t i = 0; i < e->plan->nodes_n; i++)
        s->awaited += e->plan->nodes[i].is_store;
    s->ready = arena_array(&e->arena, const struct node *, s->awaited + 1);
    s->deadline = loop_timer(e->loop, on_deadline, s);
    s->inotify = -1;
    if (!s->awaited)
        return s;
    s->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (s->inotify < 0) {
        err_set(err, -errno, "watch the log of the store (inotify)");
        return NULL;
    }
    s->on_log = loop_fd(e->loop, s->inotify, LOOP_READ, on_log, s);
    loop_timer_at(s->deadline, clock_monotonic_ns() + READY_WAIT_NS);
    return s;
}

struct stores_watch *stores_free(struct stores_watch *s) {
    if (s) {
        loop_source_free(s->on_log);
        loop_source_free(s->deadline);
        file_close(&s->inotify);
    }
    return NULL;
}
