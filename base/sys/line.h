/* line: every line that rankrun has for people, on stderr or where it was asked for: as text
 * ("rankrun: ..."), or each as one JSON object: {"time","level","what","round","text", ...}. time
 * is UTC with milliseconds; text is the sentence that the text format prints; round is there when
 * the line is about one. A line is one write, and one line whatever it quotes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINE_INFO    "info"
#define LINE_WARNING "warning"
#define LINE_ERROR   "error"

/* What a line says once more, for programs. */
struct line_field {
    const char *key;
    const char *text; /* NULL: it is a number */
    int64_t number;
};

struct line {
    const char *level; /* LINE_... */
    const char *what;  /* a word that stays, as "round" */
    int64_t round;     /* 0: of none */
    const struct line_field *fields;
    size_t n_fields;
    bool on_stdout; /* what a program waits for */
};

/* For the whole process; text until then. */
void line_as_json(bool json);
bool line_is_json(void);

void line_put(const struct line *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A JSON object that is no line of rankrun's: as it is. */
void line_put_object(const char *json);
/* One without round and fields. */
void line_say(const char *level, const char *what, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
