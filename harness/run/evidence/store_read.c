#include "harness/run/evidence/store_read.h"

#include "base/str.h"

void *store_read_begin(struct run_entry *a, struct bound *b) {
    return arena_new(&a->owner->engine->arena, struct store_read);
}

static bool is_ours(const struct run_entry *a, const struct bound *b, const struct record *r,
                    const char *word) {
    return str_eq(record_text(r, "id"), a->entry->id) && record_i64(r, "n", 0) == a->fired &&
           str_eq(record_text(r, "on"), b->target.name) && str_eq(record_text(r, "what"), word);
}

bool store_read_learn(const struct run_entry *a, const struct bound *b, const struct record *r,
                      const struct evidence *e, struct store_read *s) {
    if (r->source != SOURCE_HARNESS ||
        !record_is(r, e->of_scheduler ? "scheduler-read" : "store-read"))
        return false;
    bool before = str_eq(record_text(r, "when"), "before");
    if (!is_ours(a, b, r, before ? e->reads_before : e->reads_after))
        return false;
    const char *error = record_text(r, "error");
    if (*error) {
        s->error = error; /* as long as the history */
    } else if (before) {
        s->has_before = true;
        s->before = record_i64(r, "number", 0);
    } else {
        s->has_after = true;
        s->after = record_i64(r, "number", 0);
    }
    return true;
}

void store_read_put(const struct store_read *s, struct json_writer *w) {
    json_put_i64(w, "before", s->before);
    json_put_i64(w, "after", s->after);
}
