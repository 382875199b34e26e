/* operations: the faults on what programs do to a disk while they last: which operations of which
 * files they are about, and the rule (disk_rules.h) that says so to the node. */
#pragma once

#include "faults/fault.h"

#define OPERATIONS_PATH "{shared}/**"
/* Rows of .params. */
#define OPERATIONS_PARAM_PATH                                                                      \
    {                                                                                              \
        "path", "text", OPERATIONS_PATH,                                                           \
            "a pattern of the files, behind {shared}/ or {disk}/; ** is all that lies below"       \
    }
#define OPERATIONS_PARAM_OP(absent)                                                                \
    {                                                                                              \
        "op", "string", absent,                                                                    \
            "what is done to them: some of open, read, write, fsync, rename, unlink, mkdir, "      \
            "truncate, attributes, parted by /; change: all that a read-only disk refuses; any"    \
    }
#define OPERATIONS_PARAMS_WHICH                                                                    \
    {"nth", "int", "1", "from the so manyeth of them on"}, {                                       \
        "times", "int", "0", "so many of them; 0: all, as long as it lasts"                        \
    }

/* "op" (absent where the fault has none), "path", "nth" and "times" as a rule of which nothing is
 * done yet. */
int operations_read(const struct fault_args *a, const char *absent, struct disk_rule *ret,
                    enum node_place *ret_place, struct err *err);
/* "error" as an errno. */
int operations_error(const struct fault_args *a, const char *absent, int *ret, struct err *err);

/* A fault is a reader of its arguments, and this. */
#define FAULT_RULES(read)                                                                          \
    static int check(const struct fault_args *a, struct err *err) {                                \
        struct disk_rule rule;                                                                     \
        enum node_place place;                                                                     \
        return read(a, &rule, &place, err);                                                        \
    }                                                                                              \
    static int inject(const struct target *t, const struct fault_args *a, struct err *err) {       \
        struct disk_rule rule;                                                                     \
        enum node_place place;                                                                     \
        int r = read(a, &rule, &place, err);                                                       \
        return r ? r : t->ops->disk_rule(t->node, &rule, place, true, err);                        \
    }                                                                                              \
    static int recover(const struct target *t, const struct fault_args *a, struct err *err) {      \
        struct disk_rule rule;                                                                     \
        enum node_place place;                                                                     \
        int r = read(a, &rule, &place, err);                                                       \
        return r ? r : t->ops->disk_rule(t->node, &rule, place, false, err);                       \
    }
