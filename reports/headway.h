/* headway: how far long work has come, at what rate, and how long the rest will take. On a terminal
 * one line that is written over; elsewhere a line now and then: every ten seconds of the first
 * minute, then every minute; for programs a JSON object a line (docs/watch.md). */
#pragma once

#include "base/buf.h"
#include "reports/tempo.h"

#include <stdbool.h>
#include <stdio.h>

/* What was typed of it. */
struct headway_wish {
    bool quiet; /* --quiet: nothing is said while it runs */
    int json;   /* --json-progress: the descriptor that objects are written to; -1: none */
};
#define HEADWAY_WISH_NONE                                                                          \
    (struct headway_wish) {                                                                        \
        .json = -1                                                                                 \
    }

struct headway_spec {
    FILE *out;
    const char *verb; /* who says it: "sim" */
    const char *of;   /* of what, where a verb does several such works; NULL */
    const char *unit; /* "seeds" */
    int64_t total;    /* 0: nobody knows */
    int64_t until_ns; /* on the monotonic clock: it ends then, whatever is left; 0: it does not */
    bool hourly;      /* its rate is told by the hour */
    bool own_line;    /* the caller draws; here only objects are written */
    bool no_lines;    /* nothing where there is no terminal: the caller prints lines of its own */
    struct headway_wish wish;
};

enum headway_form { HEADWAY_NONE, HEADWAY_LINES, HEADWAY_BAR };

struct headway {
    struct headway_spec spec;
    enum headway_form form;
    struct tempo tempo;
    int64_t begun_ns, done;
    int64_t left_ns;                    /* as somebody who knows better has said; -1: nobody has */
    int64_t drawn_ns, next_ns, json_ns; /* after the beginning; next_ns: of the next line */
    bool drawn;
};

/* What is in spec must outlive it. A zeroed headway says nothing. */
void headway_begin(struct headway *h, const struct headway_spec *spec);
/* So many units are done. note: what else is worth a word, "" or NULL: nothing; the line is drawn ten
 * times a second at most. */
void headway_at(struct headway *h, int64_t done, const char *note);
/* The rest takes so long, where that follows from more than the rate; -1: it does not any more. */
void headway_expect(struct headway *h, int64_t left_ns);
/* How long the rest takes, -1: not known. */
int64_t headway_left_ns(const struct headway *h);
/* The line is taken away, for something else is printed; the next headway_at draws it again. */
void headway_erase(struct headway *h);
/* The last object is written, and the line is gone. Safe to call again. */
void headway_end(struct headway *h);

/* The line, "12 %  24 of 200 seeds  3 a second  about 58 s left  NOTE", as it is after so many
 * nanoseconds. Where it is wider than `columns` (0: any width) the least important of it is left out. */
void headway_text(const struct headway *h, int64_t after_ns, const char *note, int columns,
                  struct buf *out);
/* The object, without its line feed. */
void headway_object(const struct headway *h, int64_t after_ns, const char *note, bool over,
                    struct buf *out);
/* When the line after the one at that time is due. */
int64_t headway_due_ns(int64_t after_ns);
/* "8 s", "5m 20s" */
void headway_put_time(struct buf *out, int64_t ns);
/* Whether a line can be written over there: a terminal, and none whose TERM is dumb or not said. */
bool headway_rewrites(FILE *out);
/* Of the terminal as it is now, by the kernel, else by COLUMNS, else 80. */
int headway_columns(FILE *out);
