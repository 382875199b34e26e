/* A parameter server: rank 0 holds the weights and what the optimizer keeps, computes nothing, and
 * updates by what the others, the workers, have computed.
 *
 * At every step it announces the step, gathers the workers' sums, updates, and sends the weights to
 * all. With --ps-async it goes on with the first of them, but for --backup-workers (Chen et al.
 * 2016): who comes later gets the newest weights, and what it has computed is dropped. Nor does it
 * wait for those that have gone, as many as there are backups. Which are the first depends on time,
 * so the model does. */
#include "scenarios/jobs/ranktrain/fixed_point.h"
#include "scenarios/jobs/ranktrain/mode/mode.h"
#include "scenarios/jobs/ranktrain/mode/part.h"
#include "scenarios/jobs/ranktrain/mode/work.h"
#include "scenarios/jobs/ranktrain/save.h"

#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* In front of weights on their way to a worker, and of sums on their way back. */
struct ps_head {
    uint64_t step; /* that the worker is to compute, or has computed */
    uint64_t at;   /* to a worker: the step of the weights */
    uint32_t batches, ends,
        moments; /* ends: enum ps_ending; moments: they follow, as a message of their own */
};

enum ps_ending { GOES_ON, ENDS, ENDS_BROKEN_UP };

struct ps {
    struct ps_head *message; /* weights or sums behind it */
    size_t weights, sums;    /* bytes of a message of each */
    bool busy[BOOTSTRAP_MEMBERS], gone[BOOTSTRAP_MEMBERS];
    int lost; /* workers that have gone */
    bool begun;
    uint64_t dropped;
    uint64_t
        copied[BOOTSTRAP_MEMBERS]; /* the step that was last sent to a worker with its moments */
};

static int ps_check(const struct ranktrain_options *o, struct err *err) {
    if (o->world < 2)
        return err_say(err, -EINVAL,
                       "--mode=ps wants a server and at least one worker: WORLD_SIZE=2 or more");
    if (o->backup_workers && !o->ps_async)
        return err_say(err, -EINVAL, "--backup-workers=%lld: only with --ps-async",
                       (long long)o->backup_workers);
    if (o->backup_workers >= o->world - 1)
        return err_say(
            err, -EINVAL,
            "--backup-workers=%lld: there are %d workers, and at least one must be waited "
            "for",
            (long long)o->backup_workers, o->world - 1);
    return 0;
}

static int ps_open(struct trainer *t, struct err *err) {
    size_t values = t->model->values;
    struct state_range all = {0, values};
    struct state_range moments = {0, trainer_leads(t) ? t->model->trained : 0};
    struct ps *ps = t->m = mem_new(struct ps);
    ps->weights = sizeof(*ps->message) + values * sizeof(float);
    ps->sums = sizeof(*ps->message) + (values + 1) * sizeof(int64_t);
    ps->message = ration_alloc(&t->ration, RATION_GRADIENTS, ps->sums, 1, err);
    return ps->message ? work_open_part(t, all, moments, err) : -ENOMEM;
}

static int message(struct trainer *t, enum collective_op op, int *peer, size_t bytes,
                   struct err *err) {
    struct ps *ps = t->m;
    struct collective_call call = {.op = op, .data = ps->message, .bytes = bytes, .peer = *peer};
    int r = trainer_exchange(t, &call, err);
    *peer = call.peer;
    return r;
}

static int broadcast(struct trainer *t, void *data, size_t bytes, struct err *err) {
    struct collective_call call = {.op = COLLECTIVE_BROADCAST, .data = data, .bytes = bytes};
    return trainer_exchange(t, &call, err);
}

/* Rank 0: what a worker has sent counts. */
static void add_up(struct trainer *t) {
    const struct ps *ps = t->m;
    const int64_t *sums = (const void *)(ps->message + 1);
    for (size_t i = 0; i <= t->model->values; i++)
        t->sums[i] += sums[i];
}

static double update(struct trainer *t, unsigned batches) {
    struct state *s = &t->state;
    size_t values = t->model->values;
    unsigned samples = batches * (unsigned)t->model->data.batch;
    const struct optimizer_update u = {.sums = t->sums,
                                       .trained = t->model->trained,
                                       .values = values,
                                       .samples = samples,
                                       .batches = batches,
                                       .step = ++s->step};
    optimizer_step(&t->optimizer, &u, s->weights, s->moment);
    return fixed_point_value(t->sums[values]) / samples;
}

static int send_sums(struct trainer *t, uint64_t step, struct err *err) {
    struct ps *ps = t->m;
    int server = 0;
    *ps->message = (struct ps_head){.step = step, .batches = (uint32_t)t->n_shards};
    memcpy(ps->message + 1, t->sums, ps->sums - sizeof(*ps->message));
    return message(t, COLLECTIVE_SEND, &server, ps->sums, err);
}

/* In the order of their ranks: all are needed. */
static int gather_all(struct trainer *t, struct err *err) {
    struct ps *ps = t->m;
    int r = 0;
    memset(t->sums, 0, (t->model->values + 1) * sizeof(*t->sums));
    for (int i = 1; i < t->o->world && r == 0; i++) {
        int peer = i;
        r = message(t, COLLECTIVE_RECEIVE, &peer, ps->sums, err);
        if (r == 0)
            add_up(t);
    }
    return r;
}

static int step_together(struct trainer *t, double *ret_loss, struct err *err) {
    uint64_t step = t->state.step + 1;
    int r = broadcast(t, &step, sizeof(step), err);
    if (r == 0 && !trainer_leads(t))
        r = work_compute(t, step, NULL, err);
    if (r == 0)
        r = trainer_leads(t) ? gather_all(t, err) : send_sums(t, step, err);
    if (r < 0)
        return r;
    if (trainer_leads(t))
        *ret_loss = update(t, (unsigned)t->o->shards);
    r = broadcast(t, t->state.weights, t->model->values * sizeof(float), err);
    if (r == 0)
        r = broadcast(t, ret_loss, sizeof(*ret_loss), err);
    if (r == 0)
        t->state.step = step;
    return r;
}

static size_t moments_bytes(const struct trainer *t) {
    return (size_t)t->state.moments * t->model->trained * sizeof(float);
}

/* Who keeps a directory that the server does not see gets all of the state, as often as it is to be
 * saved, and at the end. */
static bool copy_is_due(const struct trainer *t, int worker, bool ends) {
    const struct ps *ps = t->m;
    uint64_t at = t->state.step, had = ps->copied[worker];
    if (!t->o->checkpoint_dir || t->resume.places.keeper[worker] != worker)
        return false;
    return at / t->save_every > had / t->save_every || (ends && at > had);
}

static int exchange_moments(struct trainer *t, enum collective_op op, int peer, float *moments,
                            struct err *err) {
    struct collective_call call = {
        .op = op, .data = moments, .bytes = moments_bytes(t), .peer = peer};
    return trainer_exchange(t, &call, err);
}

/* Rank 0: whether r says that a worker has gone and the others are enough. late: it need not have
 * gone, it has said nothing in time. */
static bool goes_on_without(struct trainer *t, int worker, int r, bool late, struct err *err) {
    struct ps *ps = t->m;
    bool gone = r == -ECONNRESET || r == -EPIPE || (late && r == -ETIMEDOUT);
    if (!gone || worker < 1 || strcmp(t->o->recover, "in-process") == 0 || !t->collective->forget ||
        ps->lost >= t->o->backup_workers)
        return false;
    ps->lost++;
    ps->gone[worker] = true;
    t->collective->forget(t->ring, worker);
    fprintf(stderr,
            "ranktrain: rank 0: %s; goes on without it, as without %d of %lld backup workers\n",
            err->msg, ps->lost, (long long)t->o->backup_workers);
    *err = (struct err){0};
    return true;
}

/* Rank 0: the weights of now, from which a worker is to compute a step, or the last ones. */
static int send_weights(struct trainer *t, int worker, uint64_t step, enum ps_ending ends,
                        struct err *err) {
    struct ps *ps = t->m;
    bool copy = copy_is_due(t, worker, ends);
    *ps->message =
        (struct ps_head){.step = step, .at = t->state.step, .ends = ends, .moments = copy};
    memcpy(ps->message + 1, t->state.weights, ps->weights - sizeof(*ps->message));
    ps->busy[worker] = ends == GOES_ON;
    int peer = worker, r = message(t, COLLECTIVE_SEND, &peer, ps->weights, err);
    if (r == 0 && copy)
        r = exchange_moments(t, COLLECTIVE_SEND, worker, t->state.moment[0], err);
    if (r == 0 && copy)
        ps->copied[worker] = t->state.step;
    return r < 0 && goes_on_without(t, worker, r, false, err) ? 0 : r;
}

/* A worker keeps what it was sent. */
static int keep_copy(struct trainer *t, struct err *err) {
    const struct ps *ps = t->m;
    struct state all;
    state_init(&all, t->model, t->optimizer.kind);
    all.step = ps->message->at;
    memcpy(all.weights, ps->message + 1, t->model->values * sizeof(*all.weights));
    int r = exchange_moments(t, COLLECTIVE_RECEIVE, 0, all.moment[0], err);
    if (r == 0)
        r = save_copy(t, &all, err);
    state_fini(&all);
    return r;
}

/* Takes the first workers' sums of this step. Returns how many shards they are of, or an error. */
static int gather_first(struct trainer *t, uint64_t step, struct err *err) {
    struct ps *ps = t->m;
    int wanted = t->o->world - 1 - (int)t->o->backup_workers, batches = 0;
    memset(t->sums, 0, (t->model->values + 1) * sizeof(*t->sums));
    while (wanted > 0) {
        int peer = COLLECTIVE_ANY;
        int r = message(t, COLLECTIVE_RECEIVE, &peer, ps->sums, err);
        if (r < 0 && goes_on_without(t, peer, r, false, err))
            continue;
        if (r < 0)
            return r;
        ps->busy[peer] = false;
        if (ps->message->step == step) {
            add_up(t);
            batches += (int)ps->message->batches;
            wanted--;
            continue;
        }
        ps->dropped++;
        r = send_weights(t, peer, step, GOES_ON, err);
        if (r < 0)
            return r;
    }
    return batches;
}

/* Who is still at work is heard once more. */
static int hear_late(struct trainer *t, int worker, struct err *err) {
    struct ps *ps = t->m;
    int peer = worker;
    if (!ps->busy[worker] || ps->gone[worker])
        return 0;
    ps->dropped++;
    int r = message(t, COLLECTIVE_RECEIVE, &peer, ps->sums, err);
    return r < 0 && goes_on_without(t, worker, r, true, err) ? 0 : r;
}

/* Behind the last step all get the last weights. */
static int dismiss(struct trainer *t, struct err *err) {
    struct ps *ps = t->m;
    int r = 0;
    for (int i = 1; i < t->o->world && r == 0; i++)
        r = hear_late(t, i, err);
    for (int i = 1; i < t->o->world && r == 0; i++)
        if (!ps->gone[i])
            r = send_weights(t, i, t->state.step, ps->lost ? ENDS_BROKEN_UP : ENDS, err);
    if (r == 0)
        printf("dropped %llu gradients that came too late\n", (unsigned long long)ps->dropped);
    t->broken_up = ps->lost > 0;
    return r;
}

/* At first all workers have the weights that came with the group. */
static int serve(struct trainer *t, double *ret_loss, struct err *err) {
    struct ps *ps = t->m;
    uint64_t step = t->state.step + 1;
    int r = 0;
    for (int i = 1; i < t->o->world && r == 0; i++) {
        if (!ps->begun) {
            ps->busy[i] = true;
            ps->copied[i] = t->state.step;
        } else if (!ps->busy[i] && !ps->gone[i])
            r = send_weights(t, i, step, GOES_ON, err);
    }
    ps->begun = true;
    if (r == 0)
        r = gather_first(t, step, err);
    if (r < 0)
        return r;
    *ret_loss = update(t, (unsigned)r);
    return step == t->last_step ? dismiss(t, err) : 0;
}

/* Computes what it was told to, and hears what comes next. */
static int work(struct trainer *t, double *ret_loss, struct err *err) {
    struct ps *ps = t->m;
    struct state *s = &t->state;
    int server = 0;
    uint64_t step = ps->begun ? ps->message->step : s->step + 1;
    ps->begun = true;
    int r = work_compute(t, step, NULL, err);
    if (r == 0)
        r = send_sums(t, step, err);
    if (r == 0)
        r = message(t, COLLECTIVE_RECEIVE, &server, ps->weights, err);
    if (r < 0)
        return r;
    double samples = (double)(t->n_shards * t->model->data.batch);
    *ret_loss = fixed_point_value(t->sums[t->model->values]) / samples;
    memcpy(s->weights, ps->message + 1, t->model->values * sizeof(*s->weights));
    t->ends = ps->message->ends != GOES_ON;
    t->broken_up = ps->message->ends == ENDS_BROKEN_UP;
    s->step = step;
    return ps->message->moments ? keep_copy(t, err) : 0;
}

static int ps_step(struct trainer *t, double *ret_loss, struct err *err) {
    if (!t->o->ps_async)
        return step_together(t, ret_loss, err);
    return trainer_leads(t) ? serve(t, ret_loss, err) : work(t, ret_loss, err);
}

/* The server has all moments. */
static struct state_range moments_of(const struct trainer *t, int rank) {
    size_t end = t->model->trained;
    return (struct state_range){rank == 0 ? 0 : end, end};
}

/* Of the synchronous one: then every rank is at the same step. */
static int ps_gather(struct trainer *t, struct state *ret, struct err *err) {
    return part_gather_of(t, moments_of, ret, err);
}

static void ps_forget(struct trainer *t) {
    struct ps *ps = t->m;
    ps->begun = false;
    memset(ps->busy, 0, sizeof(ps->busy));
    memset(ps->gone, 0, sizeof(ps->gone));
    ps->lost = 0;
}

static void ps_close(struct trainer *t) {
    struct ps *ps = t->m;
    if (ps)
        free(ps->message);
    free(ps);
    work_close(t);
}

const struct mode mode_ps = {
    .name = "ps",
    .summary = "rank 0 is a parameter server, the others compute for it",
    .pairs = true,
    .serves = true,
    .check = ps_check,
    .open = ps_open,
    .step = ps_step,
    .gather = ps_gather,
    .forget = ps_forget,
    .close = ps_close,
};
