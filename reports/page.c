#include "reports/page.h"

#include "base/printable.h"

#include <string.h>

enum { NARROW_COLUMNS = 70, TEXT_MIN = 12 };

static const char *const codes[] = {"", "\033[32m", "\033[31m", "\033[33m", "\033[2m", "\033[1m"};

/* Columns of n bytes: a character of UTF-8 is one, whatever its length. */
static int columns(const char *s, size_t n) {
    int c = 0;
    for (size_t i = 0; i < n; i++)
        c += ((unsigned char)s[i] & 0xc0) != 0x80;
    return c;
}

int page_columns(const char *text) {
    return columns(text, strlen(text));
}

static void put_bytes(struct page *p, const char *s, size_t n) {
    buf_put(p->out, s, n);
    p->column += columns(s, n);
}

static void ink_on(struct page *p, enum ink ink) {
    if (p->style.color)
        buf_puts(p->out, codes[ink]);
}

static void ink_off(struct page *p, enum ink ink) {
    if (p->style.color && ink != INK_PLAIN)
        buf_puts(p->out, "\033[0m");
}

void page_put(struct page *p, enum ink ink, const char *text) {
    BUF_FINI struct buf shown = {0};
    printable_puts(&shown, text);
    ink_on(p, ink);
    put_bytes(p, buf_str(&shown), shown.len);
    ink_off(p, ink);
}

void page_printf(struct page *p, enum ink ink, const char *fmt, ...) {
    BUF_FINI struct buf text = {0};
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    page_put(p, ink, buf_str(&text));
}

void page_line(struct page *p) {
    buf_putc(p->out, '\n');
    p->column = 0;
}

void page_heading(struct page *p, const char *text) {
    page_line(p);
    page_put(p, INK_STRONG, text);
    page_line(p);
}

void page_labelled(struct page *p, int at, enum ink label_ink, const char *label, int column,
                   enum ink ink, const char *text) {
    if (!*text)
        return;
    if (at)
        page_tab(p, at);
    page_put(p, label_ink, label);
    page_tab(p, column);
    page_wrap(p, column, ink, text);
}

void page_tab(struct page *p, int column) {
    do
        put_bytes(p, " ", 1);
    while (p->column < column);
}

bool page_narrow(const struct page *p) {
    return p->style.width && p->style.width < NARROW_COLUMNS;
}

static void indent_by(struct page *p, int indent) {
    while (p->column < indent)
        put_bytes(p, " ", 1);
}

/* Puts one word behind what is on the line, or on a line of its own; one that is longer than any
 * line (a path) is cut where the line ends, unless it is to be copied. */
static void put_word(struct page *p, int indent, const char *word, size_t n, bool *first) {
    int width = p->style.width, room = width - p->column - !*first;
    if (width && !*first && columns(word, n) > room) {
        page_line(p);
        indent_by(p, indent);
    } else if (!*first) {
        put_bytes(p, " ", 1);
    }
    *first = false;
    for (size_t i = 0; i < n; i++) {
        if (width && !p->style.whole_words && p->column >= width &&
            ((unsigned char)word[i] & 0xc0) != 0x80) {
            page_line(p);
            indent_by(p, indent);
        }
        put_bytes(p, word + i, 1);
    }
}

void page_wrap(struct page *p, int indent, enum ink ink, const char *text) {
    bool first = true;
    BUF_FINI struct buf shown = {0};
    printable_put(&shown, text, strlen(text), PRINTABLE_LINES);
    if (p->style.width && indent > p->style.width - TEXT_MIN)
        indent = 4;
    ink_on(p, ink);
    for (const char *at = buf_str(&shown); *at;) {
        size_t blank = strspn(at, " \n"), n = strcspn(at + blank, " \n");
        if (n)
            put_word(p, indent, at + blank, n, &first);
        at += blank + n;
    }
    ink_off(p, ink);
    page_line(p);
}

void page_cut(struct buf *line, int width) {
    int column = 0;
    for (size_t i = 0; i < line->len; i++) {
        column += columns(line->data + i, 1);
        if (column > width) {
            line->len = i;
            line->data[i] = '\0';
        }
    }
}

const char *page_mark(const struct page *p, enum finding_status s) {
    static const char *const pretty[] = {"\u2713", "\u2717", "?", "-"};
    static const char *const plain[] = {"+", "x", "?", "-"};
    return p->style.unicode ? pretty[s] : plain[s];
}

enum ink page_ink(enum finding_status s) {
    static const enum ink inks[] = {INK_GOOD, INK_BAD, INK_DOUBT, INK_DIM};
    return inks[s];
}
