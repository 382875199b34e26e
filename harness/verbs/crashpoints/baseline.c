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
#include "harness/crash/told.h"
#include "harness/verbs/crashpoints/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
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
    bool fuse;                      /* a disk of ours records */
    struct crash_marks marks;       /* put into the record afterwards */
    struct told_rank {
        int pid;
        struct disk_writer who;
    } * ranks; /* of those that have connected */
    size_t ranks_n;
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
    if (b->c->scenario)
        return crashing_make_disks(b->c, path, err);
    if (b->source < 0)
        return 0;
    snprintf(from, sizeof(from), "/proc/%d/fd/%d", (int)getpid(), b->source);
    return crashing_copy(from, path, err);
}

static int sum(void *arg, const char *path, char ret[65]) {
    const struct baseline *b = arg;
    char disks[PATH_MAX];
    return crash_folder_hash(crashing_disks(b->c, path, disks), ret, NULL);
}

/* ---- while it is on ---- */

/* Its processes are seen under other numbers in there: it is known by its rank. */
static void find_writer(const struct baseline *b, int pid, struct disk_writer *ret) {
    char path[64];
    *ret = (struct disk_writer){.rank = -1};
    for (size_t i = b->marks.n; i-- > 0;)
        if (b->marks.v[i].pid == pid) {
            ret->rank = b->marks.v[i].rank;
            str_copy(ret->node, sizeof(ret->node), b->marks.v[i].node);
            return;
        }
    snprintf(path, sizeof(path), "/proc/%d/environ", pid);
    FILE_CLOSE int environment = open(path, O_RDONLY | O_CLOEXEC);
    disk_writer_in(environment, ret);
    for (size_t i = 0; i < b->ranks_n && ret->rank < 0; i++) /* it has ended before it was read */
        if (b->ranks[i].pid == pid)
            *ret = b->ranks[i].who;
}

static void hear(void *arg, const struct told_event *e) {
    struct baseline *b = arg;
    struct disk_writer who;
    find_writer(b, e->pid, &who);
    who.rank = e->rank >= 0 ? e->rank : who.rank;
    if (!*e->kind || e->rank >= 0)
        mem_push(b->ranks, b->ranks_n) = (struct told_rank){e->pid, who};
    attempt_heard(&b->heard, e->kind, e->step, e->text);
    crash_marks_hear(&b->marks, &(struct crash_word){.kind = e->kind,
                                                     .step = e->step,
                                                     .pid = e->pid,
                                                     .rank = who.rank,
                                                     .node = who.node,
                                                     .t_ns = e->t_ns});
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
        struct pollfd p[] = {
            {.fd = b->stage.process.pidfd, .events = POLLIN},
            {.fd = b->stage.watch, .events = POLLIN},
            {.fd = b->record ? b->watch : -1, .events = POLLIN},
            {.fd = b->told ? told_fd(b->told) : -1, .events = POLLIN},
            {.fd = b->record ? call_record_idle_fd(b->record) : -1, .events = POLLIN}};
        if (poll(p, 5, -1) <= 0)
            continue;
        if (p[3].revents)
            told_take(b->told);
        if (p[1].revents)
            take_watch(b, err);
        if (p[2].revents && call_record_serve(b->record, p[2].revents) < 0)
            file_close(&b->watch);
        if (p[4].revents)
            call_record_idle(b->record);
        if (p[0].revents)
            return;
    }
}

/* In the stage the folder of the events is the one that lies outside. */
static const char *const *over_disk(struct crashing *c, const char *const *argv) {
    char bin[PATH_MAX], bytes[32], disks[PATH_MAX];
    size_t n = 0;
    while (argv[n])
        n++;
    const char **v = arena_array(&c->arena, const char *, n + 12);
    size_t k = 0;
    snprintf(bytes, sizeof(bytes), "%" PRIu64, c->max_bytes ? c->max_bytes : (uint64_t)1 << 30);
    v[k++] = arena_printf(&c->arena, "%s/rankquake", file_own_folder(bin, sizeof(bin)));
    v[k++] = "disk";
    v[k++] = "--over";
    v[k++] = arena_strdup(&c->arena, crashing_disks(c, c->dir, disks));
    v[k++] = "--record";
    v[k++] = STAGE_EVENTS "/record";
    v[k++] = "--max-bytes";
    v[k++] = arena_strdup(&c->arena, bytes);
    v[k++] = "--";
    for (size_t i = 0; i < n; i++)
        v[k++] = argv[i];
    return v;
}

/* A scenario is started by us, and leaves what its job has told. */
static const char *const *with_marks(struct crashing *c, const char *path) {
    size_t n = 0;
    while (c->argv[n])
        n++;
    const char **v = arena_array(&c->arena, const char *, n + 3);
    memcpy(v, c->argv, n * sizeof(*v));
    v[n] = "--marks";
    v[n + 1] = path;
    return v;
}

static int start(struct baseline *b, struct err *err) {
    struct crashing *c = b->c;
    struct stage_spec s = crashing_stage(c);
    const char *own =
        c->namespaces ? STAGE_EVENTS : arena_printf(&c->arena, "%s/scratch/told", c->out.path);
    if (c->scenario)
        s.argv = with_marks(c, arena_printf(&c->arena, "%s/marks", own));
    if (b->fuse)
        s.argv = over_disk(c, s.argv);
    const char *events = crashing_events(c, &c->arena, "baseline");
    b->told = told_new(events, hear, b, NULL);
    b->output = memfd_create("output", MFD_CLOEXEC);
    s.events = b->told ? events : NULL;
    s.output = b->output;
    char disks[PATH_MAX];
    s.watch = b->fuse ? NULL : call_record_watch();
    s.recorded = crashing_disks(c, c->dir, disks);
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
    crash_marks_fini(&b->marks);
    free(b->ranks);
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

/* The record that was made, and what was told meanwhile, as one. */
static int close_record(struct baseline *b, const char *path) {
    struct err err = {0};
    struct crashing *c = b->c;
    struct disk_record own = {0};
    const char *its = arena_printf(&c->arena, "%s/scratch/told/record", c->out.path);
    const char *marks = arena_printf(&c->arena, "%s/scratch/told/marks", c->out.path);
    c->record_full |= b->recorder && disk_recorder_full(b->recorder);
    int r = disk_recorder_close(b->recorder, &err);
    b->recorder = NULL;
    if (r && r != -EFBIG)
        return verb_broken(c->arguments->verb, &err);
    r = disk_record_load(its, &c->arena, &own, &err);
    if (r == 0 && c->scenario && c->baseline.how == ATTEMPT_ENDED)
        r = crash_marks_load(&b->marks, marks, &err);
    r = r ? r : crash_marks_put(&b->marks, &own, path, &err);
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

/* What would have been otherwise on the disk, or may have been; NULL: nothing. A rename out of the disk
 * into memory is refused, and a job may copy then. */
static const char *fault_of_memory(const struct baseline *b) {
    const struct resumption *o = &b->c->baseline;
    struct call_record_seen seen = {0};
    if (!b->c->in_memory)
        return NULL;
    if (b->record)
        seen = call_record_seen(b->record);
    if (seen.no_room)
        return "/dev/shm became full";
    if (seen.across)
        return "the command renames between {dir} and elsewhere";
    return o->how == ATTEMPT_FAILED || o->how == ATTEMPT_BROKEN ? "the command failed there" : NULL;
}

static int end(struct baseline *b, const char *path) {
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
    const char *fault = fault_of_memory(b);
    if (fault) {
        c->not_memory = arena_printf(&c->arena, "%s, so it was started once more", fault);
        return -EAGAIN;
    }
    c->record_full = b->fuse && c->baseline.how == ATTEMPT_ENDED && says_disk(&c->baseline);
    if (c->baseline.how == ATTEMPT_BROKEN) {
        fprintf(stderr, "rankquake crashpoints: %s\n", c->baseline.why);
        return EXIT_BROKEN;
    }
    int code = close_record(b, path);
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
    b.heard = (struct attempt_told){-1, -1, "", false};
    if (c->copied)
        b.source = open(c->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char *its = arena_printf(&c->arena, "%s/scratch/told/record", c->out.path);
    int r = fuse ? 0 : disk_recorder_open(&b.recorder, its, c->max_bytes, &err);
    r = r ? r : start(&b, &err);
    mode_t mask = umask(0); /* new files are made here, with the umask of who asks for them */
    if (r == 0)
        attend(&b, &err);
    umask(mask);
    int code = r ? verb_broken(c->arguments->verb, &err) : end(&b, path);
    if (b.recorder)
        disk_recorder_close(b.recorder, &err);
    baseline_fini(&b);
    c->recorded_by = fuse ? "a FUSE disk" : "system calls";
    return code;
}

/* ---- in memory ---- */

static bool is_memory(const char *path) {
    struct statfs fs;
    return statfs(path, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

/* As record_by. -EAGAIN: it is to be done again on the disk. */
static int record_in_memory(struct crashing *c) {
    struct err err = {0};
    char path[CRASH_MEMORY_PATH_MAX];
    const char *usual = c->dir;
    if (crash_memory_make(&c->own, c->max_bytes ? c->max_bytes : (uint64_t)1 << 30, &err) != 0) {
        c->not_memory = arena_strdup(&c->arena, err.msg);
        return -EAGAIN;
    }
    crash_memory_path(&c->own, path);
    crashing_place(c, arena_printf(&c->arena, "%s/dir", path));
    c->in_memory = true;
    int code = record_by(c, false);
    c->in_memory = false;
    crashing_place(c, usual);
    return crash_memory_remove(&c->own, &err) == 0 ? code : verb_broken(c->arguments->verb, &err);
}

/* Where all see one tree {dir} is put into memory, as it is in namespaces: no disk is waited for. */
static int record_by_calls(struct crashing *c) {
    int code = -EAGAIN;
    if (c->placed && !c->namespaces && !is_memory(c->out.path))
        code = record_in_memory(c);
    return code == -EAGAIN ? record_by(c, false) : code;
}

/* By a disk of ours, which sees mappings and static programs alike; else by system calls. */
static int record_any(struct crashing *c) {
    struct err err = {0};
    bool only_fuse = str_eq(c->record_by, "fuse"), only_calls = str_eq(c->record_by, "calls");
    int code = EXIT_SKIPPED;
    if (!only_calls && c->namespaces)
        code = record_by(c, true);
    if (code != EXIT_SKIPPED)
        return code;
    if (!only_fuse && call_watch_check(&err) == 0)
        return record_by_calls(c);
    const char *no_fuse = c->namespaces ? c->baseline.why : "it takes namespaces";
    fprintf(stderr, "rankquake crashpoints: nothing can be recorded here.%s%s%s%s%s\n",
            only_calls ? "" : " By FUSE: ", only_calls ? "" : no_fuse,
            only_fuse || only_calls ? "" : ".",
            only_fuse ? "" : " By system calls: ", only_fuse ? "" : err.msg);
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

/* What is not there is equal to nothing: no result would be compared, and nobody would know. */
static int check_result(const struct crashing *c) {
    if (!c->result_asked || *c->baseline.result)
        return 0;
    return verb_usage_error(c->arguments->verb,
                            "%s %s: there is no such file, or none that can be read, where the "
                            "undisturbed run has ended; "
                            "name one that the job writes with its result",
                            c->scenario ? "job.checkpoint.result" : "--result", c->result_asked);
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
    int code = folder_make(&c->out, "scratch/told", 0755, &err) == 0
                   ? 0
                   : verb_broken(c->arguments->verb, &err);
    if (code == 0)
        code = c->earlier ? take_earlier(c) : record_any(c);
    code = code ? code : check_result(c);
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
