/* disk_rules: which operation on a disk gets what: an error, a delay, no answer at all. Pure; whoever
 * sees the operations asks it for each of them, in their order, and does as it says. */
#pragma once

#include "base/err.h"

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
    DISK_DOES_CHANGE = DISK_DOES_OPEN | DISK_DOES_WRITE | DISK_DOES_RENAME | DISK_DOES_UNLINK |
                       DISK_DOES_MKDIR | DISK_DOES_TRUNCATE,
    DISK_DOES_ALL = 511,
};
/* "write/fsync"; open means both kinds, change all that a read-only disk refuses, any all. 0, or
 * -EINVAL with the words. */
int disk_does_read(const char *words, unsigned *ret, struct err *err);

enum { DISK_PATTERN_MAX = 512, DISK_ROOT_MAX = 2048 };

struct disk_rule {
    unsigned does;
    char pattern
        [DISK_PATTERN_MAX]; /* of paths below `root`; one that ends in two stars means all below */
    char root[DISK_ROOT_MAX]; /* an absolute path */
    int64_t nth;              /* from the so manyeth that matches on, 1 at least */
    int64_t times;            /* so often; 0: always */
    /* What is done: one of these. */
    int error;        /* an errno */
    int64_t delay_ns; /* it comes to its end so much later */
    bool stuck;       /* it never does */
    int64_t room;     /* error only once so many bytes are written; -1: at once */
};

bool disk_rule_same(const struct disk_rule *a, const struct disk_rule *b);

struct disk_request {
    unsigned does;         /* one of DISK_DOES_ */
    const char *path, *to; /* absolute; to: of a rename, else "" */
    int64_t bytes;         /* of a write */
};

enum disk_verdict { DISK_PASSES, DISK_FAILS, DISK_WAITS, DISK_STICKS, DISK_VERDICTS_N };

struct disk_rule_state { /* begins as {.rule = ..} */
    struct disk_rule rule;
    int64_t matched, done, used;
};

/* The first rule that strikes says what becomes of it; *ret_rule: which. */
enum disk_verdict disk_rules_decide(struct disk_rule_state *rules, size_t n,
                                    const struct disk_request *q,
                                    const struct disk_rule **ret_rule);
