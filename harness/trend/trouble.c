#include "harness/trend/trouble.h"

#include "base/mem.h"
#include "base/str.h"
#include "faults/fault.h"

#include <stdlib.h>

const char *trouble_phase_name(enum trouble_phase p) {
    static const char *const names[TROUBLE_PHASES] = {
        [TROUBLE_MEETING] = "meeting", [TROUBLE_STARTING] = "starting",
        [TROUBLE_LOADING] = "loading", [TROUBLE_TRAINING] = "training",
        [TROUBLE_SAVING] = "saving",   [TROUBLE_RECOVERING] = "recovering",
        [TROUBLE_ENDING] = "ending",
    };
    return names[p];
}

const char *trouble_target_name(enum trouble_target t) {
    static const char *const names[TROUBLE_TARGETS] = {
        [TROUBLE_RANK_0] = "rank 0",
        [TROUBLE_ANOTHER] = "another",
        [TROUBLE_SEVERAL] = "several",
        [TROUBLE_STORE] = "store",
    };
    return names[t];
}

void trouble_init(struct trouble *t) {
    *t = (struct trouble){.v = mem_alloc(faults_n, sizeof(*t->v))};
}

void trouble_fini(struct trouble *t) {
    free(t->v);
    *t = (struct trouble){0};
}

/* ---- when ---- */

static bool came(int64_t ns, int64_t by_ns) {
    return ns > 0 && ns <= by_ns;
}

/* How many records had been made by then. Their times rise, but for those of ends, which are told
 * a little later. */
static size_t made_by(const struct history *h, int64_t t_ns) {
    size_t low = 0, high = h->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (h->records[middle]->t_ns <= t_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* What it told last of a save, by then and in this round: that it is under way? */
static bool worker_is_saving(const struct history *h, const struct round *r, const struct worker *w,
                             size_t made) {
    for (size_t i = made; i-- > 0 && h->records[i]->t_ns >= r->first_start_ns;) {
        const struct record *x = h->records[i];
        if (x->source != SOURCE_JOB || x->pid != w->pid)
            continue;
        if (record_is(x, "checkpoint-commit"))
            return false;
        if (record_is(x, "checkpoint-begin") || record_is(x, "checkpoint-write"))
            return true;
    }
    return false;
}

/* A worker has begun a save by then that it has not committed; one that has ended saves no more. */
static bool is_saving(const struct history *h, const struct round *r, int64_t t_ns) {
    size_t made = made_by(h, t_ns);
    for (size_t i = 0; i < r->n; i++)
        if (worker_is_saving(h, r, r->workers[i], made))
            return true;
    return false;
}

/* What has come of the workers of a round by then. */
struct muster {
    size_t failed, well, ready, stepped;
    bool ready_told, steps_told; /* by any, ever: else nobody tells it in this job */
};

/* An earlier fault has ended it, whether its end has been seen by then or not. */
static bool was_ended(const struct incidents *is, const struct worker *w, int64_t t_ns) {
    for (size_t k = 0; k < is->n; k++)
        if (is->v[k]->in_force && is->v[k]->t0_ns <= t_ns && incident_hits(is->v[k], w) &&
            incident_has(is->v[k], EFFECT_ENDS_WORKER | EFFECT_ENDS_NODE))
            return true;
    return false;
}

static struct muster muster(const struct incidents *is, const struct round *r, int64_t t_ns) {
    struct muster m = {0};
    for (size_t i = 0; i < r->n; i++) {
        const struct worker *w = r->workers[i];
        bool ended = came(w->exit_ns, t_ns) || was_ended(is, w, t_ns), well = worker_ended_well(w);
        m.failed += ended && !well;
        m.well += (ended && well) || came(w->done_ns, t_ns);
        m.ready += came(w->ready_ns, t_ns);
        m.stepped += came(w->first_step_ns, t_ns);
        m.ready_told |= w->ready_ns > 0;
        m.steps_told |= w->first_step_ns > 0;
    }
    return m;
}

/* By the time that it is in force, those whom it has hit may have ended already. */
static int64_t met_ns(const struct incident *i) {
    return i->fired ? i->fired_ns : i->t0_ns;
}

enum trouble_phase trouble_phase_of(const struct history *h, const struct incidents *is,
                                    const struct incident *i) {
    const struct round *r = i->round;
    int64_t t_ns = met_ns(i);
    if (!r)
        return TROUBLE_MEETING;
    struct muster m = muster(is, r, t_ns);
    if (m.failed)
        return TROUBLE_RECOVERING;
    if (m.well)
        return TROUBLE_ENDING;
    if (!r->complete || r->last_start_ns > t_ns || (m.ready_told && m.ready < r->n))
        return TROUBLE_STARTING;
    if (m.steps_told && m.stepped < r->n)
        return TROUBLE_LOADING;
    return is_saving(h, r, t_ns) ? TROUBLE_SAVING : TROUBLE_TRAINING;
}

/* ---- what ---- */

enum trouble_target trouble_target_of(const struct incident *i) {
    const struct worker *first = i->round ? round_rank(i->round, 0) : NULL;
    if (incident_hits_store(i) || (i->targets_n && str_eq(i->targets[0].what, "store")))
        return TROUBLE_STORE;
    if (i->targets_n > 1)
        return TROUBLE_SEVERAL;
    if (!i->targets_n || !first)
        return TROUBLE_ANOTHER;
    const struct incident_target *t = &i->targets[0];
    bool rank_0 = t->worker ? t->worker->rank == 0 : str_eq(t->node, first->node);
    return rank_0 ? TROUBLE_RANK_0 : TROUBLE_ANOTHER;
}

void trouble_add(struct trouble *t, const struct recorded_run *run) {
    struct incidents is;
    incidents_load(&is, run->history, run->rounds);
    t->runs++;
    for (size_t i = 0; i < is.n; i++)
        for (size_t f = 0; is.v[i]->in_force && f < faults_n; f++)
            if (str_eq(faults[f]->name, is.v[i]->fault))
                t->v[f][trouble_phase_of(run->history, &is, is.v[i])][trouble_target_of(is.v[i])]++;
    incidents_fini(&is);
}

size_t trouble_tried(const struct trouble *t, size_t fault, enum trouble_phase p,
                     enum trouble_target on) {
    size_t n = 0;
    for (int i = 0; i < TROUBLE_PHASES; i++)
        for (int k = 0; k < TROUBLE_TARGETS; k++)
            if ((p == TROUBLE_PHASES || (int)p == i) && (on == TROUBLE_TARGETS || (int)on == k))
                n += t->v[fault][i][k];
    return n;
}

bool trouble_can_be_on(size_t fault, enum trouble_target on) {
    bool store = faults[fault]->targets & TARGET_STORE;
    bool job = faults[fault]->targets & (TARGET_NODE | TARGET_AGENT | TARGET_WORKER | TARGET_RACK);
    return on == TROUBLE_STORE ? store : job;
}
