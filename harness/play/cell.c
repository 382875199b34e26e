#include "harness/play/cell.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/folder.h"
#include "base/sys/process.h"
#include "harness/judge/recording.h"
#include "reports/report.h"
#include "harness/verb.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PRINTED_MAX = 16 << 20, WORDS_MAX = 12 };

static const char *const *words_of(const struct cell_spec *s, struct arena *a, const char *out) {
    size_t sets = 0, n = 0;
    while (s->sets[sets])
        sets++;
    const char **v = arena_array(a, const char *, WORDS_MAX + 2 * sets);
    v[n++] = program_invocation_name;
    v[n++] = "run";
    v[n++] = s->file;
    v[n++] = "--out";
    v[n++] = out;
    if (s->seed) {
        v[n++] = "--seed";
        v[n++] = s->seed;
    }
    if (s->fresh)
        v[n++] = "--fresh";
    for (size_t i = 0; i < sets; i++) {
        v[n++] = "--set";
        v[n++] = s->sets[i];
    }
    return v;
}

const char *cell_find_run(struct arena *a, const char *out) {
    struct folder f = FOLDER_NONE;
    TEXTS_FINI struct texts names = {0};
    const char *found = NULL;
    if (folder_open(&f, out, NULL) == 0)
        folder_list(&f, ".", folder_is_shown, &names, NULL);
    for (size_t i = 0; i < names.n; i++) {
        if (folder_has(&f, arena_printf(a, "%s/scenario.yaml", names.v[i])))
            found = arena_strdup(a, names.v[i]);
    }
    folder_close(&f);
    return found;
}

const char *cell_reason(struct arena *a, const char *printed, const char *file) {
    static const char prefix[] = "rankquake run: ";
    const char *reason = "it said nothing";
    char **lines = str_split(a, printed, '\n', NULL);
    for (; *lines; lines++)
        if (str_starts(*lines, prefix))
            reason = *lines + strlen(prefix);
    size_t n = strlen(file);
    if (strncmp(reason, file, n) == 0 && str_starts(reason + n, ": "))
        reason += n + 2;
    return reason;
}

static bool has_verdict(int code) {
    return code == EXIT_PASS || code == EXIT_FAIL || code == EXIT_INCONCLUSIVE ||
           code == EXIT_LEFTOVERS;
}

static void read_run(struct arena *a, const char *out, struct comparison_cell *ret) {
    struct recording *rec = mem_new(struct recording);
    BUF_FINI struct buf complaint = {0};
    const char *run = cell_find_run(a, out);
    ret->why = "there is no run directory";
    if (run && recording_load(rec, arena_printf(a, "%s/%s", out, run), &complaint) == 0) {
        comparison_read(ret, &rec->run);
        recording_fini(rec);
        ret->why = "";
    } else if (complaint.len) {
        ret->why = arena_strdup(a, buf_str(&complaint));
    }
    free(rec);
}

static void read_reason(struct arena *a, const char *file, const char *printed,
                        struct comparison_cell *ret) {
    BUF_FINI struct buf text = {0};
    file_read(printed, PRINTED_MAX, &text, NULL);
    ret->why = cell_reason(a, buf_str(&text), file);
}

/* The job of another cell may have been here before. */
static int open_printed(const struct cell_spec *s, struct arena *a, struct err *err) {
    struct folder f;
    int r = file_make_dirs(s->dir, 0777, err);
    if (r || (r = folder_open(&f, s->dir, err)))
        return r;
    if ((r = folder_make(&f, s->name, 0777, err)) == 0)
        r = folder_create(&f, arena_printf(a, "%s/printed.txt", s->name), err);
    folder_close(&f);
    return r;
}

static int execute(const struct cell_spec *s, struct arena *a, const char *out, const char *printed,
                   struct err *err) {
    int status = 0, r;
    FILE_CLOSE int log = open_printed(s, a, err);
    r = log < 0 ? log : 0;
    struct process_spawn spawn = {.argv = words_of(s, a, out),
                                  .file = "/proc/self/exe",
                                  .fds = (int[]){-1, log, log},
                                  .death_signal = SIGTERM};
    struct process p;
    if (r == 0)
        r = process_spawn(&spawn, &p, err);
    if (r)
        return r;
    r = process_reap(&p, -1, &status);
    process_close(&p);
    if (r == 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGINT)
        return EXIT_INTERRUPTED; /* before it took signals itself */
    if (r || !WIFEXITED(status))
        return err_say(err, -ECHILD, "the harness of this run died; see %s", printed);
    return WEXITSTATUS(status);
}

void cell_run(const struct cell_spec *s, struct arena *a, struct comparison_cell *ret) {
    const char *out = arena_printf(a, "%s/%s", s->dir, s->name);
    const char *printed = arena_printf(a, "%s/printed.txt", out);
    struct err err = {0};
    int64_t begin_ns = clock_monotonic_ns();
    int code = execute(s, a, out, printed, &err);
    *ret = (struct comparison_cell){.exit_code = code < 0 ? EXIT_BROKEN : code,
                                    .took_ns = clock_monotonic_ns() - begin_ns,
                                    .detect_ns = -1,
                                    .recover_ns = -1};
    const char *run = cell_find_run(a, out);
    ret->dir = run ? arena_printf(a, "%s/%s", s->name, run) : NULL;
    if (code < 0)
        ret->why = arena_strdup(a, err.msg);
    else if (code == EXIT_INTERRUPTED)
        ret->why = "by a signal";
    else if (has_verdict(code))
        read_run(a, out, ret);
    else
        read_reason(a, s->file, printed, ret);
}

int cell_write_report(const char *dir, const struct comparison_report *r,
                      const struct comparison *c, const struct report_style *style) {
    struct buf text = {0}, path = {0};
    struct err err = {0};
    buf_printf(&path, "%s/%s", dir, r->file);
    r->render(c, style, &text);
    int code = file_write_atomic(buf_str(&path), text.data, text.len, &err);
    if (code < 0)
        fprintf(stderr, "rankquake compare: %s\n", err.msg);
    buf_fini(&text);
    buf_fini(&path);
    return code;
}
