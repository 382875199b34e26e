/* turn: where what is said becomes something else. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct turn_end {
    int64_t at;
    int is; /* what is said there */
};

/* Moves two ends between which another thing is said to the place where it begins: next to each other, and to->is is said
 * no earlier than there. False: the same is said at both, or there is nothing between them. */
bool turn_find(int (*said_at)(void *arg, int64_t at), void *arg, struct turn_end *from,
               struct turn_end *to);
