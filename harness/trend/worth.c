#include "harness/trend/worth.h"

#include "base/str.h"
#include "faults/fault.h"
#include "faults/hazards.h"

/* How much of a job's life a phase is, and how much goes wrong in it. */
static int weight(enum trouble_phase p) {
    static const int weights[TROUBLE_PHASES] = {
        [TROUBLE_MEETING] = 0,  [TROUBLE_STARTING] = 2, [TROUBLE_LOADING] = 2,
        [TROUBLE_TRAINING] = 3, [TROUBLE_SAVING] = 4,   [TROUBLE_RECOVERING] = 4,
        [TROUBLE_ENDING] = 1,
    };
    return weights[p];
}

static size_t tried_of_family(const struct trouble *t, const char *family, enum trouble_phase p) {
    size_t n = 0;
    for (size_t f = 0; f < faults_n; f++)
        if (str_eq(fault_family(faults[f]), family))
            n += trouble_tried(t, f, p, TROUBLE_TARGETS);
    return n;
}

/* How many times something with an effect of this fault has been tried. */
static bool effects_are_new(const struct trouble *t, unsigned effects) {
    for (size_t f = 0; f < faults_n; f++)
        if ((faults[f]->effects & effects & ~(unsigned)(EFFECT_LOUD | EFFECT_LASTING)) &&
            trouble_tried(t, f, TROUBLE_PHASES, TROUBLE_TARGETS))
            return false;
    return true;
}

/* Somebody has counted it in a large cluster. */
static bool is_counted(const struct fault *f) {
    for (const struct hazards *h = hazards; h->name; h++)
        for (const struct hazard *x = h->v; x->fault; x++)
            if (str_eq(x->fault, f->name))
                return true;
    return false;
}

static int score(const struct trouble *t, const struct worth *w) {
    const struct fault *f = faults[w->fault];
    int s = weight(w->phase);
    s += trouble_tried(t, w->fault, TROUBLE_PHASES, TROUBLE_TARGETS) ? 0 : 6;
    s += effects_are_new(t, f->effects) ? 4 : 0;
    s += tried_of_family(t, fault_family(f), w->phase) ? 0 : 3;
    s += trouble_tried(t, w->fault, TROUBLE_PHASES, w->target) ? 0 : 2;
    s += w->target == TROUBLE_RANK_0 ? 1 : 0;
    s += is_counted(f) ? 3 : 0;
    return s + (fault_has(f, EFFECT_SILENT) ? 2 : 0); /* nobody notices it by himself */
}

static size_t chosen_of_family(const struct worth *v, size_t n, const char *family) {
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        k += str_eq(fault_family(faults[v[i].fault]), family);
    return k;
}

static bool is_chosen(const struct worth *v, size_t n, const struct worth *w) {
    for (size_t i = 0; i < n; i++)
        if (v[i].fault == w->fault)
            return true;
    return false;
}

static size_t chosen_in_phase(const struct worth *v, size_t n, enum trouble_phase p) {
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        k += v[i].phase == p;
    return k;
}

/* Another of the same family counts for less than anything of a family that is not there yet, and a
 * family that was never tried comes first; one phase after the other is asked for. */
static int rank(const struct trouble *t, const struct worth *v, size_t n, const struct worth *w) {
    const char *family = fault_family(faults[w->fault]);
    return score(t, w) - 100 * (int)chosen_of_family(v, n, family) -
           4 * (int)chosen_in_phase(v, n, w->phase) +
           (tried_of_family(t, family, TROUBLE_PHASES) ? 0 : 40);
}

static bool may_be(const struct trouble *t, const struct worth_filter *filter,
                   const struct worth *w) {
    if (faults[w->fault]->needs & FAULT_NEEDS_SCHEDULER)
        return false; /* which the scenario would have to have */
    return trouble_can_be_on(w->fault, w->target) &&
           !trouble_tried(t, w->fault, w->phase, w->target) &&
           (!filter || filter->may(filter->arg, w));
}

size_t worth_choose(const struct trouble *t, const struct worth_filter *filter, struct worth *ret,
                    size_t n) {
    size_t found = 0;
    for (bool more = true; more && found < n;) {
        int best = 0;
        more = false;
        for (size_t i = 0; i < faults_n * TROUBLE_PHASES * TROUBLE_TARGETS; i++) {
            struct worth w = {.fault = i / (TROUBLE_PHASES * TROUBLE_TARGETS),
                              .phase = (enum trouble_phase)(i / TROUBLE_TARGETS % TROUBLE_PHASES),
                              .target = (enum trouble_target)(i % TROUBLE_TARGETS)};
            int s = rank(t, ret, found, &w);
            if (is_chosen(ret, found, &w) || (more && s <= best) || !may_be(t, filter, &w))
                continue;
            best = s;
            ret[found] = w;
            more = true;
        }
        found += more;
    }
    return found;
}
