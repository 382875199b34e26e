#include "harness/history/history_pack.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { PLACES = 1 << 14, TEXT_MAX = 200 };

struct pack {
    struct arena *arena;
    size_t bytes;
    const char *texts[PLACES];
    const struct json *nodes[PLACES];
};

struct pack *pack_new(struct arena *a) {
    struct pack *p = mem_new(struct pack);
    p->arena = a;
    return p;
}

struct pack *pack_free(struct pack *p) {
    free(p);
    return NULL;
}

size_t pack_bytes(const struct pack *p) {
    return p->bytes;
}

static uint64_t mixed(uint64_t h, uint64_t v) {
    return (h ^ v) * UINT64_C(0x9E3779B97F4A7C15) >> 7 | (h ^ v) << 57;
}

const char *pack_text(struct pack *p, const char *text, size_t len) {
    uint64_t h = len;
    for (size_t i = 0; i < len; i++)
        h = mixed(h, (unsigned char)text[i]);
    const char **at = &p->texts[mixed(h, 1) % PLACES];
    if (*at && len <= TEXT_MAX && strlen(*at) == len && memcmp(*at, text, len) == 0)
        return *at;
    const char *kept = arena_strndup(p->arena, text, len);
    p->bytes += len + 1;
    if (len <= TEXT_MAX && !memchr(text, '\0', len))
        *at = kept;
    return kept;
}

static bool same(const struct json *a, const struct json *b) {
    return a->type == b->type && a->key == b->key && a->integer == b->integer &&
           a->length == b->length && a->next == b->next;
}

/* The union is compared by its largest member: every value fills all of it. */
static const struct json *keep(struct pack *p, const struct json *n) {
    _Static_assert(sizeof(n->integer) == sizeof(n->first) &&
                       sizeof(n->integer) == sizeof(n->number),
                   "values are compared as whole numbers");
    uint64_t h = mixed((uint64_t)n->type, (uint64_t)(uintptr_t)n->key);
    h = mixed(mixed(h, (uint64_t)n->integer), (uint64_t)(uintptr_t)n->next);
    const struct json **at = &p->nodes[mixed(h, n->length) % PLACES];
    if (*at && same(*at, n))
        return *at;
    struct json *kept = arena_new(p->arena, struct json);
    *kept = *n;
    p->bytes += sizeof(*kept);
    return *at = kept;
}

static const struct json *pack_chain(struct pack *p, const struct json *first);

static const struct json *pack_one(struct pack *p, const struct json *j, const struct json *next) {
    struct json n = {.type = j->type, .length = j->length, .next = (struct json *)(uintptr_t)next};
    n.key = j->key ? pack_text(p, j->key, strlen(j->key)) : NULL;
    if (j->type == JSON_STRING)
        n.string = pack_text(p, j->string, j->length);
    else if (j->type == JSON_ARRAY || j->type == JSON_OBJECT)
        n.first = (struct json *)(uintptr_t)pack_chain(p, j->first);
    else if (j->type == JSON_BOOL)
        n.integer = 0, n.boolean = j->boolean;
    else if (j->type != JSON_NULL)
        n.integer = j->integer;
    return keep(p, &n);
}

/* From the last to the first, for who comes before points to who follows; without recursion, for
 * lists are long. */
static const struct json *pack_chain(struct pack *p, const struct json *first) {
    size_t n = 0, at = 0;
    for (const struct json *it = first; it; it = it->next)
        n++;
    const struct json **all = malloc((n ? n : 1) * sizeof(*all));
    const struct json *next = NULL;
    if (!all)
        abort(); /* out of memory */
    for (const struct json *it = first; it; it = it->next)
        all[at++] = it;
    while (at-- > 0)
        next = pack_one(p, all[at], next);
    free(all);
    return next;
}

const struct json *pack_tree(struct pack *p, const struct json *j) {
    return pack_one(p, j, NULL);
}
