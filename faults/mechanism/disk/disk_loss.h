/* disk_loss: what of a disk a loss of power would take, kept so that it can be taken: the bytes that
 * were in a file before those that were not synced, and how each name that was not synced is made
 * undone. Names stay in their order, as in a journal: an fsync of anything makes all of them stay,
 * and bytes of a file only its own. More than 4096 names at once: the oldest stay.
 *
 * All of it runs under the lock of the disk. */
#pragma once

#include "base/list.h"
#include "faults/mechanism/disk/disk.h"
#include "faults/mechanism/disk/disk_tree.h"

struct disk_loss {
    enum disk_losing how;
    struct disk_tree *tree;
    int backing, held, scratch; /* scratch: a file without a name, of the bytes */
    uint64_t scratch_end, held_made;
    struct disk_undo *undos;
    size_t undos_n;
    struct list dirty; /* of struct disk_dirt */
};

int disk_loss_open(struct disk_loss *l, const struct disk_options *o, struct disk_tree *tree,
                   int backing, struct err *err);
void disk_loss_close(struct disk_loss *l);

/* Bytes of the file from offset on are about to change, or to be cut off. Returns 0 or a -errno:
 * then nothing is to be done. */
int disk_loss_change(struct disk_loss *l, size_t slot, struct disk_file *f, uint64_t offset,
                     uint64_t size);
/* An entry has been made. */
void disk_loss_made(struct disk_loss *l, const struct disk_file *parent, const char *name,
                    const struct disk_file *f);
/* Do it. Return 0 or a -errno. */
int disk_loss_remove(struct disk_loss *l, const struct disk_file *parent, const char *name,
                     struct disk_file *f);
struct disk_move {
    const struct disk_file *from_parent, *to_parent;
    const char *from, *to;
    struct disk_file *other; /* that had the name; NULL: nothing had */
    unsigned flags;          /* of renameat2 */
};
int disk_loss_rename(struct disk_loss *l, const struct disk_move *m);

/* It was synced; NULL: everything. */
void disk_loss_synced(struct disk_loss *l, struct disk_file *f);
/* Another mount looks at it: what had not been synced is on its way to the server now. */
void disk_loss_seen(struct disk_loss *l, size_t slot, struct disk_file *f);

/* Takes what the node has not synced. What cannot be undone is said. */
int disk_loss_strike(struct disk_loss *l, size_t slot, struct err *err);
