#include "harness/run/outputs.h"

#include "harness/observe/log_matcher.h"
#include "harness/observe/output.h"
#include "harness/observe/sayings.h"
#include "harness/run/timeline.h"

#include "base/str.h"
#include "base/sys/file.h"

#include <string.h>

struct outputs {
    struct output_reader *output;    /* NULL: nobody reads what is printed */
    struct log_matcher *log_matcher; /* NULL: the scenario expects nothing of it */
};

static void on_line(void *arg, const char *node, pid_t pid, const char *line) {
    struct engine *e = arg;
    timeline_heard(e, node, pid, line);
    log_matcher_heard(own(e, outputs)->log_matcher, node, pid, line);
}

/* What cannot be read makes no run worthless, but what depends on it is unknown. */
static void record_unwatched(struct engine *e, const char *node, pid_t pid, const char *why) {
    struct json_writer *w = engine_record(e, SOURCE_HARNESS, "unwatched");
    json_put_string(w, "node", node);
    if (pid)
        json_put_i64(w, "pid", pid);
    json_put_string(w, "why", why);
    engine_recorded(e);
}

static void on_worker_ended(void *arg, pid_t pid) {
    output_last_words(own(arg, outputs)->output, pid);
}

static int open_outputs(struct engine *e, struct err *err) {
    struct outputs *o = own(e, outputs);
    if (!scenario_reads_output(e->plan->scenario))
        return 0;
    o->output = output_new(e->loop, &e->rec, e->plan->scenario, on_line, e, err);
    if (!o->output)
        return err->code;
    observer_on_end(e->observer, on_worker_ended, e);
    o->log_matcher = log_matcher_new(&e->rec, &e->plan->scenario->expect);
    return 0;
}

const char *outputs_dir(struct engine *e, const struct node *n) {
    return own(e, outputs)->output && scenario_reads_workers(e->plan->scenario)
               ? arena_printf(&e->arena, "%s/logs/%s", e->spec->folder->path, node_plan(n)->name)
               : NULL;
}

/* name: of a file in the run directory. */
static int follow(struct engine *e, const char *name, const char *node, pid_t pid,
                  struct err *err) {
    int fd = folder_open_growing(e->spec->folder, name, err);
    return fd < 0 ? fd : output_follow(own(e, outputs)->output, fd, node, pid, err);
}

void outputs_program(struct engine *e, const struct node *n) {
    const struct plan_node *p = node_plan(n);
    struct err err = {0};
    if (!own(e, outputs)->output || !scenario_waits_for_lines(e->plan->scenario))
        return;
    const char *log =
        arena_printf(&e->arena, "logs/%s/%s.log", p->name, p->is_store ? "store" : "agent");
    if (follow(e, log, p->name, 0, &err) < 0)
        record_unwatched(e, p->name, 0, err.msg);
}

/* rankprobe says what it has called the file; the folder is ours. */
static void follow_worker(struct engine *e, const struct record *r) {
    const char *name = record_text(r, "output"), *why = record_text(r, "output_error");
    struct err err = {0};
    if (!*why && (!*name || strchr(name, '/'))) {
        why = "rankprobe did not say where its output goes";
    } else if (!*why) {
        const char *log = arena_printf(&e->arena, "logs/%s/%s", r->node, name);
        if (follow(e, log, r->node, (pid_t)r->pid, &err) < 0)
            why = err.msg;
    }
    if (*why)
        record_unwatched(e, r->node, (pid_t)r->pid, why);
}

static void record(struct engine *e, const struct record *r) {
    if (!own(e, outputs)->output)
        return;
    if (r->source == SOURCE_PROBE && record_is(r, "worker-start")) {
        if (scenario_reads_workers(e->plan->scenario))
            follow_worker(e, r);
    } else if (r->source == SOURCE_JOB) {
        output_overruled(own(e, outputs)->output, r);
    }
}

/* rankrun's own, or one that a template starts. */
static bool is_rankrun(const struct job_spec *job) {
    if (str_eq(job->launcher, "rankrun"))
        return true;
    for (const char *const *word = job->launcher_argv; word && *word; word++)
        if (strstr(*word, "rankrun"))
            return true;
    return false;
}

/* Files of hosts elsewhere come when they come. */
static void record_sayings(struct engine *e) {
    for (size_t i = 0; !e->plan->scenario->cluster.provider && i < e->plan->nodes_n; i++) {
        const struct plan_node *n = &e->plan->nodes[i];
        struct err err = {0};
        if (n->is_store)
            continue;
        const char *log = arena_printf(&e->arena, "logs/%s/agent.log", n->name);
        FILE_CLOSE int fd = folder_open_growing(e->spec->folder, log, &err);
        if (fd < 0 || sayings_record(&e->rec, n->name, fd, &err) < 0)
            record_unwatched(e, n->name, 0, err.msg);
    }
}

/* Reads what there is, and notes what came of it. */
static void take_down(struct engine *e) {
    const struct outputs *o = own(e, outputs);
    if (is_rankrun(&e->plan->scenario->job) && !e->plan->scenario->cluster.scheduler)
        record_sayings(e);
    if (!o->output)
        return;
    output_end(o->output);
    log_matcher_end(o->log_matcher);
}

static void close_outputs(struct engine *e) {
    output_free(own(e, outputs)->output);
    log_matcher_free(own(e, outputs)->log_matcher);
}

const struct run_part run_part_outputs = {
    .size = sizeof(struct outputs),
    .open = open_outputs,
    .record = record,
    .take_down = take_down,
    .close = close_outputs,
};
