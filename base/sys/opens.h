/* opens: which files of a tree are opened, by whomever on this host, and which of its folders are
 * listed (inotify). No rights are needed, and none of those who open is held up or told of it.
 *
 * A file counts when it was there before; what is made later is not looked at. Who opened it is not
 * known: another program that reads in the same tree meanwhile adds to it. What is reached without an
 * open of its own, such as by stat(2) or through another mount of overlayfs, is not seen. */
#pragma once

#include "base/err.h"
#include "base/texts.h"

struct opens_folder {
    char *path;          /* from the top of the tree; "." is the top */
    struct texts names;  /* what lay in it when the watch began, sorted; folders too */
    unsigned char *seen; /* OPENS_*, one for each name */
    unsigned char own;   /* OPENS_READ: it was listed */
};
enum { OPENS_READ = 1, OPENS_WRITTEN = 2 };

struct opens {
    struct opens_folder *v;
    size_t n;
    struct texts
        links;    /* symbolic links, from the top: an open of one is one of what it leads to */
    size_t names; /* in all folders */
    int fd;       /* readable when there is something to take */
    bool lost;    /* the kernel had more to tell than it keeps */
    int *at;      /* by inotify's number: which folder, from 1 */
    size_t at_n;
};

/* Begins to watch the tree at top, without folders named .git and without those in `without`
 * (absolute, NULL-ended). Returns 0, or a -errno with what would help: -ENOSPC where a user's watches
 * do not suffice, -E2BIG for a tree that is too large. Free it in either case. */
int opens_begin(struct opens *o, const char *top, const char *const *without, struct err *err);
/* Takes what there is to be told by now; waits for nothing. */
void opens_take(struct opens *o);
void opens_fini(struct opens *o); /* of one that was begun, with success or without */
