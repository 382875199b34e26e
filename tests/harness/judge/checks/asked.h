/* asked: the scenario of a recorded history with each field in a place where it can be another one. */
#pragma once

#include "base/rand.h"
#include "tests/harness/judge/checks/cases.h"

/* Whatever a scenario points to, so that a field of it can be another. */
struct asked {
    struct scenario s;
    struct timeline_entry entry;
    struct budget detect, recover, phase;
    struct log_expect log;
    struct probe_expect probe;
    struct loss_expect loss;
    bool knows_loss;
    struct pair env, conf;
    const char *setting; /* "KEY=VALUE": conf */
    char key[30];
    int sizes[3];           /* expect.world_sizes; 0: the last one is not there */
    const char *words[3];   /* job.run */
    const char *options[2]; /* job.launcher_args */
};

/* What the history was recorded with, where each field counts. */
void asked_begin(struct asked *a, const char *history, enum dialect d);
/* The scenario that points to what is there now. */
const struct scenario *asked_scenario(struct asked *a);

/* ---- fields ---- */

enum field_type { FIELD_INT, FIELD_I64, FIELD_BOOL, FIELD_ENUM, FIELD_TEXT };

struct field {
    const char *name;
    size_t at;
    enum field_type type;
    const char *const *texts; /* that are tried; NULL-ended, and NULL itself where it may be */
    bool may_be_null;
    int n; /* of FIELD_ENUM: so many values */
};

extern const struct field asked_fields[];
extern const size_t asked_fields_n;

/* Of a field of FIELD_TEXT, and of any other. */
void asked_set_text(struct asked *a, const struct field *f, const char *text);
void asked_set_number(struct asked *a, const struct field *f, int64_t n);
/* One of the values that it may have, drawn; said: which. */
void asked_draw(struct asked *a, const struct field *f, struct rand *r, struct buf *said);
