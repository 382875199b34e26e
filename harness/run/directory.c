#include "harness/run/engine.h"

#include "agent/sys/clock.h"
#include "agent/sys/file.h"
#include "harness/observe/listing.h"
#include "harness/run/programs.h"

#include <limits.h>
#include <string.h>

/* The job's directory of checkpoints, looked at before the first round and after the last worker of
 * each: by ourselves where it is of ranktrain's format, else by the scenario's own command. While
 * the command runs the workers of the next round wait to be executed, so that it sees what they
 * will find, and nothing that they have written. */

enum { TAG_LISTING = INT_MAX, RUNNING_MAX = 16 };

struct running {
    int round;
    struct listing *listing;
};

struct directory {
    const char *path, *command; /* command NULL: ranktrain's format */
    struct checkpoints *checkpoints;
    struct running running[RUNNING_MAX];
    size_t n;
    int64_t held_ns; /* since when a worker waits for one of them; 0: none does */
};

struct directory *directory_new(struct engine *e) {
    const struct job_spec *job = &e->plan->scenario->job;
    const char *dir = job->checkpoint_dir;
    struct places p = {.shared = cluster_shared_dir(e->cluster),
                       .out = e->spec->folder->path,
                       .disk = "",
                       .node = "",
                       .seed = arena_printf(&e->arena, "%llu", (unsigned long long)e->plan->seed)};
    /* A directory on a node's own disk or /tmp is not one directory: nothing to read from outside.
     */
    if (!dir || strstr(dir, "{disk}") || strstr(dir, "{node}") || strstr(dir, "{tmp}"))
        return NULL;
    struct directory *d = arena_new(&e->arena, struct directory);
    *d = (struct directory){.path = placeholders_fill(&e->arena, dir, &p)};
    if (job->checkpoint_complete)
        d->command = placeholders_fill(&e->arena, job->checkpoint_complete, &p);
    else
        d->checkpoints = checkpoints_new(d->path, e->spec->folder);
    return d;
}

struct directory *directory_free(struct directory *d) {
    for (size_t i = 0; d && i < d->n; i++)
        listing_abandon(d->running[i].listing);
    if (d)
        checkpoints_free(d->checkpoints);
    return NULL;
}

bool directory_is_listed(const struct directory *d) {
    return d && d->n;
}

/* ---- by the scenario's command ---- */

static void put_steps(struct json_writer *w, const int64_t *steps, size_t n) {
    int64_t newest = -1;
    for (size_t i = 0; i < n; i++)
        newest = steps[i] > newest ? steps[i] : newest;
    json_put_i64(w, "newest", newest);
    json_array(w, "complete");
    for (size_t i = 0; i < n; i++) {
        json_object(w, NULL);
        json_put_i64(w, "step", steps[i]);
        json_end_object(w);
    }
    json_end_array(w);
}

static void record_listing(struct engine *e, int round, const int64_t *steps, size_t n,
                           const char *error) {
    struct json_writer *w = engine_record(e, SOURCE_DISK, "checkpoints");
    json_put_i64(w, "round", round);
    json_put_string(w, "dir", e->directory->path);
    if (error)
        json_put_string(w, "error", error);
    else
        put_steps(w, steps, n);
    engine_recorded(e);
}

/* What the job has waited for us is no time of its own: it counts as our being late. */
static void record_held(struct engine *e, int64_t ns) {
    struct json_writer *w = engine_record(e, SOURCE_HARNESS, "lag");
    json_put_i64(w, "max_ns", ns);
    json_put_i64(w, "window_ns", ns);
    json_put_string(w, "why", "workers waited for job.checkpoint.complete");
    engine_recorded(e);
}

static void on_listed(void *arg, int round, const int64_t *steps, size_t n, const char *error) {
    struct engine *e = arg;
    struct directory *d = e->directory;
    for (size_t i = 0; i < d->n; i++)
        if (d->running[i].round == round)
            d->running[i] = d->running[--d->n];
    record_listing(e, round, steps, n, error);
    timeline_arm(e->timeline);
    if (directory_is_listed(d))
        return;
    if (d->held_ns)
        record_held(e, clock_monotonic_ns() - d->held_ns);
    d->held_ns = 0;
    observer_release(e->observer, TAG_LISTING);
    counting_go_on(e);
}

static void list(struct engine *e, int round) {
    struct directory *d = e->directory;
    struct err err = {0};
    if (d->n == RUNNING_MAX) {
        record_listing(e, round, NULL, 0, "too many of these commands have not ended yet");
        return;
    }
    int r = folder_make(e->spec->folder, "logs", 0777, &err);
    FILE_CLOSE int log = r ? r : folder_append(e->spec->folder, "logs/checkpoints.log", &err);
    if (log < 0) {
        record_listing(e, round, NULL, 0, err.msg);
        return;
    }
    struct listing *g = listing_start(e->loop, d->path, d->command, log, round, on_listed, e);
    if (!g)
        return; /* it has answered */
    d->running[d->n++] = (struct running){round, g};
    timeline_arm(e->timeline);
}

/* ---- the whole ---- */

void directory_read(struct engine *e, int round) {
    struct directory *d = e->directory;
    if (!d)
        return;
    if (d->command) {
        list(e, round);
        return;
    }
    struct json_writer *w = engine_record(e, SOURCE_DISK, "checkpoints");
    json_put_i64(w, "round", round);
    checkpoints_put(d->checkpoints, w);
    engine_recorded(e);
}

void directory_seen(struct engine *e, const struct record *r, struct client *from) {
    if (record_is(r, "checkpoint-commit") && e->directory && e->directory->checkpoints)
        checkpoints_refresh(e->directory->checkpoints);
    bool start = r->source == SOURCE_PROBE && record_is(r, "worker-start");
    if (!start || !from || !client_is_held(from) || !directory_is_listed(e->directory))
        return;
    client_keep(from, TAG_LISTING);
    if (!e->directory->held_ns)
        e->directory->held_ns = clock_monotonic_ns();
}
