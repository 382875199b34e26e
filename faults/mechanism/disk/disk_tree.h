/* disk_tree: the files of a directory by number, by inode and by name. A number belongs to one file
 * for as long as it exists, over renames, links and mounts, and is not used twice; it is the
 * file's in the record, and its node in the kernel's requests. The directory itself is 1. */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum { DISK_ROOT = 1, DISK_MOUNTS_MAX = 64 };

struct disk_name {
    uint64_t parent;
    char *name;
};

struct disk_file {
    uint64_t number;
    dev_t dev;
    ino_t ino;
    bool directory;
    int fd; /* O_PATH; -1 while no mount knows the file */
    struct disk_name *names;
    size_t names_n;
    uint32_t lookups[DISK_MOUNTS_MAX]; /* that a mount has not forgotten yet */
    uint64_t lookups_all;
    uint64_t changes;       /* of its bytes, or of a directory's entries */
    unsigned held;          /* names of it that only we know any more */
    struct disk_dirt *dirt; /* what of it a power-off takes: disk_loss.h; NULL: nothing */
    struct disk_file *next;
};

struct disk_tree {
    struct disk_file **by_number, **by_inode;
    size_t numbers, slots, n;
};

/* NULL: there is none. */
struct disk_file *disk_tree_find(const struct disk_tree *t, uint64_t number);
struct disk_file *disk_tree_at(const struct disk_tree *t, const struct stat *st);
/* A new one; another that has had its inode has it no more. */
struct disk_file *disk_tree_add(struct disk_tree *t, const struct stat *st);
/* Ends what has neither a name nor anybody who knows it; otherwise nothing happens. */
void disk_tree_tidy(struct disk_tree *t, struct disk_file *f);
/* Nothing is known any more but the directory itself, because names have changed behind our back. No
 * mount is left. */
void disk_tree_reset(struct disk_tree *t);
void disk_tree_fini(struct disk_tree *t);

void disk_file_add_name(struct disk_file *f, uint64_t parent, const char *name);
void disk_file_drop_name(struct disk_file *f, uint64_t parent, const char *name);

/* Relative to the directory: of a file by its first name (of one that has none any more: by its
 * last), or of an entry. Returns what buf holds then. */
const char *disk_tree_path(const struct disk_tree *t, const struct disk_file *f, struct buf *buf);
const char *disk_tree_entry(const struct disk_tree *t, uint64_t parent, const char *name,
                            struct buf *buf);
