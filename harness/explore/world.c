#include "base/mem.h"
#include "harness/explore/copy_on_write.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a copied core takes besides its struct, on average: members and plans of its view. */
enum { CORE_BYTES = 9000, STORE_BYTES = 9000, MESSAGE_BYTES = 3000, NUMBERS_BYTES = 64 };

static uint64_t live_bytes;

uint64_t world_bytes(void) {
    return live_bytes;
}

/* --- shared parts --- */

struct core_share *core_share_new(struct rendezvous *r) {
    struct core_share *b = mem_new(struct core_share);
    live_bytes += CORE_BYTES;
    *b = (struct core_share){.refs = 1, .r = r, .touched = true};
    return b;
}

void core_share_drop(struct core_share *b) {
    if (!b || --b->refs)
        return;
    live_bytes -= CORE_BYTES;
    rendezvous_free(b->r);
    canonical_fini(&b->seen);
    free(b);
}

/* For a change: its own, if it was shared. */
struct rendezvous *world_core(struct world *w, int node) {
    struct core_share **b = &w->nodes[node].core;
    if ((*b)->refs > 1) {
        struct core_share *own = core_share_new(rendezvous_copy((*b)->r));
        (*b)->refs--;
        *b = own;
    }
    (*b)->touched = true;
    return (*b)->r;
}

static struct store_share *store_share_new(struct kv *kv) {
    struct store_share *b = mem_new(struct store_share);
    live_bytes += STORE_BYTES;
    *b = (struct store_share){.refs = 1, .kv = kv, .touched = true};
    return b;
}

static void store_share_drop(struct store_share *b) {
    if (!b || --b->refs)
        return;
    live_bytes -= STORE_BYTES;
    kv_free(b->kv);
    canonical_fini(&b->seen);
    free(b);
}

struct kv *world_store(struct world *w) {
    if (w->store->refs > 1) {
        struct store_share *own = store_share_new(kv_copy(w->store->kv));
        w->store->refs--;
        w->store = own;
    }
    w->store->touched = true;
    return w->store->kv;
}

/* --- a world --- */

/* The first of what can happen. */
static void go_on(struct world *w) {
    struct choice all[CHOICES_MAX];
    if (choice_list(w, all) > 0)
        choice_take(w, all[0]);
    else
        world_violation(w, "no round is proposed");
}

struct world *world_new(const struct explore_config *config, bool trace) {
    struct world *w = mem_new(struct world);
    live_bytes += sizeof(*w);
    w->config = config;
    w->trace = trace && config->from_start;
    w->now_ns = 100 * EXPLORE_STEP_NS;
    w->store = store_share_new(kv_new(1, 0));
    world_judge_init(w);
    for (int i = 0; i < EXPLORE_BOUNDS_N; i++)
        w->left[i] = (uint8_t)config->bounds[i];
    int later = config->bounds[BOUND_AGENT_JOIN];
    later = later < config->agents ? later : config->agents - 1;
    for (int i = 0; i < config->agents; i++)
        w->nodes[i].timer_ns = INT64_MAX;
    for (int i = 0; i < config->agents - later; i++)
        agent_boot(w, i);
    world_settle(w);
    while (!config->from_start && !w->violated && w->judge.head.phase != HEAD_FORM)
        go_on(w);
    w->together = (uint8_t)config->together;
    w->trace = trace;
    return w;
}

struct world *world_copy(const struct world *from) {
    struct world *w = mem_new(struct world);
    live_bytes += sizeof(*w);
    *w = *from;
    w->text = from->text ? mem_strdup(from->text) : NULL;
    world_judge(w);
    w->store->refs++;
    for (int i = 0; i < w->config->agents; i++) {
        struct explore_node *n = &w->nodes[i];
        if (n->core)
            n->core->refs++;
        for (int k = 0; k < n->n_pending; k++)
            n->pending[k].message->refs++;
    }
    for (int i = 0; i < w->n_log; i++)
        w->log[i]->refs++;
    return w;
}

void world_free(struct world *w) {
    if (!w)
        return;
    store_share_drop(w->store);
    for (int i = 0; i < w->config->agents; i++) {
        struct explore_node *n = &w->nodes[i];
        core_share_drop(n->core);
        for (int k = 0; k < n->n_pending; k++)
            message_free(n->pending[k].message);
    }
    for (int i = 0; i < w->n_log; i++)
        change_free(w->log[i]);
    live_bytes -= sizeof(*w);
    free(w->text);
    free(w);
}

void world_settle(struct world *w) {
    stream_trim(w);
    for (int i = 0; i < w->config->agents; i++) {
        struct core_share *b = w->nodes[i].core;
        if (!b || !b->touched)
            continue;
        rendezvous_rest(b->r);
        canonical_clear(&b->seen);
        likeness_core(b->r, 2 * (uint64_t)i + 2, &b->seen);
        b->touched = false;
    }
    if (w->store->touched) {
        canonical_clear(&w->store->seen);
        likeness_store(w->store->kv, &w->store->seen);
        w->store->touched = false;
    }
    w->quiet_beats = w->beat_seen = false;
    w->beat_way = BEAT_PROMPT;
}

struct now world_now(const struct world *w) {
    return (struct now){w->now_ns, w->now_ns};
}

bool world_is_over(const struct world *w) {
    for (int i = 0; i < w->config->agents; i++)
        if (w->nodes[i].core || w->nodes[i].shown.group.alive)
            return false;
    return true;
}

bool world_is_bounded(const struct world *w) {
    return w->rounds > w->config->rounds;
}

void world_violation(struct world *w, const char *fmt, ...) {
    va_list ap;
    if (w->violated)
        return;
    w->violated = true;
    va_start(ap, fmt);
    w->text = mem_vprintf(fmt, ap);
    va_end(ap);
}

void world_say(const struct world *w, int node, const char *fmt, ...) {
    va_list ap;
    if (!w->trace)
        return;
    printf("%8lld      n%d ", (long long)(w->now_ns / EXPLORE_STEP_NS - 100), node);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
}
