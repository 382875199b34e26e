/* The kernel's word, in /proc, that one bit of a worker's memory is not what it was just before. */
#include "harness/run/evidence/evidence.h"

#include "faults/process/memory_flip.h"

struct changed {
    struct bit bit;
    unsigned char before, after;
};

static void *begin(struct run_entry *a, struct bound *b) {
    struct changed *c = arena_new(&a->owner->engine->arena, struct changed);
    bool seen = memory_flip_bit(&b->target, &a->args, &c->bit, NULL) == 0 &&
                bit_read(&c->bit, &c->before, NULL) == 0;
    return seen ? c : NULL;
}

/* Looked at while the worker that said the step is held still; later it may write there itself. */
static bool felt(struct bound *b) {
    struct changed *c = b->known[EVIDENCE_memory_changed];
    return c && bit_read(&c->bit, &c->after, NULL) == 0 &&
           c->after == (c->before ^ 1U << c->bit.number);
}

static void put(const struct run_entry *a, struct json_writer *w) {
    const struct changed *c = a->bound[0].known[EVIDENCE_memory_changed];
    json_put_i64(w, "address", (int64_t)c->bit.address);
    json_put_i64(w, "before", c->before);
    json_put_i64(w, "after", c->after);
}

const struct evidence evidence_memory_changed = {
    .what = "one bit of the target's memory is not what it was",
    .absent = "its memory is as it was, or it has written there itself",
    .unannounced = true,
    .begin = begin,
    .felt = felt,
    .put = put,
};
