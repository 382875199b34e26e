/* permit: what an operator has allowed a certification to do, and what would go beyond it. */
#pragma once

#include "base/json.h"
#include "base/texts.h"
#include "faults/reach.h"
#include "harness/plan/plan.h"

struct
    permit_window { /* open on these days, from one minute of the day to another; beyond midnight too */
    unsigned days; /* of bits, 1: Sunday, as tm_wday counts; the day on which it begins */
    int from, to;
    const char *text;
};

struct permit {
    enum fault_reach most; /* faults that reach further are not allowed */
    struct texts deny;     /* "host=db*", "user=root", "address=10.0.0.0/8" */
    struct permit_window *windows;
    size_t windows_n; /* 0: always open */
    int64_t faults;   /* in force at once; 0: as many as there are */
    int64_t fault_ns; /* no fault may be meant to last longer; 0: as long as it is */
    int64_t total_ns; /* 0: as long as it takes */
};

/* "host=GLOB", "user=NAME", "address=ADDRESS[/BITS]". 0 or -EINVAL with the forms. */
int permit_deny(struct permit *p, const char *text, struct err *err);
/* The same, a line each, of a file; blank lines and those that begin with # are left out. */
int permit_deny_file(struct permit *p, const char *path, struct err *err);
/* "22:00-06:00", "Sat,Sun 00:00-24:00", "Mon-Fri 22:00-06:00". text outlives it. */
int permit_window(struct permit *p, const char *text, struct err *err);
void permit_fini(struct permit *p);

/* Whether one is open at that time of this host's wall clock; and for how many nanoseconds still,
 * -1: for ever. */
bool permit_is_open(const struct permit *p, int64_t wall_ns, int64_t *ret_left_ns);

/* Adds a sentence for each entry of the plan's timeline that goes beyond. */
void permit_check(const struct permit *p, const struct plan *plan, struct texts *ret);
/* How far an entry that is a fault reaches: on a store further than on a node of workers. */
enum fault_reach permit_reach_of(const struct planned_entry *e);
/* How far the plan reaches, its faults taken together. */
enum fault_reach permit_reach(const struct plan *plan);

/* A host that nothing may be done on: by its name, who we are on it, one of its addresses
 * (NULL-ended). False, with the entry of the list that says so. */
bool permit_allows_host(const struct permit *p, const char *host, const char *user,
                        const char *const *addresses, const char **ret_by);

void permit_put(const struct permit *p, struct json_writer *w, const char *key);
