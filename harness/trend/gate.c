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
/* Of two runs that follow one another one may have found the machine faster than the other. As jobs
 * of this project were seen to follow the calibration (0.1 to 0.5), where the base is too small to
 * tell. */
static const double FOLLOWS_TYPICAL = 0.3;
/* Standard errors: what is exceeded by chance in one of twenty cases, and of a hundred. */
static const double ONE_OF_20 = 1.645, ONE_OF_100 = 2.326;
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

/* ---- what a time shows of the machine ---- */

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

/* ---- made alternately ---- */

/* Differences between neighbours in time, of which one is of each kind, each run in one pair at
 * most. */
struct gate_pairs {
    double *v, *calibration;
    size_t n;
};

static struct gate_pairs pair_up(const struct gate_comparison *c) {
    struct gate_pairs p = {mem_array(double, c->n + 1), mem_array(double, c->n + 1), 0};
    for (size_t i = 0; i + 1 < c->n; i++) {
        const struct gate_run *mine = &c->v[i], *base = &c->v[i + 1];
        if (mine->mine == base->mine)
            continue;
        if (base->mine) {
            mine = base;
            base = &c->v[i];
        }
        bool measured = mine->calibration_ms > 0 && base->calibration_ms > 0;
        p.calibration[p.n] = measured ? log(mine->calibration_ms / base->calibration_ms) : 0;
        p.v[p.n++] = log(mine->ms / base->ms);
        i++;
    }
    return p;
}

static void test_pairs(struct gate_finding *f, const struct gate_pairs *p) {
    struct rank_test t = rank_test_pairs(p->v, p->n);
    f->p = fmax(f->p, t.p);
    f->superiority = fmin(f->superiority, t.superiority);
    f->ratio = fmin(f->ratio, exp(rank_test_middle(p->v, p->n)));
    f->most = fmax(f->most, exp(rank_test_middle_most(p->v, p->n, ONE_OF_20)));
}

/* False: they were not, or too seldom. As they are, and with the machine taken out of each pair: an
 * answer that holds for one of them alone is about the machine, so the weaker one counts, of either
 * kind. */
static bool compare_pairs(struct gate_finding *f, const struct gate_comparison *c) {
    struct gate_pairs p = pair_up(c);
    /* At the border between two series there is a pair, too. */
    bool enough = p.n >= c->o->runs && 2 * p.n >= f->n;
    if (enough) {
        f->paired = true;
        f->alike = p.n;
        f->p = f->most = 0;
        f->ratio = INFINITY;
        f->superiority = 1;
        test_pairs(f, &p);
        f->follows = c->base.n >= FOLLOWS_LEAST ? how_it_follows(&c->base) : FOLLOWS_TYPICAL;
        for (size_t i = 0; i < p.n; i++)
            p.v[i] -= f->follows * p.calibration[i];
        test_pairs(f, &p);
    }
    free(p.v);
    free(p.calibration);
    return enough;
}

/* ---- one after the other ---- */

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
    double one = sqrt(variance * (1 + 1 / (double)n)), freedom = (double)(n - 1);
    double spread = student_quantile(0.01, freedom) * one;
    f->drift = exp(fmax(spread, most - least) + (FOLLOWS_WORST - f->follows) * slower);
    /* A drift the other way would hide what is slower. */
    double hidden = fmax(student_quantile(0.05, freedom) * one, most - least);
    f->most = fmax(f->most, f->ratio * exp(hidden));
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
        f->most = exp(rank_test_shift_most(c->mine.v, c->mine.n, alike.v, alike.n, ONE_OF_20));
        measure_drift(f, c, slower);
    }
    gate_sample_fini(&alike);
}

/* ---- the answer ---- */

void gate_compare(struct gate_finding *ret, struct gate_run *v, size_t n,
                  const struct gate_options *o) {
    struct gate_comparison c = {.v = v, .n = n, .o = o};
    struct gate_finding f = {.p = 1, .superiority = 0.5, .ratio = 1, .most = INFINITY};
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

static double must_be_caught(const struct gate_options *o) {
    return 1 + 2 * o->slower;
}

/* So many more runs that either a slowdown that must be caught is found or there is none: the limits
 * of 95 % above and of 99 % below then lie closer together than that. They come nearer with the root
 * of the number of runs. */
static size_t how_many_more(const struct gate_finding *f, const struct gate_options *o) {
    double up = log(f->most / f->ratio), apart = up * (1 + ONE_OF_100 / ONE_OF_20);
    double n = (double)(f->paired ? f->alike : f->n);
    double more = ceil(n * (pow(apart / log(must_be_caught(o)), 2) - 1));
    return !(more < GATE_MORE_MAX) ? GATE_MORE_MAX : more < 1 ? 1 : (size_t)more;
}

/* Of what chance alone would bring as well. */
static enum gate_answer not_slower(struct gate_finding *f, const struct gate_options *o) {
    if (f->most < must_be_caught(o))
        return GATE_SAME;
    f->more = how_many_more(f, o);
    return GATE_NOISE;
}

static enum gate_answer is_slower(struct gate_finding *f, const struct gate_options *o) {
    if (f->ratio < 1 + o->slower)
        return not_slower(f, o);
    if (!f->paired && (f->drift <= 0 || f->ratio < f->drift))
        return GATE_DRIFT;
    return GATE_SLOWER;
}

void gate_settle(struct gate_finding *v, size_t n, const struct gate_options *o) {
    struct gate_finding **order = mem_array(struct gate_finding *, n + 1);
    size_t told = 0;
    bool sure = true; /* the first that is not by chance ends them */
    for (size_t i = 0; i < n; i++)
        if (!is_open(&v[i]))
            order[told++] = &v[i];
    qsort(order, told, sizeof(struct gate_finding *), by_p);
    for (size_t i = 0; i < told; i++) {
        sure = sure && order[i]->p <= o->level / (double)(told - i);
        order[i]->answer = sure ? is_slower(order[i], o) : not_slower(order[i], o);
    }
    free(order);
}

const char *gate_answer_name(enum gate_answer a) {
    return a == GATE_SAME ? "same" : a == GATE_SLOWER ? "slower" : "open";
}
