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
    bool ready;       /* all of them */
    int inotify;
    struct loop_source *on_log, *deadline;
};

static const char *log_of(struct stores_watch *s, const struct node *n) {
    return arena_printf(&s->engine->arena, "logs/%s/store.log", node_plan(n)->name);
}

static bool answers(struct stores_watch *s, const struct node *n) {
    struct buf text = {0};
    int r = node_program_pid(n)
                ? folder_read(s->engine->spec->folder, log_of(s, n), LOG_MAX, &text, NULL)
                : -ESRCH;
    bool says_so = r == 0 && strstr(buf_str(&text), s->line);
    buf_fini(&text);
    return says_so;
}

bool stores_ready(struct stores_watch *s) {
    struct node **nodes;
    size_t n = cluster_nodes(s->engine->cluster, &nodes);
    for (size_t i = 0; i < n && !s->ready; i++)
        if (node_plan(nodes[i])->is_store && !answers(s, nodes[i]))
            return false;
    loop_timer_off(s->deadline);
    return s->ready = true;
}

static void on_log(void *arg, int fd, int what) {
    struct stores_watch *s = arg;
    char events[4096];
    (void)what;
    while (read(fd, events, sizeof(events)) > 0)
        ;
    if (stores_ready(s)) {
        s->on_log = loop_source_free(s->on_log);
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
    char path[64];
    FILE_CLOSE int log = folder_open_file(s->engine->spec->folder, log_of(s, n), NULL);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", log);
    if (!s->ready)
        inotify_add_watch(s->inotify, path, IN_MODIFY);
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
    s->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (s->inotify < 0) {
        err_set(err, -errno, "watch the log of the store (inotify)");
        return NULL;
    }
    s->on_log = loop_fd(e->loop, s->inotify, LOOP_READ, on_log, s);
    s->deadline = loop_timer(e->loop, on_deadline, s);
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
