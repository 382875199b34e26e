#include "agent/legacy/legacy.h"

#include "agent/legacy/state.h"
#include "base/mem.h"

#include "base/str.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int config_check(const struct rendezvous_config *c, const char *prefix, struct err *err) {
    if (!c->run_id[0] || strchr(c->run_id, '/'))
        return err_say(err, -EINVAL,
                       "--rdzv-id '%s': it is part of a key of etcd and must neither "
                       "be empty nor hold a slash",
                       c->run_id);
    if (prefix && (prefix[0] != '/' || prefix[1] == '\0' || str_ends(prefix, "/")))
        return err_say(err, -EINVAL,
                       "--rdzv-conf etcd_prefix=%s: must begin with a slash and not end in one, as "
                       "/torchelastic/p2p",
                       prefix);
    if (strlen(c->node) >= NAME_SIZE || strlen(c->addr) >= NAME_SIZE)
        return err_say(err, -EINVAL, "node name or address is longer than %d bytes", NAME_SIZE - 1);
    return 0;
}

struct legacy *legacy_new(const struct rendezvous_config *config, const char *prefix, uint64_t seed,
                          struct err *err) {
    if (config_check(config, prefix, err) < 0)
        return NULL;
    struct legacy *l = mem_new(struct legacy);
    struct arena *a = &l->strings;
    l->config = *config;
    l->config.run_id = arena_strdup(a, config->run_id);
    l->config.node = arena_strdup(a, config->node);
    l->config.addr = arena_strdup(a, config->addr);
    l->config.role = arena_strdup(a, config->role);
    l->config.host = config->host ? arena_strdup(a, config->host) : NULL;
    l->prefix = arena_strdup(a, prefix ? prefix : "/torchelastic/p2p");
    l->run = arena_printf(a, "%s/run_%s", l->prefix, config->run_id);
    l->rdzv = arena_printf(a, "%s/rdzv", l->run);
    l->doc.text = l->etcd = "";
    l->due_ns = INT64_MAX;
    rand_init(&l->rand, seed);
    unsigned long long high = rand_u64(&l->rand), low = rand_u64(&l->rand);
    snprintf(l->uid, sizeof(l->uid), "%016llx%016llx", high, low);
    return l;
}

struct legacy *legacy_free(struct legacy *l) {
    if (!l)
        return NULL;
    alive_forget(l);
    mirror_fini(&l->mirror);
    document_fini(&l->doc);
    arena_fini(&l->strings);
    arena_fini(&l->arena);
    free(l->actions);
    free(l);
    return NULL;
}

/* ---- the store away, a signal ---- */

/* Before the first answer the whole of the wait for a rendezvous is its limit; later that of a
 * store that answered once. The workers are dead long before: their key has ended. */
static void contact_advance(struct legacy *l) {
    bool ever = l->heard_ns != 0;
    int64_t since_ns = ever ? l->heard_ns : l->start_ns;
    int64_t limit_ns = ever ? l->config.give_up_ns : l->config.join_timeout_ns;
    if (!l->silent)
        return;
    if (!l->told_silent) {
        struct action *a = legacy_add(l, ACTION_STORE);
        a->store.text = arena_printf(&l->arena, "does not answer; trying for up to %lld s",
                                     (long long)(limit_ns / S));
        a->store.lost = true;
        l->told_silent = true;
    }
    legacy_wake_at(l, since_ns + limit_ns);
    if (l->now.monotonic_ns >= since_ns + limit_ns && !l->group.there)
        legacy_exit(l, 69, NULL,
                    ever ? "outcome unknown: the store has not answered for %lld s"
                         : "the store could not be reached for %lld s",
                    (long long)(limit_ns / S));
}

/* In a round the workers come first. The second one is not waited for. */
static void signal_came(struct legacy *l, int signo) {
    if (l->signo && l->group.there && !l->group.killed) {
        l->group.killed = true;
        legacy_add(l, ACTION_KILL);
    }
    if (!l->signo)
        l->signo = signo;
    if (l->stage != STAGE_ROUND && l->stage != STAGE_PART)
        legacy_leave_begin(l, PART_LEFT);
}

static void run_advance(struct legacy *l) {
    struct tree_request q = {.verb = TREE_PUT,
                             .key = l->run,
                             .exist = TREE_PRESENT,
                             .refresh = true,
                             .dir = true,
                             .ttl_s = TTL_RUN_S};
    if (l->stage == STAGE_OPEN || !call_may(l, CALL_RUN))
        return;
    legacy_wake_at(l, l->run_next_ns);
    if (l->now.monotonic_ns < l->run_next_ns)
        return;
    l->run_next_ns = l->now.monotonic_ns + TTL_RUN_S * S / 2;
    call_send(l, CALL_RUN, &q);
}

/* ---- steps ---- */

static void absorb(struct legacy *l, const struct event *ev) {
    if (ev->kind == EVENT_TREE)
        call_answered(l, ev->tree.id, ev->tree.answer);
    else if (ev->kind == EVENT_SIGNAL)
        signal_came(l, ev->signal.signo);
    else
        round_event(l, ev);
}

static void advance(struct legacy *l) {
    contact_advance(l);
    if (l->over)
        return;
    observe_advance(l);
    alive_advance(l);
    run_advance(l);
    if (l->stage == STAGE_OPEN)
        legacy_init_advance(l);
    if (l->stage == STAGE_MEET && l->round.lost && l->doc.status != DOCUMENT_CLOSED)
        legacy_leave_begin(l, PART_LOST);
    if (l->stage == STAGE_MEET)
        legacy_join_advance(l);
    if (l->stage == STAGE_ROUND && !l->over)
        round_advance(l);
    if (l->stage == STAGE_PART && !l->over)
        legacy_leave_advance(l);
}

static void timer_set(struct legacy *l, bool fired) {
    if (l->wake_ns == INT64_MAX)
        l->due_ns = INT64_MAX;
    if (l->wake_ns == INT64_MAX || (!fired && l->wake_ns == l->due_ns))
        return;
    l->due_ns = l->wake_ns > l->now.monotonic_ns ? l->wake_ns : l->now.monotonic_ns;
    legacy_add(l, ACTION_TIMER)->timer.at_ns = l->due_ns;
}

const struct action *legacy_step(struct legacy *l, const struct event *event, struct now now,
                                 size_t *ret_n) {
    size_t before;
    int turns = 0;
    l->n_actions = 0;
    arena_clear(&l->arena);
    *ret_n = 0;
    if (l->over)
        return l->actions;
    l->now = now;
    if (event->kind == EVENT_START)
        l->start_ns = now.monotonic_ns;
    round_fence(l);
    absorb(l, event);
    do {
        before = l->n_actions;
        l->wake_ns = INT64_MAX;
        if (!l->over)
            advance(l);
        assert(++turns < 32);
    } while (l->n_actions != before && !l->over);
    if (!l->over)
        timer_set(l, event->kind == EVENT_TIMER);
    *ret_n = l->n_actions;
    return l->actions;
}
