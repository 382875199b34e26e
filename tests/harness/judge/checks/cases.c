#include "tests/harness/judge/checks/cases.h"

#include "base/json.h"
#include "base/str.h"
#include "base/sys/file.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_MAX = 1 << 20 };

struct reader {
    struct cases *cases;
    const char *file, *check;
    int line;
    struct planted_case *now; /* NULL: between two cases */
    size_t edits_n;
    const char *in, *in_also; /* of the `in` that counts; NULL: there was none */
    struct err *err;
};

static int refuse(const struct reader *r, const char *why, const char *what) {
    return err_say(r->err, -EINVAL, "%s:%d: %s%s", r->file, r->line, why, what);
}

static const char *place(const struct reader *r) {
    return arena_printf(&r->cases->arena, "%s:%d", r->file, r->line);
}

/* ---- edits ---- */

static struct edit *newest(const struct reader *r) {
    return r->edits_n ? &r->now->edits[r->edits_n - 1] : NULL;
}

static int add_edit(struct reader *r, const char *line, const char *also, const char *from,
                    const char *to) {
    if (r->edits_n == EDITS_MAX)
        return refuse(r, "too many edits", "");
    r->now->edits[r->edits_n++] = (struct edit){line, also, from, to, place(r)};
    return 0;
}

/* "A & B": both. */
static const char *split(struct reader *r, const char *text, const char **ret_also) {
    const char *amp = strstr(text, " & ");
    *ret_also = amp ? amp + 3 : NULL;
    return amp ? arena_strndup(&r->cases->arena, text, (size_t)(amp - text)) : text;
}

static int take_in(struct reader *r, const char *text) {
    r->in = split(r, text, &r->in_also);
    return 0;
}

static int take_from(struct reader *r, const char *text) {
    return r->in ? add_edit(r, r->in, r->in_also, text, "") : refuse(r, "`in` is missing", "");
}

static int take_to(struct reader *r, const char *text) {
    struct edit *e = newest(r);
    if (!e || !e->from || !e->to || *e->to)
        return refuse(r, "+ comes behind a line with -", "");
    e->to = text;
    return 0;
}

static int take_drop(struct reader *r, const char *text) {
    const char *also, *line = split(r, text, &also);
    return add_edit(r, line, also, "", NULL);
}

static int take_after(struct reader *r, const char *text) {
    const char *also, *line = split(r, text, &also);
    return add_edit(r, line, also, NULL, NULL);
}

static int take_record(struct reader *r, const char *text) {
    struct arena *a = &r->cases->arena;
    struct edit *e = newest(r);
    struct err err;
    if (!e || e->from)
        return refuse(r, "a record comes behind a line with `after`", "");
    if (!json_parse(a, text, strlen(text), &err))
        return refuse(r, "", err.msg);
    e->to = e->to ? arena_printf(a, "%s\n{\"seq\":0,%s", e->to, text + 1) : text;
    return 0;
}

/* ---- the case ---- */

static int take_case(struct reader *r, const char *name) {
    struct cases *all = r->cases;
    struct planted_case *c = arena_new(&all->arena, struct planted_case);
    for (const struct planted_case *before = all->first; before; before = before->next)
        if (str_eq(before->name, name) && str_eq(before->check, r->check))
            return refuse(r, "a case of this name begins at ", before->place);
    *c = (struct planted_case){.place = place(r), .name = name, .check = r->check, .exit_code = -1};
    *(all->last ? &all->last->next : &all->first) = c;
    all->last = r->now = c;
    r->edits_n = 0;
    r->in = NULL;
    return 0;
}

static int take_history(struct reader *r, const char *name) {
    const char *path = arena_printf(&r->cases->arena, HISTORY_PATH, name);
    r->now->history = name;
    return access(path, R_OK) < 0 ? refuse(r, "there is no ", path) : 0;
}

static int take_check(struct reader *r, const char *name) {
    r->now->check = name;
    return check_find(name) ? 0 : refuse(r, "there is no check ", name);
}

static int take_under(struct reader *r, const char *whose) {
    static const char *const names[] = {"", "torchrun", "template", "slurm", "legacy"};
    for (int i = DIALECT_TORCHRUN; i <= DIALECT_LEGACY; i++)
        if (str_eq(whose, names[i])) {
            r->now->dialect = (enum dialect)i;
            return 0;
        }
    return refuse(r, "neither torchrun, template, slurm nor legacy: ", whose);
}

static int take_exit(struct reader *r, const char *code) {
    int64_t n = -1;
    if (!str_to_i64(code, 0, 9, &n))
        return refuse(r, "no exit code: ", code);
    r->now->exit_code = (int)n;
    return 0;
}

/* It ends a case. */
static int take_answer(struct reader *r, enum finding_status status, const char *seen) {
    struct planted_case *c = r->now;
    const struct edit *e = newest(r);
    if (!c->history || !c->check)
        return refuse(r, c->history ? "no check" : "no history", " in this case");
    if (e && !e->from && !e->to)
        return refuse(r, "no record behind `after` in this case", "");
    if (!*seen)
        return refuse(r, "what the check must say is missing", "");
    c->status = status;
    c->seen = seen;
    r->now = NULL;
    return 0;
}

/* ---- lines ---- */

static const struct word {
    const char *name;
    int (*take)(struct reader *r, const char *text);
} words[] = {
    {"history", take_history}, {"in", take_in},       {"-", take_from},      {"+", take_to},
    {"drop", take_drop},       {"after", take_after}, {"check", take_check}, {"exit", take_exit},
    {"under", take_under}};

static int take_line(struct reader *r, const char *line) {
    size_t n = strcspn(line, " ");
    const char *word = arena_strndup(&r->cases->arena, line, n),
               *text = line + n + (line[n] == ' ');
    if (!*line || *line == '#')
        return 0;
    if (str_eq(word, "case"))
        return r->now ? refuse(r, "the case in front of it has no answer", "") : take_case(r, text);
    if (!r->now)
        return refuse(r, "a case begins with `case`, not with ", line);
    if (*line == '{')
        return take_record(r, line);
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (str_eq(words[i].name, word))
            return words[i].take(r, text);
    for (int s = FINDING_PASS; s <= FINDING_SKIP; s++)
        if (str_eq(finding_status_name((enum finding_status)s), word))
            return take_answer(r, (enum finding_status)s, text);
    return refuse(r, "not a word of a case: ", word);
}

int cases_parse(struct cases *c, const char *file, const char *check, const char *text,
                struct err *err) {
    struct reader r = {.cases = c, .file = file, .check = check, .err = err};
    int rc = 0;
    for (char **line = str_split(&c->arena, text, '\n', NULL); *line && rc == 0; line++) {
        r.line++;
        rc = take_line(&r, *line);
    }
    return rc == 0 && r.now ? refuse(&r, "the last case has no answer", "") : rc;
}

int cases_read(struct cases *c, const char *file, const char *check, struct err *err) {
    struct buf text = {0};
    const char *name = arena_strdup(&c->arena, file);
    int rc = file_read(file, FILE_MAX, &text, err);
    if (rc == 0)
        rc = cases_parse(c, name, check, arena_strdup(&c->arena, buf_str(&text)), err);
    buf_fini(&text);
    return rc;
}

static int read_one(struct cases *c, const char *dir, const char *name, struct err *err) {
    char file[PATH_MAX], check[NAME_MAX + 1];
    snprintf(file, sizeof(file), "%s/%s", dir, name);
    snprintf(check, sizeof(check), "%.*s", (int)strcspn(name, "."), name);
    if (!*check)
        return 0;
    const struct check *of = check_find(check);
    return of ? cases_read(c, file, of->name, err)
              : err_say(err, -EINVAL, "%s: there is no check %s", file, check);
}

int cases_read_all(struct cases *c, const char *dir, struct err *err) {
    struct dirent **names;
    int n = scandir(dir, &names, NULL, alphasort);
    int rc = n < 0 ? err_set(err, -errno, "%s", dir) : 0;
    for (int i = 0; i < n; i++) {
        rc = rc ? rc : read_one(c, dir, names[i]->d_name, err);
        free(names[i]);
    }
    if (n >= 0)
        free(names);
    return rc;
}

void cases_fini(struct cases *c) {
    arena_fini(&c->arena);
    *c = (struct cases){0};
}
