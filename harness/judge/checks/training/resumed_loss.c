/* Compares the loss behind a resume with that of the same steps before it. */
#include "harness/judge/checks/check.h"
#include "harness/judge/checks/training/ledger.h"

#include <math.h>

static const char broken[] =
    "Resumed loss: a round that resumes goes on with the weights that it had learned.";

/* Of so many steps the mean is taken; and by so much of the first loss it must have fallen before
 * anything can be told by it. */
enum { STEPS_MAX = 3 };
static const double FALLEN_LEAST = 0.3;

struct loss_of_step {
    int round;
    int64_t step, seq;
    double loss; /* mean over the ranks that told one */
};

/* By round and step. */
struct losses {
    struct loss_of_step *v;
    size_t n;
};

static void read_losses(const struct trial *t, struct losses *ret) {
    struct shard_ledger l;
    ledger_read(&l, t);
    *ret = (struct losses){.v = arena_array(t->arena, struct loss_of_step, l.n + 1)};
    for (size_t from = 0, to; from < l.n; from = to) {
        double sum = 0;
        int n = 0;
        to = ledger_group(&l, from);
        for (size_t i = from; i < to; i++) {
            double loss = json_number(record_get(l.v[i].record, "loss"), NAN);
            if (!isfinite(loss))
                continue;
            sum += loss;
            n++;
        }
        if (n)
            ret->v[ret->n++] = (struct loss_of_step){l.v[from].worker->round, l.v[from].step,
                                                     l.v[from].record->seq, sum / n};
    }
}

/* The newest of that step in a round before; NULL: none. */
static const struct loss_of_step *before(const struct losses *l, int round, int64_t step) {
    for (size_t i = l->n; i-- > 0;)
        if (l->v[i].round < round && l->v[i].step == step)
            return &l->v[i];
    return NULL;
}

static const struct loss_of_step *first_of(const struct losses *l, int round) {
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].round == round)
            return &l->v[i];
    return NULL;
}

static bool has_resumed(const struct round *r) {
    for (size_t i = 0; i < r->n; i++)
        if (r->workers[i]->resume_ns && r->workers[i]->resume_step > 0)
            return true;
    return false;
}

static const struct worker *lost_any(const struct round *r) {
    for (size_t i = 0; i < r->n; i++)
        if (r->workers[i]->lost_events)
            return r->workers[i];
    return NULL;
}

/* The same steps before and after, or none: *ret_n of them, with their means. */
struct resumed {
    double was, is;
    int n;
    int64_t from, to, was_seq, is_seq;
};

static struct resumed compare(const struct losses *l, const struct loss_of_step *first) {
    struct resumed s = {.from = first->step, .is_seq = first->seq};
    for (const struct loss_of_step *at = first;
         at < l->v + l->n && at->round == first->round && s.n < STEPS_MAX; at++) {
        const struct loss_of_step *old = before(l, at->round, at->step);
        if (!old)
            break;
        s.was_seq = s.n ? s.was_seq : old->seq;
        s.was += old->loss;
        s.is += at->loss;
        s.to = at->step;
        s.n++;
    }
    s.was /= s.n ? s.n : 1;
    s.is /= s.n ? s.n : 1;
    return s;
}

/* 1: it has gone on; 0: nothing can be told; -1: it has not, and the finding is filled. */
static int judge_round(struct finding *f, const struct losses *l, const struct round *r) {
    const struct loss_of_step *first = first_of(l, r->number), *start = &l->v[0];
    const struct worker *lost = lost_any(r);
    if (!first && lost) {
        finding_prove(f, lost->start_seq);
        finding_unknown(f, broken,
                        "%lld events of rank %d on %s were lost, so no loss of round %d "
                        "is known",
                        (long long)lost->lost_events, lost->rank, lost->node, r->number);
        return -1;
    }
    struct resumed s = first ? compare(l, first) : (struct resumed){0};
    double fallen = start->loss - s.was;
    if (!s.n || fallen < FALLEN_LEAST * fabs(start->loss))
        return 0;
    if (s.is <= s.was + fallen / 2)
        return 1;
    const char *expected = finding_expected(f, "about %.4g, as these steps had before", s.was);
    finding_prove(f, start->seq, s.was_seq, s.is_seq);
    finding_fail(f, broken, expected,
                 "round %d says that it resumed, and its steps %lld to %lld had a loss of %.4g: "
                 "nearer to the %.4g that the job began with",
                 r->number, (long long)s.from, (long long)s.to, s.is, start->loss);
    return -1;
}

static bool judge(const struct trial *t, struct finding *f) {
    struct losses l;
    int judged = 0, resumed = 0;
    read_losses(t, &l);
    if (!l.n)
        return finding_skip(f, "the job tells no loss");
    for (size_t i = 1; i < t->rounds->n; i++) {
        if (!has_resumed(t->rounds->v[i]))
            continue;
        int r = judge_round(f, &l, t->rounds->v[i]);
        if (r < 0)
            return false;
        judged += r;
        resumed++;
    }
    if (judged)
        return finding_pass(f, "%d round%s went on with the loss that the same steps had before",
                            judged, judged == 1 ? "" : "s");
    return finding_skip(f, resumed ? "no step was made again after the loss had fallen far enough"
                                   : "no round says that it resumed");
}

const struct check check_resumed_loss = {
    .name = "resumed_loss",
    .summary = "after a resume the loss is what it was, not what a job begins with",
    .text = "The steps that a round makes again are the same steps: up to three of them are "
            "compared with what they had before, by the mean of the losses that ranks told. A "
            "round that says it resumed, and whose loss is nearer to that of the job's very first "
            "step, has loaded nothing. It is judged once the loss has fallen by three tenths; the "
            "control run need not be asked, so a mistake that it has too is found.",
    .example = "rankquake run scenarios/restart/worker-killed.yaml",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(JOB) | SOURCES(PROBE) | SOURCES(KERNEL),
    .needs_events = NEEDS_STEPS | NEEDS_RESUME,
    .judge = judge,
};
