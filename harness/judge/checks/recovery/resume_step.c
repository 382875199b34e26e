/* Compares where each round resumed with the checkpoints that lay on disk. */
#include "harness/judge/checks/check.h"

#include "base/str.h"

#include <string.h>

#define DIGITS "0123456789"

static const char broken[] = "Resume: a round goes on from the newest complete checkpoint.";

/* The last look at the directory after each round, and before the first, as those say that looked:
 * by round. */
static const struct record **find_looks(const struct trial *t) {
    const struct rounds *rs = t->rounds;
    const struct record **looks = arena_array(t->arena, const struct record *, rs->n + 1);
    history_each(r, t->history) {
        int64_t of = r->source == SOURCE_DISK && record_is(r, "checkpoints")
                         ? record_i64(r, "round", -1)
                         : -1;
        if (of >= 0 && of <= (int64_t)rs->n)
            looks[of] = r;
    }
    return looks;
}

/* The newest complete one, counted by the check itself: 0 means from the beginning. */
static int64_t newest_complete(const struct record *disk) {
    int64_t newest = 0;
    json_each(c, record_get(disk, "complete")) {
        int64_t step = json_get_i64(c, "step", 0);
        newest = step > newest ? step : newest;
    }
    return newest;
}

/* The one of this step that lies there, and is not complete; NULL: none does. */
static const struct json *damaged_of(const struct record *disk, int64_t step) {
    json_each(d, record_get(disk, "damaged")) {
        const char *path = json_get_string(d, "path", ""), *digits = path + strcspn(path, DIGITS);
        int64_t of = -1;
        if (str_to_i64(digits, 0, INT64_MAX, &of) && of == step)
            return d;
    }
    return NULL;
}

static bool is_complete(const struct record *disk, int64_t step) {
    json_each(c, record_get(disk, "complete")) if (json_get_i64(c, "step", 0) == step) return true;
    return false;
}

/* Another rank of its round, which goes on from another step: whatever the disk has shown to each, the
 * ranks have not agreed. */
static const struct worker *apart_from(const struct trial *t, const struct worker *w) {
    for (size_t i = 0; i < t->rounds->workers_n; i++) {
        const struct worker *o = t->rounds->workers[i];
        if (o->round == w->round && o->resume_ns && o->resume_step != w->resume_step)
            return o;
    }
    return NULL;
}

/* A fault on the disk since the round before began may have damaged the newest where the reader does
 * not look, or what points at it: an older one is as good. */
static bool passed_over(const struct trial *t, const struct worker *w, const struct record *disk) {
    const struct round *before = w->round > 1 ? t->rounds->v[w->round - 2] : NULL;
    return before && is_complete(disk, w->resume_step) &&
           check_disk_fault(t, before->first_start_ns, w->resume_ns);
}

/* After the last look a fault has changed what lies there. */
static bool tell_changed(const struct trial *t, struct finding *f, const struct worker *w,
                         const struct record *disk, int64_t newest) {
    const struct record *fault =
        check_disk_fault(t, disk->t_ns, w->resume_ns ? w->resume_ns : w->first_step_ns);
    if (!fault)
        return false;
    finding_prove(f, disk->seq, fault->seq, w->start_seq);
    finding_unknown(f, broken,
                    "rank %d on %s of round %d resumed from step %lld; step %lld was complete when "
                    "the directory was read, and after that %.40s (%.40s) was in force",
                    w->rank, w->node, w->round, (long long)w->resume_step, (long long)newest,
                    record_text(fault, "id"), record_text(fault, "fault"));
    return true;
}

static bool job_says(const struct rounds *rs) {
    for (size_t i = 0; i < rs->workers_n; i++)
        if (rs->workers[i]->resume_ns)
            return true;
    return false;
}

/* A worker whose output says nothing of a resume began from nothing, unless the first step that it
 * told lies behind the newest checkpoint. It is accused only when the expression for a resume has
 * shown that it can match. */
static bool judge_silent(const struct trial *t, struct finding *f, const struct worker *w,
                         const struct record *disk) {
    int64_t newest = newest_complete(disk);
    if (!newest || w->first_step > newest)
        return true;
    const char *expected = finding_expected(f, "step %lld, the newest complete checkpoint in %s",
                                            (long long)newest, record_text(disk, "dir"));
    finding_prove(f, disk->seq, w->start_seq);
    if (job_says(t->rounds) && !check_output_has_gaps(t->history))
        return finding_fail(
            f, broken, expected,
            "rank %d on %s of round %d said nothing of resuming and began with step %lld", w->rank,
            w->node, w->round, (long long)w->first_step);
    return finding_unknown(
        f, broken,
        "rank %d on %s of round %d began with step %lld although step %lld was "
        "complete: either it began anew, or observe.resume does not match what it "
        "says",
        w->rank, w->node, w->round, (long long)w->first_step, (long long)newest);
}

static bool tell_unlisted(const struct trial *t, struct finding *f, const struct record *disk) {
    finding_unknown(f, broken, "job.checkpoint.complete (%.80s) did not say what is complete: %s",
                    t->scenario->job.checkpoint_complete ? t->scenario->job.checkpoint_complete
                                                         : "",
                    record_text(disk, "error"));
    str_copy(f->where, sizeof(f->where), "logs/checkpoints.log");
    finding_prove(f, disk->seq);
    return false;
}

/* Of a format that nobody has told us nothing is found, however much is there. */
static bool tell_unrecognised(struct finding *f, const struct worker *w,
                              const struct record *disk) {
    finding_prove(f, disk->seq, w->start_seq);
    return finding_unknown(
        f, broken,
        "rank %d on %s of round %d resumed from step %lld, but no checkpoint was "
        "recognised in %.100s; say what a complete one is by job.checkpoint.complete",
        w->rank, w->node, w->round, (long long)w->resume_step, record_text(disk, "dir"));
}

/* It begins where the job began, after a commit of which nothing complete is there. */
static const struct record *lost_all(const struct trial *t, const struct worker *w,
                                     const struct record *disk) {
    const struct worker *first = t->rounds->workers[0];
    bool begins =
        w->resume_ns ? w->resume_step <= 0 : w->first_step_ns && w->first_step <= first->first_step;
    return w->round > 1 && begins && !newest_complete(disk) ? check_commit_before(t, w->start_seq)
                                                            : NULL;
}

static bool tell_all_lost(struct finding *f, const struct worker *w, const struct record *commit,
                          const struct record *disk) {
    const char *torn = json_get_string(json_first(record_get(disk, "damaged")), "path", "");
    finding_prove(f, commit->seq, disk->seq, w->start_seq);
    return finding_unknown(
        f, broken,
        "rank %d on %s of round %d began from nothing although step %lld had been called "
        "committed: nothing complete was found in %.100s%s%s; if something was there, say what is "
        "complete by job.checkpoint.complete",
        w->rank, w->node, w->round, (long long)record_i64(commit, "step", 0),
        record_text(disk, "dir"), *torn ? ", damaged: " : "", torn);
}

/* "Resuming at epoch 5" behind a complete epoch 4 names the one that comes next, and makes it. */
static bool says_next(const struct rounds *rs, const struct worker *w, int64_t newest) {
    return rs->printed && newest > 0 && w->resume_step == newest + 1 &&
           w->first_step == w->resume_step;
}

/* disk: the last look before its round; NULL: there was none. */
static bool judge_worker(const struct trial *t, struct finding *f, const struct worker *w,
                         const struct record *disk) {
    if (!w->resume_ns && !w->first_step_ns)
        return true; /* it ended before it came to that */
    if (disk && *record_text(disk, "error"))
        return tell_unlisted(t, f, disk);
    const struct record *commit = disk ? lost_all(t, w, disk) : NULL;
    if (commit)
        return tell_all_lost(f, w, commit, disk);
    if (!w->resume_ns && disk && t->rounds->printed)
        return judge_silent(t, f, w, disk);
    if (!w->resume_ns || !disk) {
        finding_prove(f, w->start_seq);
        return finding_unknown(
            f, broken,
            disk ? "rank %d on %s of round %d did not say where it resumed"
                 : "rank %d on %s resumed, but nobody read the directory before round "
                   "%d",
            w->rank, w->node, w->round);
    }
    int64_t newest = newest_complete(disk);
    if (w->resume_step == newest || says_next(t->rounds, w, newest))
        return true;
    if (!check_knows_checkpoints(t))
        return tell_unrecognised(f, w, disk);
    const struct worker *other = apart_from(t, w);
    if (!other && w->resume_step < newest && passed_over(t, w, disk))
        return true;
    if (!other && tell_changed(t, f, w, disk, newest))
        return false;
    const struct json *torn = damaged_of(disk, w->resume_step);
    const char *expected = finding_expected(f, "step %lld, the newest complete checkpoint in %s",
                                            (long long)newest, record_text(disk, "dir"));
    finding_prove(f, disk->seq, w->start_seq);
    return finding_fail(f, broken, expected,
                        "rank %d on %s of round %d resumed from step %lld%s%.120s", w->rank,
                        w->node, w->round, (long long)w->resume_step,
                        torn                      ? ", which is damaged: "
                        : w->resume_step > newest ? ", which is not there"
                        : other                   ? ", and others from another"
                                                  : "",
                        torn ? json_get_string(torn, "why", "") : "");
}

static bool judge_workers(const struct trial *t, struct finding *f) {
    const struct rounds *rs = t->rounds;
    const struct record **looks = find_looks(t);
    for (size_t i = 0; i < rs->workers_n; i++)
        if (!judge_worker(t, f, rs->workers[i], looks[rs->workers[i]->round - 1]))
            return false;
    return true;
}

static bool went_on(const struct round *r) {
    for (size_t i = 0; i < r->n; i++)
        if (r->workers[i]->resume_ns || r->workers[i]->first_step_ns)
            return true;
    return false;
}

/* Since a fault on the disk no round has come to a step, and the job is over: it does not do without
 * what is damaged, although there is something older. */
static bool tell_stuck(const struct trial *t, struct finding *f) {
    const struct rounds *rs = t->rounds;
    const struct round *last = rs->v[rs->n - 1];
    const struct record *end = history_newest(t->history, SOURCE_HARNESS, "job-end"), *fault;
    const struct record *disk = find_looks(t)[rs->n - 1];
    size_t first = rs->n;
    while (first > 0 && !went_on(rs->v[first - 1]))
        first--;
    if (first == rs->n || !first || !end || !str_eq(record_text(end, "why"), "ended") ||
        !job_says(rs) || !disk || !newest_complete(disk))
        return false;
    fault = check_disk_fault(t, rs->v[first - 1]->first_start_ns, rs->v[first]->first_start_ns);
    if (!fault)
        return false;
    finding_prove(f, fault->seq, disk->seq, last->workers[0]->start_seq);
    finding_fail(
        f, broken,
        finding_expected(f, "step %lld, the newest complete checkpoint in %s",
                         (long long)newest_complete(disk), record_text(disk, "dir")),
        "since %.40s (%.40s) no round has resumed: round %d is the last, and rank %d on %s "
        "made no step",
        record_text(fault, "id"), record_text(fault, "fault"), last->number, last->workers[0]->rank,
        last->workers[0]->node);
    return true;
}

static bool any_began(const struct rounds *rs) {
    for (size_t i = 0; i < rs->workers_n; i++)
        if (rs->workers[i]->resume_ns || rs->workers[i]->first_step_ns)
            return true;
    return false;
}

/* What its workers say, else what the first of them must have. */
static int64_t resumed(const struct round *r) {
    for (size_t i = 0; i < r->n; i++)
        if (r->workers[i]->resume_ns)
            return r->workers[i]->resume_step;
    return r->workers[0]->first_step > 0 ? r->workers[0]->first_step - 1 : 0;
}

static bool judge(const struct trial *t, struct finding *f) {
    const struct rounds *rs = t->rounds;
    if (!check_sees_rounds(t, f))
        return false;
    if (!job_says(rs) && !scenario_observes(t->scenario, "resume"))
        return finding_skip(f, "the job does not say where it resumes");
    if (!any_began(rs))
        return finding_unknown(f, broken, "no worker made a step or said where it resumed");
    return judge_workers(t, f) && !tell_stuck(t, f) &&
           finding_pass(
               f,
               "all rounds went on from the newest complete checkpoint (round %d from step "
               "%lld)",
               rs->v[rs->n - 1]->number, (long long)resumed(rs->v[rs->n - 1]));
}

const struct check check_resume_step = {
    .name = "resume_step",
    .summary = "every round resumes from the newest complete checkpoint on disk",
    .text = "When the last worker of a round is dead, the harness reads the checkpoint directory "
            "itself and notes what is complete, and once more before the next round begins where "
            "something in it has changed. What the job says about where it resumed must "
            "agree with that, on every rank. It knows ranktrain's format; of any other, "
            "job.checkpoint.complete must say what is complete, else a resume is left open. Who "
            "prints the step that comes next, and makes it, goes on from the one before. When a "
            "fault on the disk comes after the reading, what follows is left open; when since one "
            "no round makes a step, though something older is complete, that is a failure.",
    .example = "rankquake run scenarios/restart/worker-killed.yaml",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(DISK) | SOURCES(JOB) | SOURCES(PROBE),
    .needs_events = NEEDS_RESUME,
    .not_applicable = check_no_checkpoints,
    .judge = judge,
};
