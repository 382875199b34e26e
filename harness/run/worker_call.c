/* System calls of workers, about files of the job or any: which entries wait for them. */
#include "harness/run/entry.h"

#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/process.h"
#include "harness/carrier/host_process.h"
#include "harness/run/programs.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const enum call_kind file_kinds[] = {[FILE_OP_OPEN] = CALL_OPEN,
                                            [FILE_OP_WRITE] = CALL_WRITE,
                                            [FILE_OP_RENAME] = CALL_RENAME,
                                            [FILE_OP_CLOSE] = CALL_CLOSE};

/* ---- whose it is ---- */

/* A worker may be a shell, and who saves a child of its script's. */
static const struct worker *worker_above(struct engine *e, pid_t pid) {
    enum { DEPTH_MAX = 32 };
    struct process_look look = {.parent = pid};
    for (int i = 0; i < DEPTH_MAX && pid > 1; i++) {
        const struct worker *w = rounds_worker(e->rec.rounds, pid);
        if (w)
            return w;
        if (!host_process_is(pid) && process_look(pid, &look) != 0)
            return NULL;
        pid = host_process_is(pid) ? host_process_parent(pid) : look.parent;
    }
    return NULL;
}

static bool waits_for_call(const struct run_entry *a) {
    return trigger_is_call(&a->entry->when) &&
           ((a->state == ENTRY_LOOKING && !a->call_met) || entry_will_look_again(a));
}

static bool is_waited_for(const struct timeline *t, const struct watched_call *c) {
    for (size_t i = 0; i < t->n; i++) {
        const struct trigger *w = &t->entries[i].entry->when;
        if (w->syscall && w->syscall_number == c->nr && waits_for_call(&t->entries[i]))
            return true;
    }
    return false;
}

/* The name alone of a pattern for paths: of what lies deeper, any. */
static const char *name_like(const char *glob) {
    const char *name = str_base(glob);
    return str_eq(name, "**") ? "*" : name;
}

void timeline_want_calls(struct timeline *t) {
    ARENA_FINI struct arena a = {0};
    struct wanted_call *v = arena_array(&a, struct wanted_call, t->n + 1);
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct trigger *w = &t->entries[i].entry->when;
        if (waits_for_call(&t->entries[i]))
            v[n++] = w->file ? (struct wanted_call){-1, file_kinds[w->op], name_like(w->file)}
                             : (struct wanted_call){w->syscall_number, 0, NULL};
    }
    cluster_want_calls(t->engine->cluster, v, n);
}

bool worker_call_read(struct timeline *t, struct node *n, const struct watched_call *c,
                      struct worker_call *ret) {
    struct engine *e = t->engine;
    ret->call = c;
    ret->node = n;
    node_call_paths(n, c, ret->from, ret->to);
    if (!*ret->from && !*ret->to && !is_waited_for(t, c))
        return false;
    observer_drain(e->observer); /* what was told before counts before: that it has started */
    ret->by = worker_above(e, c->pid);
    return ret->by != NULL;
}

/* ---- which file ---- */

/* What ends in a slash and two stars is like all that lies below, however deep. */
static bool is_like(const char *path, const char *glob) {
    size_t n = strlen(glob);
    char deep[CALL_FILE_MAX];
    if (n < 3 || n > sizeof(deep) || !str_eq(glob + n - 3, "/**"))
        return fnmatch(glob, path, FNM_PATHNAME) == 0;
    snprintf(deep, sizeof(deep), "%.*s", (int)(n - 1), glob);
    return fnmatch(deep, path, FNM_PATHNAME | FNM_LEADING_DIR) == 0;
}

static bool below(const char *dir, const char *path, const char *glob) {
    size_t len = dir ? strlen(dir) : 0;
    while (len > 1 && dir[len - 1] == '/')
        len--;
    if (!len || strncmp(path, dir, len) != 0 || path[len] != '/')
        return false;
    return is_like(strchr(glob, '/') ? path + len + 1 : str_base(path), glob);
}

static bool is_meant(struct engine *e, struct node *n, const char *path, const char *glob) {
    char cwd[CALL_FILE_MAX];
    const char *complete = e->plan->scenario->job.checkpoint_dir;
    struct places places = {.shared = cluster_shared_dir(e->cluster),
                            .disk = node_disk_dir(n),
                            .out = e->spec->folder->path,
                            .node = node_plan(n)->name,
                            .tmp = node_tmp_dir(n)};
    if (!*path || *glob == '/')
        return *path && is_like(path, glob);
    if (below(places.shared, path, glob) || below(places.disk, path, glob) ||
        below(places.tmp, path, glob) || (getcwd(cwd, sizeof(cwd)) && below(cwd, path, glob)))
        return true;
    ARENA_FINI struct arena a = {0};
    return complete && below(placeholders_fill(&a, complete, &places), path, glob);
}

static bool is_of_the_file(const struct run_entry *a, const struct worker_call *f) {
    struct engine *e = a->owner->engine;
    const struct trigger *t = &a->entry->when;
    return f->call->kind == file_kinds[t->op] &&
           (is_meant(e, f->node, f->from, t->file) || is_meant(e, f->node, f->to, t->file));
}

bool entry_hears_call(const struct run_entry *a, const struct worker_call *f) {
    const struct trigger *t = &a->entry->when;
    return targets_listens_to(a->owner->engine, &a->entry->on, a->plan->fault, f->by) &&
           (t->file ? is_of_the_file(a, f) : t->syscall && t->syscall_number == f->call->nr);
}

static void record_file(const struct run_entry *a, const struct worker_call *f,
                        struct json_writer *w) {
    json_put_string(w, "op", file_op_names[a->entry->when.op]);
    json_put_string(w, "path", f->from);
    if (*f->to)
        json_put_string(w, "to", f->to);
    json_put_i64(w, "bytes",
                 node_call_bytes(f->node, f->call, f->from)); /* what makes a torn file one */
}

/* Another host has stamped it. */
static struct json_writer *begin_record(struct engine *e, const struct node *n, const char *kind) {
    struct clock_stamp at;
    return node_moment(n, &at) ? recorder_begin_at(&e->rec, &at, SOURCE_KERNEL, kind)
                               : engine_record(e, SOURCE_KERNEL, kind);
}

void entry_record_call(const struct run_entry *a, const struct worker_call *f) {
    const struct trigger *t = &a->entry->when;
    struct json_writer *w =
        begin_record(a->owner->engine, f->node, t->file ? "file-call" : "system-call");
    json_put_string(w, "node", node_plan(f->node)->name);
    json_put_i64(w, "pid", f->by->pid);
    json_put_string(w, "id", a->entry->id);
    if (t->file)
        record_file(a, f, w);
    else
        json_put_string(w, "call", t->syscall);
    json_put_i64(w, "by", f->call->pid);
    engine_recorded(a->owner->engine);
}
