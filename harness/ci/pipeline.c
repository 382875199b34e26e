#include "harness/ci/pipeline.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/printing.h"
#include "base/sys/random.h"
#include "harness/ci/secrets.h"
#include "harness/judge/recording.h"
#include "harness/verb.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the beginning ---- */

static void list(const char *path, struct texts *ret) {
    struct folder f = FOLDER_NONE;
    if (folder_open(&f, path, NULL) == 0)
        folder_list(&f, ".", folder_is_shown, ret, NULL);
    folder_close(&f);
}

/* What a job prints may look like a command: until the end none is obeyed. */
static void stop_commands(struct pipeline *s) {
    BUF_FINI struct buf line = {0};
    snprintf(s->resume, sizeof(s->resume), "::%016" PRIx64 "::\n", random_u64());
    buf_printf(&line, "::stop-commands::%.16s\n", s->resume + 2);
    printing_put(stdout, buf_str(&line), line.len);
}

void pipeline_begin(struct pipeline *s, const char *out) {
    s->runner = runner_find();
    s->out = out;
    s->began_ns = clock_monotonic_ns();
    secrets_take(&s->hidden, &s->names);
    printing_hide(&s->hidden);
    printing_be_plain();
    list(out, &s->before);
    if (s->runner->commands)
        stop_commands(s);
}

/* ---- runs ---- */

static struct err *first_error(struct pipeline *s) {
    return s->failed.code ? NULL : &s->failed;
}

static void cover(struct pipeline *s, const char *dir) {
    struct folder f = FOLDER_NONE;
    if (folder_open(&f, dir, first_error(s)) == 0)
        secrets_cover_tree(&s->hidden, &f, first_error(s));
    folder_close(&f);
}

/* As a server names what lies in its checkout. */
static const char *from_here(struct pipeline *s, const char *dir) {
    char real[4096], here[4096];
    if (!realpath(dir, real) || !getcwd(here, sizeof(here)))
        return dir;
    size_t n = strlen(here);
    bool below = strncmp(real, here, n) == 0 && real[n] == '/';
    return arena_strdup(&s->arena, below ? real + n + 1 : real);
}

static void read_run(struct pipeline *s, const char *dir, bool programs) {
    struct recording *r = mem_new(struct recording);
    BUF_FINI struct buf complaint = {0};
    struct recording_source from = {.dir = dir, .programs = programs};
    if (recording_read(r, &from, &complaint) == 0) {
        judged_take(&mem_push(s->v, s->n), &r->run, from_here(s, dir), &s->arena);
        recording_fini(r);
    } else if (!s->failed.code) {
        err_say(&s->failed, -EINVAL, "%s: %s", dir, buf_str(&complaint));
    }
    free(r);
}

void pipeline_take(struct pipeline *s, const char *dir, bool programs) {
    if (!s->runner)
        return;
    read_run(s, dir, programs);
    cover(s, dir);
}

/* The harness may have broken before there was anything to judge: what it wrote is covered. A run is
 * read before, for a secret may be a word of its scenario. */
static void take_directory(struct pipeline *s, const struct folder *in, const char *name,
                           bool programs) {
    struct folder run = FOLDER_NONE;
    const char *path = arena_printf(&s->arena, "%s/%s", in->path, name);
    if (!folder_has_directory(in, name) || folder_enter(&run, in, name, NULL) != 0)
        return;
    if (folder_has(&run, "history.jsonl") && folder_has(&run, "scenario.yaml"))
        read_run(s, path, programs);
    cover(s, path);
    folder_close(&run);
}

void pipeline_take_new(struct pipeline *s, const char *folder, bool programs) {
    struct folder in = FOLDER_NONE;
    TEXTS_FINI struct texts names = {0};
    bool in_out = s->out && str_eq(folder, s->out);
    if (!s->runner || folder_open(&in, folder, NULL) != 0)
        return;
    folder_list(&in, ".", folder_is_shown, &names, NULL);
    for (size_t i = 0; i < names.n; i++)
        if (!in_out || !texts_has(&s->before, names.v[i]))
            take_directory(s, &in, names.v[i], programs);
    folder_close(&in);
}

void pipeline_missing(struct pipeline *s, const char *name, const char *file, int exit_code,
                      const char *why) {
    if (s->runner)
        judged_missing(&mem_push(s->v, s->n), name, file, exit_code, why);
}

size_t pipeline_count(const struct pipeline *s, const char *name) {
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += *s->v[i].dir && str_eq(s->v[i].name, name);
    return n;
}

/* ---- the end ---- */

static void render(const struct pipeline *s, const struct batch *b,
                   const struct batch_report *report, struct buf *out) {
    report->render(b, out);
    hidden_cover(&s->hidden, out->data, out->len);
}

static bool is_wanted(const struct pipeline *s, const struct batch_report *report) {
    bool special = false;
    for (const struct runner *r = runners; r->sign; r++)
        special |= r->only && str_eq(r->only, report->name);
    return report->file && (!special || (s->runner->only && str_eq(s->runner->only, report->name)));
}

static void write_files(struct pipeline *s, const struct batch *b) {
    struct folder out = FOLDER_NONE;
    if (file_make_dirs(s->out, 0777, first_error(s)) < 0 ||
        folder_open(&out, s->out, first_error(s)) < 0)
        return;
    for (size_t i = 0; batch_reports[i]; i++) {
        BUF_FINI struct buf text = {0};
        if (!is_wanted(s, batch_reports[i]))
            continue;
        render(s, b, batch_reports[i], &text);
        folder_write(&out, batch_reports[i]->file, buf_str(&text), text.len, first_error(s));
        fprintf(stderr, "rankquake: wrote %s/%s\n", s->out, batch_reports[i]->file);
    }
    folder_close(&out);
}

/* variable: names the runner's own file, which is added to. */
static void append(struct pipeline *s, const char *variable, const struct buf *text) {
    const char *path = variable ? getenv(variable) : NULL;
    if (!path || !*path)
        return;
    FILE_CLOSE int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    int code = fd < 0 ? -errno : file_write_all(fd, buf_str(text), text->len, NULL);
    if (code && !s->failed.code)
        err_set(&s->failed, code, "add to %s, which %s names", path, variable);
}

static void tell_runner(struct pipeline *s, const struct batch *b) {
    BUF_FINI struct buf summary = {0}, outputs = {0}, commands = {0};
    render(s, b, batch_report_find("markdown"), &summary);
    append(s, s->runner->summary, &summary);
    buf_printf(&outputs, "outcome=%s\nexit-code=%d\nreports=%s\n", report_outcome(b->exit_code),
               b->exit_code, s->out);
    append(s, s->runner->outputs, &outputs);
    if (*s->resume)
        buf_puts(&commands, s->resume);
    if (s->runner->commands)
        render(s, b, batch_report_find("github"), &commands);
    if (s->runner->failed && b->exit_code)
        buf_printf(&commands, "%s\n", s->runner->failed);
    printing_put(stdout, buf_str(&commands), commands.len);
}

static void pipeline_fini(struct pipeline *s) {
    fflush(stdout);
    printing_hide(NULL);
    hidden_fini(&s->hidden);
    texts_fini(&s->names);
    texts_fini(&s->before);
    arena_fini(&s->arena);
    free(s->v);
    *s = (struct pipeline){0};
}

int pipeline_end(struct pipeline *s, const char *verb, const char *title, int code) {
    if (!s->runner)
        return code;
    double took_s = (double)(clock_monotonic_ns() - s->began_ns) / 1e9;
    struct batch b = {.title = title,
                      .v = s->v,
                      .n = s->n,
                      .exit_code = code,
                      .took_s = took_s,
                      .hidden = texts_list(&s->names)};
    write_files(s, &b);
    tell_runner(s, &b);
    if (s->failed.code)
        fprintf(stderr, "rankquake %s: --ci: %s\n", verb, s->failed.msg);
    code = s->failed.code && code == EXIT_PASS ? EXIT_BROKEN : code;
    pipeline_fini(s);
    return code;
}
