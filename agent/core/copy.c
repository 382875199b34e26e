/* What only the simulation and the exploration make of an agent: a launcher is one, and draws by one seed. */
#include "agent/core/state.h"

#include "base/mem.h"
#include "base/rand.h"

#include <string.h>

static void *duplicate(const void *from, size_t size) {
    void *to = mem_alloc(size, 1);
    return size ? memcpy(to, from, size) : to;
}

void view_copy(struct view *to, const struct view *from) {
    *to = *from;
    to->cap = from->n;
    to->cap_plans = from->n_plans;
    to->members = from->n ? duplicate(from->members, from->n * sizeof(*from->members)) : NULL;
    to->plans = from->n_plans ? duplicate(from->plans, from->n_plans * sizeof(*from->plans)) : NULL;
    for (size_t i = 0; i < to->n; i++)
        to->members[i] = duplicate(from->members[i], sizeof(*from->members[i]));
    for (size_t i = 0; i < to->n_plans; i++) {
        struct round_plan *p = &to->plans[i];
        p->cap = p->n;
        p->entries = duplicate(p->entries, p->n * sizeof(*p->entries));
        for (size_t k = 0; k < p->n; k++)
            p->entries[k].member = view_find(to, p->entries[k].member->uid);
    }
}

struct rendezvous *rendezvous_copy(const struct rendezvous *from) {
    struct rendezvous *r = mem_new(struct rendezvous);
    *r = *from;
    memset(&r->strings, 0, sizeof(r->strings));
    memset(&r->arena, 0, sizeof(r->arena));
    r->actions = NULL;
    r->n_actions = r->cap_actions = 0;
    rendezvous_own(r, &from->config);
    view_copy(&r->coordinator.view, &from->coordinator.view);
    return r;
}

void rendezvous_reseed(struct rendezvous *r, uint64_t seed) {
    rand_init(&r->rand, seed);
}
