/* frames_done: a kind of evidence that is a counter of the wire: what an impairment did to frames
 * between the groups that its fault is about. */
#pragma once

#include "harness/run/evidence/evidence.h"
#include "harness/run/evidence/links.h"

#define EVIDENCE_IS_DONE(name, deed, says, says_not)                                               \
    EVIDENCE_IS_DONE_SINCE(name, deed, links_begin, says, says_not)
#define EVIDENCE_IS_DONE_SINCE(name, deed, begins, says, says_not)                                 \
    static bool learn(struct run_entry *a, struct bound *b, const struct record *r) {              \
        return links_learn(a, b->known[EVIDENCE_##name], r, impairment_deed_keys[DEED_##deed]);    \
    }                                                                                              \
    static bool felt(struct bound *b) {                                                            \
        return links_all(b->known[EVIDENCE_##name]) > 0;                                           \
    }                                                                                              \
    static void put(const struct run_entry *a, struct json_writer *w) {                            \
        json_put_i64(w, "count", links_all(a->bound[0].known[EVIDENCE_##name]));                   \
    }                                                                                              \
    const struct evidence evidence_##name = {                                                      \
        .what = says,                                                                              \
        .absent = says_not,                                                                        \
        .by_wire = true,                                                                           \
        .counts = true,                                                                            \
        .begin = begins,                                                                           \
        .learn = learn,                                                                            \
        .felt = felt,                                                                              \
        .put = put,                                                                                \
    }
