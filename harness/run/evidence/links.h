/* links: what became of the frames between the groups of nodes that a fault on the wire is about,
 * since it was about to come in force, by the counters of one kind of each sender. */
#pragma once

#include "harness/run/entry.h"

struct links;

/* Whether the record has the counters of a node. */
bool links_counted(const struct record *r);
/* `begin` of such a kind: its links, in the engine's arena; NULL: the groups cannot be had, and
 * then the fault does not come in force either. */
void *links_begin(struct run_entry *a, struct bound *b);
/* The same of what the first group alone does, or is done to it. */
void *links_begin_one_way(struct run_entry *a, struct bound *b);
/* Takes the counters of one sender, a map of receivers under this key; those that come first are
 * where it begins. False: the record has none. */
bool links_learn(const struct run_entry *a, struct links *l, const struct record *r,
                 const char *key);
/* The fewest frames of any direction between two groups. unasked: not from a store to those who ask
 * it, which says nothing once nobody's questions reach it. */
int64_t links_fewest(const struct links *l, bool unasked);
/* The same for what passed, which counts from the second record on: the first may have been
 * counted before the fault was in force. */
void links_learn_passed(const struct run_entry *a, struct links *l, const struct record *r);
/* Whether frames were dropped between all groups and none passed where none was dropped: there
 * nobody had anything to say. */
bool links_parted(const struct links *l);
/* All frames of the directions that the fault is about. */
int64_t links_all(const struct links *l);
/* The group of a node, or of the store; -1: in none. */
int links_group_of(const struct run_entry *a, const struct links *l, const char *node);
int links_group_of_store(const struct run_entry *a, const struct links *l);
