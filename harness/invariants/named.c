/* Compares the failure that is named with what became of the workers. */
#include "harness/invariants/judge.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static const struct judged_node *node_of(const struct judge *j, const char *uid, int64_t round) {
    const struct judged_node *n = judge_node_of(j, uid);
    return n && n->group.round == round ? n : NULL;
}

static int number_of(const struct judge *j, const struct judged_node *n) {
    return (int)(((const char *)n - (const char *)j->nodes) / (ptrdiff_t)j->node_size);
}

static bool is_of_guard(const struct failure *f) {
    return f->rank < 0 && f->local_rank < 0;
}

/* The first of the group, whatever ended afterwards because of it. */
static bool fits(const struct judge *j, const struct failure *f, const struct judged_node *n) {
    const struct judged_group *g = &n->group;
    char name[JUDGED_NAME_SIZE];
    snprintf(name, sizeof(name), "n%d", number_of(j, n));
    if (strcmp(f->node, name) != 0)
        return false;
    if (!g->failed_ns)
        return is_of_guard(f) && WIFSIGNALED(f->wait_status) && f->error[0];
    return f->local_rank == g->failed_rank && f->wait_status == g->failed_status &&
           f->rank == g->place.rank_base + f->local_rank;
}

static void on_head(struct judge *j, const struct head_change *h) {
    const struct failure *f = &h->to->failure;
    if (!j->times || h->to->phase != HEAD_END || h->to->cause != CAUSE_FAILURE)
        return;
    const struct judged_node *n = node_of(j, f->uid, h->to->round);
    if (!n)
        return;
    judge_risk(j, INVARIANT_named);
    if (!fits(j, f, n))
        invariant_broken(j, &invariant_named,
                         "round %lld ends by rank %d (local rank %d on %s), status %#x; it was "
                         "local rank %d of those from %d on, status %#x",
                         (long long)h->to->round, f->rank, f->local_rank, f->node,
                         (unsigned)f->wait_status, n->group.failed_rank, n->group.place.rank_base,
                         (unsigned)n->group.failed_status);
}

/* What people are to read in the sentence with which every agent ends. */
static bool tells(const char *text, const struct failure *f) {
    char who[64], how[48];
    int status = f->wait_status;
    if (f->error[0] && !strstr(text, f->error))
        return false;
    if (!f->uid[0])
        return true;
    if (WIFSIGNALED(status))
        snprintf(how, sizeof(how), "signal %d", WTERMSIG(status));
    else
        snprintf(how, sizeof(how), "code %d", WEXITSTATUS(status));
    snprintf(who, sizeof(who), "rank %d ", f->rank);
    return strstr(text, f->node) && strstr(text, how) && (is_of_guard(f) || strstr(text, who));
}

/* With two jobs one after the other it may be of the first. */
static void on_said(struct judge *j, int node, const char *text) {
    if (!j->times || j->outcome != OUTCOME_FAILED || j->ended[OUTCOME_FAILED] ||
        j->ended[OUTCOME_SUCCEEDED])
        return;
    judge_risk(j, INVARIANT_named);
    if (!tells(text, &j->times->failure))
        invariant_broken(j, &invariant_named,
                         "the agent of n%d ends with \"%.160s\", which does not tell of the "
                         "failure",
                         node, text);
}

const struct invariant invariant_named = {
    .name = "named",
    .number = "I6",
    .summary = "the failure that is named is one that happened",
    .text = "A round that ends by a failure names the first worker of that node that ended by "
            "itself: its rank, its local rank, its node and how it ended; or the guard, where "
            "somebody has killed that. Every agent of a job that has failed ends with a sentence "
            "that tells of the same.",
    .check = "root_cause",
    .on_head = on_head,
    .on_said = on_said,
};
