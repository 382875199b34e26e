/* What each trial is worth, and why those are bad that are. */
#include "harness/verbs/crashpoints/crashing.h"

#include "base/mem.h"
#include "base/str.h"
#include "harness/crash/folder.h"
#include "harness/crash/words.h"
#include "harness/plan/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FINDINGS_MAX = 40, LOOKS_MAX = 8, NAME_DIGITS = 8 };

/* ---- one trial ---- */

static bool equals(const struct crashing *c, const struct resumption *a,
                   const struct resumption *b) {
    const char *x = attempt_result(c, a), *y = attempt_result(c, b);
    return *x && str_eq(x, y);
}

/* As undisturbed, or as it becomes from the same whole checkpoint. *ret_known: there is such one. */
static bool is_as_it_should(const struct crashing *c, const struct resumption *o, bool *ret_known) {
    bool exact = true;
    *ret_known = o->resumed < 0;
    if (equals(c, o, &c->baseline))
        return true;
    for (size_t i = 0; i < c->saves_n; i++) {
        const struct resumption *a = &c->saves[i].attempt;
        if (a->how != ATTEMPT_ENDED)
            continue;
        exact &= equals(c, a, &c->baseline);
        bool from_there = o->resumed < 0 || a->resumed < 0 || o->resumed == a->resumed;
        *ret_known |= from_there;
        if (from_there && equals(c, o, a))
            return true;
    }
    *ret_known |= exact;
    return false;
}

static bool is_within(const struct crashing *c, const struct resumption *o) {
    return c->band >= 0 && o->has_loss && c->baseline.has_loss &&
           fabs(o->loss - c->baseline.loss) <= c->band * fabs(c->baseline.loss);
}

static enum crash_point_verdict judge_result(const struct crashing *c, const struct resumption *o) {
    bool known;
    if (o->disagree)
        return CRASH_POINT_DIVERGED;
    if (c->comparable && is_as_it_should(c, o, &known))
        return CRASH_POINT_EQUAL;
    if (c->band >= 0 && o->has_loss)
        return is_within(c, o) ? CRASH_POINT_BAND : CRASH_POINT_DIVERGED;
    return c->comparable && known ? CRASH_POINT_DIVERGED : CRASH_POINT_RESUMED;
}

enum crash_point_verdict crashing_judge(const struct crashing *c, const struct resumption *o,
                                        const struct crash_way *way, int64_t *ret_lost) {
    *ret_lost = 0;
    if (o->how == ATTEMPT_NONE || o->how == ATTEMPT_BROKEN)
        return CRASH_POINT_UNTRIED;
    if (o->how != ATTEMPT_ENDED)
        return o->how == ATTEMPT_HUNG ? CRASH_POINT_HUNG : CRASH_POINT_FAILED;
    enum crash_point_verdict v = judge_result(c, o);
    int64_t necessary = crashing_necessary(c, way);
    int64_t resumed = o->resumed < 0 ? 0 : o->resumed;
    if (v == CRASH_POINT_DIVERGED || !c->tells_steps || necessary <= resumed)
        return v;
    *ret_lost = necessary - resumed;
    return CRASH_POINT_LOST;
}

const char *crashing_name(struct crashing *c, size_t state, size_t point) {
    return arena_printf(&c->arena, "%zu/%.*s", point, NAME_DIGITS, c->states.v[state].hash);
}

/* ---- points ---- */

static size_t save_of(const struct crashing *c, size_t operation) {
    for (size_t i = 0; i < c->saves_n; i++)
        if (operation >= c->saves[i].from && operation < c->saves[i].to)
            return i + 1;
    return 0;
}

static struct crash_point_row row_of(struct crashing *c, size_t point) {
    struct crash_point_row row = {
        .point = point, .operation = "nothing yet", .kind = "", .why = ""};
    BUF_FINI struct buf text = {0};
    row.rank = -1;
    if (point == 0)
        return row;
    const struct disk_operation *o = &c->record.v[point - 1];
    crash_words_operation(o, &text);
    row.operation = arena_strdup(&c->arena, buf_str(&text));
    row.kind = disk_deed_names[o->deed];
    row.at_s = (double)(o->t_ns - c->record.v[0].t_ns) / 1e9;
    row.rank = o->rank;
    row.save = save_of(c, point - 1);
    return row;
}

static void note_why(struct crashing *c, struct crash_point_row *row, const struct crash_way *way,
                     const struct resumption *o, int64_t lost) {
    BUF_FINI struct buf text = {0};
    crash_words_way(&c->states, way, &text);
    if (lost)
        buf_printf(&text, ": %lld steps lost", (long long)lost);
    else
        buf_printf(&text, ": %s", o->why);
    row->why = arena_strdup(&c->arena, buf_str(&text));
}

static void count_way(struct crashing *c, struct crash_point_row *rows, const struct crash_way *way,
                      const struct resumption *o) {
    int64_t lost;
    enum crash_point_verdict v = crashing_judge(c, o, way, &lost);
    c->report.counts[v][way->death]++;
    if (way->point < c->from || way->point > c->to)
        return;
    struct crash_point_row *row = &rows[way->point - c->from];
    row->states[way->death] += v != CRASH_POINT_UNTRIED;
    enum crash_point_verdict worst = CRASH_POINT_UNTRIED;
    for (int d = 0; d < CRASH_POINT_DEATHS; d++)
        worst = crash_point_worse(worst, row->worst[d]);
    if (crash_point_status(v) == FINDING_FAIL && crash_point_worse(worst, v) != worst)
        note_why(c, row, way, o, lost);
    row->worst[way->death] = crash_point_worse(row->worst[way->death], v);
}

static void count_points(struct crashing *c) {
    size_t n = c->to - c->from + 1;
    struct crash_point_row *rows = arena_array(&c->arena, struct crash_point_row, n);
    for (size_t i = 0; i < n; i++)
        rows[i] = row_of(c, c->from + i);
    for (size_t i = 0; i < c->states.n && i < c->trials_n; i++)
        for (size_t k = 0; k < c->states.v[i].ways_n; k++)
            count_way(c, rows, &c->states.v[i].ways[k], &c->trials[i]);
    c->report.rows = rows;
    c->report.rows_n = n;
}

/* ---- causes ---- */

static void make_room(struct crashing *c) {
    if (c->states.n <= c->trials_n)
        return;
    struct resumption *more = mem_array(struct resumption, c->states.n + 1);
    memcpy(more, c->trials, c->trials_n * sizeof(*more));
    free(c->trials);
    c->trials = more;
    c->trials_n = c->states.n;
}

static enum crash_verdict verdict(void *arg, size_t state, const struct crash_way *way) {
    struct crashing *c = arg;
    int64_t lost;
    make_room(c);
    struct resumption *o = &c->trials[state];
    if (o->how == ATTEMPT_NONE && c->states.v[state].found_later)
        crashing_try(c, &(struct trial_ask){state, "", NULL}, o, 1);
    enum crash_point_verdict v = crashing_judge(c, o, way, &lost);
    return v == CRASH_POINT_UNTRIED                ? CRASH_UNTRIED
           : crash_point_status(v) == FINDING_FAIL ? CRASH_BAD
                                                   : CRASH_GOOD;
}

static const char *seen_of(struct crashing *c, const struct resumption *o,
                           enum crash_point_verdict v, const struct crash_way *way) {
    if (v == CRASH_POINT_LOST)
        return arena_printf(&c->arena, "it went on from step %lld, and step %lld had been saved",
                            (long long)(o->resumed < 0 ? 0 : o->resumed),
                            (long long)crashing_necessary(c, way));
    if (v == CRASH_POINT_DIVERGED && o->disagree)
        return "its ranks disagree about the model or the step";
    if (v == CRASH_POINT_DIVERGED)
        return arena_printf(&c->arena, "it ended well, with another result: %.64s, not %.64s",
                            attempt_result(c, o), attempt_result(c, &c->baseline));
    return o->why;
}

/* With the options that were given, but for those that say where what goes. */
static const char *repeat_of(struct crashing *c, const char *name) {
    static const char *const others[] = {"--from", "--only", "--out", "--junit", "--copy", NULL};
    const struct arguments *a = c->arguments;
    size_t n = 0;
    const char **v = arena_array(&c->arena, const char *, 2 * a->options_n + 6);
    v[n++] = "rankquake";
    v[n++] = "crashpoints";
    v[n++] = "--from";
    v[n++] = c->earlier ? c->earlier : c->out.path;
    for (size_t i = 0; i < a->options_n; i++) {
        if (str_in(a->names[i], others))
            continue;
        v[n++] = a->names[i];
        if (*a->values[i])
            v[n++] = a->values[i];
    }
    BUF_FINI struct buf words = {0};
    plan_put_words(v, &words);
    buf_printf(&words, " --only %s%s", name, c->scenario ? " " : " -- ");
    plan_put_words(c->scenario ? a->files : (const char *const *)a->rest, &words);
    return arena_strdup(&c->arena, buf_str(&words));
}

static struct crash_point_finding finding_of(struct crashing *c, const struct crash_cause *cause,
                                             size_t i) {
    const struct resumption *o = &c->trials[cause->state];
    struct resumption then = {0};
    int64_t lost;
    struct crash_point_finding f = {
        .sentence = cause->sentence, .missing = cause->missing, .states = cause->states_n};
    const char *name = crashing_name(c, cause->state, cause->way->point);
    f.verdict = crashing_judge(c, o, cause->way, &lost);
    f.seen = seen_of(c, o, f.verdict, cause->way);
    f.repeat = repeat_of(c, name);
    if (i < LOOKS_MAX)
        f.look = arena_printf(&c->arena, "%s/states/%.*s", c->out.path, NAME_DIGITS,
                              c->states.v[cause->state].hash);
    if (f.verdict == CRASH_POINT_FAILED && i < LOOKS_MAX) {
        const char *doomed = crashing_find_deletion(c, cause->state, cause->way->point, &then);
        if (doomed)
            f.fix = arena_printf(&c->arena, "it starts once %s is deleted%s", doomed,
                                 then.resumed > 0 ? arena_printf(&c->arena, ", from step %lld",
                                                                 (long long)then.resumed)
                                                  : "");
        else
            f.fix = "no single file of it that was deleted let it start";
    }
    return f;
}

static void find_causes(struct crashing *c) {
    struct crash_judge judge = {.verdict = verdict, .arg = c, .may_add = true};
    const struct crash_cause *causes = NULL;
    size_t n = 0;
    crash_causes_find(&c->states, &judge, &c->arena, &causes, &n);
    make_room(c);
    size_t told = n < FINDINGS_MAX ? n : FINDINGS_MAX;
    struct crash_point_finding *v = arena_array(&c->arena, struct crash_point_finding, told + 1);
    for (size_t i = 0; i < told; i++)
        v[i] = finding_of(c, &causes[i], i);
    c->report.findings = v;
    c->report.findings_n = told;
    for (size_t i = 0; i < told && i < LOOKS_MAX; i++) {
        struct err err = {0};
        const char *name =
            arena_printf(&c->arena, "states/%.*s", NAME_DIGITS, c->states.v[causes[i].state].hash);
        if (folder_make(&c->out, name, 0755, &err) != 0 ||
            crash_folder_write(&c->states, causes[i].state, v[i].look, &err) != 0)
            v[i].look = NULL;
    }
}

void crashing_conclude(struct crashing *c) {
    bool bad = false;
    count_points(c);
    for (size_t i = 0; i < c->report.rows_n; i++)
        for (int d = 0; d < CRASH_POINT_DEATHS; d++)
            bad |= crash_point_status(c->report.rows[i].worst[d]) == FINDING_FAIL;
    if (bad)
        find_causes(c);
    c->report.exit_code = *c->interrupted                               ? EXIT_INTERRUPTED
                          : bad                                         ? EXIT_FAIL
                          : c->not_tried || c->unseen || c->record_full ? EXIT_INCONCLUSIVE
                                                                        : EXIT_PASS;
}
