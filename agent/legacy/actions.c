/* Adds actions to what a step returns. */
#include "agent/legacy/state.h"

#include "base/mem.h"

#include <stdarg.h>

struct action *legacy_add(struct legacy *l, enum action_kind kind) {
    mem_push(l->actions, l->n_actions) = (struct action){.kind = kind};
    return &l->actions[l->n_actions - 1];
}

void legacy_log(struct legacy *l, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    legacy_add(l, ACTION_LOG)->log = arena_vprintf(&l->arena, fmt, ap);
    va_end(ap);
}

void legacy_claim(struct legacy *l, const char *what, int64_t round) {
    struct action *a = legacy_add(l, ACTION_CLAIM);
    a->claim.what = what;
    a->claim.round = round;
}

void legacy_exit(struct legacy *l, int code, const struct failure *f, const char *fmt, ...) {
    struct action *a = legacy_add(l, ACTION_EXIT);
    va_list ap;
    va_start(ap, fmt);
    a->exit.text = arena_vprintf(&l->arena, fmt, ap);
    va_end(ap);
    a->exit.code = code;
    a->exit.failure = f;
    a->exit.round = l->round.version;
    l->over = true;
}

void legacy_wake_at(struct legacy *l, int64_t monotonic_ns) {
    if (monotonic_ns < l->wake_ns)
        l->wake_ns = monotonic_ns;
}
