/* From nothing to a final state with this agent in it. No worker of ours lives meanwhile. */
#include "agent/legacy/state.h"

#include "base/str.h"

#include <inttypes.h>
#include <string.h>

/* Somebody else may take the counter for its own once the setup can have expired, and a torchrun
 * that finds it changed under its hands gives up: so this long only. */
#define SETUP_NS     (3 * S)
#define LAST_CALL_NS (4 * S) /* how often it is renewed */

void legacy_join_begin(struct legacy *l) {
    l->stage = STAGE_MEET;
    l->join_ns = 0;
    l->told_spare = l->told_wait = false;
}

static void legacy_join_create(struct legacy *l) {
    struct tree_request q = {.verb = TREE_PUT,
                             .key = path_active(l),
                             .value = "{\"status\": \"setup\"}",
                             .exist = TREE_ABSENT,
                             .ttl_s = TTL_SETUP_S};
    alive_forget(l);
    flow_send(l, FLOW_SETUP, &q);
}

static void count_version(struct legacy *l) {
    const struct mirror_key *k = mirror_find(&l->mirror, path_counter(l));
    struct tree_request q = {.verb = TREE_PUT, .key = path_counter(l), .value = "0"};
    int64_t count = 0;
    q.exist = k ? TREE_ANY : TREE_ABSENT;
    if (k && !str_to_i64(k->value, 0, INT64_MAX - 1, &count)) {
        legacy_exit(l, 1, NULL,
                    "%s holds %.40s instead of a number: remove it, or use another "
                    "--rdzv-id",
                    path_counter(l), k->value);
        return;
    }
    if (k) {
        /* An etcd that lost its data counts anew; versions that we were in must not come again. */
        int64_t last = l->round.version > count ? l->round.version : count;
        q.value = arena_printf(&l->arena, "%" PRId64, last + 1);
        q.compare = k->value;
    }
    flow_send(l, k ? FLOW_COUNTER : FLOW_KEY, &q);
}

/* Setup becomes joinable: by who made it, in time, or by nobody. */
static void legacy_join_set_up(struct legacy *l) {
    const struct setup *s = &l->setup;
    if (s->modified != l->doc.modified || l->now.monotonic_ns > s->since_ns + SETUP_NS)
        return;
    if (!s->version) {
        count_version(l);
    } else if (!s->folder) {
        struct tree_request q = {.verb = TREE_PUT,
                                 .key = path_version(l, s->version),
                                 .exist = TREE_ABSENT,
                                 .dir = true};
        flow_send(l, FLOW_FOLDER, &q);
    } else {
        struct tree_request q = {.verb = TREE_PUT, .key = path_active(l), .compare = l->doc.text};
        q.value = arena_printf(&l->arena,
                               "{\"status\": \"joinable\", \"version\": \"%" PRId64
                               "\", \"participants\": []}",
                               s->version);
        flow_send(l, FLOW_STATE, &q);
    }
}

static void legacy_join_enter(struct legacy *l) {
    const struct document *d = &l->doc;
    struct document_edit e = {.add_rank = d->n,
                              .uid = l->uid,
                              .node = l->config.node,
                              .host = l->config.host,
                              .waiting = -1};
    bool full = d->n + 1 == l->config.max;
    if (d->n >= l->config.max)
        return; /* its makers have a larger maximum than we: it will be frozen without us */
    if (full)
        e.status = "frozen";
    e.begin_keep_alives = full;
    alive_forget(l); /* of the round before: nobody needs it any more */
    flow_edit(l, &e, d->n + 1 >= l->config.min ? TTL_STATE_S : 0);
}

static void take_seat(struct legacy *l) {
    struct legacy_seat *s = &l->seat;
    if (s->version == l->doc.version)
        return;
    *s = (struct legacy_seat){.version = l->doc.version,
                              .last_call_ns = l->now.monotonic_ns + l->config.last_call_ns,
                              .renewed_ns = l->now.monotonic_ns};
    legacy_claim(l, CLAIM_JOIN, l->doc.version);
}

/* The one that made it the minimum waits for more, and keeps the state from expiring; should it
 * die, the state does too. */
static void legacy_join_call(struct legacy *l, int rank) {
    const struct document_edit freeze = {
        .status = "frozen", .add_rank = -1, .begin_keep_alives = true, .waiting = -1};
    struct legacy_seat *s = &l->seat;
    int64_t renew_ns = s->renewed_ns + LAST_CALL_NS;
    if (rank != l->config.min - 1)
        return;
    if (l->now.monotonic_ns >= s->last_call_ns) {
        flow_edit(l, &freeze, TTL_STATE_S);
        return;
    }
    legacy_wake_at(l, s->last_call_ns);
    legacy_wake_at(l, renew_ns);
    if (!l->told_wait && l->config.last_call_ns >= S) {
        legacy_log(l,
                   "%d nodes are there, waiting %lld s for more (--rdzv-conf last_call_timeout=)",
                   l->doc.n, (long long)(l->config.last_call_ns / S));
        legacy_claim(l, CLAIM_LAST_CALL, l->doc.version);
        l->told_wait = true;
    }
    if (l->now.monotonic_ns < renew_ns)
        return;
    struct tree_request q = {.verb = TREE_PUT,
                             .key = path_active(l),
                             .value = l->doc.text,
                             .compare = l->doc.text,
                             .ttl_s = TTL_STATE_S};
    s->renewed_ns = l->now.monotonic_ns;
    flow_send(l, FLOW_STATE, &q);
}

static void legacy_join_confirm(struct legacy *l, int rank) {
    const char *key = path_rank(l, l->doc.version, rank);
    struct document_edit e = {.add_rank = -1, .add_keep_alive = key, .waiting = -1};
    if (document_has_keep_alive(&l->doc, key))
        return;
    if (!l->alive.deadline_ns || strcmp(l->alive.key, key) != 0) {
        alive_take(l, l->doc.version, rank);
        return;
    }
    bool last = l->doc.confirmed + 1 == l->doc.n;
    if (last) {
        e.status = "final";
        e.waiting = 0;
    }
    flow_edit(l, &e, last ? 0 : TTL_STATE_S);
}

static void legacy_join_final(struct legacy *l, int rank) {
    bool own = rank >= 0 && l->left_version != l->doc.version && l->alive.key &&
               strcmp(l->alive.key, path_rank(l, l->doc.version, rank)) == 0;
    if (own)
        round_begin(l, rank);
    else
        waiting_advance(l);
}

/* A spare may wait for ever; who waits for nodes that do not come may not. */
static bool too_late(struct legacy *l) {
    if (!l->join_ns)
        l->join_ns = l->now.monotonic_ns + l->config.join_timeout_ns;
    if (l->told_spare)
        return false;
    legacy_wake_at(l, l->join_ns);
    if (l->now.monotonic_ns < l->join_ns)
        return false;
    legacy_exit(l, 1, NULL,
                "run \"%s\": no round came about within %lld s (--rdzv-conf join_timeout=): %d "
                "nodes had joined, at least %d are needed",
                l->config.run_id, (long long)(l->config.join_timeout_ns / S), l->doc.n,
                l->config.min);
    return true;
}

void legacy_join_advance(struct legacy *l) {
    int rank = document_rank(&l->doc, l->uid);
    if (!l->seen || l->doc_due || !call_may(l, CALL_FLOW) || too_late(l))
        return;
    switch (l->doc.status) {
    case DOCUMENT_ABSENT:
        legacy_join_create(l);
        break;
    case DOCUMENT_SETUP:
        legacy_join_set_up(l);
        break;
    case DOCUMENT_JOINABLE:
        if (rank < 0)
            legacy_join_enter(l);
        else
            take_seat(l), legacy_join_call(l, rank);
        break;
    case DOCUMENT_FROZEN:
        if (rank >= 0)
            take_seat(l), legacy_join_confirm(l, rank);
        break;
    case DOCUMENT_FINAL:
        legacy_join_final(l, rank);
        break;
    case DOCUMENT_CLOSED:
        legacy_leave_closed(l);
        break;
    case DOCUMENT_STRANGE:
        break;
    }
}
