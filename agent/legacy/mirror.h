/* mirror: what an agent knows of the keys below one folder: a whole read, then every change. */
#pragma once

#include "agent/core/tree.h"

struct mirror_key {
    char *key, *value;
    int64_t modified;
};

struct mirror {
    struct mirror_key *keys;
    size_t n;
    int64_t index; /* all changes up to it are in */
    bool known;    /* changes can be waited for from there on */
    uint64_t puts; /* ever made by mirror_put */
};

/* All that there is, as a GET that was answered at index. */
void mirror_replace(struct mirror *m, const struct tree_node *nodes, size_t n, int64_t index);
/* A change that was waited for. */
void mirror_change(struct mirror *m, const struct tree_node *node);
/* The answer to an own PUT: known before the change is told. */
void mirror_put(struct mirror *m, const struct tree_node *node);
const struct mirror_key *mirror_find(const struct mirror *m, const char *key); /* NULL: absent */
void mirror_fini(struct mirror *m);
