/* Follows the listings of the checkpoint directory. */
#include "harness/judge/checks/check.h"

static const char broken[] =
    "Checkpoints: once there is one, the directory always holds one that can be loaded.";

/* What has been seen and said before a look. */
struct checkpoints_kept {
    int64_t newest, newest_seq; /* complete on disk, by the look before */
    int64_t said, said_seq;     /* committed, as the job says */
};

static int64_t newest_complete(const struct record *look) {
    int64_t newest = 0;
    json_each(c, record_get(look, "complete")) {
        int64_t step = json_get_i64(c, "step", 0);
        newest = step > newest ? step : newest;
    }
    return newest;
}

#define WRONG(before_seq, expected, ...)                                                           \
    (finding_prove(f, before_seq, look->seq), finding_fail(f, broken, expected, __VA_ARGS__))

static bool judge_look(struct finding *f, const struct record *look, struct checkpoints_kept *k) {
    const struct json *damaged = record_get(look, "damaged");
    long long round = record_i64(look, "round", 0), newest = newest_complete(look);
    const char *torn = json_get_string(json_first(damaged), "path", "");
    if (!newest && k->newest)
        return WRONG(k->newest_seq, "a complete checkpoint in the directory, as before",
                     "after round %lld none was complete%s%s; step %lld had been", round,
                     *torn ? ", damaged: " : "", torn, (long long)k->newest);
    if (newest < k->newest)
        return WRONG(k->newest_seq, "the newest complete checkpoint is never lost",
                     "after round %lld the newest was step %lld; step %lld had been complete",
                     round, newest, (long long)k->newest);
    if (newest < k->said)
        return WRONG(
            k->said_seq, "what the job calls committed is complete on disk",
            "the job had committed step %lld; after round %lld the newest complete is step "
            "%lld%s%s",
            (long long)k->said, round, newest, *torn ? ", damaged: " : "", torn);
    k->newest = newest;
    k->newest_seq = look->seq;
    return true;
}

/* A line of the output may come before the work is done, and may count otherwise. */
static bool is_commit(const struct record *r) {
    return r->source == SOURCE_JOB && record_is(r, "checkpoint-commit") && !*record_text(r, "from");
}

static bool judge(const struct trial *t, struct finding *f) {
    struct checkpoints_kept k = {0};
    int looks = 0, blind = 0;
    bool known = check_knows_checkpoints(t);
    history_each(r, t->history) {
        if (is_commit(r) && record_i64(r, "step", 0) > k.said) {
            k.said = record_i64(r, "step", 0);
            k.said_seq = r->seq;
        }
        if (r->source != SOURCE_DISK || !record_is(r, "checkpoints"))
            continue;
        bool failed = *record_text(r, "error") != 0;
        blind += failed;
        looks += !failed;
        if (!failed && known && !judge_look(f, r, &k))
            return false;
    }
    if (blind || !looks)
        return finding_unknown(f, broken,
                               blind ? "%d of %d looks at the directory gave no answer"
                                     : "nobody has read the directory",
                               blind, blind + looks);
    if (!known && k.said)
        return finding_unknown(
            f, broken,
            "the job has committed step %lld, but no checkpoint was recognised in %s; "
            "say what a complete one is by job.checkpoint.complete",
            (long long)k.said, t->scenario->job.checkpoint_dir);
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
        "torn one beside it is as it should be: somebody died while writing.",
    .example = "rankquake run scenarios/tour.yaml",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(DISK) | SOURCES(JOB),
    .not_applicable = check_no_checkpoints,
    .judge = judge,
};
