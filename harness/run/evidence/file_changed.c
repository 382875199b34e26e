/* Our own reading of the disk, as the node sees it: a file is not what it was just before, and lies
 * so when a worker is started, who has not run yet. */
#include "harness/run/evidence/evidence.h"

#include "base/str.h"
#include "faults/disk/stored.h"
#include "faults/mechanism/file_state.h"

struct file_changed {
    enum node_place place;
    char path[PATH_MAX];
    int64_t at; /* which byte of it is looked at for certain */
    struct file_state before, left;
    bool there, is_left, found, written;
};

static bool look(const struct bound *b, const struct file_changed *c, struct file_state *ret) {
    const struct target *t = &b->target;
    struct folder in;
    if (t->ops->open_place(t->node, c->place, true, &in, NULL) != 0)
        return false;
    file_state_read(&in, c->path, c->at, ret);
    folder_close(&in);
    return true;
}

static void *begin(struct run_entry *a, struct bound *b) {
    struct file_changed *c = arena_new(&a->owner->engine->arena, struct file_changed);
    struct stored s;
    int bit;
    if (stored_open(&b->target, &a->args, &s, NULL) != 0)
        return c;
    c->place = s.place;
    str_copy(c->path, sizeof(c->path), s.path);
    stored_close(&s);
    c->there = look(b, c, &c->before);
    if (stored_offset(&a->args, c->before.bytes, &c->at, &bit, NULL) == 0)
        c->there = look(b, c, &c->before);
    return c;
}

/* A disk of its own nobody else sees. */
static bool is_of(const struct bound *b, const struct file_changed *c, const struct record *r) {
    return r->source == SOURCE_PROBE && record_is(r, "worker-start") &&
           (c->place == NODE_SHARED || str_eq(r->node, node_plan(b->node)->name));
}

static bool learn(struct run_entry *a, struct bound *b, const struct record *r) {
    struct file_changed *c = b->known[EVIDENCE_file_changed];
    struct file_state now;
    if (!c || !c->is_left || c->found || !is_of(b, c, r) || !look(b, c, &now))
        return false;
    c->found = file_state_same(&now, &c->left) && !file_state_same(&now, &c->before);
    c->written |= !c->found;
    return c->found;
}

/* Asked for the first time when the fault has just come in force. */
static bool felt(struct bound *b) {
    struct file_changed *c = b->known[EVIDENCE_file_changed];
    if (c->there && !c->is_left)
        c->is_left = look(b, c, &c->left);
    return c->found;
}

static const char *why(const struct run_entry *a, const struct bound *b) {
    const struct file_changed *c = b->known[EVIDENCE_file_changed];
    return c->written ? "before a worker was started it had been written anew" : NULL;
}

static void put(const struct run_entry *a, struct json_writer *w) {
    const struct file_changed *c = a->bound[0].known[EVIDENCE_file_changed];
    BUF_FINI struct buf path = {0};
    char text[128];
    buf_printf(&path, "%s/%s", stored_place_name(c->place), c->path);
    json_put_string(w, "path", buf_str(&path));
    file_state_text(&c->before, text, sizeof(text));
    json_put_string(w, "was", text);
    file_state_text(&c->left, text, sizeof(text));
    json_put_string(w, "is", text);
}

const struct evidence evidence_file_changed = {
    .what = "what lies there is not what it was, and lay so when a worker was started",
    .absent = "no worker was started after it, so that nobody has read it anew",
    .by_disk = true,
    .begin = begin,
    .learn = learn,
    .felt = felt,
    .why = why,
    .put = put,
};
