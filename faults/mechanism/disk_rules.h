/* disk_rules: which operation on a disk gets what: an error, a delay, no answer at all, a part of it.
 * Pure; whoever sees the operations asks it for each of them, in their order, and does as it says. */
#pragma once

#include "base/err.h"
#include "base/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum disk_does {
    DISK_DOES_READ_OPEN = 1, /* an open that changes nothing */
    DISK_DOES_OPEN = 2,      /* one to write, or that makes the file */
    DISK_DOES_READ = 4,
    DISK_DOES_WRITE = 8,
    DISK_DOES_SYNC = 16,
    DISK_DOES_RENAME = 32,
    DISK_DOES_UNLINK = 64,
    DISK_DOES_MKDIR = 128, /* and links */
    DISK_DOES_TRUNCATE = 256,
    DISK_DOES_ATTRIBUTES = 512, /* modes, owners, times, extended ones */
    DISK_DOES_CHANGE = DISK_DOES_OPEN | DISK_DOES_WRITE | DISK_DOES_RENAME | DISK_DOES_UNLINK |
                       DISK_DOES_MKDIR | DISK_DOES_TRUNCATE | DISK_DOES_ATTRIBUTES,
    DISK_DOES_ALL = 1023,
    DISK_DOES_LOOK = 1024, /* at names and attributes; no rule is about it */
};
/* "write/fsync"; open means both kinds, change all that a read-only disk refuses, any all. 0, or
 * -EINVAL with the words. */
int disk_does_read(const char *words, unsigned *ret, struct err *err);

enum { DISK_PATTERN_MAX = 512, DISK_ROOT_MAX = 2048 };

struct disk_rule {
    unsigned does;
    char pattern
        [DISK_PATTERN_MAX]; /* of paths below `root`; one that ends in two stars means all below */
    char root[DISK_ROOT_MAX]; /* an absolute path; "": that of the disk itself */
    char real[DISK_ROOT_MAX]; /* where that lies, if a link leads there; "" */
    int64_t nth;              /* from the so manyeth that matches on, 1 at least */
    int64_t times;            /* so often; 0: always */
    /* What is done: one of these. */
    int error;        /* an errno */
    int64_t delay_ns; /* it comes to its end so much later */
    bool stuck;       /* it never does */
    int64_t room;     /* error only once files have grown by so much; -1: at once */
    int64_t at_most;  /* of a write only so many bytes are written; 0: all */
    /* What other nodes do is seen so much later; only a disk of ours does that (disk_late.h). 0: at
     * once. late_opens: also by whoever opens a file meanwhile. */
    int64_t late_ns;
    bool late_opens;
    int64_t id; /* the caller's */
};

/* Whether it is about that absolute path. */
bool disk_rule_means(const struct disk_rule *r, const char *path);
/* But for their ids, and where a link leads. */
bool disk_rule_same(const struct disk_rule *a, const struct disk_rule *b);

/* As members of a message, and of what was so written. */
void disk_rule_put(const struct disk_rule *r, struct json_writer *w);
void disk_rule_take(const struct json *message, struct disk_rule *ret);

struct disk_request {
    unsigned does;         /* one of DISK_DOES_ */
    const char *path, *to; /* absolute; to: of a rename, else "" */
    int64_t bytes;         /* of a write */
    int64_t grows;         /* by so much a file becomes longer; where that is not seen: bytes */
    bool divisible;        /* a part of a write may be made, and its caller is told how much */
};

enum disk_verdict {
    DISK_PASSES,
    DISK_FAILS,
    DISK_WAITS,
    DISK_STICKS,
    DISK_CUTS, /* a part of it is made */
    DISK_LATE, /* it got what is so no more; never decided here */
    DISK_VERDICTS_N
};
extern const char *const disk_verdict_names[DISK_VERDICTS_N]; /* failed, slowed ... */
/* "fsync"; of what is several: one of its words. */
const char *disk_does_text(unsigned does);

/* EIO and the like, of those that a disk may give. 0 or -EINVAL; NULL: none of them. */
int disk_error_read(const char *name, int *ret, struct err *err);
const char *disk_error_name(int code);

struct disk_rule_state { /* begins as {.rule = ..} */
    struct disk_rule rule;
    int64_t matched, done, used;
};

struct disk_ruling {
    enum disk_verdict verdict;
    const struct disk_rule *rule; /* NULL: it passes */
    int64_t bytes;                /* of what is cut: so many are written, 1 at least */
};

/* The first rule that strikes says what becomes of it. */
struct disk_ruling disk_rules_decide(struct disk_rule_state *rules, size_t n,
                                     const struct disk_request *q);
/* A file has become shorter, or has gone: there is room again. */
void disk_rules_freed(struct disk_rule_state *rules, size_t n, const char *path, int64_t bytes);
/* How many bytes there is room for; -1: no rule says that. */
int64_t disk_rules_room(const struct disk_rule_state *rules, size_t n);
