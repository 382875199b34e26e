#include "tests/agent/legacy/tree_model.h"

#include "base/str.h"

#include <stdlib.h>
#include <string.h>

enum { KEYS_MAX = 4096, HISTORY = 40, FIRST_INDEX = 1000 };

struct node {
    char *key, *value;
    bool dir;
    int64_t modified, expires_ns; /* INT64_MAX: never */
};

struct change {
    int64_t index;
    char *key, *value;
    bool dir, gone;
};

struct tree_model {
    struct node nodes[KEYS_MAX];
    size_t n;
    struct change history[HISTORY];
    int64_t index;
};

struct tree_model *tree_model_new(void) {
    struct tree_model *m = calloc(1, sizeof(*m));
    if (!m)
        abort();
    m->index = FIRST_INDEX;
    return m;
}

static void drop(struct tree_model *m, size_t i) {
    free(m->nodes[i].key);
    free(m->nodes[i].value);
    m->nodes[i] = m->nodes[--m->n];
}

struct tree_model *tree_model_free(struct tree_model *m) {
    while (m->n)
        drop(m, m->n - 1);
    for (int i = 0; i < HISTORY; i++) {
        free(m->history[i].key);
        free(m->history[i].value);
    }
    free(m);
    return NULL;
}

static bool below(const char *key, const char *root) {
    size_t n = strlen(root);
    return strncmp(key, root, n) == 0 && (!key[n] || key[n] == '/');
}

static struct node *find(struct tree_model *m, const char *key) {
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->nodes[i].key, key) == 0)
            return &m->nodes[i];
    return NULL;
}

static void note(struct tree_model *m, const char *key, const char *value, bool dir, bool gone) {
    struct change *c = &m->history[m->index % HISTORY];
    free(c->key);
    free(c->value);
    *c = (struct change){m->index, strdup(key), strdup(value), dir, gone};
}

static struct node *add(struct tree_model *m, const char *key, bool dir) {
    if (m->n == KEYS_MAX)
        abort();
    m->nodes[m->n] = (struct node){strdup(key), strdup(""), dir, m->index, INT64_MAX};
    return &m->nodes[m->n++];
}

static void add_parents(struct tree_model *m, const char *key, struct arena *a) {
    for (const char *p = strchr(key + 1, '/'); p; p = strchr(p + 1, '/')) {
        char *parent = arena_strndup(a, key, (size_t)(p - key));
        if (!find(m, parent))
            add(m, parent, true);
    }
}

static struct tree_answer failed(const struct tree_model *m, enum tree_result result) {
    return (struct tree_answer){.result = result, .index = m->index, .text = "the model says so"};
}

static struct tree_answer told(struct tree_model *m, struct arena *a, const struct node *n) {
    struct tree_node *t = arena_new(a, struct tree_node);
    *t = (struct tree_node){.key = arena_strdup(a, n->key),
                            .value = arena_strdup(a, n->value),
                            .dir = n->dir,
                            .modified = n->modified};
    return (struct tree_answer){
        .result = TREE_DONE, .index = m->index, .nodes = t, .n = 1, .text = ""};
}

static struct tree_answer put(struct tree_model *m, int64_t now_ns, const struct tree_request *q,
                              struct arena *a) {
    struct node *n = find(m, q->key);
    if (n && q->exist == TREE_ABSENT)
        return failed(m, TREE_EXISTS);
    if (!n && (q->exist == TREE_PRESENT || q->compare))
        return failed(m, TREE_MISSING);
    if (q->compare && strcmp(q->compare, n->value) != 0)
        return failed(m, TREE_CHANGED);
    if (n && n->dir && !q->refresh)
        return failed(m, TREE_REFUSED);
    m->index++;
    if (!n) {
        add_parents(m, q->key, a);
        n = add(m, q->key, q->dir);
    }
    n->modified = m->index;
    n->expires_ns = q->ttl_s ? now_ns + q->ttl_s * 1000000000 : INT64_MAX;
    if (!q->refresh) {
        free(n->value);
        n->value = strdup(q->value ? q->value : "");
        note(m, q->key, n->value, n->dir, false);
    }
    return told(m, a, n);
}

static struct tree_answer get(struct tree_model *m, const struct tree_request *q, struct arena *a) {
    struct tree_node *t = arena_array(a, struct tree_node, m->n + 1);
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++)
        if (below(m->nodes[i].key, q->key))
            t[n++] = *told(m, a, &m->nodes[i]).nodes;
    if (!n)
        return failed(m, TREE_MISSING);
    return (struct tree_answer){
        .result = TREE_DONE, .index = m->index, .nodes = t, .n = n, .text = ""};
}

static struct tree_answer delete (struct tree_model *m, const struct tree_request *q,
                                  struct arena *a) {
    struct node *n = find(m, q->key);
    if (!n)
        return failed(m, TREE_MISSING);
    if (q->compare && strcmp(q->compare, n->value) != 0)
        return failed(m, TREE_CHANGED);
    m->index++;
    struct tree_answer answer = told(m, a, n);
    note(m, n->key, "", false, true);
    drop(m, (size_t)(n - m->nodes));
    return answer;
}

struct tree_answer tree_model_do(struct tree_model *m, int64_t now_ns, const struct tree_request *q,
                                 struct arena *a) {
    tree_model_expire(m, now_ns);
    if (q->verb == TREE_VERSION)
        return (struct tree_answer){.result = TREE_DONE, .text = "3.4.0"};
    return q->verb == TREE_PUT   ? put(m, now_ns, q, a)
           : q->verb == TREE_GET ? get(m, q, a)
                                 : delete (m, q, a);
}

bool tree_model_wait(struct tree_model *m, const struct tree_request *q, bool arrives,
                     struct tree_answer *ret, struct arena *a) {
    if (arrives && q->from_index <= m->index - HISTORY) {
        *ret = failed(m, TREE_CLEARED);
        return true;
    }
    int64_t oldest = m->index - HISTORY + 1;
    for (int64_t i = q->from_index > oldest ? q->from_index : oldest; i <= m->index; i++) {
        const struct change *c = &m->history[i % HISTORY];
        if (c->index != i || !below(c->key, q->key))
            continue;
        struct tree_node *t = arena_new(a, struct tree_node);
        *t = (struct tree_node){.key = arena_strdup(a, c->key),
                                .value = arena_strdup(a, c->value),
                                .dir = c->dir,
                                .gone = c->gone,
                                .modified = i};
        *ret = (struct tree_answer){
            .result = TREE_DONE, .index = m->index, .nodes = t, .n = 1, .text = ""};
        return true;
    }
    return false;
}

int64_t tree_model_expire(struct tree_model *m, int64_t now_ns) {
    int64_t next_ns = INT64_MAX;
    for (size_t i = m->n; i-- > 0;) {
        struct node *n = &m->nodes[i];
        if (n->expires_ns > now_ns) {
            next_ns = n->expires_ns < next_ns ? n->expires_ns : next_ns;
            continue;
        }
        m->index++;
        note(m, n->key, "expire", false, true);
        drop(m, i);
    }
    return next_ns;
}

const char *tree_model_get(const struct tree_model *m, const char *key) {
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->nodes[i].key, key) == 0)
            return m->nodes[i].value;
    return NULL;
}
