/* Follows the listings of the checkpoint directory. */
#include "harness/judge/checks/check.h"

static const char broken[] =
    "Checkpoints: once there is one, the directory always holds one that can be loaded.";

/* What has been seen and said before a look. */
struct checkpoints_kept {
    const struct record *newest_at, *said_at; /* the records of the two that follow */
    int64_t newest;                           /* complete on disk, by the look before */
    int64_t said;                             /* committed, as the job says */
    /* The same, of lines of its output. One may come before the work is done and count otherwise;
     * but when the next comes, the work of the one before is done. */
    const struct record *printed_at;
    int64_t printed;
    int printed_n;
    bool open; /* a printed one was not there */
    /* A fault on the disk, by which one that was complete is so no more, and which that was. */
    const struct record *damage;
    int64_t damaged;
};

static int64_t newest_complete(const struct record *look) {
    int64_t newest = 0;
    json_each(c, record_get(look, "complete")) {
        int64_t step = json_get_i64(c, "step", 0);
        newest = step > newest ? step : newest;
    }
    return newest;
}

#define WRONG(before, expected, ...)                                                               \
    (finding_prove(f, (before)->seq, look->seq), finding_fail(f, broken, expected, __VA_ARGS__))

/* What was there by that record is gone by a fault: from here on as much is asked for as there is. */
static bool is_damaged(const struct trial *t, const struct record *look, int64_t newest,
                       struct checkpoints_kept *k) {
    const struct record *before = newest < k->newest ? k->newest_at
                                  : newest < k->said ? k->said_at
                                                     : k->printed_at;
    bool lost = newest < k->newest || newest < k->said || (!newest && k->printed_n > 1);
    const struct record *fault = lost ? check_disk_fault(t, before->t_ns, look->t_ns) : NULL;
    if (!fault)
        return false;
    k->damage = fault;
    k->damaged = newest < k->newest ? k->newest : newest < k->said ? k->said : k->printed;
    k->newest = k->said = newest;
    k->newest_at = k->said_at = look;
    k->printed_n = 0;
    return true;
}

static bool judge_look(const struct trial *t, struct finding *f, const struct record *look,
                       struct checkpoints_kept *k) {
    const struct json *damaged = record_get(look, "damaged");
    long long round = record_i64(look, "round", 0), newest = newest_complete(look);
    const char *torn = json_get_string(json_first(damaged), "path", "");
    if (is_damaged(t, look, newest, k))
        return true;
    if (!newest && k->newest)
        return WRONG(k->newest_at, "a complete checkpoint in the directory, as before",
                     "after round %lld none was complete%s%s; step %lld had been", round,
                     *torn ? ", damaged: " : "", torn, (long long)k->newest);
    if (newest < k->newest)
        return WRONG(k->newest_at, "the newest complete checkpoint is never lost",
                     "after round %lld the newest was step %lld; step %lld had been complete",
                     round, newest, (long long)k->newest);
    if (newest < k->said)
        return WRONG(
            k->said_at, "what the job calls committed is complete on disk",
            "the job had committed step %lld; after round %lld the newest complete is step "
            "%lld%s%s",
            (long long)k->said, round, newest, *torn ? ", damaged: " : "", torn);
    if (!newest && k->printed_n > 1)
        return WRONG(k->printed_at, "of what the job says is committed one is complete on disk",
                     "the job had printed %d commits, the last of step %lld; after round %lld none "
                     "is complete%s%s",
                     k->printed_n, (long long)k->printed, round, *torn ? ", damaged: " : "", torn);
    k->open |= !newest && k->printed_n;
    k->newest = newest;
    k->newest_at = look;
    return true;
}

static void hear_commit(struct checkpoints_kept *k, const struct record *r) {
    int64_t step = record_i64(r, "step", 0);
    bool printed = *record_text(r, "from") != 0;
    if (printed && (!k->printed_n || step > k->printed)) {
        k->printed = step;
        k->printed_at = r;
        k->printed_n++;
    } else if (!printed && step > k->said) {
        k->said = step;
        k->said_at = r;
    }
}

/* Passing or not, as far as anything was recognised. */
static bool tell_unrecognised(const struct trial *t, struct finding *f,
                              const struct checkpoints_kept *k) {
    finding_prove(f, (k->said ? k->said_at : k->printed_at)->seq);
    return finding_unknown(
        f, broken,
        "the job has committed step %lld, but no checkpoint was recognised in %s; "
        "say what a complete one is by job.checkpoint.complete",
        (long long)(k->said ? k->said : k->printed), t->scenario->job.checkpoint_dir);
}

static bool judge(const struct trial *t, struct finding *f) {
    struct checkpoints_kept k = {0};
    int looks = 0, blind = 0;
    bool known = check_knows_checkpoints(t);
    history_each(r, t->history) {
        if (r->source == SOURCE_JOB && record_is(r, "checkpoint-commit"))
            hear_commit(&k, r);
        if (r->source != SOURCE_DISK || !record_is(r, "checkpoints"))
            continue;
        bool failed = *record_text(r, "error") != 0;
        blind += failed;
        looks += !failed;
        if (!failed && known && !judge_look(t, f, r, &k))
            return false;
    }
    if (blind || !looks)
        return finding_unknown(f, broken,
                               blind ? "%d of %d looks at the directory gave no answer"
                                     : "nobody has read the directory",
                               blind, blind + looks);
    if (!known && (k.said || k.printed_n))
        return tell_unrecognised(t, f, &k);
    if (k.open) {
        finding_prove(f, k.printed_at->seq);
        return finding_unknown(f, broken,
                               "the job had printed a commit, and none was complete when the "
                               "round was over; its line may come before the work is done");
    }
    if (k.damage) {
        finding_prove(f, k.damage->seq);
        return finding_pass(f,
                            "step %lld is complete at last; step %lld was, until %.40s (%.40s) "
                            "damaged the disk",
                            (long long)k.newest, (long long)k.damaged, record_text(k.damage, "id"),
                            record_text(k.damage, "fault"));
    }
    if (k.newest)
        return finding_pass(
            f, "step %lld is complete; none of %d readings shows that a newer one was lost",
            (long long)k.newest, looks);
    return finding_pass(f, "none was complete yet in %d look%s, and none was lost", looks,
                        looks == 1 ? "" : "s");
}

const struct check check_checkpoints = {
    .name = "checkpoints",
    .summary = "once the checkpoint directory holds a complete checkpoint, it always does",
    .text =
        "The harness reads the directory before the first round and when the last worker of each "
        "is dead. Once it has held a complete checkpoint it always does, the newest complete one "
        "never goes back, and what the job has called committed by then is complete on disk. A "
        "torn one beside it is as it should be: somebody died while writing. Of commits that are "
        "only printed two must have left something complete; one may have been printed too early. "
        "What a fault on the disk has damaged since it was seen is no fault of the job's.",
    .example = "rankquake run scenarios/tour.yaml",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(DISK) | SOURCES(JOB),
    .not_applicable = check_no_checkpoints,
    .judge = judge,
};
