/* Loads random, and draws a timeline of what it says. */
#include "base/rand.h"
#include "base/str.h"
#include "faults/hazards.h"
#include "harness/scenario/expand/schedule.h"
#include "harness/scenario/load.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>

enum { TOGETHER_MAX = 4 };
static const int64_t SECOND_NS = 1000000000, TOGETHER_NS = 2000000000, MS_NS = 1000000;

struct random_spec {
    int faults;
    const char *weights; /* a name, "" for shares of the file's own */
    struct hazard *v;
    size_t v_n;
    double shape;
    int again, together, inside; /* per cent */
    int64_t every_ns, repair_ns, outage_ns;
};

/* ---- what the file says ---- */

static void refuse_share(struct reader *r, const struct yaml *n, const char *const *names) {
    const char *near = str_nearest(n->key, names);
    diagnostics_add(r->d, n->key_place,
                    "weights: \"%s\" is not a fault that can be drawn%s%s%s; they are %s", n->key,
                    near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "",
                    hit_list(r->arena));
}

static void add_share(struct random_spec *q, const char *fault, double share) {
    q->v[q->v_n++] = (struct hazard){fault, share};
}

static void read_shares(struct reader *r, const struct yaml *n, struct random_spec *q) {
    const char *const *names = hit_names(r->arena);
    int before = r->d->errors;
    q->v = arena_array(r->arena, struct hazard, n->length + 1);
    yaml_each(it, n) {
        struct key share = {.name = it->key, .type = "a whole number", .min = 0, .max = 1000000};
        int64_t v = 0;
        if (!hit_of(it->key))
            refuse_share(r, it, names);
        else if (reader_number(r, &share, it, &v) && v)
            add_share(q, it->key, (double)v);
    }
    if (!q->v_n && r->d->errors == before)
        diagnostics_add(r->d, n->place, "weights: no fault has a share; write {%s: 3}", names[0]);
}

static void read_weights(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct random_spec *q = out;
    const char *names[16];
    size_t count = 0;
    q->v_n = 0;
    q->weights = "";
    if (n->type == YAML_MAP) {
        read_shares(r, n, q);
        return;
    }
    for (; hazards[count].name; count++)
        names[count] = hazards[count].name;
    names[count] = NULL;
    int i = reader_choice(r, k, n, names, NULL);
    if (i < 0)
        return;
    q->weights = names[i];
    q->v = hit_shares(r->arena, &hazards[i]);
    while (q->v[q->v_n].fault)
        q->v_n++;
}

static void read_shape(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    reader_decimal(r, k, n, 0.2, 5, &((struct random_spec *)out)->shape);
}

#define AT(member) .offset = offsetof(struct random_spec, member)

const struct section section_random = {
    "random",
    "Faults drawn by the seed and added after the timeline, each at a time counted from the steady "
    "state. The same seed draws the same faults; `rankquake plan FILE --seed 7` shows them. They "
    "come in bursts, as real ones do, and often hit the node that the last one hit. A lost node "
    "comes back, and there are never fewer nodes than the job needs. A fault whose target is not "
    "there when its time comes waits for it.",
    (const struct key[]){
        {"faults", "a whole number", "10", "How many.", "faults: 12", reader_int, AT(faults),
         .min = 1, .max = 300},
        {"weights", "acme, byterobust, hsdp, llama3, uniform, or a map of faults and numbers",
         "llama3", "How often each fault is drawn: by published counts, or by your own numbers.",
         "weights: {worker-kill: 3, node-poweroff: 1}", read_weights,
         .form = "acme | byterobust | hsdp | llama3 | uniform | <shares>"},
        {"every", "a duration", "5s", "The mean of the gaps between them.", "every: 2s",
         reader_duration, AT(every_ns), .min = 1000000},
        {"shape", "a number from 0.2 to 5", "0.6",
         "Shape of the Weibull distribution of the gaps: below 1 faults come in bursts, 1 is "
         "memoryless, above 1 they are more regular.",
         "shape: 0.6", read_shape, .form = "<decimal>"},
        {"again", "a percentage such as 25%", "25%",
         "How often a fault hits the same node as the one before.", "again: 25%", reader_percent,
         AT(again), .min = 0, .max = 100, .form = "<percent>"},
        {"together", "a percentage such as 5%", "5%",
         "How often the same fault hits two to four nodes within two seconds.", "together: 10%",
         reader_percent, AT(together), .min = 0, .max = 100, .form = "<percent>"},
        {"inside", "a percentage such as 10%", "10%",
         "How often the next fault comes within half a second, while the job still recovers.",
         "inside: 50%", reader_percent, AT(inside), .min = 0, .max = 100, .form = "<percent>"},
        {"repair", "a duration", "5s", "How long until a lost node comes back.", "repair: 10s",
         reader_duration, AT(repair_ns), .min = 1},
        {"outage", "a duration", "3s", "How long a partition or the hang of a worker lasts.",
         "outage: 1s", reader_duration, AT(outage_ns), .min = 1},
        {0},
    },
};

/* ---- drawing ---- */

struct draw {
    const struct random_spec *spec;
    struct schedule schedule;
    struct rand rand;
    int last_node; /* -1: none yet */
    int64_t now_ns;
};

static bool chance(struct draw *w, int percent) {
    return rand_below(&w->rand, 100) < (uint64_t)percent;
}

/* To whole hundredths of a second, so that no mathematical library matters. */
static int64_t draw_gap_ns(struct draw *w) {
    double shape = w->spec->shape, mean = (double)w->spec->every_ns / 1e7;
    double u = rand_unit(&w->rand), near = rand_unit(&w->rand);
    bool inside = chance(w, w->spec->inside);
    double gap = mean / tgamma(1 + 1 / shape) * pow(-log1p(-u), 1 / shape);
    if (inside)
        gap = 5 + near * 45;
    return (int64_t)(gap < 10 ? 10 : gap > 1e9 ? 1e9 : gap) * 10 * MS_NS;
}

/* The nodes on which it can happen now; 0: it cannot. */
static int possible_nodes(const struct draw *w, const char *fault, int *ret) {
    int n = 0;
    for (int i = 0; i < w->schedule.nodes; i++)
        if (!schedule_why_not(&w->schedule, fault, i, w->now_ns))
            ret[n++] = i;
    return n;
}

/* Among what can happen now; NULL: nothing can. */
static const char *draw_fault(struct draw *w, int *nodes) {
    const struct random_spec *q = w->spec;
    double *share = arena_array(w->schedule.r->arena, double, q->v_n + 1), sum = 0;
    double at = rand_unit(&w->rand);
    for (size_t i = 0; i < q->v_n; i++) {
        share[i] = possible_nodes(w, q->v[i].fault, nodes) ? q->v[i].share : 0;
        sum += share[i];
    }
    at *= sum;
    for (size_t i = 0; i < q->v_n && sum > 0; i++) {
        if (share[i] > 0 && at < share[i])
            return q->v[i].fault;
        at -= share[i];
    }
    return NULL;
}

static int64_t lasting_ns(const struct draw *w, const char *fault) {
    return hit_of(fault) == HIT_END ? w->spec->repair_ns : w->spec->outage_ns;
}

static void hit(struct draw *w, const char *fault, int node, int64_t at_ns) {
    int workers = w->schedule.r->s->job.workers_per_node;
    schedule_add(&w->schedule, fault, node, (int)rand_below(&w->rand, (uint64_t)workers), at_ns,
                 lasting_ns(w, fault));
    w->last_node = node;
}

static void hit_others(struct draw *w, const char *fault, int *nodes) {
    uint64_t others = 1 + rand_below(&w->rand, TOGETHER_MAX - 1);
    int64_t began = w->now_ns;
    while (others-- && (int)w->schedule.faults < w->spec->faults) {
        w->now_ns = began + (int64_t)rand_below(&w->rand, (uint64_t)(TOGETHER_NS / MS_NS / 10)) *
                                10 * MS_NS;
        int n = possible_nodes(w, fault, nodes), first = w->last_node;
        if (n)
            hit(w, fault, nodes[rand_below(&w->rand, (uint64_t)n)], w->now_ns);
        w->last_node = first;
    }
    w->now_ns = began;
}

static void draw_one(struct draw *w, int *nodes) {
    w->now_ns += draw_gap_ns(w);
    const char *fault;
    while (!(fault = draw_fault(w, nodes)))
        w->now_ns += SECOND_NS; /* until somebody is back */
    int n = possible_nodes(w, fault, nodes);
    int node = nodes[rand_below(&w->rand, (uint64_t)n)];
    if (chance(w, w->spec->again))
        for (int i = 0; i < n; i++)
            node = nodes[i] == w->last_node ? w->last_node : node;
    hit(w, fault, node, w->now_ns);
    if (chance(w, w->spec->together))
        hit_others(w, fault, nodes);
}

/* Where nothing can ever be drawn, nothing must be waited for. */
static bool check_possible(struct draw *w, int *nodes, struct place p) {
    for (size_t i = 0; i < w->spec->v_n; i++)
        if (possible_nodes(w, w->spec->v[i].fault, nodes))
            return true;
    return diagnostics_add(
        w->schedule.r->d, p,
        "random: none of the faults can happen: %d nodes run and the job needs %d; give "
        "faults on workers a share, or nnodes a smaller least number",
        w->schedule.nodes, w->schedule.least);
}

/* A schedule that would end the job by its budget is a mistake, whatever the seed. */
static bool check_budget(const struct draw *w, struct place p) {
    const struct scenario *s = w->schedule.r->s;
    bool costs = false;
    for (size_t i = 0; i < w->spec->v_n; i++) {
        enum hit h = hit_of(w->spec->v[i].fault);
        costs |= h == HIT_WORKER || h == HIT_HANG;
    }
    if (!costs || w->spec->faults <= s->job.max_restarts || str_eq(s->job.launcher, "template"))
        return true;
    return diagnostics_add(
        w->schedule.r->d, p,
        "random: %d faults may cost a restart each and job.max_restarts is %d; write "
        "max_restarts: %d",
        w->spec->faults, s->job.max_restarts, w->spec->faults);
}

static const char *note_of(const struct draw *w) {
    const struct random_spec *q = w->spec;
    return arena_printf(
        w->schedule.r->arena,
        "%zu faults drawn with seed %" PRIu64 " by the weights %s, one in %g s on average "
        "(Weibull, shape %g), the last at %g s",
        w->schedule.faults, w->schedule.r->s->seed, *q->weights ? q->weights : "of the file",
        (double)q->every_ns / 1e9, q->shape, (double)w->schedule.last_ns / 1e9);
}

void random_read(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct random_spec spec = {0};
    struct draw w = {.spec = &spec, .last_node = -1};
    int before = r->d->errors;
    reader_section(r, &section_random, n, &spec);
    if (r->d->errors > before || r->s->cluster.nodes < 1 || r->s->job.workers_per_node < 1)
        return;
    int *nodes = arena_array(r->arena, int, (size_t)r->s->cluster.nodes + 1);
    if (!schedule_begin(&w.schedule, r, "drawn-", n->key_place))
        return;
    if (!check_budget(&w, n->key_place) || !check_possible(&w, nodes, n->key_place))
        return;
    rand_init(&w.rand, r->s->seed ^ 0x72616e646f6d2d31); /* other draws than the run's */
    while ((int)w.schedule.faults < spec.faults)
        draw_one(&w, nodes);
    schedule_end(&w.schedule, note_of(&w));
}
