/* trace: faults that somebody recorded, as a table of text: start, end, node, cause. Private to
 * this room. */
#pragma once

#include "harness/scenario/reader.h"

enum { TRACE_ROWS_MAX = 10000 };

struct trace_row {
    int64_t start_ns, end_ns; /* since whatever the file counts from */
    const char *node, *cause;
    struct place place;
};

struct trace {
    struct trace_row *v; /* by their start; those that began together as in the file */
    size_t n;
};

/* Comma-separated, the first line names the columns, in any order: start, end, node and cause, any
 * others are not looked at. Times are seconds, or dates such as 2024-05-01 13:00[:00] or
 * 2024-05-01T13:00:00Z, all of one kind. Returns false after adding every error with its place; p
 * is where the file was named, for those of the file as a whole. */
bool trace_read(struct reader *r, const char *file, struct place p, struct trace *ret);
