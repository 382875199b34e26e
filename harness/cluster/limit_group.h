/* limit_group: a control group, of version 1 or 2, that holds what descends from one process to a limit. It is
 * made below the caller's own, or beside it where version 2 demands that. Of this room only. */
#pragma once

#include "base/buf.h"
#include "faults/target.h"

struct limit_group {
    enum node_limit what;
    char *path; /* NULL: there is none */
    char *home; /* where those are at home who are put into it */
    bool unified;
};

/* Says where it will be: behind CGROUPS_OF_NODES its name is `owner`, then one that none had before.
 * Nothing is made. -ENOTSUP: no control group of the caller's has the controller. */
int limit_group_name(enum node_limit what, const char *owner, struct limit_group *ret,
                     struct err *err);
/* Makes it, and moves in what descends from root, which stays outside itself; name: of the node, for errors.
 * Of what fails something may be made. -ENOTSUP: it may not be made. */
int limit_group_begin(const struct limit_group *g, const char *name, pid_t root, int64_t value,
                      struct err *err);
/* Lets all go and removes it. 0 also where it is gone. Else it stays named. */
int limit_group_end(struct limit_group *g, struct err *err);
void limit_group_fini(struct limit_group *g); /* forgets it */
/* Appends what the kernel has counted in it, lines of "KEY NUMBER". */
void limit_group_count(const struct limit_group *g, struct buf *out);

/* Whether such a group can be had: one is made, a process put into it and taken out. 0 or -ENOTSUP. */
int limit_group_check(enum node_limit what, struct err *err);

/* How the names begin, behind CGROUPS_OF_NODES, of those that a process of ours makes on its host; kernels and
 * trees of groups may be shared by such hosts, so the number alone does not do. */
enum { LIMIT_OWNER_MAX = 96 };
void limit_group_owner(pid_t pid, char ret[LIMIT_OWNER_MAX]);
/* Kills what is in groups of that owner's, who has ended, and removes them. Returns how many stay. */
int limit_group_clear_of(const char *owner);
