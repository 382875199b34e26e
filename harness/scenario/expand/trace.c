#include "harness/scenario/expand/trace.h"

#include "harness/scenario/expand/include.h"
#include "harness/scenario/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { START, END, NODE, CAUSE, COLUMNS, CELLS_MAX = 64 };
static const char *const columns[] = {"start", "end", "node", "cause"};

struct table {
    struct reader *r;
    struct place at; /* of what is being read */
    int of[COLUMNS]; /* which cell is this column */
    int kind;        /* 0: no time has been read yet, 1: seconds, 2: dates */
    struct trace *out;
    size_t cap;
};

struct cell {
    const char *text;
    int column; /* in the line, from 1 */
};

/* ---- cells ---- */

static const char *unquoted(struct arena *a, const char *s, size_t n) {
    BUF_FINI struct buf text = {0};
    for (size_t i = 0; i < n; i++) {
        buf_putc(&text, s[i]);
        i += s[i] == '"' && i + 1 < n && s[i + 1] == '"';
    }
    return arena_strdup(a, buf_str(&text));
}

/* The cell at s, and where the next begins; NULL: the quotation does not end. */
static const char *read_cell(struct arena *a, const char *s, const char *end, const char **ret) {
    while (s < end && *s == ' ')
        s++;
    if (s < end && *s == '"') {
        const char *from = ++s;
        while (s < end && (*s != '"' || (s + 1 < end && s[1] == '"')))
            s += *s == '"' ? 2 : 1;
        if (s >= end)
            return NULL;
        *ret = unquoted(a, from, (size_t)(s - from));
        while (s < end && *s != ',')
            s++;
        return s;
    }
    const char *from = s;
    while (s < end && *s != ',')
        s++;
    const char *last = s;
    while (last > from && (last[-1] == ' ' || last[-1] == '\r'))
        last--;
    *ret = arena_strndup(a, from, (size_t)(last - from));
    return s;
}

/* How many cells the line has, -1 after an error. */
static int read_cells(struct table *t, const char *line, const char *end,
                      struct cell v[CELLS_MAX]) {
    int n = 0;
    for (const char *s = line; n < CELLS_MAX; s++) {
        v[n].column = (int)(s - line) + 1;
        s = read_cell(t->r->arena, s, end, &v[n].text);
        if (!s) {
            t->at.column = v[n].column;
            diagnostics_add(t->r->d, t->at, "a quotation does not end in this line");
            return -1;
        }
        n++;
        if (s >= end)
            break;
    }
    return n;
}

/* ---- values ---- */

static bool parse_date(const char *s, int64_t *ret_ns) {
    int year, month, day, hour = 0, minute = 0, second = 0, n = 0, m = 0;
    if (sscanf(s, "%4d-%2d-%2d%n", &year, &month, &day, &n) != 3 || n == 0)
        return false;
    if (s[n] == ' ' || s[n] == 'T') {
        if (sscanf(s + n + 1, "%2d:%2d%n", &hour, &minute, &m) != 2)
            return false;
        n += 1 + m;
        m = 0;
        if (s[n] == ':' && sscanf(s + n, ":%2d%n", &second, &m) == 1)
            n += m;
    }
    if (s[n] == 'Z')
        n++;
    if (s[n] || year < 1970 || year > 2200 || month < 1 || month > 12 || day < 1 || day > 31 ||
        hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60)
        return false;
    struct tm when = {.tm_year = year - 1900,
                      .tm_mon = month - 1,
                      .tm_mday = day,
                      .tm_hour = hour,
                      .tm_min = minute,
                      .tm_sec = second};
    *ret_ns = timegm(&when) * INT64_C(1000000000);
    return true;
}

static bool parse_time(struct table *t, const struct cell *c, const char *name, int64_t *ret_ns) {
    char *end = NULL;
    double v = *c->text >= '0' && *c->text <= '9' ? strtod(c->text, &end) : -1;
    int kind = 0;
    t->at.column = c->column;
    if (end && !*end && v < 9e9) {
        *ret_ns = (int64_t)(v * 1e9);
        kind = 1;
    } else if (parse_date(c->text, ret_ns)) {
        kind = 2;
    }
    if (kind && (!t->kind || kind == t->kind)) {
        t->kind = kind;
        return true;
    }
    return diagnostics_add(
        t->r->d, t->at,
        kind ? "%s: \"%s\" is %s the times above are not; write all in one way"
             : "%s: \"%s\" is no time; write seconds, or a date such as 2024-05-01 13:00",
        name, c->text, kind == 1 ? "in seconds, which" : "a date, which");
}

/* ---- lines ---- */

static void read_header(struct table *t, const struct cell *v, int n) {
    for (int k = 0; k < COLUMNS; k++) {
        t->of[k] = -1;
        for (int i = 0; i < n; i++)
            if (strcasecmp(v[i].text, columns[k]) == 0)
                t->of[k] = i;
        t->at.column = 1;
        if (t->of[k] < 0)
            diagnostics_add(t->r->d, t->at,
                            "the first line names no column \"%s\"; it must have start, end, node "
                            "and cause",
                            columns[k]);
    }
}

static struct trace_row *new_row(struct table *t) {
    struct trace *x = t->out;
    if (x->n == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 256;
        struct trace_row *v = arena_array(t->r->arena, struct trace_row, t->cap);
        for (size_t i = 0; i < x->n; i++)
            v[i] = x->v[i];
        x->v = v;
    }
    return &x->v[x->n++];
}

static void read_row(struct table *t, const struct cell *v, int n) {
    struct trace_row row = {.place = t->at};
    for (int k = 0; k < COLUMNS; k++)
        if (t->of[k] >= n) {
            diagnostics_add(t->r->d, t->at, "the line has %d cells and no %s", n, columns[k]);
            return;
        }
    if (!parse_time(t, &v[t->of[START]], "start", &row.start_ns) ||
        !parse_time(t, &v[t->of[END]], "end", &row.end_ns))
        return;
    row.node = v[t->of[NODE]].text;
    row.cause = v[t->of[CAUSE]].text;
    if (row.end_ns < row.start_ns)
        diagnostics_add(t->r->d, t->at, "it ends before it begins");
    else if (!*row.node)
        diagnostics_add(t->r->d, t->at, "it names no node");
    else
        *new_row(t) = row;
}

static void read_lines(struct table *t, const char *text) {
    struct cell v[CELLS_MAX];
    bool header = true;
    int before = t->r->d->errors;
    for (t->at.line = 1; *text; t->at.line++) {
        const char *end = text + strcspn(text, "\n");
        bool blank = text[strspn(text, " \t\r")] == '\n' || *text == '#';
        t->at.column = 1;
        int n = blank ? -1 : read_cells(t, text, end, v);
        if (n > 0 && header)
            read_header(t, v, n);
        else if (n > 0)
            read_row(t, v, n);
        if (header && t->r->d->errors > before)
            return;
        header &= n <= 0;
        text = *end ? end + 1 : end;
    }
}

static int by_start(const void *a, const void *b) {
    const struct trace_row *x = a, *y = b;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return x->place.line - y->place.line;
}

bool trace_read(struct reader *r, const char *file, struct place p, struct trace *ret) {
    struct diagnostics *d = r->d;
    int errors = d->errors, reading = d->reading;
    *ret = (struct trace){0};
    if (!include_begin_file(d, file, p))
        return false;
    struct table t = {.r = r, .at = {.file = d->reading}, .out = ret};
    struct buf *source = diagnostics_source(d, d->reading);
    d->reading = reading;
    if (!source_read_into(file, source, p, arena_printf(r->arena, "trace: %s ", file), d))
        return false;
    if (memchr(buf_str(source), '\0', source->len))
        diagnostics_add(d, p, "trace: %s is not text", file);
    else
        read_lines(&t, buf_str(source));
    if (d->errors == errors && (!ret->n || ret->n > TRACE_ROWS_MAX))
        diagnostics_add(d, p,
                        ret->n ? "trace: %s has more than 10000 faults" : "trace: %s has no faults",
                        file);
    if (d->errors > errors)
        return false;
    qsort(ret->v, ret->n, sizeof(*ret->v), by_start);
    return true;
}
