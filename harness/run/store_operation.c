/* What nodes ask the store for, as it passes the wire: which entries wait for it. */
#include "harness/run/entry.h"

#include "base/str.h"

/* A fault on the store hears what is asked of it, any other who asks. */
bool entry_hears_request(const struct run_entry *a, const struct store_request *r) {
    const struct target_spec *on = &a->entry->on;
    struct engine *e = a->owner->engine;
    if (a->entry->when.operation != r->operation)
        return false;
    if (on->what == TARGET_STORES)
        return on->pick != PICK_NAMED || str_eq(on->node, node_plan(r->to)->name);
    return targets_listens_to_agent(e, on, node_plan(r->from)->name);
}

void entry_record_request(const struct run_entry *a, const struct store_request *r) {
    struct json_writer *w = engine_record(a->owner->engine, SOURCE_WIRE, "store-request");
    json_put_string(w, "node", node_plan(r->from)->name);
    json_put_string(w, "id", a->entry->id);
    json_put_string(w, "operation", store_operation_names[r->operation]);
    json_put_string(w, "to", node_plan(r->to)->name);
    engine_recorded(a->owner->engine);
}

void timeline_watch_store(struct timeline *t) {
    unsigned told = 0, held = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct run_entry *a = &t->entries[i];
        const struct trigger *w = &a->entry->when;
        if (a->state != ENTRY_LOOKING || !w->store || a->request_met)
            continue;
        told |= 1U << w->operation;
        held |= w->hold ? 1U << w->operation : 0;
    }
    cluster_watch_store(t->engine->cluster, told, held);
}
