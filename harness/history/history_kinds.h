/* history_kinds: every kind of record with its fields, as one table. What a reader of histories may
 * rely on, what `rankquake schema history` prints, and what is demanded of a line that is read back
 * are the same rows.
 *
 * Demanded is only what must be right for a verdict to be right: a worker-exit that does not say
 * how the worker ended must not be taken for a good end. What the job, the launcher or a probe of
 * the user says is a claim, and may be anything. */
#pragma once

#include "harness/history/history.h"

enum field_type {
    FIELD_INT,
    FIELD_NUMBER,
    FIELD_TEXT,
    FIELD_BOOL,
    FIELD_LIST,
    FIELD_MAP,
    FIELD_ANY
};

enum field_need {
    FIELD_MAY, /* it may be left out */
    FIELD_MUST,
    FIELD_ONE, /* one of those marked so must be there */
};

struct history_field {
    const char *name;
    enum field_type type;
    enum field_need need;
};

struct history_kind {
    enum source source;
    const char *name;
    const char *text;
    const struct history_field *fields; /* besides seq, t, source and kind; ended by {0} */
};

enum { HISTORY_FIELDS_MAX = 64 }; /* of a record of a listed kind that is no claim */

extern const struct history_kind history_kinds[]; /* by source, then by name; ended by {0} */

const struct history_kind *history_kind_find(enum source source, const char *name); /* or NULL */

/* Whether a line of this source and kind has what its row demands, each key once and no more than
 * HISTORY_FIELDS_MAX. 0, or -EBADMSG with a sentence that names the field. A kind that is not in
 * the table has nothing to show. */
int history_kind_check(enum source source, const char *kind, const struct json *line,
                       struct err *err);

/* The JSON Schema (draft 7) of one line. */
void history_schema(struct buf *out);
