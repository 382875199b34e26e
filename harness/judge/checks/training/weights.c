/* Compares the weights that ranks tell with each step, and finds where they part. */
#include "harness/judge/checks/check.h"
#include "harness/judge/checks/training/ledger.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

static const char broken[] =
    "Weights: after every step all ranks have the same, and the right ones.";

/* What the control run told, by step from `first` on. */
struct control_weights {
    const char **v; /* NULL: not told */
    int64_t first, n;
    int64_t seq;
};

static const char *of_control(const struct control_weights *c, int64_t step) {
    return step >= c->first && step - c->first < c->n ? c->v[step - c->first] : NULL;
}

enum { CONTROL_STEPS_MAX = 1 << 22 };

static bool is_control_weights(const struct record *r) {
    return r->source == SOURCE_HARNESS && record_is(r, "control-weights");
}

/* How far the list of that record reaches beyond the first step; 0: it is not believed. */
static int64_t reach(const struct record *r, int64_t first) {
    const struct json *list = record_get(r, "weights");
    int64_t from = record_i64(r, "from", -1);
    if (!list || list->type != JSON_ARRAY || from < first || from - first >= CONTROL_STEPS_MAX)
        return 0;
    int64_t to = from - first + (int64_t)list->length;
    return to <= CONTROL_STEPS_MAX ? to : 0;
}

static void read_control(const struct trial *t, struct control_weights *ret) {
    *ret = (struct control_weights){.first = -1};
    history_each(r, t->history) {
        if (!is_control_weights(r))
            continue;
        ret->first = ret->first < 0 ? record_i64(r, "from", -1) : ret->first;
        ret->seq = ret->seq ? ret->seq : r->seq;
        int64_t to = reach(r, ret->first);
        ret->n = to > ret->n ? to : ret->n;
    }
    ret->v = arena_array(t->arena, const char *, (size_t)ret->n + 1);
    memset(ret->v, 0, ((size_t)ret->n + 1) * sizeof(*ret->v));
    history_each(r, t->history) {
        if (!is_control_weights(r) || !reach(r, ret->first))
            continue;
        int64_t at = record_i64(r, "from", -1) - ret->first;
        json_each(w, record_get(r, "weights")) {
            const char *text = json_string(w, "");
            ret->v[at++] = *text ? text : NULL;
        }
    }
}

/* One step of a round. */
struct weights_of_step {
    const struct ledger_entry *v;
    size_t n;
    const struct round *round;
    const char *control; /* NULL: not told, or nobody asks */
};

static const char *weights_of(const struct ledger_entry *e) {
    return record_text(e->record, "weights");
}

static size_t count_of(const struct weights_of_step *s, const char *weights) {
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += str_eq(weights_of(&s->v[i]), weights);
    return n;
}

static size_t told(const struct weights_of_step *s) {
    return s->n - count_of(s, "");
}

/* What the others are measured by: the control run's where a rank has them, else what most have.
 * NULL: neither. */
static const char *right_of(const struct weights_of_step *s) {
    if (s->control && count_of(s, s->control))
        return s->control;
    for (size_t i = 0; i < s->n; i++)
        if (*weights_of(&s->v[i]) && 2 * count_of(s, weights_of(&s->v[i])) > told(s))
            return weights_of(&s->v[i]);
    return NULL;
}

/* By rank the first that told weights, which are not these (NULL: any); NULL: there is none. */
static const struct ledger_entry *other_than(const struct weights_of_step *s, const char *weights) {
    const struct ledger_entry *found = NULL;
    for (size_t i = 0; i < s->n; i++) {
        const struct ledger_entry *e = &s->v[i];
        if (*weights_of(e) && (!weights || !str_eq(weights_of(e), weights)) &&
            (!found || e->worker->rank < found->worker->rank))
            found = e;
    }
    return found;
}

static bool parts(const struct weights_of_step *s) {
    const struct ledger_entry *first = other_than(s, NULL);
    return first && (other_than(s, weights_of(first)) ||
                     (s->control && !str_eq(weights_of(first), s->control)));
}

static const char *who_has(struct arena *a, const struct ledger_entry *e) {
    return arena_printf(a, "rank %d (%s) has %.64s", e->worker->rank, e->worker->node,
                        weights_of(e));
}

/* "rank 2 (n1) has X, the 3 others Y, as the control run" */
static const char *sentence(const struct trial *t, const struct weights_of_step *s) {
    const char *right = right_of(s);
    const struct ledger_entry *odd = other_than(s, right);
    const char *tail =
        s->control ? arena_printf(t->arena, "; the control run has %.64s", s->control) : "";
    if (!odd && told(s) == 1)
        return arena_printf(t->arena, "%s%s", who_has(t->arena, other_than(s, NULL)), tail);
    if (!odd) /* all alike, and none as the control run */
        return arena_printf(t->arena, "all %zu ranks have %.64s%s", told(s), right, tail);
    if (!right)
        return arena_printf(t->arena, "%s, %s%s", who_has(t->arena, odd),
                            who_has(t->arena, other_than(s, weights_of(odd))), tail);
    size_t same = count_of(s, right), odds = told(s) - same;
    const char *more =
        odds > 1 ? arena_printf(t->arena, " (and %zu more have other ones)", odds - 1) : "";
    const char *others = same == 1 ? "the other" : arena_printf(t->arena, "the other %zu", same);
    if (s->control && str_eq(right, s->control))
        tail = ", as the control run";
    return arena_printf(t->arena, "%s%s, %s %.64s%s", who_has(t->arena, odd), more, others, right,
                        tail);
}

/* What was found on the way through the ledger. */
struct weights_account {
    const struct trial *t;
    struct control_weights control;
    const int64_t *horizons;
    size_t compared, with_control;
    bool between_ranks;                         /* two ranks told weights of one step */
    const struct ledger_entry *first;           /* the first that counts and told weights */
    bool changed;                               /* one told other weights than that */
    const struct ledger_entry *mute;            /* told none with a step of which others did */
    struct weights_of_step parted, void_parted; /* the first; n 0: none */
};

static void take(struct weights_account *a, const struct weights_of_step *s) {
    bool counts = s->v[0].step <= a->horizons[s->round->number - 1];
    size_t n = told(s);
    if (!n)
        return;
    a->between_ranks |= n > 1;
    a->compared += counts;
    a->with_control += counts && s->control;
    if (counts && !a->first)
        a->first = other_than(s, NULL);
    a->changed |= counts && other_than(s, weights_of(a->first));
    for (size_t i = 0; i < s->n && !a->mute; i++)
        if (!*weights_of(&s->v[i]))
            a->mute = &s->v[i];
    struct weights_of_step *first = counts ? &a->parted : &a->void_parted;
    if (!first->n && parts(s))
        *first = *s;
}

static void take_all(struct weights_account *a, const struct shard_ledger *l) {
    bool by_control = a->t->scenario->expect.weights == WEIGHTS_OF_CONTROL;
    for (size_t from = 0, to; from < l->n; from = to) {
        to = ledger_group(l, from);
        struct weights_of_step s = {.v = &l->v[from],
                                    .n = to - from,
                                    .round = a->t->rounds->v[l->v[from].worker->round - 1],
                                    .control = by_control ? of_control(&a->control, l->v[from].step)
                                                          : NULL};
        take(a, &s);
    }
}

static void prove(struct finding *f, const struct weights_account *a,
                  const struct weights_of_step *s) {
    for (size_t i = 0; i < s->n && i < 4; i++)
        finding_prove(f, s->v[i].record->seq);
    finding_prove(f, s->control ? a->control.seq : 0);
}

static bool tell_parted(struct finding *f, const struct weights_account *a) {
    const struct weights_of_step *s = &a->parted;
    prove(f, a, s);
    return finding_fail(f, broken,
                        s->control ? "the control run's weights on all ranks"
                                   : "the same weights on all ranks",
                        "weights differ from step %lld of round %d on: %s", (long long)s->v[0].step,
                        s->round->number, sentence(a->t, s));
}

static bool is_control(const struct trial *t) {
    const struct record *run = history_newest(t->history, SOURCE_HARNESS, "run");
    return run && json_get_bool(run->fields, "control", false);
}

/* Why it is not known; true: it is. */
static bool is_known(struct finding *f, const struct weights_account *a) {
    const struct worker *lost = ledger_lost(a->t);
    bool by_control = a->t->scenario->expect.weights == WEIGHTS_OF_CONTROL && !is_control(a->t);
    if (!a->compared)
        return finding_unknown(f, broken,
                               "no step that counts told its weights, though the job was asked for "
                               "them (rankquake_asked of rankquake.h)");
    if (a->mute)
        return finding_unknown(f, broken, "rank %d on %s did not tell its weights with step %lld",
                               a->mute->worker->rank, a->mute->worker->node,
                               (long long)a->mute->step);
    if (!a->changed && a->compared > 2) {
        finding_prove(f, a->first->record->seq);
        return finding_unknown(f, broken,
                               "%zu steps that count told the same weights, %.64s: either nothing "
                               "is trained, or what is hashed is not what is trained",
                               a->compared, weights_of(a->first));
    }
    if (lost)
        return finding_unknown(f, broken, "%lld events of rank %d on %s were lost",
                               (long long)lost->lost_events, lost->rank, lost->node);
    if (by_control && a->with_control < a->compared)
        return finding_unknown(f, broken, "the control run told the weights of %zu of %zu steps",
                               a->with_control, a->compared);
    return true;
}

static bool judge(const struct trial *t, struct finding *f) {
    struct shard_ledger l;
    struct weights_account a = {.t = t};
    if (!check_sees_rounds(t, f))
        return false;
    ledger_read(&l, t);
    read_control(t, &a.control);
    a.horizons = ledger_horizons(t);
    take_all(&a, &l);
    if (a.parted.n)
        return tell_parted(f, &a);
    if (!is_known(f, &a))
        return false;
    if (!a.between_ranks && !a.with_control)
        return finding_skip(f, "no step was made by two ranks, so nothing can be compared");
    if (a.void_parted.n) {
        const struct weights_of_step *s = &a.void_parted;
        prove(f, &a, s);
        f->loud = true;
        return finding_pass(f,
                            "weights differ from step %lld of round %d on, and none of that is "
                            "in the model: %s",
                            (long long)s->v[0].step, s->round->number, sentence(t, s));
    }
    return finding_pass(f, "%zu steps, after each the same weights on all ranks%s", a.compared,
                        a.with_control ? ", and those of the control run" : "");
}

static const char *idle(const struct scenario *s) {
    return s->expect.weights == WEIGHTS_ANY ? "the scenario does not compare weights" : NULL;
}

const struct check check_weights = {
    .name = "weights",
    .summary = "after each step all ranks have the same weights, and the control run's",
    .text = "expect.weights. The job is asked for a hash of its weights with each step "
            "(rankquake_step_weights of rankquake.h); ranktrain tells it then, and a job of your "
            "own where rankquake_asked says so. same-on-all-ranks compares the ranks of a step "
            "with each other; same-as-undisturbed also with that step of the control run. What "
            "parts is named by its first step and its rank: of several ranks the one that most "
            "others, or the control run, disagree with. Steps that a later round has made void "
            "fail nobody: they are told below the headline. Weights that no step has changed "
            "leave it open.",
    .example = "expect: {weights: same-as-undisturbed}",
    .class = CLASS_EXPECT,
    .sources = SOURCES(JOB) | SOURCES(PROBE),
    .needs_events = NEEDS_STEPS | NEEDS_WEIGHTS,
    .not_applicable = idle,
    .judge = judge,
};
