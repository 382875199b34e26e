#include "tests/harness/judge/checks/turn.h"

bool turn_find(int (*said_at)(void *arg, int64_t at), void *arg, struct turn_end *from,
               struct turn_end *to) {
    if (from->at >= to->at || from->is == to->is)
        return false;
    while (to->at - from->at > 1) {
        int64_t middle = from->at + (to->at - from->at) / 2;
        int is = said_at(arg, middle);
        *(is == from->is ? from : to) = (struct turn_end){middle, is};
    }
    return true;
}
