/* changes: what each operation of a record does to the disk, without paths: which names of which
 * directory (slots) it sets to which inode, which bytes of which inode it writes. Found once, in a
 * world in which nothing is lost; a state sets some of the same slots and leaves out others.
 *
 * A record may be anybody's. An operation that makes no sense where it stands, leads out of the
 * directory or is about what nobody has made changes nothing and is counted. Pure. */
#pragma once

#include "base/arena.h"
#include "faults/mechanism/disk_record.h"
#include "harness/crash/index.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CRASH_NONE SIZE_MAX

enum change_kind {
    CHANGE_NONE,
    CHANGE_HAD,   /* set[0], and the bytes of a file; before all others */
    CHANGE_NAMES, /* set */
    CHANGE_SHAPE, /* of inode: truncate, allocate */
    CHANGE_MODE,  /* of inode: chmod */
    CHANGE_WRITE, /* [at, end) of inode */
    CHANGE_SYNC,  /* of inode; CRASH_NONE: of all */
    CHANGE_CLOSE, /* of inode */
};

struct crash_change {
    enum change_kind kind;
    size_t inode; /* whom it is about: of names the one that moves, comes or goes */
    struct {
        size_t slot, inode; /* CRASH_NONE: nothing goes by this name now */
    } set[2];
    size_t sets;
    bool apart;       /* a file goes to another directory: set[0] is the new name, set[1] the old */
    bool replaces;    /* a rename over a file that was there */
    bool makes;       /* inode is new */
    uint64_t at, end; /* of a write; of a shape its new size in end */
    uint64_t size_was; /* of the inode, before */
    unsigned mode;     /* with CHANGE_MODE */
    size_t next;       /* operation on the contents of the same inode; CRASH_NONE: none */
    size_t who, node;  /* a process; a node, of its own disk the one that it belongs to: from 0 */
    size_t disk;       /* 0: the one that there is, or what all nodes share */
};

enum inode_kind { INODE_DIRECTORY, INODE_FILE, INODE_LINK };

struct crash_inode {
    enum inode_kind kind;
    unsigned mode;
    const char *to;
    size_t text; /* of what a link says */
    uint64_t number, size;
    size_t last, shaped; /* last operation on its contents; the last that it grew or was cut by */
};

struct crash_slot {
    size_t dir; /* inode */
    const char *name;
    size_t inode; /* at the record's end */
    size_t text;  /* equal names have equal numbers */
};

struct crash_changes {
    const struct disk_record *record;
    struct arena arena;
    struct crash_change *v; /* record->n */
    struct crash_inode *inodes;
    size_t inodes_n;
    struct crash_slot *slots;
    size_t slots_n;
    struct crash_implied { /* directories that were there, but nobody has told of them */
        size_t slot, inode;
    } * implied;
    size_t implied_n;
    size_t *sorted; /* slots by directory, then by name */
    size_t *first;  /* by inode: where its slots begin in sorted; inodes_n + 1 of them */
    size_t had;     /* operations at the beginning that are DISK_HAD */
    struct crash_who {
        int rank, pid; /* rank -1: by pid */
    } * who;
    size_t who_n;
    const char **nodes;
    size_t nodes_n;
    bool volumes;        /* a directory for what all nodes share, and one for each node's disk */
    const char **disks;  /* their names, from 1 */
    size_t disks_n;      /* with 0 */
    bool own_disks_used; /* something was changed on a disk of a node */
    size_t ignored;
    const char *ignored_first;

    const char **texts;
    size_t texts_n;
    struct crash_index by_name, by_number, by_text;
};

enum { CRASH_ROOT = 0 }; /* the inode of the directory itself */

/* What a record of several disks calls what all nodes share; another directory beside it is the disk
 * of the node of its name. */
#define CRASH_SHARED "shared"

void crash_changes_find(struct crash_changes *c, const struct disk_record *record, bool volumes);
/* An open, a barrier: not even a word that something is whole. */
bool crash_changes_nothing(const struct disk_operation *o);
void crash_changes_fini(struct crash_changes *c);
