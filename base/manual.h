/* manual: a program's manual page in man(7), made of the same table that its --help is printed
 * from. Pure; what a program has to say is put into these structs by who knows its table. */
#pragma once

#include "base/buf.h"

/* One option as people are told of it. */
struct manual_option {
    char letter;       /* 0: it has none */
    const char *name;  /* "--seed"; the end of a table has none */
    const char *value; /* "N"; NULL: a flag */
    const char *text;
    const char *command; /* of which it is; NULL: of all */
};

/* A section of the page: a text, and below it options or pairs of words and what they mean. */
struct manual_part {
    const char *title;      /* "OPTIONS"; the end of a page has none */
    const char *text;       /* NULL: none. Lines that begin with a blank stay as they are */
    const char *text_after; /* NULL: none; below the options */
    const struct manual_option *options; /* NULL: none; ended by {0} */
    const char *const (*words)[2];       /* NULL: none; ended by {NULL, NULL} */
};

struct manual_page {
    const char *name;            /* "rankquake-run" */
    const char *version;         /* of the program */
    const char *summary;         /* half a sentence, as in a list of pages */
    const char *const *synopsis; /* lines without the program's name in bold; ended by NULL */
    const struct manual_part *parts;
    const char *const *see_also; /* names of pages of section 1; ended by NULL */
};

/* Appends the page. It has no date: two builds of one source are the same. */
void manual_put(struct buf *out, const struct manual_page *page);
