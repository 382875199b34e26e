/* page: text laid out for a terminal of any width, or for a pipe, in which nothing is wrapped.
 * Texts may be anybody's: what is not fit for a terminal is spelled out (base/printable.h)
 * before it is measured. What was laid out is printed as it is (base/sys/printing.h). */
#pragma once

#include "reports/report.h"

enum ink { INK_PLAIN, INK_GOOD, INK_BAD, INK_DOUBT, INK_DIM, INK_STRONG };

struct page {
    struct buf *out;
    struct report_style style;
    int column; /* where the next character goes */
};

void page_put(struct page *p, enum ink ink, const char *text);
void page_printf(struct page *p, enum ink ink, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Spaces up to that column; where the line is further already, one. */
void page_tab(struct page *p, int column);
/* The rest of a paragraph: wrapped between words, its further lines indented; ends the line. */
void page_wrap(struct page *p, int indent, enum ink ink, const char *text);
void page_line(struct page *p); /* ends the line */
/* On a line of its own, behind an empty one. */
void page_heading(struct page *p, const char *text);
/* The label at one column and the text from another one on; nothing where there is no text. */
void page_labelled(struct page *p, int at, enum ink label_ink, const char *label, int column,
                   enum ink ink, const char *text);
/* Cuts a line that is longer than so many columns. */
void page_cut(struct buf *line, int width);
bool page_narrow(const struct page *p);
int page_columns(const char *text); /* that it takes when it is printed */

/* The sign of a finding: a check mark, a cross ... or a letter where the locale has none. */
const char *page_mark(const struct page *p, enum finding_status s);
enum ink page_ink(enum finding_status s);
