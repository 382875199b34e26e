#include "harness/judge/checks/training/ledger.h"

#include <stdlib.h>

static int by_round_and_step(const void *a, const void *b) {
    const struct ledger_entry *x = a, *y = b;
    if (x->worker->round != y->worker->round)
        return x->worker->round < y->worker->round ? -1 : 1;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    return x->record->seq < y->record->seq ? -1 : x->record->seq > y->record->seq;
}

static size_t count_steps(const struct history *h) {
    size_t n = 0;
    history_each(r, h) n += r->source == SOURCE_JOB && record_is(r, "step");
    return n;
}

static void add(struct shard_ledger *l, const struct rounds *rs, const struct record *r) {
    const struct worker *w = rounds_worker_at(rs, r->pid, r->t_ns);
    int64_t step = record_i64(r, "step", -1);
    if (!w || step < 0)
        return;
    const struct json *shards = record_get(r, "shards");
    int64_t samples = record_i64(r, "samples", -1);
    l->v[l->n++] = (struct ledger_entry){
        .worker = w,
        .record = r,
        .shards = shards && shards->type == JSON_ARRAY ? shards : NULL,
        .step = step,
        .samples = samples < LEDGER_SAMPLES_MAX ? samples : -1,
    };
    json_each(s, shards) {
        int64_t id = json_i64(s, -1);
        if (id >= l->shards && id < LEDGER_SHARDS_MAX)
            l->shards = (int)id + 1;
    }
}

void ledger_read(struct shard_ledger *l, const struct trial *t) {
    *l = (struct shard_ledger){
        .v = arena_array(t->arena, struct ledger_entry, count_steps(t->history))};
    history_each(r, t->history) {
        if (r->source == SOURCE_JOB && record_is(r, "step"))
            add(l, t->rounds, r);
    }
    qsort(l->v, l->n, sizeof(*l->v), by_round_and_step);
}

size_t ledger_group(const struct shard_ledger *l, size_t from) {
    size_t to = from;
    while (to < l->n && l->v[to].worker->round == l->v[from].worker->round &&
           l->v[to].step == l->v[from].step)
        to++;
    return to;
}

/* Where the round began: as it says, else just before the first step it made. -1: it did neither.
 */
static int64_t began_after(const struct round *r) {
    for (size_t i = 0; i < r->n; i++)
        if (r->workers[i]->resume_ns)
            return r->workers[i]->resume_step;
    int64_t first = round_first_step(r);
    return first < 0 ? -1 : first - 1;
}

const int64_t *ledger_horizons(const struct trial *t) {
    const struct rounds *rs = t->rounds;
    int64_t *horizons = arena_array(t->arena, int64_t, rs->n), lowest = INT64_MAX;
    for (size_t i = rs->n; i-- > 0;) {
        int64_t from = began_after(rs->v[i]);
        horizons[i] = lowest;
        if (from >= 0 && from < lowest)
            lowest = from;
    }
    return horizons;
}

const struct worker *ledger_lost(const struct trial *t) {
    for (size_t i = 0; i < t->rounds->workers_n; i++)
        if (t->rounds->workers[i]->lost_events)
            return t->rounds->workers[i];
    return NULL;
}
