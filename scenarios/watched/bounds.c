/* bounds: an arena (base/arena.h) in place of the one that a program has, where its memory is watched: by valgrind (watched.py), or by the
 * sanitizers in a unit test (tests/mutate). There what is given out lies side by side in blocks, so that a byte too far is a neighbour's, or
 * nobody's; here each piece ends where it ends, and who reads or writes behind it is told.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

/* What the head of an arena is here. */
struct bounded {
    struct bounded *next;
    void *piece;
};

void *arena_alloc(struct arena *a, size_t size) {
    struct bounded *b = malloc(sizeof(*b));
    void *piece = malloc(size); /* of none too */
    if (!b || !piece)
        abort();
    *b = (struct bounded){(struct bounded *)a->head, piece};
    a->head = (struct arena_block *)b;
    return memset(piece, 0, size);
}

void arena_fini(struct arena *a) {
    while (a->head) {
        struct bounded *b = (struct bounded *)a->head;
        a->head = (struct arena_block *)b->next;
        free(b->piece);
        free(b);
    }
}

void arena_clear(struct arena *a) {
    arena_fini(a);
}
