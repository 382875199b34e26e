#include "harness/verbs/run/tally.h"

#include "base/mem.h"
#include "base/str.h"
#include "harness/judge/coverage.h"

#include <limits.h>
#include <stdio.h>

void tally_add(struct run_tally *t, int code, const struct selected *of) {
    mem_push(t->v, t->n) = (struct ended){.code = code, .of = of};
}

bool tally_has(const struct run_tally *t, int code) {
    for (size_t i = 0; i < t->n; i++)
        if (t->v[i].code == code)
            return true;
    return false;
}

bool tally_last_failed(const struct run_tally *t) {
    int code = t->n ? t->v[t->n - 1].code : EXIT_PASS;
    return code == EXIT_FAIL || code == EXIT_LEFTOVERS || code == EXIT_BROKEN;
}

static bool same_file(const struct selected *a, const struct selected *b) {
    return a->sets == b->sets && str_eq(a->file, b->file);
}

/* Failures that the file allows, once they have been told. */
static void forgive(const struct run_request *q, const struct selected *l, struct run_tally *t) {
    int failed = 0, runs = 0, allowed = l->scenario->repeat.failures;
    for (size_t i = 0; i < t->n; i++)
        if (same_file(t->v[i].of, l)) {
            runs++;
            failed += t->v[i].code == EXIT_FAIL;
        }
    if (q->selection.counted || !allowed || !failed)
        return;
    fprintf(stderr, "%s: %d of %d runs failed, repeat.failures allows %d\n", l->scenario->name,
            failed, runs, allowed);
    for (size_t i = 0; i < t->n && failed <= allowed; i++)
        if (same_file(t->v[i].of, l) && t->v[i].code == EXIT_FAIL) {
            t->v[i].code = EXIT_PASS;
            t->v[i].forgiven = true;
        }
}

void tally_forgive(const struct run_request *q, struct run_tally *t) {
    for (size_t i = 0; i < q->selection.n; i++)
        if (i == 0 || !same_file(&q->selection.v[i], &q->selection.v[i - 1]))
            forgive(q, &q->selection.v[i], t);
}

void tally_print(const struct run_request *q, const struct run_tally *t) {
    size_t by[256] = {0};
    if (t->n < 2 || !str_eq(q->suite.format, "terminal"))
        return;
    for (size_t i = 0; i < t->n; i++)
        by[t->v[i].code & 255]++;
    printf("\n%zu runs: %zu passed, %zu failed, %zu inconclusive, %zu broken, %zu skipped\n", t->n,
           by[EXIT_PASS], by[EXIT_FAIL] + by[EXIT_LEFTOVERS], by[EXIT_INCONCLUSIVE],
           by[EXIT_BROKEN], by[EXIT_SKIPPED]);
    size_t failed = by[EXIT_FAIL] + by[EXIT_LEFTOVERS], judged = failed + by[EXIT_PASS];
    bool repeated = q->repeat > 1;
    for (size_t i = 0; i < q->selection.n; i++)
        repeated |= !q->selection.counted && q->selection.v[i].scenario->repeat.runs > 1;
    if (!repeated || !judged)
        return;
    double low, high;
    suite_failure_rate(failed, judged, &low, &high);
    printf("failure rate %.1f %% of %zu judged, between %.1f %% and %.1f %% (95 %% confidence)\n",
           100.0 * (double)failed / (double)judged, judged, 100 * low, 100 * high);
}

/* Those whose newest run could answer fewer checks from evidence than the one before; each has said
 * which. */
void tally_print_lost(const struct run_request *q, const struct run_tally *t) {
    FILE *out = str_eq(q->suite.format, "terminal") ? stdout : stderr;
    char coverage[PATH_MAX];
    const struct selected *last = NULL;
    int n = 0;
    for (size_t i = 0; i < t->n && t->n > 1; i++) {
        const struct selected *l = t->v[i].of;
        int code = t->v[i].code;
        bool judged = code == EXIT_PASS || code == EXIT_FAIL || code == EXIT_INCONCLUSIVE ||
                      code == EXIT_LEFTOVERS;
        if (l == last || !judged ||
            selected_cache(l, "answered", true, coverage, sizeof(coverage)) < 0 ||
            !coverage_lost(coverage))
            continue;
        fprintf(out, "%s%s", n++ ? ", " : "fewer checks were answered from evidence than before: ",
                l->scenario->name);
        last = l;
    }
    if (n)
        fputc('\n', out);
}

/* What was left out counts as skipped. */
int tally_code(struct run_request *q, struct run_tally *t) {
    for (size_t i = 0; i < q->selection.n; i++)
        if (q->selection.v[i].left_out)
            tally_add(t, q->suite.strict ? EXIT_FAIL : EXIT_SKIPPED, &q->selection.v[i]);
    int *codes = arena_array(&q->arena, int, t->n + 1);
    for (size_t i = 0; i < t->n; i++)
        codes[i] = t->v[i].code;
    return suite_exit_code(codes, t->n);
}
