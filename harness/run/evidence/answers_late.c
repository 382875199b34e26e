/* Our own client's clock: how long the slowest of the answers took that it got from the store. */
#include "harness/run/evidence/store_read.h"

#include "faults/arguments.h"

extern const struct evidence evidence_answers_late;

static const int64_t ANY_NS = INT64_MAX;

/* How late the fault lets them be; the client asks until one is so late. */
static void *begin(struct run_entry *a, struct bound *b) {
    struct err err;
    fault_duration(&a->args, "delay", "100ms", ANY_NS, &b->target.store.number, &err);
    return store_read_begin(a, b);
}

static bool learn(struct run_entry *a, struct bound *b, const struct record *r) {
    return store_read_learn(a, b, r, &evidence_answers_late, b->known[EVIDENCE_answers_late]);
}

static bool felt(struct bound *b) {
    const struct store_read *s = b->known[EVIDENCE_answers_late];
    return s->has_after && s->after >= b->target.store.number;
}

static const char *why(const struct run_entry *a, const struct bound *b) {
    return ((const struct store_read *)b->known[EVIDENCE_answers_late])->error;
}

static void put(const struct run_entry *a, struct json_writer *w) {
    const struct store_read *s = a->bound[0].known[EVIDENCE_answers_late];
    json_put_i64(w, "slowest_ns", s->after);
}

const struct evidence evidence_answers_late = {
    .what = "an answer of the store was late by as much as it stands still",
    .absent = "no answer of the store was late by as much as it should stand still",
    .reads_after = "slowest",
    .begin = begin,
    .learn = learn,
    .felt = felt,
    .why = why,
    .put = put,
};
