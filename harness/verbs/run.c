/* Runs scenarios, judges them and writes their reports. */
#include "harness/verbs.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "harness/play/budget.h"
#include "harness/play/curves.h"
#include "harness/play/jobs.h"
#include "harness/play/remains.h"
#include "harness/play/untrusted.h"
#include "harness/verbs/run/beside.h"
#include "harness/verbs/run/host.h"
#include "harness/verbs/run/telling.h"
#include "harness/verbs/run/todo.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

static void run_once(struct run_request *q, const struct selected *l, struct run_tally *t) {
    struct err err = {0};
    todo_tell(q, l, (int64_t)t->n);
    struct suite_options o = q->suite;
    char coverage[PATH_MAX];
    if (!o.alone && selected_cache(l, "answered", true, coverage, sizeof(coverage)) == 0)
        o.coverage = coverage;
    int64_t began_ns = clock_monotonic_ns();
    todo_less(q, l);
    o.sets = l->sets;
    int code = suite_run(l->plan, &o, &err);
    if (err.code)
        fprintf(stderr, "rankquake run: %s: %s\n", l->scenario->file, err.msg);
    if (code != EXIT_BROKEN && code != EXIT_INTERRUPTED)
        budget_note(l, clock_monotonic_ns() - began_ns, code);
    tally_add(t, code, l);
}

/* Of all files. */
static bool is_last(const struct run_request *q, const struct run_tally *t) {
    int code = t->n ? t->v[t->n - 1].code : EXIT_PASS;
    return code == EXIT_INTERRUPTED || (q->stress && tally_last_failed(t));
}

/* One file, with every seed, as often as asked; stops when interrupted. */
static void run_file(struct run_request *q, struct selected *l, struct run_tally *t) {
    int host = host_check(q, l);
    bool until_failure = !q->selection.counted && l->scenario->repeat.until_failure;
    if (host != EXIT_PASS) {
        tally_add(t, host, l);
        return;
    }
    for (uint64_t seed = l->seed_first; seed <= l->seed_last; seed++) {
        l->plan->seed = seed;
        for (int64_t i = 0; i < todo_each(q, l); i++) {
            run_once(q, l, t);
            if (is_last(q, t) || (until_failure && tally_last_failed(t)))
                return;
        }
    }
}

static void run_one_by_one(struct run_request *q, struct run_tally *t) {
    for (size_t i = 0; i < q->selection.n; i++) {
        struct selected *l = &q->selection.v[i];
        l->left_out |= q->budget_ns && clock_monotonic_ns() - q->began_ns >= q->budget_ns;
        if (l->left_out)
            continue;
        run_file(q, l, t);
        if (is_last(q, t) || tally_has(t, EXIT_USAGE_ERROR))
            break;
    }
}

static void choose(struct run_request *q) {
    struct selection *s = &q->selection;
    for (size_t i = 0; i < s->n; i++)
        s->v[i].alone = job_must_be_alone(s->v[i].scenario);
    if (!q->budget_ns)
        return;
    budget_sort(s);
    budget_choose(s, q->budget_ns, (int)q->jobs, todo_of, q);
}

static void print_curves(const struct run_request *q) {
    bool terminal = str_eq(q->suite.format, "terminal");
    struct curves_request r = {.selection = &q->selection,
                               .out = q->suite.out,
                               .since_ns = q->began_ns,
                               .table = terminal ? stdout : NULL,
                               .said = terminal ? stdout : stderr};
    if (!q->suite.beside)
        curves_tell(&r);
}

static int run_all(struct run_request *q) {
    struct run_tally t = {0};
    q->selection.sets = q->suite.sets;
    q->selection.verb = &verb_run;
    if (!q->suite.beside)
        remains_tell("run", q->suite.out, stderr);
    int bad = selection_read(&q->selection, &q->files);
    if (!bad && q->shard.parts)
        shard_keep(&q->shard, &q->selection, todo_of, q, stderr);
    if (!bad && q->changed.asked)
        changed_keep(&q->changed, &q->selection, q->suite.bin, host_name_commands,
                     str_eq(q->suite.format, "terminal") ? stdout : stderr);
    choose(q);
    if (!bad) {
        todo_count(q);
        todo_begin(q);
    }
    if (!bad && q->suite.control)
        beside_prepare(q, &t);
    else if (!bad && q->jobs > 1)
        beside_run(q, &t);
    else if (!bad)
        run_one_by_one(q, &t);
    headway_end(&q->headway);
    tally_print(q, &t);
    if (!bad)
        print_curves(q);
    tally_print_lost(q, &t);
    if (!bad)
        budget_print(&q->selection, q->budget_ns,
                     str_eq(q->suite.format, "terminal") ? stdout : stderr);
    tally_forgive(q, &t);
    int code = bad ? bad : tally_has(&t, EXIT_USAGE_ERROR) ? EXIT_USAGE_ERROR : tally_code(q, &t);
    telling_end(q, &t);
    free(t.v);
    return code;
}

/* What git bisect run makes of an exit status: 0 good, 125 nobody can tell, 1 to 127 bad, above it
 * ends. A scenario that cannot be read, or a harness that broke, says nothing of the commit. */
static int code_for_bisect(int code) {
    switch (code) {
    case EXIT_PASS:
        return 0;
    case EXIT_FAIL:
    case EXIT_LEFTOVERS:
        return 1;
    case EXIT_INCONCLUSIVE:
    case EXIT_SKIPPED:
        return 125;
    case EXIT_INTERRUPTED:
        return EXIT_INTERRUPTED;
    default:
        return 128 + code;
    }
}

static int main_run(const struct arguments *a) {
    struct run_request *q = mem_new(struct run_request);
    q->jobs = 1;
    q->suite = (struct suite_options){.out = "runs", .format = "terminal"};
    q->suite.bin = suite_bin(&q->arena);
    int code = asked_read(q, a);
    if (code == 0 && q->ci)
        pipeline_begin(&q->pipeline, q->suite.out);
    if (code == 0 && q->selection.untrusted)
        untrusted_clear_environment();
    if (code == 0)
        code = run_all(q);
    code = pipeline_end(&q->pipeline, "run", a->files_n ? a->files[0] : "run", code);
    if (arguments_value(a, "--bisect"))
        code = code_for_bisect(code);
    free(q->tags);
    selection_fini(&q->selection);
    shard_fini(&q->shard);
    changed_fini(&q->changed);
    texts_fini(&q->prepared);
    arena_fini(&q->arena);
    files_fini(&q->files);
    free(q);
    return code;
}

const struct verb verb_run = {
    .name = "run",
    .usage = "run FILE|DIR... [options] [-- CMD...]",
    .summary = "run scenarios, with their job or with yours: break it as they say, judge, report",
    .example = "run scenarios/tour.yaml --seed 7",
    .operands = "SCENARIO|FILE",
    .options = asked_options,
    .run = main_run,
};
