#include "tests/mutate/point.h"

#include "base/mem.h"
#include "base/str.h"
#include "tests/mutate/operator.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* FNV-1a; white space is one blank, and none where the text ends. */
static uint32_t hash_text(uint32_t h, const char *text, size_t n) {
    bool blank = false, begun = false;
    for (size_t i = 0; i < n; i++) {
        if (isspace((unsigned char)text[i])) {
            blank = begun;
            continue;
        }
        if (blank)
            h = (h ^ ' ') * 16777619U;
        h = (h ^ (unsigned char)text[i]) * 16777619U;
        blank = false;
        begun = true;
    }
    return (h ^ 0xffU) * 16777619U;
}

static char *name_of(const struct node *holder) {
    CXString name = clang_getCursorSpelling(holder->cursor);
    const char *text = clang_getCString(name);
    /* What has no name is called by clang after its place in the file. */
    char *ret = mem_strdup(text && *text && !strpbrk(text, " :(") ? text : "-");
    clang_disposeString(name);
    return ret;
}

static unsigned line_of(const struct source *s, size_t offset) {
    unsigned line = 1;
    for (size_t i = 0; i < offset; i++)
        line += s->text.data[i] == '\n';
    return line;
}

static void find_text(const struct finding *f, const char *operator, const struct node * holder,
                      size_t begin, size_t end, char *text) {
    struct points *p = f->points;
    const struct source *s = f->source;
    uint32_t h = hash_text(2166136261U, s->text.data + begin, end - begin);
    struct point new = {.path = mem_strdup(s->path),
                        .function = name_of(holder),
                        .operator= operator,
                        .offset = begin,
                        .length = end - begin,
                        .text = text,
                        .line = line_of(s, begin)};
    h = hash_text(h, text, strlen(text));
    /* What is put in has no text of its own: it is known by what comes behind it. */
    if (begin == end)
        h = hash_text(h, s->text.data + begin, strcspn(s->text.data + begin, "\n"));
    new.identity = mem_printf("%s:%s:%s:%08x", new.path, new.function, operator, h);
    mem_push(p->v, p->n) = new;
}

void find_bytes(const struct finding *f, const char *operator, const struct node * holder,
                size_t begin, size_t end, const char *text, ...) {
    va_list ap;
    va_start(ap, text);
    find_text(f, operator, holder, begin, end, mem_vprintf(text, ap));
    va_end(ap);
}

void find_instead(const struct finding *f, const char *operator, const struct node * n,
                  const char *text, ...) {
    va_list ap;
    va_start(ap, text);
    find_text(f, operator, node_holder(n), n->begin, n->end, mem_vprintf(text, ap));
    va_end(ap);
}

/* ---- all of a source ---- */

static void find_below(const struct finding *f, const struct node *n) {
    for (int i = 0; operators[i]; i++)
        operators[i]->find(f, n);
    for (const struct node *c = n->first; c; c = c->next)
        find_below(f, c);
}

static int by_place(const void *a, const void *b) {
    const struct point *p = a, *q = b;
    if (p->offset != q->offset)
        return p->offset < q->offset ? -1 : 1;
    int order = strcmp(p->identity, q->identity);
    return order ? order : (p->length > q->length) - (p->length < q->length);
}

/* Those that are alike get their numbers by their order. */
static void number(struct point *v, size_t n) {
    for (size_t i = n; i-- > 0;) {
        unsigned before = 1;
        for (size_t j = 0; j < i; j++)
            before += str_eq(v[j].identity, v[i].identity);
        char *whole = mem_printf("%s:%u", v[i].identity, before);
        free(v[i].identity);
        v[i].identity = whole;
    }
}

void points_find(struct points *p, const struct source *s) {
    struct finding f = {p, s};
    size_t before = p->n;
    for (const struct node *c = s->root->first; c; c = c->next)
        find_below(&f, c);
    if (p->n == before)
        return;
    qsort(p->v + before, p->n - before, sizeof(*p->v), by_place);
    number(p->v + before, p->n - before);
}

void points_fini(struct points *p) {
    for (size_t i = 0; i < p->n; i++) {
        free(p->v[i].path);
        free(p->v[i].function);
        free(p->v[i].text);
        free(p->v[i].identity);
    }
    free(p->v);
    *p = (struct points){0};
}

static int count_lines(const char *text, size_t n) {
    int lines = 0;
    for (size_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    return lines;
}

/* What an assertion says of its line shall be the same. */
void point_apply(const struct point *p, const struct source *s, struct buf *out) {
    const char *old = s->text.data + p->offset;
    int missing = count_lines(old, p->length) - count_lines(p->text, strlen(p->text));
    buf_put(out, s->text.data, p->offset);
    buf_puts(out, p->text);
    while (missing-- > 0)
        buf_putc(out, '\n');
    buf_put(out, old + p->length, s->text.len - p->offset - p->length);
}
