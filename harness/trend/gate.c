#include "harness/trend/gate.h"

#include "base/mem.h"
#include "harness/trend/rank_test.h"
#include "harness/trend/student.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A machine is about as fast while its calibration is within 35 %, which is what `follows` is good
 * enough to take out. */
static const double ALIKE = 0.3;
static const double FOLLOWS_MAX = 1.5;
/* A job with more processes than processors shows a neighbour more than the calibration does, which
 * has none: 1.4 times as much was seen. */
static const double FOLLOWS_WORST = 2;
/* So few blocks say nothing of how they are spread. */
enum { BLOCKS_LEAST = 3, FOLLOWS_LEAST = 20 };
/* So many blocks of runs of the base are enough to compare with. */
enum { ALIKE_BLOCKS = 4 };

struct gate_sample { /* logarithms, as all that follows */
    double *v, *calibration;
    size_t n;
};

/* What is compared. */
struct gate_comparison {
    struct gate_run *v;
    size_t n;
    const struct gate_options *o;
    struct gate_sample mine, base; /* in order of time */
    bool calibrated;               /* all of them are */
};

static int by_time(const void *a, const void *b) {
    const struct gate_run *x = a, *y = b;
    return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

static struct gate_sample gate_sample_new(size_t n) {
    return (struct gate_sample){.v = mem_array(double, n + 1),
                                .calibration = mem_array(double, n + 1)};
}

static void gate_sample_fini(struct gate_sample *s) {
    free(s->v);
    free(s->calibration);
}

/* ---- what there is ---- */

/* Where runs are many, those of the base that are nearest to the others in time. Returns the first
 * and, in *ret_end, the one behind the last. */
static size_t nearest(const struct gate_comparison *c, size_t *ret_end) {
    size_t first = c->n, last = 0, base = 0, begin = 0, end = c->n;
    for (size_t i = 0; i < c->n; i++) {
        if (c->v[i].mine && first == c->n)
            first = i;
        if (c->v[i].mine)
            last = i;
        base += !c->v[i].mine;
    }
    while (base > GATE_BASE_MAX && begin < end) {
        bool before =
            begin < first && (end <= last + 1 || c->v[first].time_ns - c->v[begin].time_ns >=
                                                     c->v[end - 1].time_ns - c->v[last].time_ns);
        if (!before && end <= last + 1)
            break; /* all that are left lie among the others */
        base--;
        before ? begin++ : end--;
    }
    *ret_end = end;
    return begin;
}

static void take(struct gate_comparison *c) {
    size_t end, begin = nearest(c, &end);
    c->mine = gate_sample_new(c->n);
    c->base = gate_sample_new(c->n);
    c->calibrated = true;
    for (size_t i = begin; i < end; i++) {
        struct gate_sample *s = c->v[i].mine ? &c->mine : &c->base;
        bool measured = c->v[i].calibration_ms > 0;
        s->v[s->n] = log(c->v[i].ms);
        s->calibration[s->n++] = measured ? log(c->v[i].calibration_ms) : 0;
        c->calibrated &= measured;
    }
}

/* ---- made alternately ---- */

/* Neighbours in time of which one is of each kind, each run in one pair at most. */
static size_t pair_up(const struct gate_comparison *c, double *difference) {
    size_t n = 0;
    for (size_t i = 0; i + 1 < c->n; i++) {
        const struct gate_run *a = &c->v[i], *b = &c->v[i + 1];
        if (a->mine == b->mine)
            continue;
        double d = log(a->ms) - log(b->ms);
        difference[n++] = a->mine ? d : -d;
        i++;
    }
    return n;
}

/* The median of the means of all two of them, and of each with itself. */
static double middle_of_pairs(const double *d, size_t n) {
    double *means = mem_array(double, n *(n + 1) / 2 + 1);
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++)
            means[k++] = (d[i] + d[j]) / 2;
    double middle = rank_test_median(means, k);
    free(means);
    return middle;
}

/* False: they were not, or too seldom. */
static bool compare_pairs(struct gate_finding *f, const struct gate_comparison *c) {
    double *d = mem_array(double, c->n + 1);
    size_t n = pair_up(c, d);
    /* At the border between two series there is a pair, too. */
    bool enough = n >= c->o->runs && 2 * n >= f->n;
    if (enough) {
        struct rank_test t = rank_test_pairs(d, n);
        f->paired = true;
        f->alike = n;
        f->p = t.p;
        f->superiority = t.superiority;
        f->ratio = exp(middle_of_pairs(d, n));
    }
    free(d);
    return enough;
}

/* ---- one after the other ---- */

/* The median of the slopes between all two runs of the base (Theil and Sen). */
static double how_it_follows(const struct gate_sample *s) {
    double *slopes = mem_array(double, s->n * s->n + 1);
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; k < i; k++) {
            double apart = s->calibration[i] - s->calibration[k];
            if (fabs(apart) > 0.02)
                slopes[n++] = (s->v[i] - s->v[k]) / apart;
        }
    double slope = n && s->n >= FOLLOWS_LEAST ? rank_test_median(slopes, n) : 0;
    free(slopes);
    return fmin(fmax(slope, 0), FOLLOWS_MAX);
}

/* Between which calibrations the middle half of them was made, and their median. */
static double middle_half(const struct gate_sample *s, double *ret_low, double *ret_high) {
    double *copy = mem_array(double, s->n + 1);
    memcpy(copy, s->calibration, s->n * sizeof(*copy));
    double median = rank_test_median(copy, s->n);
    *ret_low = copy[s->n / 4];
    *ret_high = copy[s->n - 1 - s->n / 4];
    free(copy);
    return median;
}

static void take_machine_out(struct gate_sample *s, double follows) {
    for (size_t i = 0; i < s->n; i++)
        s->v[i] -= follows * s->calibration[i];
}

/* What the drift alone may bring, of medians of blocks of consecutive runs, the newest first: as
 * much as a further one may be off by, and no less than lay between two of them; a machine that is
 * now here and now there has no spread that Student's distribution would know. And where it was
 * slower by then, what the worst job would show of that: the base tells nothing of a state that it
 * has not seen. */
static void measure_drift(struct gate_finding *f, const struct gate_comparison *c, double slower) {
    const struct gate_sample *s = &c->base;
    size_t runs = c->o->runs, n = s->n / runs;
    double sum = 0, squares = 0, least = INFINITY, most = -INFINITY;
    f->blocks = n;
    if (n < BLOCKS_LEAST)
        return;
    for (size_t i = 0; i < n; i++) {
        double median = rank_test_median_of(s->v + s->n - (i + 1) * runs, runs);
        sum += median;
        squares += median * median;
        least = fmin(least, median);
        most = fmax(most, median);
    }
    double mean = sum / (double)n;
    double variance = fmax(squares - (double)n * mean * mean, 0) / (double)(n - 1);
    double spread = student_quantile(0.01, (double)(n - 1)) * sqrt(variance * (1 + 1 / (double)n));
    f->drift = exp(fmax(spread, most - least) + (FOLLOWS_WORST - f->follows) * slower);
}

/* A run of the base, and how far its calibration lies outside of the middle half of those judged. */
struct gate_candidate {
    double v, calibration, apart;
};

static int by_distance(const void *a, const void *b) {
    double x = ((const struct gate_candidate *)a)->apart;
    double y = ((const struct gate_candidate *)b)->apart;
    return (x > y) - (x < y);
}

/* Of the base those that found the machine about as fast: the nearest, and all that lie within. */
static struct gate_sample find_alike(const struct gate_comparison *c, double low, double high) {
    struct gate_candidate *v = mem_array(struct gate_candidate, c->base.n + 1);
    struct gate_sample alike = gate_sample_new(c->base.n);
    for (size_t i = 0; i < c->base.n; i++) {
        double at = c->calibrated ? c->base.calibration[i] : low;
        v[i] = (struct gate_candidate){c->base.v[i], at, fmax(fmax(low - at, at - high), 0)};
    }
    qsort(v, c->base.n, sizeof(*v), by_distance);
    for (size_t i = 0; i < c->base.n && v[i].apart <= ALIKE; i++) {
        if (v[i].apart > 0 && alike.n >= ALIKE_BLOCKS * c->o->runs)
            break;
        alike.calibration[alike.n] = v[i].calibration;
        alike.v[alike.n++] = v[i].v;
    }
    free(v);
    return alike;
}

/* How much slower than those that they are compared with the slower half of the judged found the
 * machine: upper quartile against upper quartile. */
static double how_much_slower(const struct gate_comparison *c, const struct gate_sample *alike,
                              double high) {
    double low_alike, high_alike;
    middle_half(alike, &low_alike, &high_alike);
    return c->calibrated ? fmax(high - high_alike, 0) : 0;
}

static void compare_series(struct gate_finding *f, struct gate_comparison *c) {
    double low, high, here = middle_half(&c->mine, &low, &high);
    if (c->calibrated) {
        f->follows = how_it_follows(&c->base);
        f->machine = exp(here - rank_test_median_of(c->base.calibration, c->base.n));
        take_machine_out(&c->mine, f->follows);
        take_machine_out(&c->base, f->follows);
    }
    struct gate_sample alike = find_alike(c, low, high);
    f->alike = alike.n;
    if (alike.n < c->o->runs) {
        f->answer = GATE_MACHINE;
    } else {
        struct rank_test t = rank_test_two(c->mine.v, c->mine.n, alike.v, alike.n);
        double slower = how_much_slower(c, &alike, high);
        f->p = t.p;
        f->superiority = t.superiority;
        f->ratio = exp(rank_test_shift(c->mine.v, c->mine.n, alike.v, alike.n));
        measure_drift(f, c, slower);
    }
    gate_sample_fini(&alike);
}

/* ---- the answer ---- */

void gate_compare(struct gate_finding *ret, struct gate_run *v, size_t n,
                  const struct gate_options *o) {
    struct gate_comparison c = {.v = v, .n = n, .o = o};
    struct gate_finding f = {.p = 1, .superiority = 0.5, .ratio = 1};
    if (n)
        qsort(v, n, sizeof(*v), by_time);
    take(&c);
    f.n = c.mine.n;
    f.base_n = c.base.n;
    f.median_ms = f.n ? exp(rank_test_median_of(c.mine.v, f.n)) : 0;
    f.base_ms = f.base_n ? exp(rank_test_median_of(c.base.v, f.base_n)) : 0;
    if (f.n < o->runs || f.base_n < o->runs)
        f.answer = GATE_FEW;
    else if (!compare_pairs(&f, &c))
        compare_series(&f, &c);
    gate_sample_fini(&c.mine);
    gate_sample_fini(&c.base);
    *ret = f;
}

static bool is_open(const struct gate_finding *f) {
    return f->answer == GATE_FEW || f->answer == GATE_MACHINE;
}

static int by_p(const void *a, const void *b) {
    const struct gate_finding *x = *(struct gate_finding *const *)a;
    const struct gate_finding *y = *(struct gate_finding *const *)b;
    return (x->p > y->p) - (x->p < y->p);
}

static enum gate_answer answer_of(const struct gate_finding *f, const struct gate_options *o) {
    if (f->ratio < 1 + o->slower)
        return GATE_SAME;
    if (!f->paired && (f->drift <= 0 || f->ratio < f->drift))
        return GATE_DRIFT;
    return GATE_SLOWER;
}

void gate_settle(struct gate_finding *v, size_t n, const struct gate_options *o) {
    struct gate_finding **order = mem_array(struct gate_finding *, n + 1);
    size_t told = 0;
    for (size_t i = 0; i < n; i++)
        if (!is_open(&v[i]))
            order[told++] = &v[i];
    qsort(order, told, sizeof(struct gate_finding *), by_p);
    for (size_t i = 0; i < told && order[i]->p <= o->level / (double)(told - i); i++)
        order[i]->answer = answer_of(order[i], o);
    free(order);
}

const char *gate_answer_name(enum gate_answer a) {
    return a == GATE_SAME ? "same" : a == GATE_SLOWER ? "slower" : "open";
}
