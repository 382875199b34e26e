/* What workers have printed into files of their launcher, and their error files: looked at when the
 * worker has ended, and again when the job has. */
#include "harness/run/engine.h"

#include "base/str.h"
#include "harness/carrier/host_process.h"
#include "harness/observe/worker_files.h"

/* More would cost the harness descriptors that it needs. */
enum { KEPT_MAX = 64 };

struct kept_worker {
    const char *node;
    int64_t pid;
    bool ended;
    struct worker_file files[WORKER_FILES_N];
};

struct kept {
    struct kept_worker v[KEPT_MAX];
    size_t n;
};

static void look(struct engine *e, struct kept_worker *k, const char *when) {
    for (int i = 0; i < WORKER_FILES_N; i++) {
        struct worker_file_look seen;
        bool first = k->files[i].bytes < 0;
        if (first == str_eq(when, "end") || !worker_file_look(&k->files[i], &seen))
            continue;
        struct json_writer *w = engine_record(e, SOURCE_DISK, "worker-file");
        json_put_string(w, "node", k->node);
        json_put_i64(w, "pid", k->pid);
        json_put_string(w, "what", k->files[i].what);
        json_put_string(w, "when", when);
        json_put_string(w, "path", k->files[i].path);
        json_put_i64(w, "bytes", seen.bytes);
        json_put_string(w, "mark", seen.mark);
        json_put_bool(w, "linked", seen.linked);
        engine_recorded(e);
    }
}

static void hold(struct engine *e, const struct record *r) {
    struct kept *k = own(e, kept);
    if (k->n == KEPT_MAX || host_process_is((pid_t)r->pid)) /* its files are on another host */
        return;
    struct kept_worker *w = &k->v[k->n];
    *w = (struct kept_worker){.node = arena_strdup(&e->arena, r->node), .pid = r->pid};
    worker_files_open(w->files, (pid_t)r->pid);
    k->n += worker_files_any(w->files);
}

/* The newest of that pid. */
static struct kept_worker *find(struct kept *k, const struct record *r) {
    for (size_t i = k->n; i-- > 0;)
        if (k->v[i].pid == r->pid && str_eq(k->v[i].node, r->node))
            return &k->v[i];
    return NULL;
}

static void record(struct engine *e, const struct record *r) {
    if (r->source != SOURCE_KERNEL)
        return;
    if (record_is(r, "given"))
        hold(e, r);
    struct kept_worker *w = record_is(r, "worker-exit") ? find(own(e, kept), r) : NULL;
    if (w && !w->ended) {
        w->ended = true;
        look(e, w, "exit");
    }
}

static void take_down(struct engine *e) {
    struct kept *k = own(e, kept);
    for (size_t i = 0; i < k->n; i++)
        if (k->v[i].ended)
            look(e, &k->v[i], "end");
}

static void close_kept(struct engine *e) {
    struct kept *k = own(e, kept);
    for (size_t i = 0; i < k->n; i++)
        worker_files_close(k->v[i].files);
    k->n = 0;
}

const struct run_part run_part_kept = {
    .size = sizeof(struct kept), .record = record, .take_down = take_down, .close = close_kept};
