#include "harness/judge/checks/own_round.h"

#include "base/str.h"

int64_t own_round(const struct worker *w) {
    int64_t own = -1;
    return str_to_i64(json_get_string(w->env, "RANKRUN_ROUND", ""), 0, INT64_MAX, &own) ? own : -1;
}

const char *own_node(const struct history *h, const char *name) {
    history_each(r, h) {
        if (r->source == SOURCE_HARNESS && record_is(r, "node-up") &&
            !str_starts(r->node, "store") &&
            (str_eq(r->node, name) || str_eq(record_text(r, "addr"), name)))
            return r->node;
    }
    return NULL;
}
