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
    const struct link_wait wait = {.deadline_ns = b->request.wait.deadline_ns,
                                   .wake_fd = t->asked.end_fd};
    int r = c->token && trainer_leads(t) ? c->token(b->group.token, err) : 0;
    if (r == 0 && c->token)
        r = bootstrap_share(b, b->group.token, sizeof(b->group.token), err);
    if (r == 0)
        r = c->open(&t->ring, &b->group, &wait, err);
    if (r == 0 && c->token)
        r = bootstrap_meet(b, err);
    return r;
}

static int form_group(struct trainer *t, struct bootstrap *b, struct state *ret_lacking,
                      struct err *err) {
    const struct ranktrain_options *o = t->o;
    int64_t span = o->collective_ns > group_ns ? o->collective_ns : group_ns;
    struct bootstrap_request q = {
        .rank = o->rank,
        .world = o->world,
        .master_addr = o->master_addr,
        .master_port = o->master_port,
        .run_id = o->run_id,
        .round = o->round,
        .wait = {.deadline_ns = deadline_in_ns(span), .wake_fd = t->asked.told_fd}};
    const struct resume_request from = {.place = &t->place,
                                        .seed = (uint64_t)o->seed,
                                        .last_step = t->last_step,
                                        .fresh = o->fresh,
                                        .in_memory = t->in_memory};
    describe_job(t, q.job);
    int r = bootstrap_join(b, &q, err);
    if (r == 0)
        r = resume_agree(b, &from, &t->state, ret_lacking, &t->resume, err);
    if (r == 0)
        r = open_collective(t, b, err);
    if (r == 0)
        tell_device(t, &b->group);
    return r;
}

static void say_group(const struct trainer *t) {
    printf("world %d, round %lld, %llu steps\n", t->o->world, (long long)t->o->round,
           (unsigned long long)t->last_step);
    if (t->resume.places.n > 1)
        printf("checkpoints in %d directories of the same name, each keeps its own\n",
               t->resume.places.n);
    if (*t->resume.path)
        printf("resumed step %llu from %s in %.1f ms\n", (unsigned long long)t->state.step,
               t->resume.path, (double)t->resume.took_ns / 1e6);
}

/* A node that has not got what the group goes on from keeps a copy from here on. */
static int begin(struct trainer *t, const struct state *lacking, struct err *err) {
    const struct state *s = &t->state;
    t->saved_step = t->durable_step = s->step;
    rankquake_resume(&t->q, s->step, t->resume.path);
    if (trainer_leads(t))
        say_group(t);
    return t->resume.lacks ? checkpoint_save(&t->place, lacking, &t->q, err) : 0;
}

int meet(struct trainer *t, struct err *err) {
    struct bootstrap *b = mem_new(struct bootstrap);
    struct state lacking = {0};
    int r = form_group(t, b, &lacking, err);
    bootstrap_end(b);
    free(b);
    if (r == 0)
        r = begin(t, lacking.weights ? &lacking : &t->state, err);
    state_fini(&lacking);
    return r;
}
