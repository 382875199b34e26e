/* Watches are grouped by what they watch: a change looks up its key in a hash of the watched
 * single keys, walks the few watched ranges, and marks only the watches of the groups it hit. Each
 * group keeps its own log, so that a watch that wakes reads its own events and no others. */
#include "agent/core/kv_state.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

struct kv_watched {
    struct list node;        /* among the ranges */
    struct kv_watched *next; /* in its slot of the hash */
    struct list watches;
    size_t refs;
    struct kv_log log;
    int64_t log_from; /* the log is whole from this revision on */
    struct kv_bytes key, end;
    char bytes[];
};

struct kv_watch {
    struct kv *kv;
    struct kv_watched *watched;
    struct list node, ready; /* ready: an empty list when it is not */
    int64_t next_revision;   /* nothing below it is for this watch any more */
    bool behind;             /* there are events it has not taken */
    void *owner;
};

/* --- logs --- */

void kv_log_push(struct kv_log *log, struct kv_record *r) {
    if (log->first + log->n == log->cap) {
        if (log->first > log->cap / 2) {
            memmove(log->records, log->records + log->first, log->n * sizeof(*log->records));
            log->first = 0;
        } else {
            log->cap = log->cap ? log->cap * 2 : 16;
            log->records = realloc(log->records, log->cap * sizeof(*log->records));
            if (!log->records)
                abort();
        }
    }
    log->records[log->first + log->n++] = kv_record_ref(r);
}

void kv_log_drop_below(struct kv *kv, struct kv_log *log, int64_t revision) {
    while (log->n && log->records[log->first]->mod_revision < revision) {
        kv_record_unref(kv, log->records[log->first++]);
        log->n--;
    }
    if (!log->n)
        log->first = 0;
}

void kv_log_fini(struct kv *kv, struct kv_log *log) {
    kv_log_drop_below(kv, log, INT64_MAX);
    free(log->records);
    *log = (struct kv_log){0};
}

static size_t log_find(const struct kv_log *log, int64_t revision) {
    size_t low = 0, high = log->n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (log->records[log->first + mid]->mod_revision < revision)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* --- groups --- */

static uint64_t mix(uint64_t h, uint64_t word) {
    h = (h ^ word) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

static uint64_t hash_of(struct kv_bytes key) {
    uint64_t h = key.len, word;
    for (; key.len >= sizeof(word); key.data += sizeof(word), key.len -= sizeof(word)) {
        memcpy(&word, key.data, sizeof(word));
        h = mix(h, word);
    }
    word = 0;
    memcpy(&word, key.data, key.len);
    return mix(h, word);
}

static struct kv_watched **slot_of(const struct kv *kv, struct kv_bytes key) {
    return &kv->keys[hash_of(key) & (kv->n_key_slots - 1)];
}

static void hash_grow(struct kv *kv) {
    struct kv_watched **old = kv->keys;
    size_t n_old = kv->n_key_slots;
    kv->n_key_slots = n_old ? n_old * 2 : 16;
    kv->keys = calloc(kv->n_key_slots, sizeof(*kv->keys));
    if (!kv->keys)
        abort();
    for (size_t i = 0; i < n_old; i++) {
        for (struct kv_watched *g = old[i], *next; g; g = next) {
            struct kv_watched **slot = slot_of(kv, g->key);
            next = g->next;
            g->next = *slot;
            *slot = g;
        }
    }
    free(old);
}

static struct kv_watched *key_find(const struct kv *kv, struct kv_bytes key) {
    if (!kv->n_keys)
        return NULL;
    struct kv_watched *g = *slot_of(kv, key);
    while (g && kv_compare_bytes(g->key, key) != 0)
        g = g->next;
    return g;
}

static struct kv_watched *watched_find(const struct kv *kv, struct kv_bytes key,
                                       struct kv_bytes end) {
    if (!end.len)
        return key_find(kv, key);
    list_each(it, &kv->ranges) {
        struct kv_watched *g = list_entry(it, struct kv_watched, node);
        if (kv_compare_bytes(g->key, key) == 0 && kv_compare_bytes(g->end, end) == 0)
            return g;
    }
    return NULL;
}

static void watched_link(struct kv *kv, struct kv_watched *g) {
    list_init(&g->node);
    if (g->end.len) {
        list_append(&kv->ranges, &g->node);
        return;
    }
    if (kv->n_keys >= kv->n_key_slots)
        hash_grow(kv);
    struct kv_watched **slot = slot_of(kv, g->key);
    g->next = *slot;
    *slot = g;
    kv->n_keys++;
}

/* What happened before anybody looked, for a watch that begins there. */
static void watched_fill(struct kv *kv, struct kv_watched *g, int64_t revision) {
    const struct kv_log *h = &kv->history;
    if (revision >= g->log_from)
        return;
    kv_log_drop_below(kv, &g->log, INT64_MAX);
    g->log_from = revision;
    for (size_t i = log_find(h, revision); i < h->n; i++) {
        struct kv_record *r = h->records[h->first + i];
        if (kv_in_range(kv_record_key(r), g->key, g->end))
            kv_log_push(&g->log, r);
    }
}

static struct kv_watched *watched_new(struct kv *kv, struct kv_bytes key, struct kv_bytes end) {
    struct kv_watched *g = calloc(1, sizeof(*g) + key.len + end.len);
    if (!g)
        abort();
    memcpy(g->bytes, key.data, key.len);
    if (end.len)
        memcpy(g->bytes + key.len, end.data, end.len);
    g->key = (struct kv_bytes){g->bytes, key.len};
    g->end = (struct kv_bytes){g->bytes + key.len, end.len};
    list_init(&g->watches);
    g->log_from = kv->revision + 1;
    watched_link(kv, g);
    return g;
}

static void watched_free(struct kv *kv, struct kv_watched *g) {
    if (g->end.len) {
        list_remove(&g->node);
    } else {
        struct kv_watched **link = slot_of(kv, g->key);
        while (*link != g)
            link = &(*link)->next;
        *link = g->next;
        kv->n_keys--;
    }
    kv_log_fini(kv, &g->log);
    free(g);
}

/* --- changes --- */

static void mark_ready(struct kv_watch *w) {
    w->behind = true;
    if (list_empty(&w->ready))
        list_append(&w->kv->ready, &w->ready);
}

/* A watch that had taken everything starts at this change: what was compacted while nothing
 * happened to it is no loss. */
static void watched_notify(struct kv_watched *g, struct kv_record *r) {
    kv_log_push(&g->log, r);
    list_each(it, &g->watches) {
        struct kv_watch *w = list_entry(it, struct kv_watch, node);
        if (r->mod_revision < w->next_revision)
            continue;
        if (!w->behind)
            w->next_revision = r->mod_revision;
        mark_ready(w);
    }
}

void kv_watch_notify(struct kv *kv, struct kv_record *r) {
    struct kv_bytes key = kv_record_key(r);
    kv_log_push(&kv->history, r);
    struct kv_watched *single = key_find(kv, key);
    if (single)
        watched_notify(single, r);
    list_each(it, &kv->ranges) {
        struct kv_watched *g = list_entry(it, struct kv_watched, node);
        if (kv_in_range(key, g->key, g->end))
            watched_notify(g, r);
    }
}

/* The logs of the groups, too: what nobody can ask for any more is nobody's to keep. */
static void compact(struct kv *kv, int64_t revision) {
    kv->compact_revision = revision;
    kv_log_drop_below(kv, &kv->history, revision);
    list_each(it, &kv->ranges)
        kv_log_drop_below(kv, &list_entry(it, struct kv_watched, node)->log, revision);
    for (size_t i = 0; i < kv->n_key_slots; i++)
        for (struct kv_watched *g = kv->keys[i]; g; g = g->next)
            kv_log_drop_below(kv, &g->log, revision);
}

/* A quarter at a time, so that cutting costs nothing per change. */
void kv_watch_trim(struct kv *kv) {
    struct kv_log *h = &kv->history;
    if (h->n <= kv->history_max)
        return;
    size_t cut = h->n - kv->history_max + kv->history_max / 4;
    cut = cut < h->n ? cut : h->n - 1;
    compact(kv, h->records[h->first + cut]->mod_revision);
}

static size_t record_size(const struct kv_record *r) {
    return sizeof(*r) + r->key_len + r->value_len;
}

int64_t kv_history_from(const struct kv *kv, size_t bytes) {
    const struct kv_log *h = &kv->history;
    size_t sum = 0, i = h->n;
    while (i > 0 && sum + record_size(h->records[h->first + i - 1]) <= bytes)
        sum += record_size(h->records[h->first + --i]);
    if (i == h->n)
        return kv->revision;
    return i > 0 ? h->records[h->first + i]->mod_revision : kv->compact_revision;
}

int kv_compact(struct kv *kv, int64_t revision, struct err *err) {
    if (revision > kv->revision)
        return err_say(err, KV_FUTURE_REVISION, "%s", kv_text(KV_FUTURE_REVISION));
    if (revision <= kv->compact_revision)
        return err_say(err, KV_COMPACTED, "%s", kv_text(KV_COMPACTED));
    compact(kv, revision);
    return 0;
}

/* --- watches --- */

struct kv_watch *kv_watch_new(struct kv *kv, struct kv_bytes key, struct kv_bytes range_end,
                              int64_t start_revision, void *owner) {
    assert(key.len > 0);
    struct kv_watch *w = mem_new(struct kv_watch);
    w->kv = kv;
    w->owner = owner;
    w->next_revision = start_revision > 0 ? start_revision : kv->revision + 1;
    w->watched = watched_find(kv, key, range_end);
    if (!w->watched)
        w->watched = watched_new(kv, key, range_end);
    watched_fill(kv, w->watched, w->next_revision);
    w->watched->refs++;
    list_append(&w->watched->watches, &w->node);
    list_init(&w->ready);
    bool compacted = w->next_revision < kv->compact_revision;
    if (compacted || log_find(&w->watched->log, w->next_revision) < w->watched->log.n)
        mark_ready(w);
    return w;
}

struct kv_watch *kv_watch_free(struct kv_watch *w) {
    if (!w)
        return NULL;
    list_remove(&w->node);
    list_remove(&w->ready);
    if (--w->watched->refs == 0)
        watched_free(w->kv, w->watched);
    free(w);
    return NULL;
}

void *kv_watch_owner(const struct kv_watch *w) {
    return w->owner;
}

struct kv_watch *kv_watch_ready(struct kv *kv) {
    if (list_empty(&kv->ready))
        return NULL;
    struct kv_watch *w = list_entry(kv->ready.next, struct kv_watch, ready);
    list_remove(&w->ready);
    return w;
}

static struct kv_event event_copy(const struct kv_record *r, struct arena *arena) {
    return (struct kv_event){.deleted = r->deleted, .pair = kv_pair_copy(r, arena)};
}

bool kv_watch_is_behind(const struct kv_watch *w) {
    return w->behind;
}

bool kv_watch_is_lost(const struct kv_watch *w) {
    return w->behind && w->next_revision < w->kv->compact_revision;
}

/* How many of them are taken at once: whole revisions. */
static size_t count_taken(const struct kv_log *log, size_t from, size_t max) {
    struct kv_record *const *records = log->records + log->first;
    size_t i = from, bytes = 0;
    while (i < log->n && i - from < max && bytes < KV_TAKE_BYTES_MAX)
        bytes += record_size(records[i++]);
    while (i > from && i < log->n && records[i]->mod_revision == records[i - 1]->mod_revision)
        i++;
    return i - from;
}

int kv_watch_take(struct kv_watch *w, size_t max, struct arena *arena, struct kv_event **ret_events,
                  size_t *ret_n) {
    const struct kv_log *log = &w->watched->log;
    if (kv_watch_is_lost(w))
        return KV_COMPACTED;
    size_t from = log_find(log, w->next_revision), n = log->n - from;
    if (max)
        n = count_taken(log, from, max);
    *ret_events = arena_array(arena, struct kv_event, n);
    *ret_n = n;
    for (size_t i = 0; i < n; i++)
        (*ret_events)[i] = event_copy(log->records[log->first + from + i], arena);
    if (from + n < log->n) {
        w->next_revision = (*ret_events)[n - 1].pair.mod_revision + 1;
        mark_ready(w);
    } else {
        int64_t after = w->kv->revision + 1;
        w->behind = false;
        w->next_revision = after > w->next_revision ? after : w->next_revision;
    }
    return 0;
}

void kv_watch_fini(struct kv *kv) {
    for (size_t i = 0; i < kv->n_key_slots; i++)
        while (kv->keys[i])
            kv_watch_free(list_entry(kv->keys[i]->watches.next, struct kv_watch, node));
    while (!list_empty(&kv->ranges)) {
        struct kv_watched *g = list_entry(kv->ranges.next, struct kv_watched, node);
        kv_watch_free(list_entry(g->watches.next, struct kv_watch, node));
    }
    free(kv->keys);
}

/* --- the keys and the history, shown --- */

void kv_each_in(const struct kv *kv, struct kv_bytes key, struct kv_bytes range_end,
                void (*see)(void *arg, const struct kv_pair *pair), void *arg) {
    size_t from, to = kv_places_of(kv, key, range_end, &from);
    for (size_t i = from; i < to; i++) {
        struct kv_pair pair = kv_pair_of(kv->sorted[i]);
        see(arg, &pair);
    }
}

void kv_each_event(const struct kv *kv, int64_t from_revision,
                   void (*see)(void *arg, const struct kv_event *event), void *arg) {
    for (size_t i = 0; i < kv->history.n; i++) {
        const struct kv_record *r = kv->history.records[kv->history.first + i];
        struct kv_event event = {.deleted = r->deleted, .pair = kv_pair_of(r)};
        if (r->mod_revision >= from_revision)
            see(arg, &event);
    }
}
