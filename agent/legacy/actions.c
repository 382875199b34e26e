/* Adds actions to what a step returns. */
#include "agent/legacy/state.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct action *legacy_add(struct legacy *l, enum action_kind kind) {
    if (l->n_actions == l->cap_actions) {
        l->cap_actions = l->cap_actions ? l->cap_actions * 2 : 8;
        l->actions = realloc(l->actions, l->cap_actions * sizeof(*l->actions));
        if (!l->actions)
            abort();
    }
    struct action *a = &l->actions[l->n_actions++];
    memset(a, 0, sizeof(*a));
    a->kind = kind;
    return a;
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
