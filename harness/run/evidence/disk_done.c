#include "harness/run/evidence/disk_done.h"

void *disk_seen_begin(struct run_entry *a, struct bound *b, enum disk_verdict v) {
    struct disk_seen *s = arena_new(&a->owner->engine->arena, struct disk_seen);
    a->plan->fault->rule(&a->args, &s->rule, &s->place, NULL); /* the plan has checked it */
    s->before = node_disk_done(b->node, &s->rule, s->place, v).count;
    return s;
}

bool disk_seen_felt(struct bound *b, const struct disk_seen *s, enum disk_verdict v) {
    return node_disk_done(b->node, &s->rule, s->place, v).count > s->before;
}

void disk_seen_put(const struct run_entry *a, const struct disk_seen *s, enum disk_verdict v,
                   struct json_writer *w) {
    struct disk_done done = node_disk_done(a->bound[0].node, &s->rule, s->place, v);
    json_put_i64(w, "count", done.count - s->before);
    json_put_string(w, "path", done.path);
    json_put_string(w, "by", done.by_disk ? "disk" : "calls");
}
