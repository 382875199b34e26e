#include "harness/trend/recoveries.h"

#include "base/mem.h"
#include "base/str.h"
#include "harness/trend/rank_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double median_or_nan(const double *v, size_t n) {
    return n ? rank_test_median_of(v, n) : NAN;
}

/* ---- out of a run ---- */

static struct recovery *find(struct recoveries *r, const char *fault) {
    for (size_t i = 0; i < r->n; i++)
        if (str_eq(r->v[i].fault, fault))
            return &r->v[i];
    mem_push(r->v, r->n) = (struct recovery){0};
    str_copy(r->v[r->n - 1].fault, sizeof(r->v->fault), fault);
    return &r->v[r->n - 1];
}

static void take_recoveries(struct recoveries *r, const struct recorded_run *run) {
    struct incidents is;
    incidents_load(&is, run->history, run->rounds);
    for (size_t i = 0; i < is.n; i++) {
        const struct incident *in = is.v[i];
        if (!in->in_force || !in->ended_round || !in->next || in->recover_ns < 0)
            continue;
        struct recovery *one = find(r, in->fault);
        mem_push(one->v, one->n) = (double)in->recover_ns / 1e9;
    }
    incidents_fini(&is);
}

/* One worker's saves: of several that save together the shortest would do as well. */
static void take_saves_of(struct recoveries *r, const struct history *h, int64_t pid) {
    int64_t begun_ns = 0;
    history_each(x, h) {
        if (x->source != SOURCE_JOB || x->pid != pid)
            continue;
        if (record_is(x, "checkpoint-begin")) {
            begun_ns = x->t_ns;
        } else if (record_is(x, "checkpoint-commit") && begun_ns) {
            mem_push(r->saves, r->saves_n) = (double)(x->t_ns - begun_ns) / 1e9;
            begun_ns = 0;
        }
    }
}

static double step_s(const struct recorded_run *run) {
    const struct record *control = history_newest(run->history, SOURCE_HARNESS, "control");
    int64_t ns = control ? record_i64(control, "pace_ns", 0) : goodput_pace_ns(run->rounds);
    ns = ns > 0 || !control ? ns : record_i64(control, "step_ns", 0);
    return (double)ns / 1e9;
}

static void take_gaps(struct recoveries *r, const struct history *h, double step) {
    int64_t last = -1;
    history_each(x, h) {
        if (x->source != SOURCE_JOB || !record_is(x, "checkpoint-commit"))
            continue;
        int64_t at = record_i64(x, "step", -1);
        if (last >= 0 && at > last)
            mem_push(r->gaps, r->gaps_n) = (double)(at - last) * step;
        last = at;
    }
}

void recoveries_add(struct recoveries *r, const struct recorded_run *run) {
    double step = step_s(run);
    take_recoveries(r, run);
    for (size_t i = 0; i < run->rounds->workers_n; i++)
        take_saves_of(r, run->history, run->rounds->workers[i]->pid);
    if (step > 0) {
        mem_push(r->steps, r->steps_n) = step;
        take_gaps(r, run->history, step);
    }
    for (size_t i = 0; i < run->rounds->n; i++) {
        int nodes = round_nodes(run->rounds->v[i]);
        r->nodes = nodes > r->nodes ? nodes : r->nodes;
    }
}

void recoveries_fini(struct recoveries *r) {
    for (size_t i = 0; i < r->n; i++)
        free(r->v[i].v);
    free(r->v);
    free(r->saves);
    free(r->gaps);
    free(r->steps);
    *r = (struct recoveries){0};
}

/* ---- what was measured ---- */

double recoveries_save(const struct recoveries *r) {
    return median_or_nan(r->saves, r->saves_n);
}

double recoveries_interval(const struct recoveries *r) {
    return median_or_nan(r->gaps, r->gaps_n);
}

double recoveries_step(const struct recoveries *r) {
    return median_or_nan(r->steps, r->steps_n);
}

double recovery_median(const struct recovery *r) {
    return median_or_nan(r->v, r->n);
}

static double share_of(const struct hazards *mix, const char *fault) {
    for (const struct hazard *h = mix->v; h->fault; h++)
        if (str_eq(h->fault, fault))
            return h->share;
    return 0;
}

double recoveries_restart(const struct recoveries *r, const struct hazards *mix,
                          double *ret_known) {
    double all = 0, known = 0, sum = 0, plain = 0;
    for (const struct hazard *h = mix->v; h->fault; h++)
        all += h->share;
    for (size_t i = 0; i < r->n; i++) {
        double share = share_of(mix, r->v[i].fault), median = recovery_median(&r->v[i]);
        known += share;
        sum += share * median;
        plain += median;
    }
    *ret_known = all > 0 ? known / all : 0;
    if (!r->n)
        return NAN;
    return known > 0 ? sum / known : plain / (double)r->n;
}
