/* Counts the samples of each epoch by their numbers in the data set, and compares the orders. */
#include "harness/judge/checks/check.h"
#include "harness/judge/checks/training/ledger.h"

#include <math.h>
#include <stdlib.h>

static const char broken[] = "Epochs: each epoch trains each sample once, in an order of its own.";

enum { SAMPLES_MAX = 1 << 28 };
/* Two epochs of one order are told from chance by so much: a step's set of n samples of `of` is one
 * of (of/n)^n or more. */
static const double BITS_LEAST = 20;

/* One sample of one step that counts. */
struct epochs_sample {
    int64_t epoch, id, step;
    const struct worker *worker;
    const struct record *record;
};

/* Who told the samples of a step. */
struct epochs_teller {
    const struct worker *worker;
    int64_t step;
};

struct epochs_ledger {
    struct epochs_sample *v; /* by epoch, then sample, then step */
    size_t n;
    struct epochs_teller *tellers; /* sorted */
    size_t tellers_n;
    bool too_many;
};

static int compare(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}

static int by_sample(const void *a, const void *b) {
    const struct epochs_sample *x = a, *y = b;
    int c = compare(x->epoch, y->epoch);
    c = c ? c : compare(x->id, y->id);
    c = c ? c : compare(x->step, y->step);
    c = c ? c : compare(x->worker->rank, y->worker->rank);
    return c ? c : compare(x->record->seq, y->record->seq);
}

static int by_step(const void *a, const void *b) {
    const struct epochs_sample *x = a, *y = b;
    int c = compare(x->epoch, y->epoch);
    return c ? c : compare(x->step, y->step);
}

static int by_teller(const void *a, const void *b) {
    const struct epochs_teller *x = a, *y = b;
    int c = compare((int64_t)x->worker->index, (int64_t)y->worker->index);
    return c ? c : compare(x->step, y->step);
}

static bool is_samples(const struct record *r) {
    return r->source == SOURCE_JOB && record_is(r, "samples");
}

static const struct json *ids_of(const struct record *r) {
    const struct json *ids = record_get(r, "ids");
    return ids && ids->type == JSON_ARRAY ? ids : NULL;
}

/* The samples of a step that a later round has made void count for nothing. */
static void read_ledger(struct epochs_ledger *l, const struct trial *t) {
    const int64_t *horizons = ledger_horizons(t);
    size_t n = 0, records = 0;
    history_each(r, t->history) if (is_samples(r)) {
        n += ids_of(r) ? ids_of(r)->length : 0;
        records++;
    }
    *l = (struct epochs_ledger){.too_many = n > SAMPLES_MAX};
    if (l->too_many)
        return;
    l->v = arena_array(t->arena, struct epochs_sample, n + 1);
    l->tellers = arena_array(t->arena, struct epochs_teller, records + 1);
    history_each(r, t->history) {
        const struct worker *w =
            is_samples(r) ? rounds_worker_at(t->rounds, r->pid, r->t_ns) : NULL;
        int64_t step = record_i64(r, "step", -1);
        if (!w || step < 0 || step > horizons[w->round - 1])
            continue;
        l->tellers[l->tellers_n++] = (struct epochs_teller){w, step};
        json_each(id, ids_of(r)) l->v[l->n++] =
            (struct epochs_sample){record_i64(r, "epoch", 0), json_i64(id, -1), step, w, r};
    }
    qsort(l->v, l->n, sizeof(*l->v), by_sample);
    qsort(l->tellers, l->tellers_n, sizeof(*l->tellers), by_teller);
}

/* ---- one epoch ---- */

struct epoch {
    int64_t number, of; /* -1: two sizes were told */
    const struct epochs_sample *v;
    size_t n;
    int64_t first_step, last_step;
};

static struct epoch epoch_at(const struct epochs_ledger *l, size_t from) {
    struct epoch e = {.number = l->v[from].epoch, .v = l->v + from, .first_step = INT64_MAX};
    for (size_t i = from; i < l->n && l->v[i].epoch == e.number; i++, e.n++) {
        int64_t step = l->v[i].step, of = record_i64(l->v[i].record, "of", -1);
        e.of = e.n == 0 || e.of == of ? of : -1;
        e.first_step = step < e.first_step ? step : e.first_step;
        e.last_step = step > e.last_step ? step : e.last_step;
    }
    return e;
}

static bool judge_once(struct finding *f, const struct epoch *e) {
    for (size_t i = 0; i < e->n; i++) {
        const struct epochs_sample *s = &e->v[i], *before = i ? s - 1 : s;
        if (s->id < 0) {
            finding_prove(f, s->record->seq);
            return finding_fail(f, broken, "samples are numbered from 0",
                                "rank %d on %s told sample %lld in step %lld", s->worker->rank,
                                s->worker->node, (long long)s->id, (long long)s->step);
        }
        if (i == 0 || s->id != before->id)
            continue;
        finding_prove(f, before->record->seq, s->record->seq);
        return finding_fail(f, broken, "each sample once in each epoch",
                            "sample %lld was trained twice in epoch %lld: by rank %d in step %lld "
                            "and by rank %d in step %lld",
                            (long long)s->id, (long long)e->number, before->worker->rank,
                            (long long)before->step, s->worker->rank, (long long)s->step);
    }
    return true;
}

/* The lowest number that is not there, where numbers are those of a list without gaps. */
static int64_t missing(const struct epoch *e) {
    if (!e->n || e->v[e->n - 1].id >= e->of)
        return -1;
    for (size_t i = 0; i < e->n; i++)
        if (e->v[i].id != (int64_t)i)
            return (int64_t)i;
    return (int64_t)e->n;
}

/* None twice has been seen, so their number says whether all are there. over: no more comes. */
static bool judge_whole(const struct trial *t, struct finding *f, const struct epoch *e,
                        bool over) {
    if (e->of <= 0)
        return finding_unknown(f, broken,
                               "the job told no size of epoch %lld, or more than one (of)",
                               (long long)e->number);
    if ((int64_t)e->n == e->of || (!over && (int64_t)e->n < e->of))
        return true;
    int64_t id = missing(e);
    const char *which =
        id >= 0 ? arena_printf(t->arena, "; sample %lld is not among them", (long long)id) : "";
    finding_prove(f, e->v[0].record->seq, e->v[e->n - 1].record->seq);
    return finding_fail(f, broken, "each sample once in each epoch",
                        "epoch %lld, steps %lld to %lld, trained %zu different samples of %lld%s",
                        (long long)e->number, (long long)e->first_step, (long long)e->last_step,
                        e->n, (long long)e->of, which);
}

/* ---- two epochs ---- */

/* Which samples a step trained, whoever did and in whichever order: their number and a sum over
 * them. */
struct epochs_set {
    uint64_t sum;
    size_t n;
    int64_t place; /* in the epoch, from 0 */
};

static uint64_t mix(uint64_t x) {
    x = (x ^ x >> 31) * UINT64_C(0x7fb5d329728ea185);
    x = (x ^ x >> 27) * UINT64_C(0x81dadef4bc2dd44d);
    return x ^ x >> 33;
}

static struct epochs_set *sets_of(const struct trial *t, const struct epoch *e, size_t *ret_n) {
    struct epochs_sample *v = arena_array(t->arena, struct epochs_sample, e->n);
    struct epochs_set *ret = arena_array(t->arena, struct epochs_set, e->n);
    size_t n = 0;
    for (size_t i = 0; i < e->n; i++)
        v[i] = e->v[i];
    qsort(v, e->n, sizeof(*v), by_step);
    for (size_t i = 0; i < e->n; i++) {
        if (i == 0 || v[i].step != v[i - 1].step)
            ret[n++] = (struct epochs_set){.place = v[i].step - e->first_step};
        ret[n - 1].sum += mix((uint64_t)v[i].id + 1);
        ret[n - 1].n++;
    }
    *ret_n = n;
    return ret;
}

/* How many steps of both have the same samples at the same place; -1: one of them has others.
 * *ret_bits: what speaks against chance. */
static int same_order(const struct trial *t, const struct epoch *a, const struct epoch *b,
                      double *ret_bits) {
    size_t an, bn;
    int same = 0;
    const struct epochs_set *x = sets_of(t, a, &an), *y = sets_of(t, b, &bn);
    *ret_bits = 0;
    for (size_t i = 0, k = 0; i < an && k < bn;) {
        if (x[i].place != y[k].place) {
            x[i].place < y[k].place ? i++ : k++;
            continue;
        }
        double of = (double)a->of, n = (double)x[i].n;
        *ret_bits += n < of ? n * log2(of / n) : 0;
        if (x[i++].sum != y[k++].sum)
            return -1;
        same++;
    }
    return same;
}

/* *ret_seen: some two were seen to differ. */
static bool judge_order(const struct trial *t, struct finding *f, const struct epoch *v, size_t n,
                        bool *ret_seen) {
    *ret_seen = false;
    for (size_t b = 1; b < n; b++)
        for (size_t a = 0; a < b; a++) {
            double bits;
            int steps = same_order(t, &v[a], &v[b], &bits);
            *ret_seen |= steps < 0;
            if (steps <= 0 || bits < BITS_LEAST)
                continue;
            finding_prove(f, v[a].v[0].record->seq, v[b].v[0].record->seq);
            return finding_fail(f, broken, "another order in each epoch",
                                "epoch %lld trains the samples in the order of epoch %lld: the %d "
                                "steps from %lld on have those of the steps from %lld on",
                                (long long)v[b].number, (long long)v[a].number, steps,
                                (long long)v[b].first_step, (long long)v[a].first_step);
        }
    return true;
}

/* ---- the whole ---- */

/* A step that counts and of which a rank did not tell the samples. Who says that it has trained none, as a
 * server does, has none to tell. */
static const struct ledger_entry *find_mute(const struct trial *t, const struct epochs_ledger *l) {
    const int64_t *horizons = ledger_horizons(t);
    struct shard_ledger steps;
    ledger_read(&steps, t);
    for (size_t i = 0; i < steps.n; i++) {
        const struct ledger_entry *e = &steps.v[i];
        struct epochs_teller key = {e->worker, e->step};
        if (e->step <= horizons[e->worker->round - 1] &&
            record_i64(e->record, "samples", -1) != 0 &&
            !bsearch(&key, l->tellers, l->tellers_n, sizeof(key), by_teller))
            return e;
    }
    return NULL;
}

static bool is_known(const struct trial *t, struct finding *f, const struct epochs_ledger *l) {
    const struct ledger_entry *mute = l->n ? find_mute(t, l) : NULL;
    const struct worker *lost = ledger_lost(t);
    if (l->too_many)
        return finding_unknown(f, broken, "more than %d samples were told", SAMPLES_MAX);
    if (!l->n)
        return finding_unknown(f, broken,
                               "no step that counts told its samples, though the job was asked for "
                               "them (rankquake_asked of rankquake.h)");
    if (lost)
        return finding_unknown(f, broken, "%lld events of rank %d on %s were lost",
                               (long long)lost->lost_events, lost->rank, lost->node);
    if (mute)
        return finding_unknown(f, broken, "rank %d on %s did not tell the samples of step %lld",
                               mute->worker->rank, mute->worker->node, (long long)mute->step);
    return true;
}

static struct epoch *find_epochs(const struct trial *t, const struct epochs_ledger *l,
                                 size_t *ret_n) {
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++)
        n += i == 0 || l->v[i].epoch != l->v[i - 1].epoch;
    struct epoch *ret = arena_array(t->arena, struct epoch, n + 1);
    *ret_n = n;
    n = 0;
    for (size_t at = 0; at < l->n; at += ret[n++].n)
        ret[n] = epoch_at(l, at);
    return ret;
}

/* The last one is over when it has had as many steps as the one before. */
static bool is_over(const struct epoch *v, size_t n, size_t i) {
    if (i + 1 < n)
        return true;
    return i > 0 && v[i].last_step - v[i].first_step >= v[i - 1].last_step - v[i - 1].first_step;
}

static bool judge_shuffled(const struct trial *t, struct finding *f, const struct epoch *v,
                           size_t n) {
    bool seen;
    if (t->scenario->expect.epochs != EPOCHS_SHUFFLED)
        return true;
    if (!judge_order(t, f, v, n, &seen))
        return false;
    if (!seen)
        return finding_unknown(f, broken,
                               n > 1 ? "too few samples at the same place of two epochs to tell "
                                       "orders apart"
                                     : "the job came to one epoch only, and the order of another "
                                       "cannot be seen");
    return true;
}

static bool judge(const struct trial *t, struct finding *f) {
    struct epochs_ledger l;
    size_t n, whole = 0;
    if (!check_sees_rounds(t, f))
        return false;
    read_ledger(&l, t);
    const struct epoch *v = find_epochs(t, &l, &n);
    for (size_t i = 0; i < n; i++)
        if (!judge_once(f, &v[i]))
            return false;
    if (!is_known(t, f, &l))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!judge_whole(t, f, &v[i], is_over(v, n, i)))
            return false;
        whole += (int64_t)v[i].n == v[i].of;
    }
    if (!judge_shuffled(t, f, v, n))
        return false;
    if (whole == n)
        return finding_pass(f, "%zu epoch%s of %lld samples, each of them trained once%s", n,
                            n == 1 ? "" : "s", (long long)v[0].of,
                            t->scenario->expect.epochs == EPOCHS_SHUFFLED ? ", in other orders"
                                                                          : "");
    return finding_pass(f,
                        "%zu whole epoch%s, each sample trained once; the last came to %zu of "
                        "%lld samples, none of them twice",
                        whole, whole == 1 ? "" : "s", v[n - 1].n, (long long)v[n - 1].of);
}

static const char *idle(const struct scenario *s) {
    return s->expect.epochs == EPOCHS_ANY ? "the scenario asks nothing of epochs" : NULL;
}

const struct check check_epochs = {
    .name = "epochs",
    .summary = "each epoch trains each sample once, in an order of its own",
    .text = "expect.epochs. The job is asked which samples it trains in each step, by their "
            "numbers in the data set (rankquake_samples of rankquake.h); ranktrain tells those of "
            "the images that it gave to be computed. Of the steps that count, over all rounds, no "
            "epoch may have a sample twice, and one that is over has as many as the job says that "
            "an epoch has. shuffled: two epochs whose steps have, place by place, the same samples "
            "have the same order, which fails. It needs no control run, so it sees also what is "
            "wrong there. That a sample was computed is the job's word.",
    .example = "expect: {epochs: shuffled}",
    .class = CLASS_EXPECT,
    .sources = SOURCES(JOB) | SOURCES(PROBE),
    .needs_events = NEEDS_STEPS | NEEDS_SAMPLES,
    .not_applicable = idle,
    .judge = judge,
};
