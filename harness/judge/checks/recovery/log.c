/* Compares the lines that programs printed with those that the scenario expects and forbids. */
#include "harness/judge/checks/check.h"
#include "harness/judge/checks/lags.h"

#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>

static const char broken[] = "Log: programs print what the scenario expects of them.";

enum { LINE_SHOWN = 120 };

/* ---- which lines count ---- */

struct window {
    int64_t from_ns, to_ns;
};

/* What one turn of the harness's loop reads, it reads in any order. */
static const int64_t TURN_NS = 50000000;

/* A line that is expected may follow a fault at once, and be read before what shows the fault. */
static int64_t effect_ns(const struct trial *t, const struct incident *i, bool expected) {
    int64_t early = expected ? TURN_NS + 2 * lags_most_ns(t->lags, i->fired_ns, i->t0_ns) : 0;
    return i->t0_ns - early > i->fired_ns ? i->t0_ns - early : i->fired_ns;
}

/* When the entry of the timeline that is named came in force, or healed what it heals; 0: never. */
static int64_t moment_of(const struct trial *t, const char *id, bool expected) {
    const struct scenario *s = t->scenario;
    for (size_t k = 0; k < s->timeline_n; k++) {
        const struct timeline_entry *a = &s->timeline[k];
        if (!str_eq(a->id, id) || a->heal < 0)
            continue;
        const struct incident *healed = incidents_find(t->incidents, s->timeline[a->heal].id, 1);
        return healed && healed->recovered ? healed->recovered_ns : 0;
    }
    const struct incident *i = incidents_find(t->incidents, id, 1);
    return i && i->in_force ? effect_ns(t, i, expected) : 0;
}

/* False: it never began, with the finding filled. */
static bool open_window(const struct trial *t, struct finding *f, const struct log_expect *x,
                        struct window *ret) {
    const struct record *steady = history_newest(t->history, SOURCE_HARNESS, "steady");
    int64_t from = 0;
    if (x->after)
        from = moment_of(t, x->after, x->count == LOG_SEEN);
    else if (x->within_ns && steady)
        from = steady->t_ns;
    if (x->after && !from)
        return finding_unknown(f, broken,
                               "%s, after which /%.100s/ is expected, was never in force", x->after,
                               x->pattern);
    if (x->within_ns && !from)
        return finding_unknown(f, broken, "the job was never steady, and within counts from there");
    bool ends = x->within_ns > 0 && from < INT64_MAX - x->within_ns;
    *ret = (struct window){from, ends ? from + x->within_ns : INT64_MAX};
    return true;
}

/* The nodes of the store are those that are no n0, n1 ... */
static bool is_of_store(const struct record *r) {
    return r->source == SOURCE_LAUNCHER && *r->node != 'n';
}

static bool is_whose(const struct trial *t, const struct record *r, const struct target_spec *on) {
    const struct worker *w = r->pid ? rounds_worker_at(t->rounds, r->pid, r->t_ns) : NULL;
    bool worker = r->source == SOURCE_JOB;
    if (!on->text)
        return true;
    if (on->pick == PICK_RANK)
        return worker && w && w->rank == on->rank;
    if (on->pick == PICK_NAMED)
        return str_eq(r->node, on->node) &&
               (on->local_rank < 0 || (worker && w && w->local_rank == on->local_rank));
    switch (on->what) {
    case TARGET_WORKERS:
        return worker;
    case TARGET_AGENTS:
        return !worker && !is_of_store(r);
    case TARGET_STORES:
        return is_of_store(r);
    case TARGET_NODES:
    case TARGET_RACKS: /* of which the loader lets none come here */
    default:
        return !is_of_store(r);
    }
}

static bool is_unplaced(const struct trial *t, const struct record *r,
                        const struct target_spec *on) {
    bool by_rank = on->text && (on->pick == PICK_RANK || on->local_rank >= 0);
    return by_rank && on->pick != PICK_ALL && r->source == SOURCE_JOB &&
           !rounds_worker(t->rounds, r->pid);
}

struct log_tally {
    int64_t n;
    const struct record *unplaced; /* of a process that nobody saw start: of which rank? */
    const struct record *first, *second, *late; /* late: the first that came when it was over */
};

static void count(const struct trial *t, const struct log_expect *x, const struct window *w,
                  struct log_tally *ret) {
    *ret = (struct log_tally){0};
    history_each(r, t->history) {
        if ((r->source != SOURCE_JOB && r->source != SOURCE_LAUNCHER) || !record_is(r, "log") ||
            !str_eq(record_text(r, "pattern"), x->pattern) || r->t_ns < w->from_ns)
            continue;
        if (is_unplaced(t, r, &x->on) && r->t_ns <= w->to_ns)
            ret->unplaced = r;
        if (!is_whose(t, r, &x->on))
            continue;
        if (r->t_ns > w->to_ns) {
            ret->late = ret->late ? ret->late : r;
            continue;
        }
        ret->n++;
        if (!ret->first)
            ret->first = r;
        else if (!ret->second)
            ret->second = r;
    }
}

/* ---- whether all of it was read ---- */

static bool concerns(const struct log_expect *x, bool workers) {
    if (!x->on.text || x->on.what == TARGET_NODES)
        return true;
    return (x->on.what == TARGET_WORKERS) == workers;
}

static int64_t lines_of(const struct log_expect *x, const struct record *lines) {
    return (concerns(x, true) ? record_i64(lines, "worker_lines", 0) : 0) +
           (concerns(x, false) ? record_i64(lines, "program_lines", 0) : 0);
}

static const struct json *entry_of(const struct record *lines, const char *pattern) {
    json_each(it, record_get(lines, "patterns")) if (str_eq(json_get_string(it, "pattern", ""),
                                                            pattern)) return it;
    return NULL;
}

static bool unheard(const struct trial *t, struct finding *f, const struct log_expect *x) {
    history_each(r, t->history) {
        if (r->source != SOURCE_HARNESS || !record_is(r, "unwatched") || !concerns(x, r->pid != 0))
            continue;
        finding_unknown(f, broken, "what a program on %s printed was not read: %s", r->node,
                        record_text(r, "why"));
        finding_prove(f, r->seq);
        return true;
    }
    return false;
}

/* False when there may be lines that nobody knows of, with the finding filled. */
static bool all_read(const struct trial *t, struct finding *f, const struct log_expect *x) {
    const struct record *observed = history_newest(t->history, SOURCE_HARNESS, "observed");
    const struct record *lines = history_newest(t->history, SOURCE_HARNESS, "lines");
    const struct json *entry = lines ? entry_of(lines, x->pattern) : NULL;
    if (unheard(t, f, x))
        return false;
    int64_t skipped = observed ? record_i64(observed, "skipped_bytes", 0) : 0;
    int64_t matched = json_get_i64(entry, "matched", 0);
    int64_t recorded = json_get_i64(entry, "recorded", 0);
    if (!observed || !lines)
        finding_unknown(f, broken, "nobody counted what was printed");
    else if (!entry)
        finding_unknown(f, broken, "nobody looked for lines that match /%.120s/ in this run",
                        x->pattern);
    else if (skipped)
        finding_unknown(f, broken,
                        "%" PRId64 " kB came faster than anybody reads, and were skipped: "
                        "/%.100s/ may have been among them",
                        skipped / 1024 + 1, x->pattern);
    else if (matched > recorded)
        finding_unknown(f, broken,
                        "%" PRId64 " lines match /%.100s/, and only the first %" PRId64
                        " are in the history",
                        matched, x->pattern, recorded);
    else if (x->count == LOG_NEVER && !lines_of(x, lines))
        finding_unknown(f, broken, "nothing was printed at all%s%s: no line says that it is read",
                        x->on.text ? " by " : "", x->on.text ? x->on.text : "");
    else
        return true;
    finding_prove(f, lines ? lines->seq : 0);
    return false;
}

/* ---- judging ---- */

static void put_expected(const struct log_expect *x, char *out, size_t size) {
    static const char *const many[] = {"no line", "exactly one line", "a line"};
    char within[40] = "";
    if (x->within_ns)
        snprintf(within, sizeof(within), " within %g s", (double)x->within_ns / 1e9);
    snprintf(out, size, "%s that matches /%.80s/%s%s%s%s%s", many[x->count], x->pattern,
             x->on.text ? " of " : "", x->on.text ? x->on.text : "", within,
             x->after ? " after " : "", x->after ? x->after : "");
}

static void put_who(const struct trial *t, const struct record *r, char *out, size_t size) {
    const struct worker *w = r->pid ? rounds_worker_at(t->rounds, r->pid, r->t_ns) : NULL;
    if (w)
        snprintf(out, size, "rank %d on %.20s", w->rank, r->node);
    else
        snprintf(out, size, "%s %.20s", r->source == SOURCE_JOB ? "a worker on" : "the program of",
                 r->node);
}

static bool too_many(const struct trial *t, struct finding *f, const struct log_expect *x,
                     const struct log_tally *n) {
    const struct record *r = x->count == LOG_NEVER ? n->first : n->second;
    char expected[200], who[60], many[60] = "";
    if (!r || x->count == LOG_SEEN)
        return false;
    put_expected(x, expected, sizeof(expected));
    put_who(t, r, who, sizeof(who));
    if (n->n > 1)
        snprintf(many, sizeof(many), " (%s of %" PRId64 ")",
                 x->count == LOG_NEVER ? "the first" : "the second", n->n);
    finding_fail(f, broken, expected, "%s printed%s: %.*s", who, many, LINE_SHOWN,
                 record_text(r, "line"));
    finding_prove(f, n->first->seq, r->seq);
    return true;
}

/* None came. Where there was a time for it, the harness must have been there to read it. */
static void too_few(const struct trial *t, struct finding *f, const struct log_expect *x,
                    const struct window *w, const struct log_tally *n) {
    int64_t lag = x->within_ns ? lags_most_ns(t->lags, w->from_ns, w->to_ns) : 0;
    char expected[200], who[60];
    if (!all_read(t, f, x))
        return;
    put_expected(x, expected, sizeof(expected));
    if (lag > x->within_ns / 5) {
        finding_unknown(f, broken,
                        "no line matched /%.100s/ in time, but the harness itself was late by %.0f "
                        "ms",
                        x->pattern, (double)lag / 1e6);
    } else if (n->late) {
        put_who(t, n->late, who, sizeof(who));
        finding_fail(f, broken, expected, "the first came after %.1f s, of %s: %.*s",
                     (double)(n->late->t_ns - w->from_ns) / 1e9, who, LINE_SHOWN,
                     record_text(n->late, "line"));
        finding_prove(f, n->late->seq);
    } else {
        finding_fail(f, broken, expected, "none of %" PRId64 " lines matched /%.100s/ then",
                     lines_of(x, history_newest(t->history, SOURCE_HARNESS, "lines")), x->pattern);
    }
}

/* False: it is not as expected, or nobody knows, with the finding filled. */
static bool judge_line(const struct trial *t, struct finding *f, const struct log_expect *x) {
    struct window w = {0};
    struct log_tally n;
    if (!open_window(t, f, x, &w))
        return false;
    count(t, x, &w, &n);
    if (too_many(t, f, x, &n))
        return false;
    if (n.unplaced && (x->count != LOG_SEEN || !n.n)) {
        finding_prove(f, n.unplaced->seq);
        return finding_unknown(f, broken,
                               "process %" PRId64 " on %s printed it, and nobody saw it start",
                               n.unplaced->pid, n.unplaced->node);
    }
    if (!n.n && x->count != LOG_NEVER) {
        too_few(t, f, x, &w, &n);
        return false;
    }
    if (n.first)
        finding_prove(f, n.first->seq);
    return x->count == LOG_SEEN || all_read(t, f, x);
}

static const char *idle(const struct scenario *s) {
    return !s->expect.logs_n ? "the scenario expects no lines of a log" : NULL;
}

/* One that is broken goes before one that is open. */
static bool judge(const struct trial *t, struct finding *f) {
    const struct expect *e = &t->scenario->expect;
    const struct finding fresh = *f;
    struct finding open = {0};
    for (size_t i = 0; i < e->logs_n; i++) {
        struct finding one = fresh;
        if (judge_line(t, &one, &e->logs[i]))
            continue;
        if (one.status == FINDING_FAIL) {
            *f = one;
            return false;
        }
        open = open.check ? open : one;
    }
    if (!open.check)
        return finding_pass(f, "all %zu as expected", e->logs_n);
    *f = open;
    return false;
}

const struct check check_log = {
    .name = "log",
    .summary = "programs print the lines that the scenario expects, and none that it forbids",
    .text =
        "expect.log: among the lines that workers, agents or the store print, in the whole run or "
        "in the time after a fault, none, one or some match. That a line was printed is what the "
        "harness has read itself; what it says is a claim, and no other check believes it. So a "
        "line shows that somebody said so, not that it is so. A line that is to be seen after a "
        "fault may have been read 50 ms, and twice what the harness was late, before the fault was "
        "known to be in force, if the fault was being injected then. Unknown where something was "
        "not "
        "read: more than anybody reads was printed, the fault was never in force, the harness was "
        "late by more than a fifth of the time given, or (never) nothing was printed at all.",
    .example = "expect: {log: [{never: /Traceback/}, {seen: /SIGKILL/, on: agents, after: hit}]}",
    .class = CLASS_EXPECT,
    .sources = SOURCES(JOB) | SOURCES(LAUNCHER) | SOURCES(PROBE) | SOURCES(KERNEL),
    .not_applicable = idle,
    .judge = judge,
};
