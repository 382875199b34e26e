/* Calls of etcd's v2 API: the keys, one call at a time for each purpose, and who takes the
 * answer. */
#include "agent/legacy/state.h"

#include "base/base64.h"
#include "base/str.h"

#include <inttypes.h>
#include <string.h>

enum { TIMEOUT_MS = 2000, AGAIN_MS = 500, RACE_MS = 100 };

/* ---- keys ---- */

const char *path_active(struct legacy *l) {
    return arena_printf(&l->arena, "%s/active_version", l->rdzv);
}

const char *path_counter(struct legacy *l) {
    return arena_printf(&l->arena, "%s/version_counter", l->rdzv);
}

const char *path_version(struct legacy *l, int64_t version) {
    return arena_printf(&l->arena, "%s/v_%" PRId64, l->rdzv, version);
}

const char *path_rank(struct legacy *l, int64_t version, int rank) {
    return arena_printf(&l->arena, "%s/v_%" PRId64 "/rank_%d", l->rdzv, version, rank);
}

const char *path_kv(struct legacy *l, int64_t version, const char *key) {
    return arena_printf(&l->arena, "%s/v_%" PRId64 "/kv/%s", l->rdzv, version,
                        base64_coded(&l->arena, key));
}

/* ---- requests ---- */

bool call_may(struct legacy *l, enum call_slot slot) {
    const struct call *c = &l->calls[slot];
    int64_t at_ns = c->retry_ns;
    if (slot == CALL_FLOW && l->not_before_ns > at_ns)
        at_ns = l->not_before_ns;
    if (c->id)
        return false;
    if (l->now.monotonic_ns < at_ns)
        legacy_wake_at(l, at_ns);
    return l->now.monotonic_ns >= at_ns;
}

void call_send(struct legacy *l, enum call_slot slot, const struct tree_request *q) {
    struct action *a = legacy_add(l, ACTION_TREE);
    a->tree.id = l->calls[slot].id = ++l->next_id;
    a->tree.request = *q;
    a->tree.request.timeout_ms = TIMEOUT_MS;
    l->calls[slot].waits = q->verb == TREE_WAIT;
}

void flow_send(struct legacy *l, enum legacy_flow flow, const struct tree_request *q) {
    l->flow = flow;
    l->flow_puts = q->verb == TREE_PUT;
    l->flow_modified = l->doc.modified;
    call_send(l, CALL_FLOW, q);
}

void flow_edit(struct legacy *l, const struct document_edit *e, int64_t ttl_s) {
    BUF_FINI struct buf b = {0};
    bool absent = l->doc.status == DOCUMENT_ABSENT;
    document_write(&l->doc, e, &b);
    struct tree_request q = {.verb = TREE_PUT,
                             .key = path_active(l),
                             .value = arena_strdup(&l->arena, buf_str(&b)),
                             .compare = absent ? NULL : l->doc.text,
                             .exist = absent ? TREE_ABSENT : TREE_ANY,
                             .ttl_s = ttl_s};
    flow_send(l, FLOW_STATE, &q);
}

void flow_put(struct legacy *l, const char *key, const char *value, int64_t ttl_s) {
    struct tree_request q = {.verb = TREE_PUT, .key = key, .value = value, .ttl_s = ttl_s};
    flow_send(l, FLOW_KEY, &q);
}

/* ---- answers ---- */

/* A race lost, or a state that was deleted: what it is now will be told. */
static void state_is_due(struct legacy *l) {
    if (l->doc.modified == l->flow_modified)
        l->doc_due = true;
}

static void race_lost(struct legacy *l) {
    if (l->flow == FLOW_SETUP || l->flow == FLOW_STATE)
        state_is_due(l);
    l->not_before_ns = l->now.monotonic_ns + (int64_t)rand_below(&l->rand, RACE_MS) * MS;
}

static void setup_answered(struct legacy *l, const struct tree_answer *answer) {
    struct setup *s = &l->setup;
    if (l->flow == FLOW_SETUP)
        *s = (struct setup){.modified = answer->nodes[0].modified, .since_ns = l->now.monotonic_ns};
    else if (l->flow == FLOW_COUNTER)
        str_to_i64(answer->nodes[0].value, 1, INT64_MAX, &s->version);
}

static void flow_done(struct legacy *l, const struct tree_answer *answer) {
    bool put = l->flow_puts && answer->n == 1 && !answer->nodes[0].dir;
    if (put) {
        mirror_put(&l->mirror, &answer->nodes[0]);
        setup_answered(l, answer);
    }
    document_refresh(l);
    if (l->flow == FLOW_ALIVE)
        alive_renewed(l, answer);
    else if (l->flow == FLOW_FOLDER)
        l->setup.folder = true;
    else if (l->flow == FLOW_STATE && !l->flow_puts)
        state_is_due(l);
    else if (l->flow == FLOW_ADD)
        l->round.added = true;
}

static void flow_answered(struct legacy *l, const struct tree_answer *answer) {
    if (l->flow == FLOW_OPEN) {
        legacy_init_answered(l, answer);
        return;
    }
    switch (answer->result) {
    case TREE_LOST:
    case TREE_NO_V2:
    case TREE_STRANGE:
        break;
    case TREE_DONE:
        flow_done(l, answer);
        break;
    case TREE_MISSING:
    case TREE_CHANGED:
    case TREE_EXISTS:
    case TREE_CLEARED:
        if (l->flow == FLOW_FOLDER)
            l->setup.folder = true;
        else if (l->flow != FLOW_DROP)
            race_lost(l);
        break;
    case TREE_REFUSED:
        legacy_exit(l, 69, NULL, "etcd refused a key below %s: %s", l->rdzv, answer->text);
        break;
    }
}

/* A wait that goes on while other requests were lost may be deaf until its connection's next
 * retransmission, many seconds away. */
static void heard(struct legacy *l) {
    struct call *c = &l->calls[CALL_WATCH];
    if (l->silent && c->id && c->waits) {
        legacy_add(l, ACTION_TREE_CANCEL)->tree.id = c->id;
        *c = (struct call){0};
        l->mirror.known = false;
    }
    if (l->told_silent)
        legacy_add(l, ACTION_STORE)->store.text = "answers again";
    l->heard_ns = l->now.monotonic_ns;
    l->silent = l->told_silent = false;
}

void call_answered(struct legacy *l, uint64_t id, const struct tree_answer *answer) {
    int slot = 0;
    while (slot < CALLS && l->calls[slot].id != id)
        slot++;
    if (slot == CALLS)
        return;
    struct call *c = &l->calls[slot];
    bool lost = answer->result == TREE_LOST;
    c->id = 0;
    c->retry_ns = lost ? l->now.monotonic_ns + AGAIN_MS * MS : 0;
    if (!lost)
        heard(l);
    else
        l->silent = true;
    if (slot == CALL_FLOW)
        flow_answered(l, answer);
    else if (slot == CALL_WATCH)
        observe_answered(l, c->waits, answer);
    else if (slot == CALL_ALIVE)
        alive_renewed(l, answer);
}
