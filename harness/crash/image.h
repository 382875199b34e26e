/* image: a directory as it would be after a way, by slots and by numbers of contents. Pure. */
#pragma once

#include "harness/crash/contents.h"
#include "harness/crash/losses.h"

struct crash_image {
    const struct crash_changes *changes;
    struct crash_contents *contents;
    size_t *slots; /* inode by slot */
    struct crash_file {
        struct crash_piece *pieces;      /* by mem_push; pieces_n 0 keeps its memory */
        size_t pieces_n, content, place; /* place: in seen */
        unsigned mode;                   /* of a directory too */
        int64_t t_ns;                    /* of the last change to its bytes, size or names */
        const char *first; /* while it is walked through: the path by which it was met */
    } * files;             /* by inode */
    bool *went;            /* by operation, of a way in which others went on: what they have done */
    bool *met; /* directories, by inode: each is entered once, be there rings or two names */

    /* What is reached, in order: slot, inode, content; three numbers each. */
    size_t *reached;
    size_t reached_n;
    /* The same without what nobody can see: name, depth and kind, mode, and content, text of a link
     * or the place of an earlier name of the same file. Equal ones are equal directories. */
    size_t *seen;
    size_t seen_n;
};

void crash_image_init(struct crash_image *m, const struct crash_changes *changes,
                      struct crash_contents *contents);
void crash_image_fini(struct crash_image *m);

/* Makes it what the way leads to. */
void crash_image_build(struct crash_image *m, const struct crash_way *way);
/* Of what was built. */
int crash_image_walk(struct crash_image *m, int (*see)(void *arg, const struct crash_entry *e),
                     void *arg);
void crash_image_hash(struct crash_image *m, char ret[65], uint64_t *ret_bytes);

/* The hash over what is told, entry by entry; digest of a file. folder.c has the same. */
void crash_image_hash_entry(struct sha256 *s, const struct crash_entry *e,
                            const uint32_t digest[8]);
