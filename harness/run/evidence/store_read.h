/* store_read: a kind of evidence that is a number which our own client has read in the store, or has
 * of the scheduler, twice. */
#pragma once

#include "harness/run/evidence/evidence.h"

struct store_read { /* number of a look that has come; error: the last one that did not */
    bool has_before, has_after;
    int64_t before, after;
    const char *error;
};

void *store_read_begin(struct run_entry *a, struct bound *b);
/* Takes what was read of this target by that word. */
bool store_read_learn(const struct run_entry *a, const struct bound *b, const struct record *r,
                      const struct evidence *e, struct store_read *s);
void store_read_put(const struct store_read *s, struct json_writer *w);

/* test: of `before` and `after`, when both are there. */
#define EVIDENCE_IS_READ(name, word_before, word_after, test, says, says_not)                      \
    EVIDENCE_IS_READ_OF(name, false, word_before, word_after, test, says, says_not)
/* scheduler: whether it is asked, and not a store. */
#define EVIDENCE_IS_READ_OF(name, scheduler, word_before, word_after, test, says, says_not)        \
    extern const struct evidence evidence_##name;                                                  \
    static bool learn(struct run_entry *a, struct bound *b, const struct record *r) {              \
        return store_read_learn(a, b, r, &evidence_##name, b->known[EVIDENCE_##name]);             \
    }                                                                                              \
    static bool felt(struct bound *b) {                                                            \
        const struct store_read *s = b->known[EVIDENCE_##name];                                    \
        int64_t before = s->before, after = s->after;                                              \
        return s->has_before && s->has_after && (test);                                            \
    }                                                                                              \
    static const char *why(const struct run_entry *a, const struct bound *b) {                     \
        const struct store_read *s = b->known[EVIDENCE_##name];                                    \
        return s->error;                                                                           \
    }                                                                                              \
    static void put(const struct run_entry *a, struct json_writer *w) {                            \
        store_read_put(a->bound[0].known[EVIDENCE_##name], w);                                     \
    }                                                                                              \
    const struct evidence evidence_##name = {                                                      \
        .what = says,                                                                              \
        .absent = says_not,                                                                        \
        .reads_before = word_before,                                                               \
        .reads_after = word_after,                                                                 \
        .of_scheduler = scheduler,                                                                 \
        .begin = store_read_begin,                                                                 \
        .learn = learn,                                                                            \
        .felt = felt,                                                                              \
        .why = why,                                                                                \
        .put = put,                                                                                \
    }
