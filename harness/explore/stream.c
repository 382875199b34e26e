/* Watches. Every change goes into one log; a stream is a place in it. */
#include "harness/explore/copy_on_write.h"

#include "agent/core/kv_request.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

void change_free(struct change *c) {
    if (!c || --c->refs)
        return;
    canonical_fini(&c->seen);
    free(c);
}

/* The number of a beat is compared with others of its session, and as the revision of a view. */
static void change_see(struct change *c) {
    const struct entry *e = &c->entry;
    canonical_key(&c->seen, &e->key);
    if (e->value)
        canonical_value(&c->seen, e->key.kind, e->value);
    c->seen.hash = canonical_mix(c->seen.hash, e->deleted);
    canonical_order(&c->seen, CANONICAL_REVISION, e->mod_revision);
    likeness_revisions(&c->seen, &e->key, e->create_revision, e->mod_revision);
}

static bool is_beat(const struct entry *e) {
    return e->key.kind == KEY_SESSION && !e->deleted && e->create_revision != e->mod_revision;
}

static void log_remove(struct world *w, int at) {
    change_free(w->log[at]);
    w->n_log--;
    memmove(w->log + at, w->log + at + 1, sizeof(w->log[0]) * (size_t)(w->n_log - at));
    w->log[w->n_log] = NULL;
    for (int i = 0; i < w->config->agents; i++)
        for (int k = 0; k < WATCH_SLOTS; k++)
            w->nodes[i].streams[k].at -= w->nodes[i].streams[k].at > at;
}

/* Whoever has not heard of a beat when the next one comes hears of that alone: all that came late
 * comes at one moment, and a silence that ended then is the same. So no log grows for ever. */
static void supersede(struct world *w, const struct entry *e) {
    for (int i = w->n_log - 1; i >= 0 && is_beat(e); i--)
        if (is_beat(&w->log[i]->entry) && strcmp(w->log[i]->entry.key.uid, e->key.uid) == 0)
            log_remove(w, i);
}

void stream_append(struct world *w, const struct kv_event *event) {
    struct change *c = mem_new(struct change);
    const struct kv_pair *p = &event->pair;
    c->refs = 1;
    c->entry = kv_request_revisions(p, event->deleted);
    if (!key_parse(p->key.data, p->key.len, "job", &c->entry.key) || w->n_log == LOG_MAX) {
        world_violation(w, "more than %d changes are waited for, or a key of nobody's", LOG_MAX);
        change_free(c);
        return;
    }
    if (!event->deleted) {
        memcpy(&c->value, p->value.data, p->value.len);
        c->entry.value = &c->value;
    }
    change_see(c);
    supersede(w, &c->entry);
    w->log[w->n_log++] = c;
}

bool stream_wants(const struct explore_stream *s, int slot, const struct change *c) {
    const struct store_key *k = &c->entry.key;
    if (k->kind == KEY_CUR || strcmp(k->inc, s->inc) != 0)
        return false;
    if (slot == WATCH_HEAD)
        return k->kind == KEY_HEAD;
    if (slot == WATCH_LEAD)
        return k->kind == KEY_LEAD;
    return slot == WATCH_ALL || (k->kind == KEY_SESSION && strcmp(k->uid, s->uid) == 0);
}

/* The revision of the first change that waits; 0: none. */
static int64_t first_waiting(const struct world *w, int node, int slot) {
    const struct explore_stream *s = &w->nodes[node].streams[slot];
    for (int i = s->at; s->generation && i < w->n_log; i++)
        if (stream_wants(s, slot, w->log[i]))
            return w->log[i]->entry.mod_revision;
    return 0;
}

bool stream_waits(const struct world *w, int node, int slot) {
    return first_waiting(w, node, slot) != 0;
}

bool stream_hears(const struct world *w, int node) {
    for (int k = 0; k < WATCH_SLOTS; k++)
        if (!w->nodes[node].streams[k].slow && stream_waits(w, node, k))
            return true;
    return false;
}

void stream_deliver_slot(struct world *w, int node, int slot, bool all) {
    struct explore_stream *s = &w->nodes[node].streams[slot];
    struct entry entries[LOG_MAX];
    struct event ev = {.kind = EVENT_CHANGES};
    size_t n = 0;
    int at = s->at;
    for (; at < w->n_log; at++) {
        const struct entry *e = &w->log[at]->entry;
        if (!stream_wants(s, slot, w->log[at]))
            continue;
        if (!all && n && e->mod_revision != entries[0].mod_revision)
            break;
        entries[n++] = *e;
    }
    s->at = at;
    ev.changes.slot = (enum watch_slot)slot;
    ev.changes.generation = s->generation;
    ev.changes.entries = entries;
    ev.changes.n = n;
    world_say(w, node, "hears of %zu changes (watch %d)", n, slot);
    agent_event(w, node, &ev);
}

void stream_deliver(struct world *w, int node) {
    int64_t next = INT64_MAX;
    for (int k = 0; k < WATCH_SLOTS; k++) {
        int64_t first = w->nodes[node].streams[k].slow ? 0 : first_waiting(w, node, k);
        next = first && first < next ? first : next;
    }
    for (int k = 0; k < WATCH_SLOTS; k++)
        if (!w->nodes[node].streams[k].slow && first_waiting(w, node, k) == next)
            stream_deliver_slot(w, node, k, false);
}

static bool hears(const struct explore_node *n, int slot) {
    return n->core && !n->stopped && !n->cut && n->streams[slot].generation &&
           !n->streams[slot].slow;
}

static bool is_one_beat(const struct world *w, int node, int slot) {
    const struct explore_stream *s = &w->nodes[node].streams[slot];
    int n = 0;
    for (int i = s->at; i < w->n_log; i++) {
        const struct entry *e = &w->log[i]->entry;
        if (!stream_wants(s, slot, w->log[i]))
            continue;
        if (!is_beat(e))
            return false;
        n++;
    }
    return n == 1;
}

/* Hearing of a beat changes nothing but when the next silence begins, and that is now. */
void stream_beats(struct world *w) {
    for (int i = 0; i < w->config->agents; i++) {
        for (int k = 0; k < WATCH_SLOTS; k++) {
            if (!hears(&w->nodes[i], k) || !is_one_beat(w, i, k))
                continue;
            if (w->quiet_beats)
                w->nodes[i].streams[k].slow = true;
            else
                stream_deliver_slot(w, i, k, true);
        }
    }
}

/* Nobody waits for what all have heard of. */
void stream_trim(struct world *w) {
    int least = w->n_log;
    for (int i = 0; i < w->config->agents; i++) {
        for (int k = 0; k < WATCH_SLOTS; k++) {
            struct explore_stream *s = &w->nodes[i].streams[k];
            if (!s->generation)
                continue;
            while (s->at < w->n_log && !stream_wants(s, k, w->log[s->at]))
                s->at++;
            if (s->at == w->n_log)
                s->slow = false;
            least = s->at < least ? s->at : least;
        }
    }
    if (!least)
        return;
    for (int i = 0; i < least; i++)
        change_free(w->log[i]);
    w->n_log -= least;
    memmove(w->log, w->log + least, sizeof(w->log[0]) * (size_t)w->n_log);
    memset(w->log + w->n_log, 0, sizeof(w->log[0]) * (size_t)least);
    for (int i = 0; i < w->config->agents; i++)
        for (int k = 0; k < WATCH_SLOTS; k++)
            if (w->nodes[i].streams[k].generation)
                w->nodes[i].streams[k].at -= least;
}
