/* host_clock: the page of a node's wall clock (clock_page.h) on a host that the harness is not on. Its helper makes
 * it there, beside its lock, under its own name; so whoever outlives the helper takes it away, and whoever comes
 * later sees that it was left. The programs of the node may be another user's, and write into it: who is to know it
 * is told its name, which ends in what nobody guesses. */
#pragma once

#include "base/json.h"
#include "base/texts.h"
#include "faults/mechanism/clock_page.h"

enum { HOST_CLOCK_PATH_MAX = 256 };

struct host_clock {
    int page; /* -1: there is none */
    bool shifted;
    char path[HOST_CLOCK_PATH_MAX];
    char object[4096]; /* that stands before the C library */
};
#define HOST_CLOCK_NONE ((struct host_clock){.page = -1})

/* owner: the helper, by a name that nobody else has (node_helper_owner). programs: the folder in which our
 * object lies. 0 or a -errno with a sentence. */
int host_clock_make(struct host_clock *ret, const char *owner, const char *programs,
                    struct err *err);
/* As struct node_ops has it: -ENOENT without a page, -EBUSY where it is wrong already. */
int host_clock_shift(struct host_clock *c, const struct clock_shift *shift, struct err *err);
/* Takes it away. 0 or a -errno: it stays. */
int host_clock_end(struct host_clock *c);
/* Those of an owner who is gone: how many stay. */
int host_clock_clear(const char *owner);
/* Of whom there are such on this host, as far as the caller's user made them. */
void host_clock_owners(struct texts *ret);

/* While it is wrong, by which setting and what its programs were told of it, as the member `clock` of w; else
 * nothing. And as the other end takes it; false: it is not there. */
void host_clock_put(const struct host_clock *c, struct json_writer *w);
bool host_clock_take(const struct json *message, struct clock_setting *ret_setting,
                     struct clock_told *ret);

/* Whether programs of this host take the object: one is started with it. -ENOTSUP with a sentence that says
 * why not. */
int host_clock_try(const char *owner, const char *programs, struct err *err);
