#include "harness/trend/outage.h"

#include "base/rand.h"

#include <math.h>
#include <stdbool.h>

/* ---- by formula ---- */

/* With S the interval and a save, M the mtbf: a segment fails e^(S/M) - 1 times before it is done,
 * each start takes M (e^(R/M) - 1) with all that fail meanwhile, and all of it is M e^(R/M)
 * (e^(S/M) - 1) (Daly 2006). */
struct outage_cost outage_expect(const struct outage_job *j, double interval) {
    double m = j->mtbf, segment = interval + j->save, failures = expm1(segment / m);
    double lost = failures * m - segment, restarting = failures * m * expm1(j->restart / m);
    double all = interval + j->save + lost + restarting;
    if (!isfinite(all) || all <= 0)
        return (struct outage_cost){.lost = 1};
    return (struct outage_cost){.work = interval / all,
                                .saving = j->save / all,
                                .lost = lost / all,
                                .restarting = restarting / all};
}

/* Where 1 - e^-(t + C)/M = t/M: more work in a segment is then just worth what it risks. */
double outage_best_interval(const struct outage_job *j) {
    double low = 0, high = j->mtbf;
    for (int i = 0; i < 200; i++) {
        double t = (low + high) / 2;
        *(-expm1(-(t + j->save) / j->mtbf) > t / j->mtbf ? &low : &high) = t;
    }
    return (low + high) / 2;
}

double outage_young_interval(const struct outage_job *j) {
    return sqrt(2 * j->save * j->mtbf);
}

double outage_lost_each(const struct outage_job *j, double interval) {
    double segment = interval + j->save;
    return j->mtbf - segment / expm1(segment / j->mtbf);
}

/* ---- by living through it ---- */

struct outage_life {
    const struct outage_job *job;
    struct rand rand;
    double scale; /* of the gaps, so that their mean is the mtbf */
    double work, saving, lost, restarting;
};

static double next_gap(struct outage_life *l) {
    double u = 1 - rand_unit(&l->rand); /* (0, 1] */
    return l->scale * pow(-log(u), 1 / l->job->shape);
}

/* From one failure to the next: a start, if there is time for it, and segments. */
static void live(struct outage_life *l, double interval, double gap, bool started) {
    double left = gap, segment = interval + l->job->save;
    if (!started) {
        double start = l->job->restart < left ? l->job->restart : left;
        l->restarting += start;
        left -= start;
    }
    double whole = segment > 0 ? floor(left / segment) : 0;
    l->work += whole * interval;
    l->saving += whole * l->job->save;
    l->lost += left - whole * segment;
}

struct outage_batch {
    double work, all;
};

/* Of a ratio of means, from batches that have next to nothing to do with each other. */
static double error_of(const struct outage_batch *v, size_t n, double ratio) {
    double all = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        all += v[i].all;
    for (size_t i = 0; i < n; i++) {
        double off = v[i].work - ratio * v[i].all;
        squares += off * off;
    }
    return sqrt(squares * (double)n / (double)(n - 1)) / all;
}

static double life_time(const struct outage_life *l) {
    return l->work + l->saving + l->lost + l->restarting;
}

struct outage_cost outage_simulate(const struct outage_job *j, double interval, size_t failures,
                                   uint64_t seed) {
    enum { BATCHES = 100 };
    struct outage_batch v[BATCHES];
    struct outage_life l = {.job = j, .scale = j->mtbf / tgamma(1 + 1 / j->shape)};
    size_t each = failures / BATCHES ? failures / BATCHES : 1;
    rand_init(&l.rand, seed);
    for (size_t b = 0; b < BATCHES; b++) {
        double work = l.work, all = life_time(&l);
        for (size_t i = 0; i < each; i++)
            live(&l, interval, next_gap(&l), b == 0 && i == 0);
        v[b] = (struct outage_batch){l.work - work, life_time(&l) - all};
    }
    double all = life_time(&l), ratio = l.work / all;
    return (struct outage_cost){.work = ratio,
                                .saving = l.saving / all,
                                .lost = l.lost / all,
                                .restarting = l.restarting / all,
                                .error = error_of(v, BATCHES, ratio)};
}
