/* Counters of a cut: frames were dropped between every two groups, both ways; or one way, and the
 * other way none has passed since. */
#include "harness/run/evidence/evidence.h"
#include "harness/run/evidence/links.h"

static bool learn(struct run_entry *a, struct bound *b, const struct record *r) {
    struct links *l = b->known[EVIDENCE_links_cut];
    links_learn_passed(a, l, r);
    return links_learn(a, l, r, "cut_to");
}

static bool felt(struct bound *b) {
    const struct links *l = b->known[EVIDENCE_links_cut];
    return links_fewest(l, true) > 0 || links_parted(l);
}

static void put(const struct run_entry *a, struct json_writer *w) {
    json_put_i64(w, "fewest", links_fewest(a->bound[0].known[EVIDENCE_links_cut], true));
}

bool entry_cuts_off(const struct run_entry *a, const char *node) {
    for (size_t i = 0; a->lasts && i < a->bound_n; i++) {
        const struct links *l = a->bound[i].known[EVIDENCE_links_cut];
        int own = l ? links_group_of(a, l, node) : -1, stores = l ? links_group_of_store(a, l) : -1;
        if (own >= 0 && stores >= 0 && own != stores)
            return true;
    }
    return false;
}

const struct evidence evidence_links_cut = {
    .what = "the wire dropped frames, and passed none",
    .absent = "no frame was dropped between some of them: nobody had anything to say meanwhile",
    .by_wire = true,
    .at_sockets = "the kernel dropped what came to its sockets and its peers'",
    .at_table = "the kernel's filter dropped packets of its host, or of its peers'",
    .counts = true,
    .begin = links_begin,
    .learn = learn,
    .felt = felt,
    .put = put,
};
