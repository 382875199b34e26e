/* search: what is known while states are looked for, and kept for what is asked about them later.
 * Pure; the room's own. */
#pragma once

#include "base/arena.h"
#include "harness/crash/image.h"

struct crash_search {
    struct crash_ask ask; /* every field set */
    struct crash_changes changes;
    struct crash_promises promises[DISK_MODELS_N];
    struct crash_contents contents;
    struct crash_image image;
    struct arena arena; /* promises, losses of ways */
    struct crash_found {
        struct crash_state state;
        struct crash_way *ways; /* by mem_push: state.ways */
        size_t *seen, seen_n;   /* crash_image */
        size_t place;           /* in the order of trials */
        size_t nth;             /* found */
    } * v;
    size_t n;
    struct crash_index by_seen;
    uint64_t ways;
    size_t losses; /* that all ways have */
    double left_out;
};

/* The state to which a way leads, whose losses are closed; added where it is new. The losses are
 * copied. */
size_t crash_search_add(struct crash_search *s, const struct crash_way *way,
                        enum crash_class class);
/* Its hash and how much there is: asked for last, as it takes long. */
void crash_search_hash(struct crash_search *s, size_t state);
/* CRASH_NONE where it is not there yet. */
size_t crash_search_seek(struct crash_search *s, const struct crash_way *way);
/* Which of two ways is the smaller one to tell: < 0, 0, > 0. Fewer operations lost, whole before torn,
 * a file that has not grown before one of zeros, one node before all, a process before power, and then
 * the earlier. */
int crash_search_compare(const struct crash_search *s, const struct crash_way *a,
                         const struct crash_way *b);
/* Operations of which something is lost. */
size_t crash_search_lost(const struct crash_way *way);
/* The node that a way is about; CRASH_NONE: all. */
size_t crash_search_node(const struct crash_search *s, const struct crash_way *way);

/* Whether the operation before a point says that something is whole: a sync, a rename, a word of the
 * job; or the record ends there. */
bool crash_search_commits(const struct crash_search *s, size_t point);

/* variations.c: all that may be lost at a point, up to the bound. barrier: nothing was done since the
 * point before, but those that go on may go further. */
void crash_variations_find(struct crash_search *s, size_t point, bool barrier);
