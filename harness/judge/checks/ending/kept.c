/* Compares what workers have left behind in files with what is there when the job has ended. */
#include "harness/judge/checks/check.h"

#include "base/str.h"

#include <inttypes.h>

static const char broken[] =
    "Kept: what a worker has printed into a file, and its error file, outlive its round.";

static bool is_look(const struct record *r, const struct record *as, const char *when) {
    return record_is(r, "worker-file") && r->pid == as->pid && str_eq(r->node, as->node) &&
           str_eq(record_text(r, "when"), when) &&
           str_eq(record_text(r, "what"), record_text(as, "what"));
}

/* The look at the end at the same file of the same worker; NULL: there was none. Where a pid was
 * given anew, the looks at the end come in the order of those before. */
static const struct record *at_end(const struct history *h, const struct record *first) {
    size_t place = 0;
    history_each(r, h) place += r->seq <= first->seq && is_look(r, first, "exit");
    history_each(r, h) {
        if (is_look(r, first, "end") && --place == 0)
            return r;
    }
    return NULL;
}

/* What a node had on a disk of its own may be gone with it. last: NULL, to the end of the job. */
static bool node_went_off(const struct history *h, const struct record *first,
                          const struct record *last) {
    history_each(r, h) {
        if (r == last || record_is(r, "job-end"))
            return false;
        if (r->seq > first->seq && record_is(r, "node-down") && str_eq(r->node, first->node))
            return true;
    }
    return false;
}

/* How the file differs from what the worker left; NULL: not in what matters. */
static const char *loss_of(const struct trial *t, const struct record *first,
                           const struct record *last) {
    int64_t bytes = json_get_i64(first->fields, "bytes", 0);
    int64_t now = json_get_i64(last->fields, "bytes", 0);
    /* Without a directory that somebody named, a launcher may take its own away with itself. */
    if (!json_get_bool(last->fields, "linked", true))
        return scenario_gives_launcher(t->scenario, "--log-dir") ? "is gone" : NULL;
    if (now < bytes)
        return arena_printf(t->arena, "has %" PRId64 " of its %" PRId64 " bytes left", now, bytes);
    return str_eq(record_text(first, "mark"), record_text(last, "mark")) ? NULL
                                                                         : "was written over";
}

static bool judge_file(const struct trial *t, struct finding *f, const struct record *first,
                       const struct record *last) {
    const char *loss = loss_of(t, first, last);
    const struct worker *w = rounds_worker(t->rounds, first->pid);
    if (!loss)
        return true;
    while (w && w->start_ns > first->t_ns)
        w = w->former;
    finding_prove(f, first->seq, last->seq);
    return finding_fail(f, broken, "the file as the worker left it",
                        "the %s of rank %d of round %d on %s %s: %.200s",
                        record_text(first, "what"), w ? w->rank : -1, w ? w->round : 0, first->node,
                        loss, record_text(first, "path"));
}

static const char *idle(const struct scenario *s) {
    return str_eq(s->job.launcher, "template") ? "a template keeps what it likes" : NULL;
}

static bool judge(const struct trial *t, struct finding *f) {
    size_t n = 0;
    history_each(r, t->history) {
        if (!record_is(r, "worker-file") || !str_eq(record_text(r, "when"), "exit"))
            continue;
        const struct record *last = at_end(t->history, r);
        if (node_went_off(t->history, r, last))
            continue;
        if (!last)
            return finding_unknown(f, broken, "%.200s on %s was not read again when the job ended",
                                   record_text(r, "path"), r->node);
        if (!judge_file(t, f, r, last))
            return false;
        n++;
    }
    if (!n)
        return finding_skip(f, "no worker printed into a file or left an error file");
    return finding_pass(f, "%zu file%s of workers are there as they were left", n,
                        n == 1 ? "" : "s");
}

const struct check check_kept = {
    .name = "kept",
    .summary = "what workers left in files of their launcher is there when the job has ended",
    .text = "Where a worker's standard output or error is a plain file, as under --redirects and "
            "--log-dir, and where it has left an error file, the harness looks when the worker has "
            "ended and again when the job has: no round may write over, cut or remove what an "
            "earlier one has left, since the first failure is found nowhere else. A file that was "
            "moved is there. On a node that went off in between nothing is asked for.",
    .example = "rankquake run scenarios/restart/logs-kept.yaml",
    .class = CLASS_INVARIANT,
    .sources = SOURCES(DISK) | SOURCES(PROBE) | SOURCES(KERNEL),
    .not_applicable = idle,
    .judge = judge,
};
