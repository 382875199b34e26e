#include "harness/cluster/strays.h"

#include "base/mem.h"
#include "harness/cluster/mark.h"

#include <stdlib.h>
#include <unistd.h>

size_t strays_of(const char *mark, struct process **ret) {
    struct process p;
    pid_t *below, *all;
    size_t n = 0, below_n = process_list_descendants(getpid(), &below), all_n = process_list(&all);
    *ret = NULL;
    for (size_t i = 0; i < all_n; i++) {
        if (all[i] == getpid() || process_is_among(all[i], below, below_n) ||
            !mark_is_carried(mark, all[i]) || process_open(all[i], &p, NULL))
            continue;
        if (mark_is_carried(mark, all[i]))
            mem_push(*ret, n) = p;
        else /* the number has become somebody else's */
            process_close(&p);
    }
    free(below);
    free(all);
    return n;
}

void strays_free(struct process *all, size_t n) {
    for (size_t i = 0; i < n; i++)
        process_close(&all[i]);
    free(all);
}
