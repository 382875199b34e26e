#include "tests/harness/judge/checks/verdicts.h"

#include "base/str.h"
#include "harness/judge/checks/check.h"
#include "tests/harness/judge/checks/alterations.h"
#include "tests/harness/judge/checks/cases_judge.h"

#include <inttypes.h>
#include <sys/mman.h>

static const char *const histories[] = {
    "given",  "gpu-worker-killed", "lines",        "node-powered-off", "printed-steps",
    "probed", "weights",           "worker-killed"};
static const char *const dialects[] = {"strict", "torchrun", "template", "slurm", "legacy"};

enum { HISTORIES_N = sizeof(histories) / sizeof(*histories), DIALECTS_N = DIALECT_LEGACY + 1 };

/* ---- in words ---- */

static void put_part(struct buf *out, const char *name, const char *text) {
    if (*text)
        buf_printf(out, " | %s %s", name, text);
}

void verdicts_put(struct buf *out, const struct finding *f) {
    buf_printf(out, "%s %s: %s", f->check, finding_status_name(f->status), f->seen);
    put_part(out, "broken", f->broken);
    put_part(out, "expected", f->expected);
    put_part(out, "where", f->where);
    for (size_t i = 0; i < sizeof(f->evidence) / sizeof(*f->evidence) && f->evidence[i]; i++)
        buf_printf(out, "%s %" PRId64, i ? "" : " | evidence", f->evidence[i]);
    buf_puts(out, f->lost ? " | lost" : "");
    buf_puts(out, f->leads ? " | leads" : "");
    buf_puts(out, f->loud ? " | loud\n" : "\n");
}

static void put_goodput(struct buf *out, const struct goodput *g) {
    buf_printf(out,
               "goodput: %s %.3f %% of %" PRId64 " steps, %.6f s, %.6f s%s, %" PRId64 " %" PRId64
               "\n",
               g->unknown ? g->unknown : "known", g->percent, g->steps, g->span_s, g->control_s,
               g->printed ? ", printed" : "", g->first_seq, g->last_seq);
}

static void put_end(struct buf *out, const struct verdict *v) {
    put_goodput(out, &v->goodput);
    buf_printf(out, "exit: %d\n", v->exit_code);
}

/* FNV-1a. */
uint64_t verdicts_sum(uint64_t so_far, const char *text) {
    for (; *text; text++)
        so_far = (so_far ^ (unsigned char)*text) * 1099511628211u;
    return so_far;
}

/* ---- the difference ---- */

/* They end with 0. */
static bool same_evidence(const int64_t *a, const int64_t *b) {
    enum { N = sizeof(((struct finding *)0)->evidence) / sizeof(*a) };
    size_t i = 0;
    while (i < N && a[i] == b[i] && a[i])
        i++;
    return i == N || a[i] == b[i];
}

static bool same(const struct finding *a, const struct finding *b) {
    return a->status == b->status && a->lost == b->lost && a->leads == b->leads &&
           a->loud == b->loud && str_eq(a->seen, b->seen) && str_eq(a->broken, b->broken) &&
           str_eq(a->expected, b->expected) && str_eq(a->where, b->where) &&
           same_evidence(a->evidence, b->evidence);
}

void verdicts_put_difference(struct buf *out, const struct verdict *base, const struct verdict *v) {
    struct buf was = {0}, is = {0};
    assert_int_equal(base->n, v->n);
    for (size_t i = 0; i < v->n; i++)
        if (!same(&base->v[i], &v->v[i]))
            verdicts_put(out, &v->v[i]);
    put_end(&was, base);
    put_end(&is, v);
    if (!str_eq(buf_str(&was), buf_str(&is)))
        buf_puts(out, buf_str(&is));
    buf_fini(&was);
    buf_fini(&is);
}

static void judge_edited(struct verdict *ret, const char *history, const struct edit *edits,
                         enum dialect d) {
    struct history h;
    planted_load(&h, history, edits);
    cases_judge(ret, &h, history, d);
    history_fini(&h);
}

/* What is said of a history as it was recorded; each is judged once. */
static const struct verdict *base_of(const char *history, enum dialect d) {
    static struct verdict bases[HISTORIES_N][DIALECTS_N];
    static const struct edit none[1];
    for (size_t i = 0; i < HISTORIES_N; i++)
        if (str_eq(histories[i], history)) {
            if (!bases[i][d].n)
                judge_edited(&bases[i][d], history, none, d);
            return &bases[i][d];
        }
    fail_msg("there is no history %s", history);
    return NULL;
}

/* ---- histories and cases ---- */

void verdicts_of_histories(struct buf *out) {
    for (size_t i = 0; i < HISTORIES_N; i++) {
        const struct verdict *strict = base_of(histories[i], DIALECT_STRICT);
        buf_printf(out, "%shistory %s\n", i ? "\n" : "", histories[i]);
        for (size_t k = 0; k < strict->n; k++)
            verdicts_put(out, &strict->v[k]);
        put_end(out, strict);
        for (int d = DIALECT_TORCHRUN; d <= DIALECT_LEGACY; d++) {
            buf_printf(out, "\nhistory %s under %s\n", histories[i], dialects[d]);
            verdicts_put_difference(out, strict, base_of(histories[i], (enum dialect)d));
        }
    }
}

void verdicts_of_cases(const struct cases *c, const char *file, struct buf *out) {
    size_t n = strlen(file);
    for (const struct planted_case *k = c->first; k; k = k->next) {
        struct verdict v;
        if (strncmp(k->place, file, n) != 0 || k->place[n] != ':')
            continue;
        judge_edited(&v, k->history, k->edits, k->dialect);
        buf_printf(out, "%scase %s\n", out->len ? "\n" : "", k->name);
        verdicts_put_difference(out, base_of(k->history, k->dialect), &v);
    }
}

/* ---- changes ---- */

/* A recorded history, line by line, with one of its lines changed. */
struct changed {
    const char *name;
    struct arena arena;
    char **lines;
    size_t lines_n, at; /* the line that is changed */
    bool differs[64];   /* of the table of checks: one of the changes made it say another thing */
    uint64_t sum;
    struct buf *told; /* NULL: nobody wants it in full */
};

static void changed_open(struct changed *c, const char *name) {
    struct buf text = {0};
    *c = (struct changed){.name = name};
    read_text(&text, name);
    c->lines = str_split(&c->arena, arena_strdup(&c->arena, buf_str(&text)), '\n', NULL);
    while (c->lines[c->lines_n] && *c->lines[c->lines_n])
        c->lines_n++;
    buf_fini(&text);
}

static void add_to_sum(struct changed *c, const char *text) {
    c->sum = verdicts_sum(c->sum, text);
}

/* Returns whether it can be loaded. */
static bool load_text(struct history *h, const char *text, size_t len) {
    int fd = memfd_create("changed", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, len), len);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return history_load_from(h, fd, "changed", NULL) == 0;
}

static void note_differences(struct changed *c, const struct verdict *v) {
    const struct verdict *base = base_of(c->name, DIALECT_STRICT);
    struct buf is = {0};
    verdicts_put_difference(&is, base, v);
    add_to_sum(c, buf_str(&is));
    if (c->told)
        buf_puts(c->told, buf_str(&is));
    buf_fini(&is);
    for (size_t i = 0; i < v->n; i++)
        c->differs[i] |= !same(&base->v[i], &v->v[i]);
}

static void put_line(struct buf *text, const char *line, size_t number) {
    const char *rest = strchr(line, ',');
    buf_printf(text, "{\"seq\":%zu%.*s\n", number, (int)strcspn(rest, "\n"), rest);
}

/* Judges the history with `instead` in place of its line c->at (NULL: without it, and its number is
 * missed). */
static void judge_changed(void *arg, const char *what, const char *instead) {
    struct changed *c = arg;
    struct buf text = {0};
    struct history h;
    struct verdict v;
    const char *second = instead ? strchr(instead, '\n') : NULL;
    for (size_t i = 0; i < c->lines_n; i++) {
        if (i != c->at || instead)
            put_line(&text, i == c->at ? instead : c->lines[i], i + 1 + (second && i > c->at));
        if (i == c->at && second)
            put_line(&text, second + 1, i + 2);
    }
    if (c->told)
        buf_printf(c->told, "%s %s\n", what, instead ? instead : "");
    if (!load_text(&h, buf_str(&text), text.len))
        add_to_sum(c, "cannot be loaded");
    else {
        cases_judge(&v, &h, c->name, DIALECT_STRICT);
        note_differences(c, &v);
        history_fini(&h);
    }
    buf_fini(&text);
}

static void change_line(struct changed *c, size_t at) {
    const struct alterations a = {&c->arena, c->lines, c->lines_n, judge_changed, c};
    memset(c->differs, 0, sizeof(c->differs));
    c->sum = VERDICTS_SUM_OF_NOTHING;
    c->at = at;
    alterations_of(&a, at, 2);
}

static void put_kind(struct buf *out, const char *line) {
    const char *kind = strstr(line, "\"kind\":\"");
    kind += strlen("\"kind\":\"");
    buf_put(out, kind, strcspn(kind, "\""));
}

void verdicts_of_changes(const char *history, struct buf *out) {
    struct changed c;
    changed_open(&c, history);
    for (size_t i = 0; i < c.lines_n; i++) {
        change_line(&c, i);
        buf_printf(out, "%zu ", i + 1);
        put_kind(out, c.lines[i]);
        buf_puts(out, ":");
        for (size_t k = 0; k < base_of(history, DIALECT_STRICT)->n; k++)
            if (c.differs[k])
                buf_printf(out, " %s", base_of(history, DIALECT_STRICT)->v[k].check);
        buf_printf(out, " %016" PRIx64 "\n", c.sum);
    }
    arena_fini(&c.arena);
}

void verdicts_of_record(const char *history, size_t line, struct buf *out) {
    struct changed c;
    changed_open(&c, history);
    assert_in_range(line, 1, c.lines_n);
    c.told = out;
    change_line(&c, line - 1);
    arena_fini(&c.arena);
}
