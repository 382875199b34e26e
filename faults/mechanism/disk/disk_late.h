/* disk_late: what a mount goes on being told of names and attributes that other mounts have changed,
 * for a while, where a rule (late_ns) says so: as a client of a file system on the network does, which
 * believes what it was last told. What a mount was never told, and what it has changed itself, it
 * gets as it is.
 *
 * Close to open: who opens a file or a directory gets what is there (ESTALE has the kernel look
 * again), unless late_opens; a name of which the mount was told that there is none is not looked for
 * again by an open, as on NFS. The bytes of a file come from the disk, up to the size that was told.
 *
 * An answer that is so no more counts as such only where the program gets it: what an open looks at
 * on its way, and sets right itself, does not. All of it runs under the lock of the disk. */
#pragma once

#include "faults/mechanism/disk/disk_server.h"

enum disk_seen_what { DISK_SEEN_NAME, DISK_SEEN_ATTR, DISK_SEEN_ENTRIES };

/* What a mount was told. */
struct disk_belief {
    enum disk_seen_what what;
    uint64_t number,
        file; /* of what: of a name the directory; file: what the name had, 0: nothing */
    char *name;
    struct fuse_attr attr;
    struct buf entries; /* as getdents64 has them; d_off: where the next one begins */
    int64_t t_ns;       /* when it was so the last time that the mount asked */
};

/* What is there under that name (NULL: nothing), as the mount is to see it. */
struct disk_file *disk_late_name(struct disk_call *c, struct disk_file *parent, const char *name,
                                 struct disk_file *now);
void disk_late_attr(struct disk_call *c, const struct disk_file *f, struct fuse_attr *attr);
/* True: it was found by a name that has another file now, and is to be looked for again. */
bool disk_late_open(struct disk_call *c, const struct disk_file *f);
/* A link is read. */
void disk_late_link(struct disk_call *c, const struct disk_file *f);
/* What fd lists, as the mount is to see it; true: what it was told before is served under that
 * handle, until disk_late_close. */
bool disk_late_list(struct disk_call *c, const struct disk_file *dir, int fd);
/* Of such a handle: a part of it from there on. False: it is none. */
bool disk_late_entries(struct disk_mount *m, int fd, uint64_t offset, const char **ret,
                       size_t *ret_n);
void disk_late_close(struct disk_mount *m, int fd);

/* The mount itself changes a name, or the attributes of a file. */
void disk_late_own_name(struct disk_call *c, uint64_t parent, const char *name);
void disk_late_own(struct disk_call *c, uint64_t number);

/* The mount is told nothing late any more, or is over. */
void disk_late_forget(struct disk_mount *m);
/* As long as a rule of it says so, nothing happens. */
void disk_late_tidy(struct disk_mount *m);
