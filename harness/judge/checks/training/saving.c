/* Compares how far the checkpoints have come with those of the control run. */
#include "harness/judge/checks/check.h"

static const char broken[] = "Saving: a job goes on saving after a restart.";

static int64_t newest_complete(const struct record *look) {
    int64_t newest = 0;
    json_each(c, record_get(look, "complete")) {
        int64_t step = json_get_i64(c, "step", 0);
        newest = step > newest ? step : newest;
    }
    return newest;
}

/* The newest look behind that round; NULL: nobody has looked, or could. */
static const struct record *look_behind(const struct history *h, const struct round *r) {
    const struct record *look = NULL;
    history_each(at, h) {
        if (at->source == SOURCE_DISK && record_is(at, "checkpoints") &&
            record_i64(at, "round", -1) == r->number && !*record_text(at, "error"))
            look = at;
    }
    return look;
}

static bool any_other_size(const struct rounds *rs) {
    for (size_t i = 1; i < rs->n; i++)
        if (rs->v[i]->world_size != rs->v[0]->world_size)
            return true;
    return false;
}

static int64_t last_step(const struct round *r) {
    int64_t step = -1;
    for (size_t i = 0; i < r->n; i++)
        step = r->workers[i]->last_step > step ? r->workers[i]->last_step : step;
    return step;
}

/* Why a job may have saved less than the control run; NULL: nothing excuses it. */
static const char *excuse(const struct trial *t, const struct record *control) {
    const struct rounds *rs = t->rounds;
    const struct round *last = rs->v[rs->n - 1];
    if (rs->n < 2)
        return "there was no second round";
    if (!round_ended_well(last))
        return "the last round did not end well";
    if (any_other_size(rs))
        return "rounds had different numbers of workers, which may need other steps";
    if (last_step(last) < record_i64(control, "last_step", INT64_MAX))
        return "it is not known to have made the control run's last step";
    return check_disk_fault(t, 0, INT64_MAX) ? "a fault has damaged its disk" : NULL;
}

/* One save may fall elsewhere, of a job that saves every so many seconds. */
static bool judge(const struct trial *t, struct finding *f) {
    const struct record *control = history_newest(t->history, SOURCE_HARNESS, "control");
    int64_t saved = control ? record_i64(control, "saved", -1) : -1;
    int64_t gap = control ? record_i64(control, "saved_gap", 0) : 0;
    if (gap <= 0)
        return finding_skip(f, "the control run does not tell in which steps the job saves");
    if (!check_sees_rounds(t, f))
        return false;
    const char *why = excuse(t, control);
    if (why)
        return finding_skip(f, "%s", why);
    const struct round *last = t->rounds->v[t->rounds->n - 1];
    const struct record *look = look_behind(t->history, last);
    if (!look)
        return finding_unknown(f, broken, "nobody has read the directory behind round %d",
                               last->number);
    int64_t newest = newest_complete(look);
    finding_prove(f, control->seq, look->seq);
    if (saved - newest < 2 * gap)
        return finding_pass(f, "step %lld is saved at the end; in the control run it was step %lld",
                            (long long)newest, (long long)saved);
    const char *expected =
        finding_expected(f, "step %lld, as in the control run", (long long)saved);
    return finding_fail(
        f, broken, expected,
        "all workers of round %d ended well with step %lld, and the newest complete "
        "checkpoint is of step %lld",
        last->number, (long long)last_step(last), (long long)newest);
}

const struct check check_saving = {
    .name = "saving",
    .summary = "a job goes on saving after a restart",
    .text =
        "Where the control run shows in which steps the job saves, a run that comes to its last "
        "step with as many workers has saved as far, but for less than two saves: a job that "
        "saves every so many seconds may do it in another step. One whose second round saves "
        "nothing, whatever it says, would lose all of that to the next failure.",
    .example = "rankquake run scenarios/restart/worker-killed.yaml",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(DISK) | SOURCES(JOB) | SOURCES(PROBE) | SOURCES(KERNEL),
    .needs_events = NEEDS_STEPS,
    .not_applicable = check_no_checkpoints,
    .judge = judge,
};
