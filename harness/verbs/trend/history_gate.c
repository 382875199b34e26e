/* history gate: whether the newest runs are slower than those of another branch, or fail more often. */
#include "harness/verbs/trend/trend.h"

#include "base/mem.h"
#include "base/str.h"
#include "harness/trend/failures.h"
#include "harness/trend/origin.h"
#include "harness/trend/rank_test.h"
#include "harness/trend/series.h"
#include "harness/verbs/trend/wanted.h"

#include <math.h>
#include <stdlib.h>

struct gate_request {
    struct logbook logbook;
    struct series_wanted wanted;
    struct gate_options options;
    const char *against, *commit, *branch;
    struct series_list series;
    struct gate_finding *findings; /* of each series that the judged commit has */
    const struct trend_series **of;
    size_t n;
};

static bool is_judged(const struct gate_request *q, const struct trend_entry *e) {
    return str_eq(e->origin.commit, q->commit) &&
           (!q->branch || str_eq(e->origin.branch, q->branch));
}

static bool is_base(const struct gate_request *q, const struct trend_entry *e) {
    return str_eq(e->origin.branch, q->against) && !str_eq(e->origin.commit, q->commit);
}

/* The newest commit of the branch; of no branch, the newest that there is. */
static int choose_commit(struct gate_request *q, const struct arguments *a) {
    for (size_t i = q->logbook.n; i-- > 0 && !q->commit;)
        if (!q->branch || str_eq(q->logbook.v[i]->origin.branch, q->branch))
            q->commit = q->logbook.v[i]->origin.commit;
    size_t judged = 0;
    for (size_t i = 0; i < q->logbook.n; i++)
        judged += q->commit && is_judged(q, q->logbook.v[i]);
    if (judged)
        return 0;
    return verb_usage_error(a->verb, "there is no run %s%s%s%s in it",
                            q->commit   ? "of commit "
                            : q->branch ? "on branch "
                                        : "",
                            q->commit   ? q->commit
                            : q->branch ? q->branch
                                        : "",
                            q->commit && q->branch ? " on branch " : "",
                            q->commit && q->branch ? q->branch : "");
}

/* ---- times ---- */

static bool compare(struct gate_request *q, const struct trend_series *s,
                    struct gate_finding *ret) {
    struct gate_run *v = mem_array(struct gate_run, s->n + 1);
    size_t n = 0, judged = 0;
    bool more_is_better = str_eq(s->measure, "goodput");
    for (size_t i = 0; i < s->n; i++) {
        bool mine = is_judged(q, s->runs[i]);
        if (!mine && !is_base(q, s->runs[i]))
            continue;
        v[n++] = (struct gate_run){.time_ns = s->runs[i]->time_ns,
                                   .ms = more_is_better ? 1 / s->values[i] : s->values[i],
                                   .calibration_ms = s->runs[i]->calibration_ms,
                                   .mine = mine};
        judged += mine;
    }
    if (judged)
        gate_compare(ret, v, n, &q->options);
    free(v);
    return judged > 0;
}

static void compare_all(struct gate_request *q) {
    q->findings = mem_array(struct gate_finding, q->series.n + 1);
    q->of = mem_array(const struct trend_series *, q->series.n + 1);
    for (size_t i = 0; i < q->series.n; i++)
        if (compare(q, &q->series.v[i], &q->findings[q->n]))
            q->of[q->n++] = &q->series.v[i];
    gate_settle(q->findings, q->n, &q->options);
}

static void print_noise(const struct gate_finding *f) {
    BUF_FINI struct buf most = {0};
    if (isfinite(f->most))
        buf_printf(&most, "%.0f %%", 100 * (f->most - 1));
    else
        buf_puts(&most, "nobody knows how much");
    printf("open: it may be slower by %s, this machine is too noisy for so few runs; ",
           buf_str(&most));
    if (f->more == GATE_MORE_MAX)
        printf("even %d more would not do, take a quieter one", GATE_MORE_MAX);
    else
        printf("about %zu more of each are wanted%s", f->more,
               f->paired ? "" : ", or run both alternately");
}

static void print_why(const struct gate_request *q, const struct gate_finding *f) {
    switch (f->answer) {
    case GATE_FEW:
        printf("open: %zu runs, %zu of %s; at least %zu of each are wanted", f->n, f->base_n,
               q->against, q->options.runs);
        break;
    case GATE_MACHINE:
        printf("open: only %zu of %zu runs of %s found the machine as fast (calibration %+.0f %%); "
               "run both alternately",
               f->alike, f->base_n, q->against, 100 * (f->machine - 1));
        break;
    case GATE_DRIFT:
        if (f->drift > 0)
            printf("open: this machine alone drifts by up to %.0f %%; run both alternately",
                   100 * (f->drift - 1));
        else
            printf("open: how much this machine drifts is known from 3 blocks of %zu runs on; run "
                   "both alternately",
                   q->options.runs);
        break;
    case GATE_NOISE:
        print_noise(f);
        break;
    case GATE_SAME:
    case GATE_SLOWER:
        printf("%s", gate_answer_name(f->answer));
    }
}

static void print_finding(const struct gate_request *q, size_t i) {
    const struct gate_finding *f = &q->findings[i];
    const struct trend_series *s = q->of[i];
    BUF_FINI struct buf mine = {0}, base = {0};
    bool inverse = str_eq(s->measure, "goodput");
    series_put_value(s->measure, inverse ? 1 / f->median_ms : f->median_ms, &mine);
    series_put_value(s->measure, inverse ? 1 / f->base_ms : f->base_ms, &base);
    if (!i || !str_eq(q->of[i - 1]->scenario, s->scenario) ||
        !str_eq(q->of[i - 1]->launcher, s->launcher) || !str_eq(q->of[i - 1]->machine, s->machine))
        printf("%s, %s, %s\n", s->scenario, s->launcher, s->machine);
    printf("  %-18s %10s of %zu, %10s of %zu on %s  ", s->measure, buf_str(&mine), f->n,
           f->base_n ? buf_str(&base) : "-", f->base_n, q->against);
    if (f->answer != GATE_FEW && f->answer != GATE_MACHINE)
        printf("%+5.1f %%  p %.2g  effect %s  %s%zu%s  ", 100 * (f->ratio - 1), f->p,
               rank_test_size(f->superiority), f->paired ? "" : "by ", f->alike,
               f->paired ? " pairs" : " alike");
    print_why(q, f);
    putchar('\n');
}

/* ---- failures ---- */

struct failure_count {
    size_t failed, n, base_failed, base_n;
};

/* Runs of which nothing is known, as those that were interrupted, count as none. */
static struct failure_count count_failures(const struct gate_request *q, const char *scenario) {
    struct failure_count c = {0};
    for (size_t i = 0; i < q->logbook.n; i++) {
        const struct trend_entry *e = q->logbook.v[i];
        bool failed = e->exit_code == EXIT_FAIL || e->exit_code == EXIT_LEFTOVERS;
        if (!str_eq(e->scenario, scenario) || (!failed && !trend_entry_passed(e)))
            continue;
        c.n += is_judged(q, e);
        c.failed += is_judged(q, e) && failed;
        c.base_n += is_base(q, e);
        c.base_failed += is_base(q, e) && failed;
    }
    return c;
}

static bool is_first_of_scenario(const struct logbook *l, size_t i) {
    for (size_t k = 0; k < i; k++)
        if (str_eq(l->v[k]->scenario, l->v[i]->scenario))
            return false;
    return true;
}

/* Whether some scenario fails more often. */
static bool compare_failures(const struct gate_request *q) {
    bool worse = false;
    for (size_t i = 0; i < q->logbook.n; i++) {
        const char *scenario = q->logbook.v[i]->scenario;
        if (!is_first_of_scenario(&q->logbook, i) ||
            (q->wanted.scenario && !str_eq(q->wanted.scenario, scenario)))
            continue;
        struct failure_count c = count_failures(q, scenario);
        double p = failures_p(c.failed, c.n, c.base_failed, c.base_n);
        bool more = c.failed && c.base_n && p <= q->options.level;
        if (c.failed)
            printf("%s: %zu of %zu runs failed, %zu of %zu on %s  p %.2g  %s\n", scenario, c.failed,
                   c.n, c.base_failed, c.base_n, q->against, p,
                   more            ? "fails more often"
                   : !c.base_n     ? "open: nothing to compare with"
                   : c.base_failed ? "not more often than before, as far as so many runs can tell"
                                   : "may be chance; look at it");
        worse |= more;
    }
    return worse;
}

/* ---- all of it ---- */

static int gate(struct gate_request *q, const struct arguments *a) {
    size_t slower = 0, open = 0;
    int bad = choose_commit(q, a);
    if (bad)
        return bad;
    series_list_make(&q->series, &q->logbook, &q->wanted);
    compare_all(q);
    printf("commit %.12s against %s\n", q->commit, q->against);
    for (size_t i = 0; i < q->n; i++) {
        print_finding(q, i);
        slower += q->findings[i].answer == GATE_SLOWER;
        open += q->findings[i].answer != GATE_SLOWER && q->findings[i].answer != GATE_SAME;
    }
    bool worse = compare_failures(q);
    if (!q->n)
        puts("open: no run of it has passed and has one of these measures");
    printf("%s\n", slower || worse ? "worse" : open || !q->n ? "open" : "no worse");
    return slower || worse ? EXIT_FAIL : open || !q->n ? EXIT_INCONCLUSIVE : EXIT_PASS;
}

int history_gate(const struct arguments *a) {
    struct gate_request q = {.commit = arguments_value(a, "--commit"),
                             .branch = arguments_value(a, "--branch"),
                             .against = arguments_value(a, "--against")};
    if (a->files_n > 1)
        return verb_usage_error(a->verb, "gate takes no runs: history add %s first", a->files[1]);
    int code = wanted_read(a, &q.wanted, &q.options);
    q.wanted.branch = NULL; /* both are wanted */
    q.against = q.against ? q.against : "main";
    code = code ? code : history_read(a, &q.logbook);
    code = code ? code : gate(&q, a);
    series_list_fini(&q.series);
    free(q.findings);
    free(q.of);
    free((void *)q.wanted.measures);
    logbook_fini(&q.logbook);
    return code;
}
