#include "agent/legacy/mirror.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

static struct mirror_key *find(const struct mirror *m, const char *key) {
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->keys[i].key, key) == 0)
            return &m->keys[i];
    return NULL;
}

const struct mirror_key *mirror_find(const struct mirror *m, const char *key) {
    return find(m, key);
}

static void drop(struct mirror *m, size_t i) {
    free(m->keys[i].key);
    free(m->keys[i].value);
    m->keys[i] = m->keys[--m->n];
}

static void add(struct mirror *m, const struct tree_node *node) {
    struct mirror_key k = {mem_strdup(node->key), mem_strdup(node->value), node->modified};
    mem_push(m->keys, m->n) = k;
}

static void set(struct mirror *m, const struct tree_node *node) {
    struct mirror_key *k = find(m, node->key);
    if (node->dir || (k && k->modified >= node->modified))
        return;
    if (!k) {
        add(m, node);
        return;
    }
    free(k->value);
    k->value = mem_strdup(node->value);
    k->modified = node->modified;
}

/* With all below it; what was put later than that is there. */
static void remove_below(struct mirror *m, const struct tree_node *node) {
    size_t n = strlen(node->key);
    for (size_t i = m->n; i-- > 0;) {
        const struct mirror_key *k = &m->keys[i];
        bool below = strncmp(k->key, node->key, n) == 0 && (!k->key[n] || k->key[n] == '/');
        if (below && k->modified <= node->modified)
            drop(m, i);
    }
}

void mirror_replace(struct mirror *m, const struct tree_node *nodes, size_t n, int64_t index) {
    while (m->n)
        drop(m, m->n - 1);
    for (size_t i = 0; i < n; i++)
        if (!nodes[i].dir)
            add(m, &nodes[i]);
    m->index = index;
    m->known = true;
}

void mirror_change(struct mirror *m, const struct tree_node *node) {
    if (node->gone)
        remove_below(m, node);
    else
        set(m, node);
    if (node->modified > m->index)
        m->index = node->modified;
}

void mirror_put(struct mirror *m, const struct tree_node *node) {
    set(m, node);
    m->puts++;
}

void mirror_fini(struct mirror *m) {
    while (m->n)
        drop(m, m->n - 1);
    free(m->keys);
    *m = (struct mirror){0};
}
