/* torchelastic's exit barrier: an agent whose workers are done waits for the others. Up to
 * torch 2.3 each writes a key and looks for all of them; from 2.4 on each adds 1 to a number, and
 * who makes it the number of agents writes a key that all wait for. */
#include "agent/legacy/state.h"

#include "base/str.h"

static const char PREFIX[] = "torchelastic/agent/terminal_state";

static const char *key_of(struct legacy *l, int rank) {
    return arena_printf(&l->arena, "%s%d", PREFIX, rank);
}

static const char *last_key(struct legacy *l) {
    return arena_printf(&l->arena, "%s/last_member", PREFIX);
}

bool barrier_is_done(struct legacy *l) {
    if (l->round.newer)
        return exchange_get(l, last_key(l)) != NULL;
    for (int i = 0; i < l->round.n; i++)
        if (!exchange_get(l, key_of(l, i)))
            return false;
    return true;
}

/* Of torch from 2.4 on; it is asked only while nobody has opened the barrier. */
static void add_own(struct legacy *l) {
    const char *key = arena_printf(&l->arena, "%s/num_members", PREFIX);
    const char *text = exchange_get(l, key);
    int64_t count = 0;
    if (text && !str_to_i64(text, 0, 1000000, &count))
        return;
    if (!l->round.added)
        exchange_add(l, key, count + 1);
    else if (count >= l->round.n)
        exchange_put(l, last_key(l), "<val_ignored>");
}

static bool write_own(struct legacy *l) {
    const char *key = key_of(l, l->round.rank);
    if (exchange_get(l, key))
        return false;
    exchange_put(l, key, arena_printf(&l->arena, "%d", l->round.rank));
    return true;
}

void barrier_tell(struct legacy *l) {
    if (l->round.newer)
        add_own(l);
    else
        write_own(l);
}

bool barrier_finish(struct legacy *l) {
    const char *fin = arena_printf(&l->arena, "%s.FIN", key_of(l, l->round.rank));
    if (l->round.n == 1 || l->round.newer)
        return false;
    if (write_own(l))
        return true;
    if (exchange_get(l, fin))
        return false;
    exchange_put(l, fin, "FIN");
    return true;
}
