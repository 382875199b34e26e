/* The places of all members: ranks run on over the nodes in their order, and once more per role. */
#include "agent/core/state.h"

#include <string.h>

static int role_slots(const struct wanted *w, size_t n, const char *role) {
    int slots = 0;
    for (size_t i = 0; i < n; i++)
        if (strcmp(w->members[i]->value.role, role) == 0)
            slots += w->members[i]->value.slots;
    return slots;
}

void ranks_assign(const struct wanted *w, struct plan_value *ret) {
    int world = 0;
    for (size_t i = 0; i < w->n; i++)
        world += w->members[i]->value.slots;
    for (size_t i = 0, base = 0; i < w->n; i++) {
        const char *role = w->members[i]->value.role;
        bool same = i && strcmp(role, w->members[i - 1]->value.role) == 0;
        ret[i].group_rank = (int)i;
        ret[i].rank_base = (int)base;
        ret[i].world = world;
        /* The neighbour's answer is right for the same role; it is the usual one. */
        ret[i].role_world = same ? ret[i - 1].role_world : role_slots(w, w->n, role);
        ret[i].role_rank_base = same ? ret[i - 1].role_rank_base + w->members[i - 1]->value.slots
                                     : role_slots(w, i, role);
        base += (size_t)w->members[i]->value.slots;
    }
}
