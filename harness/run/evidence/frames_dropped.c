/* Counters of a node's port, or of its sockets: what was dropped on the way to it and from it. */
#include "harness/run/evidence/evidence.h"

#include "base/str.h"
#include "harness/run/evidence/links.h"

/* The first count was asked for before the fault was in force: what was dropped earlier is not its. */
struct drops {
    bool counted, in_unknown; /* the helper on its host has ended with it */
    int64_t in_before, out_before, in, out;
};

/* Of a node that is on again it may be counted anew. */
static void take(int64_t now, int64_t *before, int64_t *ret) {
    *before = now < *before ? 0 : *before;
    *ret = now - *before > *ret ? now - *before : *ret;
}

static void *begin(struct run_entry *a, struct bound *b) {
    return arena_new(&a->owner->engine->arena, struct drops);
}

static bool learn(struct run_entry *a, struct bound *b, const struct record *r) {
    struct drops *d = b->known[EVIDENCE_frames_dropped];
    if (!links_counted(r) || !str_eq(r->node, node_plan(b->node)->name))
        return false;
    int64_t in = json_get_i64(r->fields, "dropped_in", 0);
    int64_t out = json_get_i64(r->fields, "dropped_out", 0);
    d->in_unknown |= !json_get(r->fields, "dropped_in");
    if (!d->counted)
        *d = (struct drops){.counted = true, .in_before = in, .out_before = out};
    take(in, &d->in_before, &d->in);
    take(out, &d->out_before, &d->out);
    return true;
}

static bool felt(struct bound *b) {
    const struct drops *d = b->known[EVIDENCE_frames_dropped];
    return (d->in > 0 || d->in_unknown) && d->out > 0;
}

static void put(const struct run_entry *a, struct json_writer *w) {
    const struct drops *d = a->bound[0].known[EVIDENCE_frames_dropped];
    if (d->in > 0 || !d->in_unknown)
        json_put_i64(w, "dropped_in", d->in);
    json_put_i64(w, "dropped_out", d->out);
}

const struct evidence evidence_frames_dropped = {
    .what = "the wire dropped its frames",
    .absent = "no frame to it and from it was dropped",
    .by_wire = true,
    .counts = true, /* before a node that is on again has counters that begin anew */
    .at_sockets = "the kernel dropped what came to its sockets and its peers'",
    .at_table = "the kernel's filter dropped packets of its host, or of its peers'",
    .begin = begin,
    .learn = learn,
    .felt = felt,
    .put = put,
};
