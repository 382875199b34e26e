/* Counters of a delay: frames were passed on late between every two groups, both ways. */
#include "harness/run/evidence/evidence.h"
#include "harness/run/evidence/links.h"

static bool learn(struct run_entry *a, struct bound *b, const struct record *r) {
    return links_learn(a, b->known[EVIDENCE_frames_delayed], r, impairment_deed_keys[DEED_DELAYED]);
}

static bool felt(struct bound *b) {
    return links_fewest(b->known[EVIDENCE_frames_delayed], false) > 0;
}

static void put(const struct run_entry *a, struct json_writer *w) {
    json_put_i64(w, "fewest", links_fewest(a->bound[0].known[EVIDENCE_frames_delayed], false));
}

const struct evidence evidence_frames_delayed = {
    .what = "the wire passed frames on late in every direction",
    .absent = "frames were not late in every direction: somebody had nothing to say meanwhile",
    .by_wire = true,
    .counts = true,
    .begin = links_begin,
    .learn = learn,
    .felt = felt,
    .put = put,
};
