#include "harness/run/directory.h"

#include "base/sha256.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/folder.h"
#include "faults/effect.h"
#include "harness/observe/checkpoints.h"
#include "harness/observe/listing.h"
#include "harness/run/counting.h"
#include "harness/run/programs.h"
#include "harness/run/timeline.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

/* The job's directory of checkpoints, looked at before the first round and after the last worker of
 * each, and once more before the next begins where somebody has changed it meanwhile, as what a
 * worker ran and was still saving: by ourselves where it is of ranktrain's format, else by the
 * scenario's own command. While the command runs the workers of the next round wait to be executed,
 * so that it sees what they will find, and nothing that they have written. */

enum { TAG_LISTING = INT_MAX, RUNNING_MAX = 16 };

struct directory_running {
    int round;
    struct listing *listing;
};

struct directory {
    const char *path;    /* NULL: not known, or not one */
    const char *command; /* NULL: ranktrain's format */
    struct checkpoints *checkpoints;
    struct directory_running running[RUNNING_MAX];
    size_t n;
    int64_t held_ns; /* since when a worker waits for one of them; 0: none does */
    char seen[65];   /* what it looked like at the last look: fingerprint */
    size_t begun;    /* rounds */
};

bool directory_is_listed(const struct engine *e) {
    return own(e, directory)->n;
}

bool directory_holds_workers(const struct engine *e) {
    bool between = e->rounds_ended > 0 && e->rounds_ended == e->rec.rounds->n;
    return directory_is_listed(e) || (own(e, directory)->path && between);
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
    json_put_string(w, "dir", own(e, directory)->path);
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
    struct directory *d = own(e, directory);
    for (size_t i = 0; i < d->n; i++)
        if (d->running[i].round == round)
            d->running[i] = d->running[--d->n];
    record_listing(e, round, steps, n, error);
    timeline_arm(e);
    if (directory_is_listed(e))
        return;
    if (d->held_ns)
        record_held(e, clock_monotonic_ns() - d->held_ns);
    d->held_ns = 0;
    observer_release(e->observer, TAG_LISTING);
    counting_go_on(e);
}

/* Of two looks after one round the later counts. */
static void forget_listing(struct directory *d, int round) {
    for (size_t i = 0; i < d->n; i++)
        if (d->running[i].round == round) {
            listing_abandon(d->running[i].listing);
            d->running[i--] = d->running[--d->n];
        }
}

static void list(struct engine *e, int round) {
    struct directory *d = own(e, directory);
    struct err err = {0};
    forget_listing(d, round);
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
    d->running[d->n++] = (struct directory_running){round, g};
    timeline_arm(e);
}

/* ---- the whole ---- */

/* Names, sizes and times of change of what lies right in it. */
static void fingerprint(const struct engine *e, char ret[65]) {
    TEXTS_FINI struct texts names = {0};
    const struct folder *run = e->spec->folder;
    const char *path = own(e, directory)->path;
    size_t n = strlen(run->path);
    struct folder dir;
    struct sha256 sum;
    sha256_init(&sum);
    bool ours = strncmp(path, run->path, n) == 0 && path[n] == '/';
    if ((ours ? folder_enter(&dir, run, path + n + 1, NULL) : folder_open(&dir, path, NULL)) == 0) {
        folder_list(&dir, ".", NULL, &names, NULL);
        for (size_t i = 0; i < names.n; i++) {
            struct stat st;
            if (str_eq(names.v[i], "..") || fstatat(dir.fd, names.v[i], &st, AT_SYMLINK_NOFOLLOW))
                continue;
            int64_t facts[] = {(int64_t)st.st_ino, st.st_size, st.st_ctim.tv_sec,
                               st.st_ctim.tv_nsec};
            sha256_update(&sum, names.v[i], strlen(names.v[i]) + 1);
            sha256_update(&sum, facts, sizeof(facts));
        }
        folder_close(&dir);
    }
    sha256_hex(&sum, ret);
}

/* The round has ended; 0: none has begun. */
static void read_all(struct engine *e, int round) {
    struct directory *d = own(e, directory);
    if (!d->path)
        return;
    fingerprint(e, d->seen);
    if (d->command) {
        list(e, round);
        return;
    }
    struct json_writer *w = engine_record(e, SOURCE_DISK, "checkpoints");
    json_put_i64(w, "round", round);
    checkpoints_put(d->checkpoints, w);
    engine_recorded(e);
}

static void start(struct engine *e) {
    struct directory *d = own(e, directory);
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
        return;
    d->path = placeholders_fill(&e->arena, dir, &p);
    if (job->checkpoint_complete)
        d->command = placeholders_fill(&e->arena, job->checkpoint_complete, &p);
    else
        d->checkpoints = checkpoints_new(d->path, e->spec->folder);
    read_all(e, 0);
}

/* The first worker of a new round waits to be executed. */
static void look_again(struct engine *e) {
    struct directory *d = own(e, directory);
    char now[65];
    bool first = d->begun < e->rec.rounds->n && e->rec.rounds->n == e->rounds_ended + 1;
    d->begun = e->rec.rounds->n;
    if (!d->path || !first)
        return;
    fingerprint(e, now);
    if (!str_eq(now, d->seen))
        read_all(e, (int)e->rounds_ended);
    timeline_arm(e);
}

static void record(struct engine *e, const struct record *r) {
    struct directory *d = own(e, directory);
    if (record_is(r, "checkpoint-commit") && d->checkpoints)
        checkpoints_refresh(d->checkpoints);
    if (record_is(r, "fault-in-force") &&
        effects_take(record_get(r, "effects")) & EFFECT_DAMAGES_DISK &&
        e->rec.rounds->n == e->rounds_ended)
        read_all(e, (int)e->rounds_ended);
    bool start = r->source == SOURCE_PROBE && record_is(r, "worker-start");
    if (start && e->sender && client_is_held(e->sender))
        look_again(e);
    if (!start || !e->sender || !client_is_held(e->sender) || !directory_is_listed(e))
        return;
    client_keep(e->sender, TAG_LISTING);
    if (!d->held_ns)
        d->held_ns = clock_monotonic_ns();
}

static void round_end(struct engine *e, const struct round *r) {
    read_all(e, r->number);
    timeline_arm(e);
}

static void close_directory(struct engine *e) {
    struct directory *d = own(e, directory);
    for (size_t i = 0; i < d->n; i++)
        listing_abandon(d->running[i].listing);
    checkpoints_free(d->checkpoints);
}

const struct run_part run_part_directory = {
    .size = sizeof(struct directory),
    .start = start,
    .record = record,
    .round_end = round_end,
    .close = close_directory,
};
