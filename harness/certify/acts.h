/* acts: the log of what a certification has done, acts.jsonl in its directory: one line for each act,
 * with the time of the wall clock, on the disk before the act where that can be. Only its end is
 * written to. */
#pragma once

#include "base/err.h"
#include "base/json.h"
#include "base/sys/folder.h"

struct acts {
    int fd;
    struct err failed; /* the first line that could not be written */
};

int acts_open(struct acts *ret, const struct folder *in, struct err *err);
/* Begins a line; the caller adds members and ends it by acts_end. */
void acts_begin(struct acts *a, struct json_writer *w, const char *act);
void acts_end(struct acts *a, struct json_writer *w);
/* A line with one more member. */
void acts_say(struct acts *a, const char *act, const char *key, const char *value);
void acts_close(struct acts *a);

/* "2026-11-29T11:45:00Z" */
void acts_time(int64_t wall_ns, char ret[24]);
