#include "harness/run/stores.h"

#include "base/str.h"
#include "base/sys/clock.h"
#include "harness/launch/launcher.h"
#include "harness/observe/lines.h"
#include "harness/run/nodes.h"

#include <errno.h>
#include <string.h>

/* Agents are started when every store answers. It says so in its log: one that runs may yet find
 * that its port is taken. */
static const int64_t READY_WAIT_NS = 60000000000;

enum { LINE_MAX_BYTES = 4096, LINE_SHOWN = 199 };

struct stores_store {
    const struct node *node;
    struct lines_file *log;
    bool ready;
};

struct stores {
    const char *line; /* of a store that answers */
    struct lines *lines;
    struct stores_store *v;
    size_t n;
};

bool stores_ready(const struct engine *e) {
    const struct stores *s = own(e, stores);
    for (size_t i = 0; i < s->n; i++)
        if (!s->v[i].ready)
            return false;
    return true;
}

static void on_line(void *arg, void *who, const char *line) {
    struct stores_store *s = who;
    if (s->ready || !strstr(line, own(arg, stores)->line))
        return;
    s->ready = true;
    lines_close(s->log);
    nodes_look_ready(arg);
}

static void on_deadline(void *arg, int64_t now) {
    struct engine *e = arg;
    struct err err;
    if (stores_ready(e))
        return;
    err_say(&err, -ETIMEDOUT, "the store does not answer %lld s after its start; see %s/logs",
            (long long)(READY_WAIT_NS / 1000000000), e->spec->folder->path);
    engine_fail(e, &err);
}

static const char *log_of(struct engine *e, const struct stores_store *s) {
    return arena_printf(&e->arena, "logs/%s/store.log", node_plan(s->node)->name);
}

static void started(struct engine *e, struct stores_store *s) {
    struct stores *all = own(e, stores);
    if (!s->log)
        s->log = lines_follow(all->lines, folder_open_file(e->spec->folder, log_of(e, s), NULL), s,
                              NULL);
    nodes_look_ready(e);
}

/* With the last line that was written. */
static void ended(struct engine *e, const struct stores_store *s) {
    BUF_FINI struct buf text = {0};
    struct err err;
    if (e->phase != ENGINE_STARTING)
        return;
    if (folder_read_last(e->spec->folder, log_of(e, s), 1, LINE_MAX_BYTES, &text, NULL) != 0)
        buf_puts(&text, "it said nothing");
    size_t len = strcspn(buf_str(&text), "\n");
    err_say(&err, -ENOEXEC, "the store on %s ended before the job was started: %.*s",
            node_plan(s->node)->name, len < LINE_SHOWN ? (int)len : LINE_SHOWN, buf_str(&text));
    engine_fail(e, &err);
}

static void record(struct engine *e, const struct record *r) {
    const struct stores *s = own(e, stores);
    for (size_t i = 0; i < s->n; i++) {
        if (!str_eq(node_plan(s->v[i].node)->name, r->node))
            continue;
        if (record_is(r, "store-start"))
            started(e, &s->v[i]);
        else if (record_is(r, "store-exit"))
            ended(e, &s->v[i]);
    }
}

static int open_stores(struct engine *e, struct err *err) {
    struct stores *s = own(e, stores);
    s->line = store_ready_line(e->plan);
    s->v = arena_array(&e->arena, struct stores_store, e->plan->nodes_n);
    cluster_each(n, e->cluster) {
        if (node_plan(n)->is_store)
            s->v[s->n++].node = n;
    }
    if (!s->n)
        return 0;
    loop_timer_at(loop_timer(e->loop, on_deadline, e), clock_monotonic_ns() + READY_WAIT_NS);
    s->lines = lines_new(e->loop, on_line, e, err);
    return s->lines ? 0 : err->code;
}

static void close_stores(struct engine *e) {
    lines_free(own(e, stores)->lines);
}

const struct run_part run_part_stores = {
    .size = sizeof(struct stores),
    .open = open_stores,
    .record = record,
    .close = close_stores,
};
