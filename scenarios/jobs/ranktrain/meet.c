#include "scenarios/jobs/ranktrain/meet.h"
#include "scenarios/jobs/ranktrain/mode/mode.h"
#include "scenarios/jobs/ranktrain/net/bootstrap.h"
#include "scenarios/jobs/ranktrain/net/deadline.h"

#include "base/mem.h"
#include "base/sha256.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)BOOTSTRAP_MEMBERS > (int)SHARDS_MAX, "every shard may have a rank of its own");

/* A group has as long to form, however short the collectives' deadline is: on a busy machine the
 * slowest worker may still be unpacking its data. */
static const int64_t group_ns = INT64_C(30000000000);

enum { COMMUNICATOR_DIGITS = 16 };

static void say_ignored(void *arg, const char *sentence) {
    fprintf(stderr, "ranktrain: rank 0: %s\n", sentence);
}

/* Rank 0 chooses, once per round, where to go on. Into ret: the whole. */
static int decide(struct trainer *t, struct state *ret, struct err *err) {
    struct trainer_decision *d = &t->decision;
    int found = 0;
    if (t->o->checkpoint_dir)
        found = checkpoint_load(&t->place, t->last_step, ret, d->path, say_ignored, NULL, err);
    d->fresh = found == 0;
    d->step = ret->step;
    return found < 0 ? found : 0;
}

/* Copies whole[0..n), which rank 0 has, to all, and each keeps what it holds. */
static int share_floats(struct bootstrap *b, const float *whole, size_t n, struct state_range held,
                        float *ret, struct err *err) {
    enum { BLOCK = 64 * 1024 };
    float *block = mem_array(float, BLOCK);
    int r = 0;
    for (size_t at = 0; at < n && r == 0; at += BLOCK) {
        size_t end = at + BLOCK < n ? at + BLOCK : n;
        if (b->request.rank == 0)
            memcpy(block, whole + at, (end - at) * sizeof(*block));
        r = bootstrap_share(b, block, (end - at) * sizeof(*block), err);
        size_t lo = held.lo > at ? held.lo : at, hi = held.hi < end ? held.hi : end;
        if (r == 0 && lo < hi)
            memcpy(ret + (lo - held.lo), block + (lo - at), (hi - lo) * sizeof(*ret));
    }
    free(block);
    return r;
}

/* The first weights each rank draws itself, those that it holds: the seed decides. */
static int share_state(struct trainer *t, struct bootstrap *b, const struct state *whole,
                       struct err *err) {
    struct state *s = &t->state;
    s->step = t->decision.step;
    if (t->decision.fresh) {
        model_init_part(t->model, (uint64_t)t->o->seed, s->held.lo, s->held.hi, s->weights);
        return 0;
    }
    int r = share_floats(b, whole->weights, s->values, s->held, s->weights, err);
    for (int i = 0; i < s->moments && r == 0; i++)
        r = share_floats(b, whole->moment[i], s->trained, s->held_moments, s->moment[i], err);
    return r;
}

/* Rank 0 has the whole in hand until all have what they hold of it. */
static int find_state(struct trainer *t, struct bootstrap *b, struct err *err) {
    struct state whole = {0};
    bool loads = trainer_leads(t) && t->o->checkpoint_dir;
    if (loads)
        state_init(&whole, t->model, t->optimizer.kind);
    int r = trainer_leads(t) ? decide(t, &whole, err) : 0;
    if (r == 0)
        r = bootstrap_share(b, &t->decision, sizeof(t->decision), err);
    if (r == 0)
        r = share_state(t, b, &whole, err);
    state_fini(&whole);
    return r;
}

/* Tells sets of images apart; ranks may each have a part of one. */
static uint32_t data_mark(const struct images *d) {
    return d->parts > 1 ? d->parts : d->tail;
}

/* All that must be equal on all ranks for them to compute the same. */
static void describe_job(const struct trainer *t, unsigned char ret[DOOR_DIGEST]) {
    char text[512], hex[65];
    int n = snprintf(
        text, sizeof(text), "%s|%s|%s|%s|%lld|%s|%d|%s|%.9g|%.9g|%llu|%08x|%u|%lld|%lld",
        RANKQUAKE_VERSION, t->label, t->collective->name, t->mode->name, (long long)t->o->seed,
        t->model->name, t->model->width, t->optimizer.kind->name, (double)t->optimizer.lr,
        (double)t->optimizer.momentum, (unsigned long long)t->last_step, data_mark(&t->data.train),
        t->data.train.count, (long long)t->o->batch_size, (long long)t->o->shards);
    sha256_of(text, (size_t)n, hex);
    memcpy(ret, hex, DOOR_DIGEST);
}

/* Tells which device this rank computes on, and which communicator it has joined: an id must serve
 * one round, and no other. */
static void tell_device(struct trainer *t, const struct peer_group *g) {
    struct compute_device d = {.index = -1};
    char hex[65];
    if (!t->compute->device)
        return;
    t->compute->device(t->c, &d);
    sha256_of(g->token, sizeof(g->token), hex);
    rankquake_event_named(&t->q, "device", "\"uuid\":\"%s\",\"index\":%d%s%.*s%s", d.uuid, d.index,
                          t->collective->token ? ",\"communicator\":\"" : "",
                          t->collective->token ? COMMUNICATOR_DIGITS : 0, hex,
                          t->collective->token ? "\"" : "");
}

/* The token is drawn when all are there and know what they are to do: whoever draws one and forms
 * no group leaves something behind. */
static int open_collective(struct trainer *t, struct bootstrap *b, struct err *err) {
    const struct collective *c = t->collective;
    b->group.pairs = t->mode->pairs;
    int r = c->token && trainer_leads(t) ? c->token(b->group.token, err) : 0;
    if (r == 0 && c->token)
        r = bootstrap_share(b, b->group.token, sizeof(b->group.token), err);
    if (r == 0)
        r = c->open(&t->ring, &b->group, &b->request.wait, err);
    if (r == 0 && c->token)
        r = bootstrap_meet(b, err);
    return r;
}

static int form_group(struct trainer *t, struct bootstrap *b, struct err *err) {
    const struct ranktrain_options *o = t->o;
    int64_t span = o->collective_ns > group_ns ? o->collective_ns : group_ns;
    struct bootstrap_request q = {
        .rank = o->rank,
        .world = o->world,
        .master_addr = o->master_addr,
        .master_port = o->master_port,
        .run_id = o->run_id,
        .round = o->round,
        .wait = {.deadline_ns = deadline_in_ns(span), .wake_fd = t->wake_fd}};
    describe_job(t, q.job);
    int r = bootstrap_join(b, &q, err);
    if (r == 0)
        r = find_state(t, b, err);
    if (r == 0)
        r = open_collective(t, b, err);
    if (r == 0)
        tell_device(t, &b->group);
    return r;
}

int meet(struct trainer *t, struct err *err) {
    struct bootstrap *b = mem_new(struct bootstrap);
    int r = form_group(t, b, err);
    bootstrap_end(b);
    free(b);
    if (r < 0)
        return r;
    const struct state *s = &t->state;
    t->saved_step = s->step;
    rankquake_resume(&t->q, s->step, t->decision.path);
    if (!trainer_leads(t))
        return 0;
    printf("world %d, round %lld, %llu steps\n", t->o->world, (long long)t->o->round,
           (unsigned long long)t->last_step);
    if (*t->decision.path)
        printf("resumed step %llu from %s\n", (unsigned long long)s->step, t->decision.path);
    return 0;
}
