#include "agent/neighbours.h"

#include "agent/core/keys.h"
#include "agent/options.h"
#include "agent/store/store.h"
#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS_READ = 200, ANSWER_MS = 5000 };
enum { LOOKS_AFTER = 5 }; /* times `suspect`: who starts together has come by then */

static const char prefix[] = "/rankrun/", prefix_end[] = "/rankrun0";

struct neighbours {
    struct loop *loop;
    const struct options *options;
    struct loop_source *timer;
    struct store *store; /* NULL: nothing has been asked yet */
};

/* ---- what keys say ---- */

struct seen {
    const char *id;
    size_t len, sessions;
    bool round;
};

/* The run of a key and what follows: false for a key of none. */
static bool take_apart(const struct kv_pair *p, struct seen *ret, const char **rest, size_t *left) {
    size_t n = key_run_length(p->key.data, p->key.len), skip = sizeof(prefix) - 1;
    if (!n)
        return false;
    *ret = (struct seen){.id = p->key.data + skip, .len = n - skip - 1};
    *rest = p->key.data + n;
    *left = p->key.len - n;
    return true;
}

/* rest: INC/s/UID, INC/head. */
static void count(struct seen *s, const char *rest, size_t left) {
    const char *slash = memchr(rest, '/', left);
    if (!slash)
        return;
    size_t n = left - (size_t)(slash - rest);
    s->sessions += n > 3 && memcmp(slash, "/s/", 3) == 0;
    s->round |= n == 5 && memcmp(slash, "/head", 5) == 0;
}

static bool same_run(const struct seen *a, const struct seen *b) {
    return a->len == b->len && memcmp(a->id, b->id, a->len) == 0;
}

static void take(const struct seen *s, const struct seen *own, struct neighbour *ret) {
    if (!s->sessions || s->round || same_run(s, own))
        return;
    ret->others += ret->nodes > 0;
    if (s->sessions <= ret->nodes)
        return;
    ret->run_id = s->id;
    ret->run_id_len = s->len;
    ret->nodes = s->sessions;
}

bool neighbours_find(const struct kv_pair *pairs, size_t n, const char *run_id,
                     struct neighbour *ret) {
    char key[KEY_SIZE], end[KEY_SIZE];
    struct store_key cur = {.kind = KEY_CUR};
    struct kv_pair ours = {.key = {key, key_format(&cur, run_id, key, end)}};
    struct seen own = {0}, now = {0}, next;
    const char *rest;
    size_t left;
    *ret = (struct neighbour){0};
    take_apart(&ours, &own, &rest, &left);
    for (size_t i = 0; i < n; i++) {
        if (!take_apart(&pairs[i], &next, &rest, &left))
            continue;
        if (!same_run(&now, &next)) {
            take(&now, &own, ret);
            now = next;
        }
        count(&now, rest, left);
        own.round |= now.round && same_run(&now, &own);
    }
    take(&now, &own, ret);
    return ret->nodes && !own.round;
}

/* ---- asking once ---- */

static void on_read(void *arg, const struct store_reply *r) {
    struct neighbours *n = arg;
    struct neighbour other;
    char more[48] = "";
    if (r->outcome != STORE_ANSWERED || !r->txn->n_results ||
        !neighbours_find(r->txn->results[0].pairs, r->txn->results[0].n_pairs, n->options->run_id,
                         &other))
        return;
    if (other.others)
        snprintf(more, sizeof(more), ", and %zu more", other.others);
    line_say(
        LINE_WARNING, "run",
        "while run \"%s\" waits for more nodes, another run waits in this store: \"%.*s\", with "
        "%zu node%s%s; did you mean its id (--rdzv-id)?",
        n->options->run_id, (int)other.run_id_len, other.run_id, other.nodes,
        other.nodes == 1 ? "" : "s", more);
}

static void on_timer(void *arg, int64_t now_ns) {
    struct neighbours *n = arg;
    struct err err;
    struct kv_op read = {.kind = KV_RANGE,
                         .key = kv_string(prefix),
                         .range_end = kv_string(prefix_end),
                         .limit = KEYS_READ,
                         .keys_only = true};
    struct kv_txn txn = {.success = &read, .n_success = 1};
    n->store = store_client_new(n->loop, n->options->endpoints, &n->options->rdzv.access, &err);
    if (n->store)
        store_txn(n->store, &txn, ANSWER_MS, on_read, n);
}

struct neighbours *neighbours_new(struct loop *l, const struct options *o, int64_t suspect_ns) {
    if (o->backend == BACKEND_IN_PROCESS)
        return NULL;
    struct neighbours *n = mem_new(struct neighbours);
    *n = (struct neighbours){.loop = l, .options = o, .timer = loop_timer(l, on_timer, n)};
    loop_timer_at(n->timer, clock_monotonic_ns() + LOOKS_AFTER * suspect_ns);
    return n;
}

struct neighbours *neighbours_free(struct neighbours *n) {
    if (n) {
        loop_source_free(n->timer);
        store_free(n->store);
        free(n);
    }
    return NULL;
}
