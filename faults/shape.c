#include "faults/shape.h"

#include "base/rand.h"
#include "base/str.h"

#include <errno.h>
#include <string.h>

static const struct {
    const char *word;
    int least;
} shapes[SHAPES_N] = {
#define X(name, word, least, text) [SHAPE_##name] = {word, least},
    SHAPES(X)
#undef X
};

int shape_of(const char *word, struct err *err) {
    for (int i = 0; i < SHAPES_N; i++)
        if (str_eq(word, shapes[i].word))
            return i;
    return err_say(err, -EINVAL,
                   "shape: \"%s\" is none; write isolate, halves, majority, bridge or ring", word);
}

int shape_least(int shape) {
    return shapes[shape].least;
}

/* Half of a majority but for oneself, on each side. */
int shape_ring_reach(int groups) {
    return (groups / 2 + 1) / 2;
}

static void put_group(struct buf *ret, const char *const *v, size_t n) {
    for (size_t i = 0; i < n; i++)
        buf_printf(ret, "%s%s", i ? "," : "", v[i]);
}

static void put_two(const struct shape_nodes *nodes, const char *const *v, size_t n, size_t first,
                    bool stores, struct buf *ret) {
    put_group(ret, v, first);
    for (size_t i = 0; stores && i < nodes->stores_n; i++)
        buf_printf(ret, ",%s", nodes->stores[i]);
    buf_putc(ret, '|');
    put_group(ret, v + first, n - first);
}

static void put_ring(const char *const *v, size_t n, struct buf *ret) {
    for (size_t i = 0; i < n; i++)
        buf_printf(ret, "%s%s", i ? "|" : "", v[i]);
}

int shape_groups(int shape, const struct shape_nodes *nodes, uint64_t seed, struct buf *ret,
                 struct err *err) {
    const char *v[SHAPE_NODES_MAX];
    size_t n = nodes->n;
    struct rand r;
    if (n < (size_t)shapes[shape].least)
        return err_say(err, -ENOENT, "shape: %s takes %d nodes, and %zu %s on", shapes[shape].word,
                       shapes[shape].least, n, n == 1 ? "is" : "are");
    memcpy(v, nodes->v, n * sizeof(*v));
    rand_init(&r, seed);
    for (size_t i = n; i > 1; i--) {
        size_t k = rand_below(&r, i);
        const char *swapped = v[i - 1];
        v[i - 1] = v[k];
        v[k] = swapped;
    }
    if (shape == SHAPE_RING)
        put_ring(v, n, ret);
    else if (shape == SHAPE_BRIDGE) /* the last one is in no group */
        put_two(nodes, v, n - 1, (n - 1) / 2, false, ret);
    else
        put_two(nodes, v, n,
                shape == SHAPE_ISOLATE  ? n - 1
                : shape == SHAPE_HALVES ? (n + 1) / 2
                                        : n / 2 + 1,
                true, ret);
    return 0;
}
