/* Replays the steps of all rounds and counts what is in the final weights. */
#include "harness/judge/checks/check.h"
#include "harness/judge/checks/training/ledger.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

static const char broken[] = "Exactly once: over all rounds every step counts once in the end.";

/* What is left of the ledger when the rounds are over. */
struct exactly_once_account {
    const struct trial *t;
    const struct shard_ledger *l;
    const int64_t *horizons; /* ledger_horizons */
    int64_t next;            /* the step that must count next; 0: any */
    int64_t last;            /* that counted last */
    int64_t counted, voided, vouched;
    const struct record *newest;
};

static const struct worker *absent(const struct round *r, const struct ledger_entry *v, size_t n) {
    for (size_t i = 0; i < r->n; i++) {
        bool there = false;
        for (size_t k = 0; k < n && !there; k++)
            there = v[k].worker == r->workers[i];
        if (!there)
            return r->workers[i];
    }
    return NULL;
}

/* One step that counts. Who died while making it may have counted without saying so; then the
 * checkpoint from which the next round began vouches for it. */
static bool take_step(struct exactly_once_account *a, struct finding *f, const struct round *r,
                      const struct ledger_entry *v, size_t n) {
    int64_t step = v[0].step;
    const struct worker *w = absent(r, v, n);
    a->newest = v[0].record;
    finding_prove(f, v[0].record->seq);
    if (a->next && step != a->next)
        return finding_fail(f, broken, "the steps that count follow each other",
                            "step %lld of round %d counts after step %lld: %s", (long long)step,
                            r->number, (long long)a->last,
                            step > a->next ? "those between were made void or never made"
                                           : "it counts twice");
    if (w && w->lost_events)
        return finding_unknown(f, broken, "%lld events of rank %d on %s were lost",
                               (long long)w->lost_events, w->rank, w->node);
    if (w && a->horizons[r->number - 1] == INT64_MAX && round_ended_well(r))
        return finding_fail(f, broken, "every rank's part of every step that counts",
                            "step %lld of round %d lacks the part of rank %d on %s",
                            (long long)step, r->number, w->rank, w->node);
    f->evidence[0] = 0;
    a->vouched += w != NULL;
    a->counted++;
    a->last = step;
    a->next = step + 1;
    return true;
}

static bool take_rounds(struct exactly_once_account *a, struct finding *f) {
    const struct shard_ledger *l = a->l;
    for (size_t from = 0, to; from < l->n; from = to) {
        const struct round *r = a->t->rounds->v[l->v[from].worker->round - 1];
        to = ledger_group(l, from);
        if (l->v[from].step > a->horizons[r->number - 1])
            a->voided++;
        else if (!take_step(a, f, r, &l->v[from], to - from))
            return false;
    }
    return true;
}

/* --steps of the job's own command line, else what the control run made; 0: not known. */
static int64_t steps_in_all(const struct trial *t) {
    static const char option[] = "--steps=";
    const struct record *control = history_newest(t->history, SOURCE_HARNESS, "control");
    int64_t steps = 0;
    for (size_t i = 0; i < t->scenario->job.run_n; i++)
        if (str_starts(t->scenario->job.run[i], option))
            str_to_i64(t->scenario->job.run[i] + strlen(option), 1, INT64_MAX, &steps);
    return steps || !control ? steps : record_i64(control, "last_step", 0);
}

static bool judge_total(const struct exactly_once_account *a, struct finding *f) {
    int64_t all = steps_in_all(a->t);
    const struct round *last = a->t->rounds->v[a->t->rounds->n - 1];
    char vouched[80] = "";
    if (all > 0 && round_ended_well(last) && a->last != all) {
        const char *expected =
            finding_expected(f, "%lld steps, as the control run makes", (long long)all);
        finding_fail(f, broken, expected, "all workers ended well, and step %lld was the last",
                     (long long)a->last);
        finding_prove(f, a->newest ? a->newest->seq : 0);
        return false;
    }
    if (a->vouched)
        snprintf(vouched, sizeof(vouched), "; for %lld the checkpoint vouches",
                 (long long)a->vouched);
    return finding_pass(f, "%lld steps count, each once; %lld that were made again do not%s",
                        (long long)a->counted, (long long)a->voided, vouched);
}

/* ---- of a job that tells its steps, and not who made what of them ---- */

static bool grew_or_shrank(const struct rounds *rs) {
    for (size_t i = 1; i < rs->n; i++)
        if (rs->v[i]->complete && rs->v[i]->world_size != rs->v[0]->world_size)
            return true;
    return false;
}

/* Something that the last round told may not have come here. */
static bool has_gaps(const struct trial *t, const struct round *last) {
    for (size_t i = 0; i < last->n; i++)
        if (last->workers[i]->lost_events)
            return true;
    return t->rounds->printed && check_output_has_gaps(t->history);
}

/* Some tell each step, some every tenth: the most that lay between two. 0: not known. */
static int64_t stride_of(const struct shard_ledger *l) {
    int64_t widest = 0;
    for (size_t i = 1; i < l->n; i++)
        if (l->v[i].worker->round == l->v[i - 1].worker->round &&
            l->v[i].step - l->v[i - 1].step > widest)
            widest = l->v[i].step - l->v[i - 1].step;
    return widest;
}

/* How far the job has come by all that was told. A last round that told no step had none to make,
 * or so it says where it began. */
static int64_t came_to(const struct shard_ledger *l, const struct round *last) {
    const struct ledger_entry *newest = &l->v[l->n - 1];
    int64_t step = newest->step;
    for (size_t i = 0; i < last->n && newest->worker->round != last->number; i++)
        if (last->workers[i]->resume_ns && last->workers[i]->resume_step > step)
            step = last->workers[i]->resume_step;
    return step;
}

/* A later round begins with the number that the control run began with: some count what this
 * process has made, and that does not say how far the job has come. */
static bool counts_anew(const struct rounds *rs, const struct record *control) {
    const struct round *last = rs->v[rs->n - 1];
    for (size_t i = 0; i < last->n && rs->n > 1; i++)
        if (last->workers[i]->first_step_ns &&
            last->workers[i]->first_step <= record_i64(control, "first_step", -1))
            return true;
    return false;
}

/* It ends well, and long before the control run did. Another number of workers may need
 * another number of steps. */
static bool ends_early(const struct exactly_once_account *a, struct finding *f) {
    const struct rounds *rs = a->t->rounds;
    const struct round *last = rs->v[rs->n - 1];
    const struct record *control = history_newest(a->t->history, SOURCE_HARNESS, "control");
    int64_t all = control ? record_i64(control, "last_step", -1) : -1;
    int64_t stride = stride_of(a->l), step = came_to(a->l, last);
    if (all < 0 || !stride || step > all - stride || !round_ended_well(last) ||
        grew_or_shrank(rs) || counts_anew(rs, control) || has_gaps(a->t, last))
        return false;
    const char *expected =
        finding_expected(f, "step %lld, which the control run reached", (long long)all);
    finding_fail(f, broken, expected,
                 "all workers of round %d ended well, and step %lld was the last", last->number,
                 (long long)step);
    finding_prove(f, a->l->v[a->l->n - 1].record->seq, last->workers[0]->exit_seq);
    return true;
}

/* ---- a step that is made again after its own commit, or left out ---- */

/* What the same process told of that step before it called it committed; NULL: nothing. Some mean
 * by "committed 30" that step 30 is in it, others that 30 comes next. */
static const struct record *told_before(const struct trial *t, const struct record *commit) {
    const struct record *told = NULL;
    int64_t step = record_i64(commit, "step", -1);
    history_each(r, t->history) {
        if (r->seq >= commit->seq)
            break;
        if (r->source == SOURCE_JOB && record_is(r, "step") && r->pid == commit->pid &&
            record_i64(r, "step", -1) == step)
            told = r;
    }
    return told;
}

/* Where the round says that it resumes from another one, its commit is not the newest. */
static bool resumes_from(const struct round *r, int64_t step) {
    for (size_t i = 0; i < r->n; i++)
        if (r->workers[i]->resume_ns && r->workers[i]->resume_step != step &&
            r->workers[i]->resume_step != step + 1)
            return false;
    return true;
}

/* A loss is known when a step is over; a line without one may have come before it. */
static bool repeats_commit(const struct exactly_once_account *a, struct finding *f,
                           const struct round *r) {
    const struct record *commit = check_commit_before(a->t, r->workers[0]->start_seq);
    const struct record *told = commit ? told_before(a->t, commit) : NULL;
    int64_t step = commit ? record_i64(commit, "step", -1) : -1;
    if (!told || round_first_step(r) != step || !resumes_from(r, step))
        return false;
    finding_prove(f, told->seq, commit->seq, r->workers[0]->start_seq);
    if (record_get(told, "loss"))
        return finding_fail(f, broken, "a step is not made again after its own commit",
                            "round %d made step %lld again: it was over, and then committed, "
                            "before",
                            r->number, (long long)step),
               true;
    return finding_unknown(f, broken,
                           "round %d began with step %lld, which was told and then committed "
                           "before: either it is made twice, or its line comes before its work "
                           "and the commit is of the step before; tell its loss by observe.loss",
                           r->number, (long long)step),
           true;
}

static bool any_repeats_commit(const struct exactly_once_account *a, struct finding *f) {
    const struct rounds *rs = a->t->rounds;
    if (stride_of(a->l) != 1)
        return false;
    for (size_t i = 1; i < rs->n; i++)
        if (!has_gaps(a->t, rs->v[i - 1]) && repeats_commit(a, f, rs->v[i]))
            return true;
    return false;
}

static bool judge(const struct trial *t, struct finding *f) {
    struct shard_ledger l;
    ledger_read(&l, t);
    struct exactly_once_account a = {.t = t, .l = &l, .horizons = ledger_horizons(t)};
    if (!l.n)
        return finding_skip(f, "the job reports no steps");
    if (l.shards)
        return take_rounds(&a, f) && judge_total(&a, f);
    return !ends_early(&a, f) && !any_repeats_commit(&a, f) &&
           finding_skip(f, "the job does not say which shards its steps count");
}

const struct check check_exactly_once = {
    .name = "exactly_once",
    .summary = "over all rounds every step counts exactly once in the end",
    .text =
        "A round that resumes from step R makes void what was made after R; what is left of the "
        "ledger over all rounds must be every step once, each with the part of every rank, from "
        "the first to the last that the control run makes. An epoch that is repeated on "
        "resume, or skipped, or a job that ends early and calls it success, shows here also "
        "where models are not compared. Of a job that tells its steps without their shards only "
        "the last is judged: it fails when all end well before the control run's; and where each "
        "step is told, that none is made again after its own commit. Whether commit 30 says that "
        "step 30 is in it or comes next follows from which of the two was told first.",
    .example = "rankquake run scenarios/membership/node-joins.yaml",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(JOB) | SOURCES(PROBE) | SOURCES(KERNEL),
    .needs_events = NEEDS_STEPS | NEEDS_SHARDS,
    .judge = judge,
};
