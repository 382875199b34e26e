/* Counts the steps that each failure took back. */
#include "harness/judge/checks/training/ledger.h"

#include "base/str.h"
#include "faults/effect.h"
#include "harness/judge/checks/check.h"
#include "harness/judge/checks/sorted.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char broken[] =
    "Lost work: a failure costs no more than what lies between two checkpoints.";

/* What a round had to do again: the steps behind the one it resumed from, that were made before. */
struct lost_work_loss {
    int round;
    int64_t from, made, ns;
    int64_t resume_seq;
    bool nothing; /* it began with the step that the job began with, and said nothing of resuming */
};

static int64_t said_resume(const struct round *r) {
    for (size_t i = 0; i < r->n; i++)
        if (r->workers[i]->resume_ns)
            return r->workers[i]->resume_step;
    return -1;
}

/* The step after which a round went on: what it says, or the one before the first that it told, as
 * some say the step that comes next. False: it tells neither. */
static bool went_on_from(const struct round *r, int64_t *ret) {
    int64_t said = said_resume(r), first = round_first_step(r);
    if (said < 0 && first < 0)
        return false;
    *ret = said < 0 || (first >= 0 && first <= said) ? first - 1 : said;
    return true;
}

/* The ledger as it is read from the first round to the last. */
struct lost_work_reading {
    const struct shard_ledger *l;
    const struct ledger_entry **by_step; /* all of it, by step, then by round */
    size_t at;                           /* up to here it has been read */
    int64_t made, made_ns;               /* the highest step until there, when first made */
};

static int by_step(const void *a, const void *b) {
    const struct ledger_entry *x = *(const struct ledger_entry *const *)a;
    const struct ledger_entry *y = *(const struct ledger_entry *const *)b;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    return (x > y) - (x < y);
}

static struct lost_work_reading reading_begin(const struct trial *t, const struct shard_ledger *l) {
    struct lost_work_reading r = {
        .l = l, .by_step = arena_array(t->arena, const struct ledger_entry *, l->n)};
    for (size_t i = 0; i < l->n; i++)
        r.by_step[i] = &l->v[i];
    qsort(r.by_step, l->n, sizeof(*r.by_step), by_step);
    return r;
}

static int64_t step_of(const void *thing) {
    return (*(const struct ledger_entry *const *)thing)->step;
}

/* The first time that this step was made, or NULL. */
static const struct ledger_entry *first_of(const struct lost_work_reading *r, int64_t step) {
    size_t at = lower_bound(r->by_step, r->l->n, sizeof(*r->by_step), step_of, step);
    return at < r->l->n && r->by_step[at]->step == step ? r->by_step[at] : NULL;
}

/* All rounds before that one. */
static void read_until(struct lost_work_reading *r, int round) {
    for (; r->at < r->l->n && r->l->v[r->at].worker->round < round; r->at++) {
        const struct ledger_entry *e = &r->l->v[r->at];
        if (e->step > r->made) {
            r->made = e->step;
            r->made_ns = e->record->t_ns;
        }
    }
}

/* When the work after that step began: when it was made, or when the first round began with it, or
 * at the latest when it told its first step. */
static int64_t begun_ns(const struct lost_work_reading *r, const struct round *first,
                        int64_t from) {
    const struct ledger_entry *e = first_of(r, from);
    if (e)
        return e->record->t_ns;
    for (size_t i = 0; i < first->n; i++)
        if (first->workers[i]->resume_ns && first->workers[i]->resume_step == from)
            return first->workers[i]->resume_ns;
    return from < round_first_step(first) ? first->workers[0]->first_step_ns : 0;
}

/* The highest step of all earlier rounds, and how long after the resumed one it was first made. */
static bool loss_of(struct lost_work_reading *read, const struct rounds *rs, const struct round *r,
                    struct lost_work_loss *ret) {
    int64_t from;
    read_until(read, r->number);
    if (!went_on_from(r, &from) || !read->made)
        return false;
    *ret = (struct lost_work_loss){.round = r->number, .from = from, .made = read->made};
    ret->nothing = said_resume(r) < 0 && from < round_first_step(rs->v[0]);
    ret->resume_seq = r->workers[0]->start_seq;
    int64_t from_ns = begun_ns(read, rs->v[0], from);
    ret->ns = from_ns && read->made_ns > from_ns ? read->made_ns - from_ns : 0;
    return true;
}

/* Steps between two checkpoints, as the job's own command line says; 0: not known. */
static int64_t interval(const struct job_spec *job) {
    static const char option[] = "--checkpoint-every";
    int64_t steps = 0;
    for (size_t i = 0; i < job->run_n; i++) {
        if (!str_starts(job->run[i], option))
            continue;
        const char *value = job->run[i] + strlen(option);
        if (*value == '=')
            str_to_i64(value + 1, 1, INT64_MAX, &steps);
        else if (!*value && i + 1 < job->run_n)
            str_to_i64(job->run[i + 1], 1, INT64_MAX, &steps);
    }
    return steps;
}

/* What the scenario itself allows. */
static bool more_than_asked(const struct trial *t, struct finding *f,
                            const struct lost_work_loss *l) {
    const struct expect *e = &t->scenario->expect;
    int64_t steps = l->made - l->from;
    char expected[200];
    if (e->lost_steps && steps > e->lost_steps)
        snprintf(expected, sizeof(expected), "lost_work: %lld", (long long)e->lost_steps);
    else if (e->lost_ns && l->ns > e->lost_ns)
        snprintf(expected, sizeof(expected), "lost_work: %g s", (double)e->lost_ns / 1e9);
    else
        return false;
    finding_fail(f, broken, expected, "round %d made %lld steps again, %.2f s of work", l->round,
                 (long long)steps, (double)l->ns / 1e9);
    finding_prove(f, l->resume_seq);
    return true;
}

/* A checkpoint that lay in between may have been damaged, or not written. */
static bool disk_failed(const struct trial *t, const struct lost_work_loss *l) {
    const struct round *before = l->round > 1 ? t->rounds->v[l->round - 2] : NULL;
    const struct record *resume = history_record(t->history, l->resume_seq);
    return before && resume && check_disk_fault(t, before->first_start_ns, resume->t_ns);
}

static bool too_much(const struct trial *t, struct finding *f, const struct lost_work_loss *l) {
    int64_t most = interval(&t->scenario->job);
    if (!most || l->made - l->from <= most || disk_failed(t, l))
        return false;
    const char *expected = finding_expected(
        f, "at most %lld steps made again, as there is a checkpoint every %lld steps",
        (long long)most, (long long)most);
    finding_fail(f, broken, expected,
                 "round %d resumed from step %lld when step %lld had been made: %lld steps, %.1f s",
                 l->round, (long long)l->from, (long long)l->made, (long long)(l->made - l->from),
                 (double)l->ns / 1e9);
    finding_prove(f, l->resume_seq);
    return true;
}

/* A scheduler starts the next attempt where it likes. What lies on a disk of a node's own is read by
 * nobody here, so the job's own word counts: that it had committed a later step. */
static bool left_behind(const struct trial *t, struct finding *f, const struct lost_work_loss *l) {
    const struct scenario *s = t->scenario;
    const struct record *commit = s->cluster.scheduler && check_no_checkpoints(s)
                                      ? check_commit_before(t, l->resume_seq)
                                      : NULL;
    int64_t step = commit ? record_i64(commit, "step", 0) : 0;
    if (!commit || step <= l->from || disk_failed(t, l))
        return false;
    finding_fail(
        f, broken,
        finding_expected(f, "step %lld, which the job had called committed", (long long)step),
        "round %d resumed from step %lld, and step %lld had been committed on %.60s: its "
        "checkpoints lie where the next attempt does not find them, as on a node's own disk",
        l->round, (long long)l->from, (long long)step, commit->node);
    finding_prove(f, commit->seq, l->resume_seq);
    return true;
}

/* Some count what a process has made, and begin with the first number again though they resume.
 * Who began with it and came as far as the control run has made everything again. */
static bool counts_anew(const struct trial *t, const struct lost_work_loss *l) {
    const struct record *control = history_newest(t->history, SOURCE_HARNESS, "control");
    const struct rounds *rs = t->rounds;
    int64_t all = control ? record_i64(control, "last_step", -1) : -1, reached = -1;
    for (size_t i = (size_t)l->round - 1; i < rs->n; i++)
        for (size_t k = 0; k < rs->v[i]->n; k++)
            if (rs->v[i]->workers[k]->last_step > reached)
                reached = rs->v[i]->workers[k]->last_step;
    return all < 0 || reached < all;
}

/* What was asked for is answered, if only by what is not known. */
static bool tell_unseen(const struct trial *t, struct finding *f, const struct lost_work_loss *l) {
    const struct expect *e = &t->scenario->expect;
    bool asked = e->lost_steps || e->lost_ns;
    f->loud = l->round;
    if (!asked && l->round)
        return finding_skip(f,
                            "nothing was resumed, as far as the job says: round %d began with step "
                            "%lld, as the job had begun, after step %lld had been made",
                            l->round, (long long)l->from + 1, (long long)l->made);
    if (!asked)
        return finding_skip(f, "nothing was resumed, as far as the job says");
    if (t->rounds->n < 2)
        return finding_pass(f, "there was one round, and no step was made again");
    if (!l->round)
        return finding_unknown(f, broken,
                               "no later round said where it resumed or which steps it made; tell "
                               "it by observe.resume or observe.step");
    finding_prove(f, l->resume_seq);
    return finding_unknown(f, broken,
                           "round %d began with step %lld and said nothing of resuming: either it "
                           "began from nothing, or each process counts its own steps, or "
                           "observe.resume does not match what it says",
                           l->round, (long long)l->from + 1);
}

/* Nobody is left to tell how far the round had come. */
static bool events_were_lost(struct finding *f, const struct rounds *rs) {
    for (size_t i = 0; i + 1 < rs->n; i++) {
        const struct round *r = rs->v[i];
        size_t lossy = 0;
        for (size_t k = 0; k < r->n; k++)
            lossy += r->workers[k]->lost_events > 0;
        if (lossy < r->n)
            continue;
        finding_unknown(f, broken,
                        "events of every worker of round %d were lost, so it may have made more "
                        "steps than it told",
                        r->number);
        finding_prove(f, r->workers[0]->start_seq);
        return true;
    }
    return false;
}

/* All that was made again, over all rounds. */
struct lost_work_sum {
    int times, nothing; /* nothing: the last round that began from nothing; 0: none did */
    int64_t steps, ns;
    struct lost_work_loss unclear;
    const char *unsaved; /* who was asked to leave, and what was lost all the same; NULL: nobody */
};

/* Who is asked to leave has time to save, so that it costs nothing: more than the step that was on
 * its way is told. */
static const char *unsaved(const struct trial *t, const struct lost_work_loss *l) {
    int64_t steps = l->made - l->from;
    for (size_t i = 0; steps > 1 && !l->nothing && i < t->incidents->n; i++) {
        const struct incident *in = t->incidents->v[i];
        if (in->in_force && incident_has(in, EFFECT_ASKS_TO_LEAVE) && in->targets_n && in->round &&
            in->round->number == l->round - 1)
            return arena_printf(t->arena,
                                "; %.40s was asked to leave in round %d, and nobody saved "
                                "its last %lld steps",
                                in->targets[0].name, in->round->number, (long long)steps);
    }
    return NULL;
}

static bool pass_sum(struct finding *f, const struct lost_work_sum *sum) {
    char nothing[80] = "";
    f->loud = sum->nothing || sum->unsaved;
    if (sum->nothing)
        snprintf(nothing, sizeof(nothing), "; round %d began from nothing", sum->nothing);
    return finding_pass(f, "%lld step%s made again in %d resume%s, %.2f s of work%s%s",
                        (long long)sum->steps, sum->steps == 1 ? "" : "s", sum->times,
                        sum->times == 1 ? "" : "s", (double)sum->ns / 1e9, nothing,
                        sum->unsaved ? sum->unsaved : "");
}

static bool judge_ledger(const struct trial *t, struct finding *f, struct lost_work_reading *read) {
    struct lost_work_sum sum = {0};
    for (size_t i = 0; i < t->rounds->n; i++) {
        struct lost_work_loss one;
        if (!loss_of(read, t->rounds, t->rounds->v[i], &one))
            continue;
        if (one.nothing && counts_anew(t, &one)) {
            sum.unclear = one;
            continue;
        }
        if (too_much(t, f, &one) || more_than_asked(t, f, &one) || left_behind(t, f, &one))
            return false;
        sum.times++;
        sum.unsaved = sum.unsaved ? sum.unsaved : unsaved(t, &one);
        sum.nothing = one.nothing ? one.round : sum.nothing;
        sum.steps += one.made > one.from ? one.made - one.from : 0;
        sum.ns += one.ns;
    }
    if (!sum.times || sum.unclear.round)
        return tell_unseen(t, f, &sum.unclear);
    return !events_were_lost(f, t->rounds) && pass_sum(f, &sum);
}

static bool judge(const struct trial *t, struct finding *f) {
    struct shard_ledger l;
    ledger_read(&l, t);
    struct lost_work_reading read = reading_begin(t, &l);
    return judge_ledger(t, f, &read);
}

const struct check check_lost_work = {
    .name = "lost_work",
    .summary = "no failure costs more steps than lie between two checkpoints",
    .text =
        "The steps that a round makes again because it resumes from an older checkpoint, and the "
        "time they had taken. Where the job's command line says --checkpoint-every, a resume "
        "that costs more is a failure: checkpoints were not written when they should have been, "
        "unless a fault on the disk was in force since the round before began. "
        "A round that says nothing of resuming went on behind the step before the first that it "
        "tells; if that is the job's first, and it comes as far as the control run, it began from "
        "nothing. Where an agent was asked to leave and more than one step was made again, nobody "
        "has saved in the time that was given for it: that is told below the headline. "
        "Under a scheduler, where no shared directory of checkpoints is named, an attempt that "
        "goes "
        "on from an older step than the job has called committed is a failure: they lay on a "
        "node's "
        "own disk. expect.lost_work allows less, in steps (or epochs, where the job counts those) "
        "or time.",
    .example = "rankquake run scenarios/restart/worker-killed.yaml",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(PROBE) | SOURCES(KERNEL) | SOURCES(JOB),
    .needs_events = NEEDS_STEPS | NEEDS_RESUME,
    .judge = judge,
};
