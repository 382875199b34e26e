/* edit: one change of a recorded history. */
#pragma once

struct edit {
    const char *line, *also; /* the edit is for every line that contains both; also may be NULL */
    const char
        *from;      /* replaced wherever it stands in that line; NULL: a new line goes behind it */
    const char *to; /* NULL: the line is taken out. A new line is given without its "seq" */
    const char *place; /* "FILE:LINE" that says so, NULL */
};

enum { EDITS_MAX = 8 };

#define HISTORY_PATH "tests/histories/%s.jsonl"
