#include "base/manual.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* What stands for itself in roff: a hyphen that can be copied, a backslash, and no line that is
 * taken for a request. */
static void put_text(struct buf *out, const char *text, size_t n, bool at_line_start) {
    if (at_line_start && n && (*text == '.' || *text == '\''))
        buf_puts(out, "\\&");
    for (size_t i = 0; i < n; i++)
        switch (text[i]) {
        case '\\':
            buf_puts(out, "\\e");
            break;
        case '-':
            buf_puts(out, "\\-");
            break;
        case '^':
            buf_puts(out, "\\(ha");
            break;
        case '~':
            buf_puts(out, "\\(ti");
            break;
        case '`':
            buf_puts(out, "\\(ga");
            break;
        case '\'':
            buf_puts(out, "\\(aq");
            break;
        default:
            buf_put(out, text + i, 1);
        }
}

static void put_line(struct buf *out, const char *text) {
    put_text(out, text, strlen(text), true);
    buf_puts(out, "\n");
}

/* Paragraphs are parted by empty lines; what begins with a blank is shown as it stands. */
static void put_paragraphs(struct buf *out, const char *text) {
    bool kept = false;
    while (*text) {
        size_t n = strcspn(text, "\n");
        bool keep = *text == ' ';
        if (keep != kept)
            buf_puts(out, keep ? ".nf\n" : ".fi\n");
        kept = keep;
        if (n)
            put_text(out, text, n, true);
        else
            buf_puts(out, ".PP");
        if (text[n] || n)
            buf_puts(out, "\n");
        text += n + (text[n] == '\n');
    }
    if (kept)
        buf_puts(out, ".fi\n");
}

static void put_option(struct buf *out, const struct manual_option *o) {
    buf_puts(out, ".TP\n");
    if (o->letter)
        buf_printf(out, "\\fB\\-%c\\fR, ", o->letter);
    buf_puts(out, "\\fB");
    put_text(out, o->name, strlen(o->name), false);
    buf_puts(out, "\\fR");
    if (o->value) {
        buf_puts(out, " \\fI");
        put_text(out, o->value, strlen(o->value), false);
        buf_puts(out, "\\fR");
    }
    buf_puts(out, "\n");
    put_line(out, o->text);
}

static void put_part(struct buf *out, const struct manual_part *p) {
    buf_printf(out, ".SH %s\n", p->title);
    if (p->text)
        put_paragraphs(out, p->text);
    for (const struct manual_option *o = p->options; o && o->name; o++)
        put_option(out, o);
    for (size_t i = 0; p->words && p->words[i][0]; i++) {
        buf_puts(out, ".TP\n\\fB");
        put_text(out, p->words[i][0], strlen(p->words[i][0]), false);
        buf_puts(out, "\\fR\n");
        put_line(out, p->words[i][1]);
    }
    if (p->text_after) {
        buf_puts(out, ".PP\n");
        put_paragraphs(out, p->text_after);
    }
}

static void put_synopsis(struct buf *out, const char *line) {
    size_t program = strcspn(line, " ");
    buf_puts(out, "\\fB");
    put_text(out, line, program, false);
    buf_puts(out, "\\fR");
    put_text(out, line + program, strlen(line + program), false);
    buf_puts(out, "\n");
}

void manual_put(struct buf *out, const struct manual_page *page) {
    buf_puts(out, ".TH ");
    for (const char *c = page->name; *c; c++) {
        char upper = (char)toupper((unsigned char)*c);
        put_text(out, &upper, 1, false);
    }
    buf_printf(out, " 1 \"\" \"RankQuake %s\" \"RankQuake\"\n.SH NAME\n", page->version);
    put_text(out, page->name, strlen(page->name), true);
    buf_puts(out, " \\- ");
    put_line(out, page->summary);
    buf_puts(out, ".SH SYNOPSIS\n.nf\n");
    for (const char *const *line = page->synopsis; *line; line++)
        put_synopsis(out, *line);
    buf_puts(out, ".fi\n");
    for (const struct manual_part *p = page->parts; p->title; p++)
        put_part(out, p);
    if (page->see_also && *page->see_also)
        buf_puts(out, ".SH SEE ALSO\n");
    for (const char *const *name = page->see_also; name && *name; name++) {
        buf_puts(out, ".BR ");
        put_text(out, *name, strlen(*name), false);
        buf_puts(out, name[1] ? " (1),\n" : " (1)\n");
    }
}
