#include "harness/judge/verdict.h"

#include "base/mem.h"
#include "harness/judge/checks/check.h"
#include "harness/judge/checks/lags.h"
#include "harness/judge/checks/lost.h"
#include "harness/judge/doubt.h"
#include "harness/judge/views.h"
#include "base/str.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- findings ---- */

bool finding_pass(struct finding *f, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    f->status = FINDING_PASS;
    f->expected[0] = '\0';
    vsnprintf(f->seen, sizeof(f->seen), fmt, ap);
    va_end(ap);
    return true;
}

bool finding_skip(struct finding *f, const char *why, ...) {
    va_list ap;
    va_start(ap, why);
    f->status = FINDING_SKIP;
    f->expected[0] = '\0';
    vsnprintf(f->seen, sizeof(f->seen), why, ap);
    va_end(ap);
    return false;
}

bool finding_fail(struct finding *f, const char *broken, const char *expected, const char *fmt,
                  ...) {
    va_list ap;
    va_start(ap, fmt);
    f->status = FINDING_FAIL;
    str_copy(f->broken, sizeof(f->broken), broken);
    if (expected != f->expected)
        str_copy(f->expected, sizeof(f->expected), expected);
    vsnprintf(f->seen, sizeof(f->seen), fmt, ap);
    va_end(ap);
    return false;
}

bool finding_unknown(struct finding *f, const char *broken, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    f->status = FINDING_UNKNOWN;
    f->expected[0] = '\0';
    str_copy(f->broken, sizeof(f->broken), broken);
    vsnprintf(f->seen, sizeof(f->seen), fmt, ap);
    va_end(ap);
    return false;
}

const char *finding_expected(struct finding *f, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(f->expected, sizeof(f->expected), fmt, ap);
    va_end(ap);
    return f->expected;
}

static void prove(struct finding *f, int64_t seq) {
    const size_t max = sizeof(f->evidence) / sizeof(*f->evidence) - 1;
    for (size_t i = 0; i < max && seq; i++) {
        if (f->evidence[i] == seq)
            return;
        if (!f->evidence[i]) {
            f->evidence[i] = seq;
            return;
        }
    }
}

void finding_prove_all(struct finding *f, const int64_t *seq, size_t n) {
    for (size_t i = 0; i < n; i++)
        prove(f, seq[i]);
}

const char *finding_status_name(enum finding_status s) {
    static const char *const names[] = {"pass", "fail", "unknown", "skip"};
    assert(s <= FINDING_SKIP);
    return names[s];
}

static const char *class_name(enum finding_class c) {
    static const char *const names[] = {"invariant", "expect", "faults", "harness", "cleanup"};
    assert(c <= CLASS_CLEANUP);
    return names[c];
}

/* ---- judging ---- */

static const struct record *on_node(const struct history *h, const int64_t *evidence) {
    for (size_t i = 0; evidence[i]; i++)
        history_each(r, h) {
            if (r->seq == evidence[i] && *r->node)
                return r;
        }
    return NULL;
}

/* Where to look is the same for all: the records that prove it and the node's logs, of a worker's
 * end what it printed itself; else the history as a whole. */
static void say_where(struct finding *f, const struct history *h) {
    if (*f->where || (f->status != FINDING_FAIL && f->status != FINDING_UNKNOWN))
        return;
    size_t at = (size_t)snprintf(f->where, sizeof(f->where), "history.jsonl");
    for (size_t i = 0; f->evidence[i] && at < sizeof(f->where); i++) {
        const char *before = i ? ", " : f->evidence[1] ? " records " : " record ";
        at += (size_t)snprintf(f->where + at, sizeof(f->where) - at, "%s%lld", before,
                               (long long)f->evidence[i]);
    }
    const struct record *r = on_node(h, f->evidence);
    if (!r || at >= sizeof(f->where))
        return;
    const char *own = record_is(r, "worker-exit") ? history_output(h, r->pid, r->t_ns) : "";
    snprintf(f->where + at, sizeof(f->where) - at, "; logs/%s%s%s", r->node, *own ? "/" : "", own);
}

/* Of a run that was broken off only a broken invariant is a finding: what was not seen, was not
 * seen because nobody waited for it. */
static void forgive(struct finding *f) {
    bool broken =
        f->class == CLASS_INVARIANT || f->class == CLASS_CLEANUP || f->class == CLASS_HARNESS;
    if (f->status == FINDING_FAIL ? broken : f->status != FINDING_UNKNOWN)
        return;
    *f = (struct finding){.check = f->check, .class = f->class, .leads = f->leads};
    finding_skip(f, "the run was interrupted before this could be seen");
}

/* ---- what was lost ---- */

static bool all_spared(const struct finding *f, const struct history *h) {
    for (size_t i = 0; f->evidence[i]; i++)
        if (!lost_spares(h, f->evidence[i]))
            return false;
    return f->evidence[0];
}

/* The part of a history in which nothing was lost yet, and what checks see of it. */
struct sound {
    struct history history;
    struct views *views;
};

static struct sound *sound_new(const struct trial *t, size_t n) {
    struct sound *s = mem_new(struct sound);
    s->history = (struct history){.records = t->history->records, .n = n};
    s->views = views_new(t->scenario, &s->history);
    return s;
}

static void sound_free(struct sound *s) {
    if (s)
        views_free(s->views);
    free(s);
}

/* Had the run ended there, it would have been broken by then. */
static bool was_broken_before(struct finding *f, const struct check *c, struct sound *s) {
    static const struct lost nothing = {0};
    struct finding found;
    views_ask(s->views, c, &nothing, &found);
    if (found.status != FINDING_FAIL || c->class != CLASS_INVARIANT)
        return false;
    *f = found;
    return true;
}

/* What failed need not have: it is not known. */
static void excuse(struct finding *f, const struct lost *l) {
    char seen[110]; /* as much as fits beside the reason */
    str_copy(seen, sizeof(seen), f->seen);
    f->status = FINDING_UNKNOWN;
    snprintf(f->seen, sizeof(f->seen), "%s; else: %s", l->why, seen);
    finding_prove(f, l->seq);
}

static bool may_be_excused(const struct finding *f, const struct lost *l) {
    return l->any && f->status == FINDING_FAIL &&
           (f->class == CLASS_INVARIANT || f->class == CLASS_EXPECT);
}

static void leave_lost(struct finding *f, const struct check *c, const struct trial *t,
                       struct sound **s) {
    const struct lost *l = t->lost;
    if (!may_be_excused(f, l) || (c->told && all_spared(f, t->history)))
        return;
    if (!*s)
        *s = sound_new(t, l->sound_n);
    if (!was_broken_before(f, c, *s))
        excuse(f, l);
}

/* ---- */

/* Of a history that stops too early it is judged what it shows. What was expected of the whole run,
 * or of its faults, may have come later. */
static void leave_open(struct finding *f) {
    char seen[sizeof(f->seen)];
    if (f->status != FINDING_FAIL || (f->class != CLASS_EXPECT && f->class != CLASS_FAULTS))
        return;
    str_copy(seen, sizeof(seen), f->seen);
    f->status = FINDING_UNKNOWN;
    snprintf(f->seen, sizeof(f->seen),
             "the history stops before the job has ended; until then: %.200s", seen);
}

/* How the history as a whole ends, asked once for all findings. */
struct verdict_ending {
    bool interrupted, cut;
};

static struct verdict_ending ending_of(const struct history *h) {
    return (struct verdict_ending){.interrupted = history_newest(h, SOURCE_HARNESS, "interrupted"),
                                   .cut = history_is_cut(h)};
}

static void add(struct verdict *v, const struct history *h, const struct verdict_ending *e,
                struct finding f) {
    assert(v->n < sizeof(v->v) / sizeof(*v->v));
    say_where(&f, h);
    if (e->interrupted)
        forgive(&f);
    if (e->cut)
        leave_open(&f);
    v->v[v->n++] = f;
}

/* What a program of the user's says of a run of which something was lost. */
static void leave_lost_own(struct finding *f, const struct history *h) {
    struct rounds rounds;
    struct lost lost;
    if (f->status != FINDING_FAIL)
        return;
    rounds_load(&rounds, true, h);
    lost_find(&lost, h, &rounds);
    if (may_be_excused(f, &lost))
        excuse(f, &lost);
    rounds_fini(&rounds);
}

void verdict_add(struct verdict *v, const struct history *h, struct finding f) {
    const struct verdict_ending e = ending_of(h);
    leave_lost_own(&f, h);
    add(v, h, &e, f);
    v->exit_code = verdict_exit_code(v, h);
}

/* A check sees nothing of the sources that it did not name. What it finds at one place of the clocks
 * and not at another is open. */
static void ask_all(struct finding *found, const struct trial *t, struct views *views,
                    struct doubt *doubt) {
    struct sound *sound = NULL;
    size_t of = 0;
    while (checks[of])
        of++;
    for (size_t i = 0; i < of; i++) {
        views_ask(views, checks[i], t->lost, &found[i]);
        leave_lost(&found[i], checks[i], t, &sound);
        if (t->judged)
            t->judged(t->judged_arg, i + 1, of);
    }
    if (doubt)
        doubt_cast(doubt, found, t->lost);
    sound_free(sound);
}

void verdict_judge(struct verdict *v, const struct trial *t) {
    struct doubt *doubt = doubt_new(t->scenario, t->history);
    struct trial whole = *t;
    struct lost lost;
    if (doubt)
        whole.history = doubt_history(doubt);
    struct views *views = views_new(t->scenario, whole.history);
    const struct verdict_ending e = ending_of(t->history);
    struct finding *found = mem_array(struct finding, sizeof(v->v) / sizeof(*v->v));
    lost_find(&lost, whole.history, views_rounds(views, VIEWS_OF_ROUNDS));
    whole.lost = &lost;
    *v = (struct verdict){0};
    ask_all(found, &whole, views, doubt);
    for (size_t i = 0; checks[i]; i++)
        add(v, whole.history, &e, found[i]);
    v->exit_code = verdict_exit_code(v, t->history);
    goodput_measure(&v->goodput, whole.history, views_rounds(views, VIEWS_OF_ROUNDS));
    free(found);
    views_free(views);
    doubt_free(doubt);
}

static bool any(const struct verdict *v, enum finding_class class, enum finding_status status) {
    for (size_t i = 0; i < v->n; i++)
        if (v->v[i].class == class && v->v[i].status == status)
            return true;
    return false;
}

/* Something was broken. What is asked for takes it that the faults happened: where one did not, it
 * shows nothing. */
static bool failed(const struct verdict *v) {
    return any(v, CLASS_INVARIANT, FINDING_FAIL) ||
           (any(v, CLASS_EXPECT, FINDING_FAIL) && !any(v, CLASS_FAULTS, FINDING_FAIL));
}

static bool inconclusive(const struct verdict *v) {
    return any(v, CLASS_HARNESS, FINDING_UNKNOWN) || any(v, CLASS_FAULTS, FINDING_FAIL) ||
           any(v, CLASS_FAULTS, FINDING_UNKNOWN) || any(v, CLASS_INVARIANT, FINDING_UNKNOWN) ||
           any(v, CLASS_EXPECT, FINDING_UNKNOWN);
}

int verdict_exit_code(const struct verdict *v, const struct history *h) {
    if (history_newest(h, SOURCE_HARNESS, "interrupted"))
        return 130;
    if (any(v, CLASS_HARNESS, FINDING_FAIL))
        return 3;
    if (failed(v))
        return 1;
    if (any(v, CLASS_CLEANUP, FINDING_FAIL) || any(v, CLASS_CLEANUP, FINDING_UNKNOWN))
        return 5;
    return inconclusive(v) ? 2 : 0;
}

/* A job that did not end well has no model, lost its work and much more: how it ended comes first. */
static const struct finding *first_of(const struct verdict *v, enum finding_class class,
                                      enum finding_status status) {
    const struct finding *first = NULL;
    for (size_t i = 0; i < v->n; i++) {
        const struct finding *f = &v->v[i];
        if (f->class != class || f->status != status)
            continue;
        if (f->leads)
            return f;
        first = first ? first : f;
    }
    return first;
}

const struct finding *verdict_first(const struct verdict *v) {
    static const struct {
        enum finding_class class;
        enum finding_status status;
    } order[] = {
        {CLASS_HARNESS, FINDING_FAIL},      {CLASS_INVARIANT, FINDING_FAIL},
        {CLASS_EXPECT, FINDING_FAIL},       {CLASS_CLEANUP, FINDING_FAIL},
        {CLASS_CLEANUP, FINDING_UNKNOWN},   {CLASS_HARNESS, FINDING_UNKNOWN},
        {CLASS_FAULTS, FINDING_FAIL},       {CLASS_FAULTS, FINDING_UNKNOWN},
        {CLASS_INVARIANT, FINDING_UNKNOWN}, {CLASS_EXPECT, FINDING_UNKNOWN},
    };
    bool unasked = any(v, CLASS_FAULTS, FINDING_FAIL); /* the expectations show nothing */
    bool interrupted = v->exit_code == 130;
    for (size_t k = 0; k < sizeof(order) / sizeof(*order); k++) {
        bool fails = order[k].status == FINDING_FAIL;
        const struct finding *f = first_of(v, order[k].class, order[k].status);
        if (f && !(unasked && order[k].class == CLASS_EXPECT && fails) &&
            !(interrupted && !(order[k].class == CLASS_INVARIANT && fails)))
            return f;
    }
    return NULL;
}

const struct finding *verdict_find(const struct verdict *v, const char *check) {
    for (size_t i = 0; i < v->n; i++)
        if (str_eq(v->v[i].check, check))
            return &v->v[i];
    return NULL;
}

/* ---- verdict.json ---- */

static void put_text(struct json_writer *w, const char *key, const char *text) {
    if (*text)
        json_put_string(w, key, text);
}

/* A measure, and no finding: nothing passes or fails by it. */
static void put_goodput(const struct goodput *g, struct json_writer *w) {
    if (!g->unknown && !goodput_is_known(g))
        return;
    json_object(w, "goodput");
    if (g->unknown) {
        json_put_string(w, "unknown", g->unknown);
    } else {
        json_put_double(w, "percent", g->percent);
        json_put_i64(w, "steps", g->steps);
        json_put_double(w, "span_s", g->span_s);
        json_put_double(w, "control_s", g->control_s);
        json_put_string(w, "steps_from", g->printed ? "output" : "events");
    }
    json_end_object(w);
}

void verdict_json(const struct verdict *v, struct json_writer *w, const char *key) {
    json_object(w, key);
    json_put_i64(w, "v", 1);
    json_put_i64(w, "exit_code", v->exit_code);
    json_array(w, "findings");
    for (size_t i = 0; i < v->n; i++) {
        const struct finding *f = &v->v[i];
        json_object(w, NULL);
        json_put_string(w, "check", f->check);
        json_put_string(w, "class", class_name(f->class));
        json_put_string(w, "status", finding_status_name(f->status));
        put_text(w, "broken", f->broken);
        put_text(w, "expected", f->expected);
        put_text(w, "seen", f->seen);
        put_text(w, "where", f->where);
        json_array(w, "evidence");
        for (size_t k = 0; f->evidence[k]; k++)
            json_put_i64(w, NULL, f->evidence[k]);
        json_end_array(w);
        if (f->lost)
            json_put_bool(w, "lost", true);
        if (f->loud)
            json_put_bool(w, "loud", true);
        json_end_object(w);
    }
    json_end_array(w);
    put_text(w, "lost_since", v->lost_since);
    put_goodput(&v->goodput, w);
    json_end_object(w);
}

void verdict_text(const struct verdict *v, struct buf *out) {
    struct json_writer w = {.out = out};
    verdict_json(v, &w, NULL);
    buf_putc(out, '\n');
}
