/* The command started once, undisturbed, while what it does to its directory is recorded. */
#include "harness/verbs/crashpoints/crashing.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/process.h"
#include "harness/crash/call_record.h"
#include "harness/crash/folder.h"
#include "harness/crash/barriers.h"
#include "harness/crash/told.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct baseline {
    struct crashing *c;
    struct disk_recorder *recorder;
    struct call_record *record;
    struct told_events *told;
    struct attempt_told heard;
    struct crash_stage stage;
    int output, dir, watch, source; /* source: what the user's own directory holds, -1 */
    bool fuse;                      /* a disk of ours records, and marks are put in afterwards */
    struct disk_operation *marks;
    size_t marks_n;
    struct barriers barriers;
};

/* ---- the directory ---- */

int crashing_copy(const char *from, const char *to, struct err *err) {
    char all[PATH_MAX];
    const char *const argv[] = {"cp", "-a", all, to, NULL};
    struct process cp = PROCESS_NONE;
    struct process_spawn s = {.argv = argv};
    int status = 0;
    snprintf(all, sizeof(all), "%s/.", from);
    int r = process_spawn(&s, &cp, err);
    if (r)
        return r;
    r = process_reap(&cp, -1, &status);
    process_close(&cp);
    return r || status ? err_say(err, -EIO, "%s could not be copied", from) : 0;
}

/* The user's own directory lies below ours by then: it is held. */
static int fill(void *arg, const char *path, struct err *err) {
    const struct baseline *b = arg;
    char from[64];
    if (b->source < 0)
        return 0;
    snprintf(from, sizeof(from), "/proc/%d/fd/%d", (int)getpid(), b->source);
    return crashing_copy(from, path, err);
}

static int sum(void *arg, const char *path, char ret[65]) {
    (void)arg;
    return crash_folder_hash(path, ret, NULL);
}

/* ---- while it is on ---- */

static int rank_of(const struct baseline *b, int pid) {
    char path[64];
    for (size_t i = b->barriers.n; i-- > 0;)
        if (b->barriers.v[i].pid == pid)
            return b->barriers.v[i].rank;
    snprintf(path, sizeof(path), "/proc/%d/environ", pid);
    FILE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    return disk_rank_in(fd);
}

static void hear(void *arg, const struct told_event *e) {
    struct baseline *b = arg;
    char what[128];
    attempt_heard(&b->heard, e->kind, e->step, e->text);
    int64_t step = str_eq(e->kind, "step") ? e->step : -1;
    barriers_note(&b->barriers, &(struct barrier){step, e->t_ns, e->pid, rank_of(b, e->pid)});
    bool barrier = str_eq(e->kind, "barrier");
    if (!str_starts(e->kind, "checkpoint-") && !barrier)
        return;
    snprintf(what, sizeof(what), "%.60s %lld", e->kind, (long long)e->step);
    if (barrier)
        str_copy(what, sizeof(what), "barrier");
    if (b->record)
        call_record_mark(b->record, what, e->pid);
    else if (b->fuse)
        mem_push(b->marks, b->marks_n) =
            (struct disk_operation){.deed = DISK_MARK,
                                    .path = arena_strdup(&b->c->arena, what),
                                    .to = "",
                                    .t_ns = e->t_ns,
                                    .pid = e->pid,
                                    .rank = -1,
                                    .node = ""};
}

/* The directory comes first, then the watch. */
static void take_watch(struct baseline *b, struct err *err) {
    if (b->dir < 0) {
        b->dir = stage_take_dir(&b->stage);
        if (b->dir < 0)
            file_close(&b->stage.watch);
        return;
    }
    b->watch = call_watch_take(b->stage.watch);
    file_close(&b->stage.watch);
    if (b->watch < 0)
        return;
    b->record = call_record_new(b->watch, b->dir, b->recorder, err);
    if (b->record)
        call_record_begin(b->record);
}

/* Everything that has been told before a call is before it in the record. */
static void attend(struct baseline *b, struct err *err) {
    while (!*b->c->interrupted) {
        struct pollfd p[] = {{.fd = b->stage.process.pidfd, .events = POLLIN},
                             {.fd = b->stage.watch, .events = POLLIN},
                             {.fd = b->record ? b->watch : -1, .events = POLLIN},
                             {.fd = b->told ? told_fd(b->told) : -1, .events = POLLIN}};
        if (poll(p, 4, -1) < 0)
            continue;
        if (p[3].revents)
            told_take(b->told);
        if (p[1].revents)
            take_watch(b, err);
        if (p[2].revents && call_record_serve(b->record) < 0)
            file_close(&b->watch);
        if (p[0].revents)
            return;
    }
}

/* In the stage the folder of the events is the one that lies outside. */
static const char *const *over_disk(struct crashing *c) {
    char bin[PATH_MAX], bytes[32];
    size_t n = 0;
    while (c->argv[n])
        n++;
    const char **v = arena_array(&c->arena, const char *, n + 12);
    size_t k = 0;
    snprintf(bytes, sizeof(bytes), "%" PRIu64, c->max_bytes ? c->max_bytes : (uint64_t)1 << 30);
    v[k++] = arena_printf(&c->arena, "%s/rankquake", file_own_folder(bin, sizeof(bin)));
    v[k++] = "disk";
    v[k++] = "--over";
    v[k++] = c->dir;
    v[k++] = "--record";
    v[k++] = STAGE_EVENTS "/record";
    v[k++] = "--max-bytes";
    v[k++] = arena_strdup(&c->arena, bytes);
    v[k++] = "--";
    for (size_t i = 0; i < n; i++)
        v[k++] = c->argv[i];
    return v;
}

static int start(struct baseline *b, struct err *err) {
    struct crashing *c = b->c;
    struct stage_spec s = crashing_stage(c);
    if (b->fuse)
        s.argv = over_disk(c);
    const char *events = arena_printf(&c->arena, "%s/events/baseline", c->out.path);
    b->told = told_new(events, hear, b, NULL);
    b->output = memfd_create("output", MFD_CLOEXEC);
    s.events = b->told ? events : NULL;
    s.output = b->output;
    s.watch = b->fuse ? NULL : call_record_watch();
    s.limit_ns = c->limit_asked_ns;
    s.fill = fill;
    s.sum = sum;
    s.arg = b;
    return b->output < 0 ? err_set(err, -errno, "keep what it prints")
                         : stage_start(&s, &b->stage, err);
}

static void baseline_fini(struct baseline *b) {
    b->record = call_record_free(b->record);
    b->told = told_free(b->told);
    file_close(&b->output);
    file_close(&b->dir);
    file_close(&b->watch);
    file_close(&b->source);
    barriers_fini(&b->barriers);
    free(b->marks);
}

/* ---- what came of it ---- */

static int say_ended(const struct crashing *c, const struct resumption *o) {
    char text[64];
    if (o->how == ATTEMPT_HUNG)
        fprintf(stderr, "rankquake crashpoints: undisturbed, the command had not ended after its "
                        "limit; give it less to do, or --limit more\n");
    else if (WIFEXITED(o->status) && WEXITSTATUS(o->status) == 127 &&
             (!*o->why || str_starts(o->why, "rankquake disk: start ")))
        fprintf(stderr, "rankquake crashpoints: there is no program %s\n", c->argv[0]);
    else
        fprintf(stderr,
                "rankquake crashpoints: undisturbed, the command ended with %s: nothing was tried. "
                "%sIts last lines:\n%s\n",
                process_status_text(o->status, text, sizeof(text)),
                c->network && c->namespaces
                    ? "It has a network of its own, without a way out (--share-network). "
                    : "",
                o->why);
    return EXIT_BROKEN;
}

/* What a rank tells is where it is in what it does: it goes no further when it has stopped. */
static void add_operation(struct baseline *b, struct disk_operation o) {
    for (size_t i = 0; o.deed == DISK_MARK && o.rank < 0 && i < b->barriers.n; i++)
        if (b->barriers.v[i].pid == o.pid)
            o.rank = b->barriers.v[i].rank;
    disk_recorder_add(b->recorder, &o);
}

/* The record anew, with marks where the moments say: behind what was done before them. */
static int put_marks(struct baseline *b, const struct disk_record *own, const char *path,
                     struct err *err) {
    int r = disk_recorder_open(&b->recorder, path, b->c->max_bytes, err);
    size_t m = 0;
    barriers_mark(&b->barriers, own, &b->marks, &b->marks_n);
    for (size_t i = 0; i < own->n && r == 0; i++) {
        for (; m < b->marks_n && b->marks[m].t_ns < own->v[i].t_ns; m++)
            add_operation(b, b->marks[m]);
        add_operation(b, own->v[i]);
    }
    for (; m < b->marks_n && r == 0; m++)
        add_operation(b, b->marks[m]);
    return r;
}

/* Whoever is full has said what there was room for. */
static int finish_record(struct baseline *b, struct err *err) {
    b->c->record_full |= b->recorder && disk_recorder_full(b->recorder);
    int r = disk_recorder_close(b->recorder, err);
    b->recorder = NULL;
    return r == -EFBIG ? 0 : r;
}

static int close_record(struct baseline *b, const char *own_path, const char *path) {
    struct err err = {0};
    struct crashing *c = b->c;
    struct disk_record own = {0};
    int r = finish_record(b, &err);
    r = r ? r : disk_record_load(own_path, &c->arena, &own, &err);
    r = r ? r : put_marks(b, &own, path, &err);
    r = r ? r : finish_record(b, &err);
    r = r ? r : disk_record_load(path, &c->arena, &c->record, &err);
    return r ? verb_broken(c->arguments->verb, &err) : 0;
}

/* The disk has something to say for itself: why it cannot be, or that its record is full. */
static bool says_disk(const struct resumption *o) {
    return strstr(o->why, "rankquake disk: ");
}

static bool was_refused(const struct baseline *b) {
    const struct resumption *o = &b->c->baseline;
    return o->how == ATTEMPT_FAILED && WIFEXITED(o->status) &&
           WEXITSTATUS(o->status) == EXIT_SKIPPED && says_disk(o);
}

static int end(struct baseline *b, const char *own, const char *path) {
    struct crashing *c = b->c;
    struct stage_end e;
    if (*c->interrupted)
        stage_kill(&b->stage);
    stage_take(&b->stage, &e);
    told_take(b->told);
    attempt_read(c, &e, b->output, &c->baseline);
    attempt_take_told(&c->baseline, &b->heard);
    str_copy(c->whole, sizeof(c->whole), e.sum);
    if (b->record)
        c->across = call_record_seen(b->record).across;
    if (*c->interrupted)
        return EXIT_INTERRUPTED;
    if (b->fuse && was_refused(b))
        return EXIT_SKIPPED;
    c->record_full = b->fuse && c->baseline.how == ATTEMPT_ENDED && says_disk(&c->baseline);
    int code = close_record(b, own, path);
    if (c->baseline.how == ATTEMPT_BROKEN)
        return verb_broken(c->arguments->verb, &e.err);
    return code ? code : c->baseline.how == ATTEMPT_ENDED ? 0 : say_ended(c, &c->baseline);
}

static int record_by(struct crashing *c, bool fuse) {
    struct baseline b = {.c = c,
                         .output = -1,
                         .dir = -1,
                         .watch = -1,
                         .source = -1,
                         .stage = STAGE_NONE,
                         .fuse = fuse};
    struct err err = {0};
    const char *path = arena_printf(&c->arena, "%s/record", c->out.path);
    const char *own = arena_printf(&c->arena, "%s/events/record", c->out.path);
    b.heard = (struct attempt_told){-1, -1, "", false};
    if (c->copied)
        b.source = open(c->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = fuse ? 0 : disk_recorder_open(&b.recorder, own, c->max_bytes, &err);
    r = r ? r : start(&b, &err);
    mode_t mask = umask(0); /* new files are made here, with the umask of who asks for them */
    if (r == 0)
        attend(&b, &err);
    umask(mask);
    int code = r ? verb_broken(c->arguments->verb, &err) : end(&b, own, path);
    if (b.recorder)
        disk_recorder_close(b.recorder, &err);
    baseline_fini(&b);
    c->recorded_by = fuse ? "a FUSE disk" : "system calls";
    return code;
}

/* By a disk of ours, which sees mappings and static programs alike; else by system calls. */
static int record_any(struct crashing *c) {
    struct err err = {0};
    bool must = str_eq(c->record_by, "fuse");
    if (str_eq(c->record_by, "calls") || (!must && !c->namespaces))
        return record_by(c, false);
    int code = c->namespaces ? record_by(c, true) : EXIT_SKIPPED;
    const char *why = c->namespaces ? c->baseline.why : "it takes namespaces";
    if (code != EXIT_SKIPPED)
        return code;
    int r = call_watch_check(&err);
    if (!must && r == 0)
        return record_by(c, false);
    fprintf(stderr, "rankquake crashpoints: nothing can be recorded here. By FUSE: %s%s%s\n", why,
            must ? "" : ". By system calls: ", must ? "" : err.msg);
    return EXIT_SKIPPED;
}

/* ---- an earlier run ---- */

static void put_baseline(const struct crashing *c, struct buf *out) {
    const struct resumption *o = &c->baseline;
    struct json_writer w = {.out = out};
    json_object(&w, NULL);
    json_put_string(&w, "by", c->recorded_by);
    json_put_i64(&w, "ran_ns", o->ran_ns);
    json_put_string(&w, "model", o->model);
    json_put_string(&w, "directory", c->whole);
    json_put_string(&w, "result", o->result);
    json_put_i64(&w, "resumed", o->resumed);
    if (o->has_loss)
        json_put_double(&w, "loss", o->loss);
    json_put_bool(&w, "full", c->record_full);
    json_end_object(&w);
    buf_putc(out, '\n');
}

static int take_earlier(struct crashing *c) {
    struct err err = {0};
    BUF_FINI struct buf text = {0};
    const char *file = arena_printf(&c->arena, "%s/baseline.json", c->earlier);
    const char *path = arena_printf(&c->arena, "%s/record", c->earlier);
    int r = file_read_plain(file, 1 << 20, &text, &err);
    const struct json *j = r ? NULL : json_parse(&c->arena, text.data, text.len, &err);
    if (!j || disk_record_load(path, &c->arena, &c->record, &err) != 0)
        return verb_usage_error(c->arguments->verb, "--from %s: %s", c->earlier, err.msg);
    struct resumption *o = &c->baseline;
    *o = (struct resumption){.how = ATTEMPT_ENDED,
                             .ran_ns = json_get_i64(j, "ran_ns", 0),
                             .resumed = json_get_i64(j, "resumed", -1),
                             .has_loss = json_get(j, "loss"),
                             .loss = json_number(json_get(j, "loss"), 0)};
    str_copy(o->model, sizeof(o->model), json_get_string(j, "model", ""));
    str_copy(c->whole, sizeof(c->whole), json_get_string(j, "directory", ""));
    str_copy(o->result, sizeof(o->result), json_get_string(j, "result", ""));
    c->record_full = json_get_bool(j, "full", false);
    c->recorded_by = arena_strdup(&c->arena, json_get_string(j, "by", ""));
    return 0;
}

int crashing_record(struct crashing *c) {
    struct err err = {0};
    BUF_FINI struct buf text = {0};
    int code =
        folder_make(&c->out, "events", 0755, &err) == 0 ? 0 : verb_broken(c->arguments->verb, &err);
    if (code == 0)
        code = c->earlier ? take_earlier(c) : record_any(c);
    if (code)
        return code;
    put_baseline(c, &text);
    if (!c->earlier && folder_write(&c->out, "baseline.json", text.data, text.len, &err) != 0)
        return verb_broken(c->arguments->verb, &err);
    const int64_t floor_ns = INT64_C(20000000000);
    int64_t usual_ns = 6 * c->baseline.ran_ns;
    c->limit_ns = c->limit_asked_ns ? c->limit_asked_ns : usual_ns > floor_ns ? usual_ns : floor_ns;
    return 0;
}
