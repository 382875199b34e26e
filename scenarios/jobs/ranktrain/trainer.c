#include "scenarios/jobs/ranktrain/trainer.h"
#include "scenarios/jobs/ranktrain/net/deadline.h"

#include <poll.h>

bool trainer_asked_to_end(const struct trainer *t) {
    struct pollfd p = {.fd = t->wake_fd, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

int trainer_sum(struct trainer *t, int64_t *data, size_t n, struct err *err) {
    if (!t->reduced)
        rankquake_first_collective(&t->q);
    t->reduced = true;
    int r = t->collective->start(t->ring, data, n, deadline_in_ns(t->o->collective_ns), err);
    while (r == 0)
        r = t->collective->poll(t->ring, -1, err);
    return r < 0 ? r : 0;
}
