/* alike: what many hosts have in common, and in what they differ. Each value is kept by its term and its host; a row is a value
 * and all hosts that have it. */
#pragma once

#include "base/json.h"

struct alike {
    struct arena arena;
    const char **hosts; /* in the order in which they are named */
    size_t hosts_n;
    const char **terms;
    size_t terms_n;
    struct alike_value {
        const char *term, *text;
        size_t host;    /* of hosts; hosts_n or more: of none of them */
        bool is_number; /* and which */
        int64_t number;
    } * v;
    size_t n;
};

/* All hosts first: what one of them lacks is told of it. */
void alike_add_host(struct alike *a, const char *name);
/* The number of the host; SIZE_MAX: there is none of this name. */
size_t alike_find_host(const struct alike *a, const char *name);
/* Takes a tree apart into values: "cards eth0 mtu". left_out: names of members not to be looked at, NULL-ended; NULL: none.
 * What is null or "" is lacking. */
void alike_add(struct alike *a, size_t host, const char *term, const struct json *j,
               const char *const *left_out);
/* Rows of a table: term, value, hosts, in the order in which terms came. Whole numbers that are more than two are a row of the
 * least, the one in the middle and the most. */
void alike_put(const struct alike *a, struct buf *out);
void alike_fini(struct alike *a);
