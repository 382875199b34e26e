/* clock_page: by how much the wall clock of a node is wrong, and what its programs were told.
 *
 * A file that the harness makes for each node and that every program of the node maps, by way of
 * rankquake_clock.so (faults/clock/preload), which adds to CLOCK_REALTIME what stands in it. The
 * harness reads and writes it by its descriptor: a program that cuts the file off harms itself.
 *
 * The first part is mapped read-only; the second is written by the programs: who has the object,
 * and for each that asked for the time while it was wrong, what it was told. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CLOCK_PAGE_VERSION = 1,
    CLOCK_READERS_AT = 65536, /* a multiple of every page size */
    CLOCK_READERS_MAX = 500,
    CLOCK_PROGRAM_MAX = 16,
};
#define CLOCK_PAGE_VARIABLE "RANKQUAKE_CLOCK" /* the path of the file */
#define CLOCK_PRELOAD       "rankquake_clock.so"

struct clock_shift {   /* all 0: the clock is right */
    int64_t since_ns;  /* CLOCK_REALTIME when it began */
    int64_t by_ns;     /* so far ahead */
    int64_t period_ns; /* not 0: ahead for one period, right for the next, and so on */
    int64_t drift_ppb; /* so many billionths faster than it should be */
};

struct clock_setting { /* the first part of the file */
    uint32_t version;
    uint32_t seq;        /* odd: it is being written */
    uint32_t generation; /* how often it was set; 0: never */
    uint32_t unused;
    struct clock_shift shift;
};

struct clock_reading {
    int64_t real_ns, said_ns;
};

/* What one program was told while a setting that is not right was in force. */
struct clock_reader {
    uint32_t busy; /* one of its threads is writing */
    uint32_t seq;
    uint32_t generation; /* of the setting; 0: nothing is here */
    int32_t pid;         /* as the program knows it */
    char program[CLOCK_PROGRAM_MAX];
    struct clock_reading first, last, least, most; /* least and most: by how far it was ahead */
};

struct clock_readers { /* the second part */
    uint32_t loaded;   /* so many programs have the object */
    uint32_t taken;    /* so many of `v` have been given away, or were asked for */
    uint32_t unused[14];
    struct clock_reader v[CLOCK_READERS_MAX];
};

/* How far ahead the clock is when the time is really that. */
static inline int64_t clock_shift_at(const struct clock_shift *s, int64_t real_ns) {
    int64_t elapsed = real_ns - s->since_ns;
    bool right = s->period_ns && elapsed >= 0 && elapsed / s->period_ns % 2;
    int64_t drift = (int64_t)((__int128)elapsed * s->drift_ppb / 1000000000);
    return (right ? 0 : s->by_ns) + drift;
}

static inline bool clock_shift_is_none(const struct clock_shift *s) {
    return !s->by_ns && !s->drift_ppb;
}

/* ---- for the harness ---- */

/* Makes an empty file a page by which the clock is right. All return 0 or a -errno. */
int clock_page_make(int fd, struct err *err);
/* From now on the clock is so wrong; NULL: it is right. Returns when every program is told so. The
 * one in force must be right: else -EBUSY. */
int clock_page_set(int fd, const struct clock_shift *shift, struct err *err);
int clock_page_setting(int fd, struct clock_setting *ret);

struct clock_witness { /* what the programs were told by the newest setting */
    uint32_t loaded, asked;
    struct clock_reader v[CLOCK_READERS_MAX]; /* those that could be read as a whole */
    size_t n;
};
int clock_page_witness(int fd, struct clock_witness *ret);

/* All that they were told from a time of CLOCK_REALTIME on: to the first and the last of them, and by how
 * far it was ahead at least and at most. */
struct clock_told {
    bool any;
    struct clock_reading first, last, least, most;
    char program[CLOCK_PROGRAM_MAX]; /* one of those that asked */
};
int clock_page_told(int fd, int64_t since_ns, struct clock_told *ret);

/* An environment whose programs take along the object of that path, behind what the user has there, and read the page
 * of that path. NULL-ended, the arena's; the entries that stay are env's. */
const char *const *clock_page_env(struct arena *a, const char *const *env, const char *object,
                                  const char *path);

static inline int64_t clock_ahead_by(const struct clock_reading *r) {
    return r->said_ns - r->real_ns;
}
