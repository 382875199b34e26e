/* states: every state that a directory could be in after a death during what disk_record tells, up
 * to a bound. Equal ones are one state, which knows all ways that lead to it.
 *
 * A way is a recipe: so many operations of the record had been done, then this died, and this was
 * lost. All else that had been done is there. What may be lost says a disk_model. */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "faults/mechanism/disk_record.h"
#include "harness/crash/disk_model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum crash_death {
    CRASH_PROCESS, /* all that the kernel had taken is there */
    CRASH_KERNEL,  /* what was not synced may be lost, page by page (4096 bytes) */
    CRASH_POWER,   /* the same, sector by sector (512 bytes) */
    CRASH_DEATHS_N
};
extern const char *const crash_death_names[CRASH_DEATHS_N]; /* "process", "kernel", "power" */

enum crash_part {
    CRASH_ALL,     /* of a change of names, of a truncate, of an allocate: it is as if not done */
    CRASH_REMOVAL, /* of a rename to another directory: the old name is still there, too */
    CRASH_BYTES,   /* of a write: the bytes [from, to) of the file are not there */
    CRASH_SIZE,    /* of a write: the file has grown by it to `from` only; not at all where from is
                      no more than its size was */
};

struct crash_loss {
    size_t operation; /* of the record */
    enum crash_part part;
    uint64_t from, to;
};

struct crash_way {
    size_t point; /* so many operations of the record had been done */
    enum crash_death death;
    unsigned models;   /* which rows of disk_models allow it; all where a process died */
    int rank, pid;     /* of a process that died alone; rank -1: known by its pid; pid 0: all */
    bool others_go_on; /* up to the next barrier that it has not reached; else all died */
    const char *node;  /* whose kernel or power it was; "": of all */
    uint64_t taken;    /* of operation `point`, a write: what the kernel had taken; 0: nothing */
    const struct crash_loss *losses;
    size_t losses_n;
};

struct crash_state {
    char hash[65]; /* of names, modes, links and contents: crash_folder_hash */
    /* The smallest first: fewest losses, then the earliest point. Of those to one point that differ
     * only in what was lost, the smallest. */
    const struct crash_way *ways;
    size_t ways_n;
    uint64_t bytes;   /* in all files, without holes */
    unsigned class;   /* when it is tried: enum crash_class of its most telling way */
    bool found_later; /* by crash_states_add */
};

/* The first two are tried before all others, whose classes take turns: the telling ones more often,
 * so that however short the time is something of each is tried. */
enum crash_class {
    CRASH_AT_COMMIT,   /* right after a sync, a rename or a word of the job: all lost */
    CRASH_PREFIX,      /* a process died, nothing lost */
    CRASH_NO_CONTENTS, /* names are there, the bytes of one file or of all not */
    CRASH_NO_NAMES,    /* bytes are there, one name is not, or no later one */
    CRASH_ALL_LOST,    /* at other points */
    CRASH_ONE,         /* one operation alone lost, or alone there */
    CRASH_TORN,        /* a write is there in part */
    CRASH_PAIR,
    CRASH_DRAWN, /* by the seed, or one of all subsets */
    CRASH_CLASSES_N
};

struct crash_ask {
    const struct disk_record *record;
    size_t from, to;   /* points: from <= point <= to; to 0: the record's end. What comes before
                            the first operation that is no DISK_HAD is one point */
    unsigned deaths;   /* bit i: enum crash_death; 0: all */
    unsigned models;   /* 0: disk_models_default */
    unsigned shared;   /* the record is one of several disks (changes.h): which row of disk_models,
                            from 1, is that of what all nodes share; 0: it is of one disk */
    size_t per_point;  /* ways tried at a point of a model; 0: CRASH_PER_POINT; SIZE_MAX: all */
    size_t states_max; /* different states; 0: CRASH_STATES_MAX; SIZE_MAX: all */
    uint64_t seed;     /* of what is drawn */
    const size_t
        *wholes; /* points at which a save was complete, in order: what a death before one is
                             compared with in words; else with `to` */
    size_t wholes_n;
    bool together; /* where a process dies all do: it is not known for whom the others would wait */
};
/* Of more than CRASH_POINTS points each has fewer ways, but no fewer than the least. */
enum { CRASH_PER_POINT = 48, CRASH_PER_POINT_MIN = 6, CRASH_POINTS = 150, CRASH_STATES_MAX = 400 };

struct crash_states {
    const struct disk_record *record;
    const struct crash_state *v;
    size_t n;
    const size_t *order;         /* n indices into v: as they are to be tried */
    size_t points;               /* that were looked at */
    uint64_t ways;               /* that were taken */
    double left_out;             /* ways beyond per_point or states_max; may be more than 2^64 */
    size_t ignored;              /* operations that make no sense where they stand: */
    const char *ignored_first;   /* a sentence about the first of them; NULL: none */
    struct crash_search *search; /* ours */
};

/* Finds them. ret keeps what it points to until crash_states_fini; the record must live as long.
 * -EINVAL: the points are none of the record's. */
int crash_states_find(const struct crash_ask *ask, struct crash_states *ret, struct err *err);
void crash_states_fini(struct crash_states *s);

/* The state that a way leads to, added at the end where it is new (v may move). Returns its index;
 * SIZE_MAX where no model of the way allows it. */
size_t crash_states_add(struct crash_states *s, const struct crash_way *way);
/* The same, but SIZE_MAX where it was not found before. */
size_t crash_states_seek(struct crash_states *s, const struct crash_way *way);

/* Whether an operation of the record has been done on this way, by whoever lived on too. */
bool crash_states_did(const struct crash_states *s, const struct crash_way *way, size_t operation);

/* The rows of disk_models that allow it; 0: none does. */
unsigned crash_states_models(struct crash_states *s, const struct crash_way *way);

/* What is in a state, by path ("" is not told), a directory before what is in it. */
struct crash_entry {
    const char *path;
    enum { CRASH_DIRECTORY, CRASH_FILE, CRASH_LINK } kind;
    unsigned mode;           /* permissions */
    const char *to;          /* of a symbolic link */
    const char *same_as;     /* of a file with several names: the first of them; else NULL */
    uint64_t size;           /* of a file */
    int64_t age_ns;          /* since it was changed, as of the last operation of the record */
    const struct crash_run { /* its bytes in order; what none of them covers is zero */
        uint64_t at, size;
        const unsigned char *bytes;
    } * runs;
    size_t runs_n;
};
/* Stops where see does not return 0, and returns that. */
int crash_states_walk(struct crash_states *s, size_t state,
                      int (*see)(void *arg, const struct crash_entry *e), void *arg);
