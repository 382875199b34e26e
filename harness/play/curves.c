#include "harness/play/curves.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/texts.h"
#include "base/sys/file.h"
#include "base/sys/printing.h"
#include "harness/judge/recording.h"
#include "harness/verb.h"
#include "reports/curve/curve.h"
#include "reports/report.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEAD_BYTES = 1 << 16 }; /* of a history: its first line is in there */

/* The first line of a history says of which file it is and, by its stamp, when it began. */
static bool is_ours(const struct curves_request *q, const struct folder *run, const char *file) {
    char head[HEAD_BYTES];
    ARENA_FINI struct arena a = {0};
    FILE_CLOSE int fd = folder_open_file(run, "history.jsonl", NULL);
    ssize_t n = fd >= 0 ? read(fd, head, sizeof(head)) : -1;
    const char *end = n > 0 ? memchr(head, '\n', (size_t)n) : NULL;
    const struct json *line = end ? json_parse(&a, head, (size_t)(end - head), NULL) : NULL;
    return line && json_get_i64(line, "t", 0) >= q->since_ns &&
           str_eq(json_get_string(line, "file", ""), file) &&
           !json_get_bool(line, "control", false);
}

static void add_run(struct curve *c, const struct curves_request *q, const char *dir) {
    struct recording *r = mem_new(struct recording);
    BUF_FINI struct buf complaint = {0};
    struct recording_source from = {.dir = dir, .programs = !q->selection->untrusted};
    if (recording_read(r, &from, &complaint) == 0) { /* the harness may have broken in this one */
        curve_add(c, &r->run, dir);
        recording_fini(r);
    }
    free(r);
}

static void add_runs(struct curve *c, const struct curves_request *q, const struct folder *out,
                     const char *file) {
    TEXTS_FINI struct texts names = {0};
    folder_list(out, ".", folder_is_shown, &names, NULL);
    for (size_t i = 0; i < names.n; i++) {
        struct folder run = FOLDER_NONE;
        if (folder_has_directory(out, names.v[i]) &&
            folder_enter(&run, out, names.v[i], NULL) == 0 && is_ours(q, &run, file))
            add_run(c, q, arena_printf(&c->arena, "%s/%s", q->out, names.v[i]));
        folder_close(&run);
    }
}

static void draw(const struct curves_request *q, const struct folder *out, const struct curve *c) {
    static const struct report_style plain = {0};
    struct report_style style = q->table ? report_style_of(q->table) : plain;
    BUF_FINI struct buf table = {0}, picture = {0};
    struct err err = {0};
    const char *name = c->name;
    char file[300];
    curve_terminal.render(c, &style, &table);
    curve_svg.render(c, &plain, &picture);
    snprintf(file, sizeof(file), "%.200s-curve.svg", name);
    if (q->table) {
        fputc('\n', q->table);
        printing_put(q->table, buf_str(&table), table.len);
    }
    if (folder_write(out, file, picture.data, picture.len, &err) == 0)
        fprintf(q->said, "curve      %s/%s\n", q->out, file);
    else
        fprintf(stderr, "rankquake run: the picture of the sweep is not there: %s\n", err.msg);
}

static void tell(const struct curves_request *q, const char *file) {
    struct folder out = FOLDER_NONE;
    struct curve c = {0};
    if (folder_open(&out, q->out, NULL) < 0)
        return;
    add_runs(&c, q, &out, file);
    if (c.n > 1 && curve_settle(&c, NULL) == 0)
        draw(q, &out, &c);
    curve_fini(&c);
    folder_close(&out);
}

static bool is_first(const struct selection *s, size_t i) {
    for (size_t k = 0; k < i; k++)
        if (str_eq(s->v[k].file, s->v[i].file))
            return false;
    return true;
}

static bool is_swept(const struct selection *s, size_t i) {
    for (size_t k = 0; k < s->n; k++)
        if (s->v[k].sets != s->v[i].sets && str_eq(s->v[k].file, s->v[i].file))
            return true;
    return false;
}

void curves_tell(const struct curves_request *q) {
    const struct selection *s = q->selection;
    for (size_t i = 0; i < s->n; i++)
        if (is_first(s, i) && is_swept(s, i))
            tell(q, s->v[i].file);
}
