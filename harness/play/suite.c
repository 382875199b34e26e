#include "harness/play/suite.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/printing.h"
#include "harness/play/outcome.h"
#include "harness/play/run_folder.h"
#include "harness/verb.h"
#include "reports/judged.h"
#include "reports/page.h"
#include "reports/report.h"

#include <stdlib.h>

const char *suite_bin(struct arena *a) {
    char path[4096];
    return arena_strdup(a, file_own_folder(path, sizeof(path)));
}

struct generate_run suite_generate_run(const struct control *c) {
    return (struct generate_run){.first_step = c->first_step,
                                 .last_step = c->last_step,
                                 .told = c->told,
                                 .start_ns = c->start_ns,
                                 .train_ns = c->train_ns,
                                 .steps_ns = c->steps_ns,
                                 .saves = c->saves,
                                 .saves_told = c->saves_told,
                                 .commits = c->commits};
}

static int run_and_report(const struct plan *p, const struct suite_options *o,
                          const struct control *control, struct outcome_of_run *run,
                          struct err *err) {
    struct run_spec spec = {.plan = p,
                            .bin = o->bin,
                            .sets = o->sets,
                            .keep = o->keep,
                            .pcap = o->pcap,
                            .interactive = o->interactive,
                            .paused = o->paused,
                            .until_ns = o->until_ns,
                            .control = control};
    char title[300];
    if (o->brief)
        str_copy(title, sizeof(title), p->scenario->name);
    else
        snprintf(title, sizeof(title), "%s, seed %llu", p->scenario->name,
                 (unsigned long long)p->seed);
    int r = outcome_make(run, &spec, o, title, err);
    if (!o->alone &&
        outcome_report(run, p, &run->dir, o->brief ? NULL : o, r < 0 ? NULL : err) < 0 && r == 0)
        r = -1;
    return r < 0 ? EXIT_BROKEN : run->verdict.exit_code;
}

static void tell_processes(const struct plan *p, FILE *stage) {
    BUF_FINI struct buf out = {0};
    struct page page = {.out = &out, .style = report_style_of(stage)};
    page_put(&page, INK_PLAIN, "isolation processes: ");
    page_wrap(&page, 4, INK_PLAIN, p->isolation_why ? p->isolation_why : "as asked for");
    printing_put(stage, buf_str(&out), out.len);
}

int suite_run(const struct plan *p, const struct suite_options *o, struct err *err) {
    struct outcome_of_run *run = mem_new(struct outcome_of_run);
    struct control control = {.first_step = -1, .last_step = -1, .kept = -1};
    int code = EXIT_BROKEN;
    if (p->isolation == ISOLATION_PROCESSES && !o->brief && !o->wish.quiet)
        tell_processes(p, outcome_stage(o));
    if (suite_make_dir(o->out, p->scenario->name, p->seed, &run->dir, err) == 0 &&
        run_folder_put_inputs(p, &run->dir, err) == 0)
        code = o->alone || p->scenario->expect.outcome == OUTCOME_REFUSED
                   ? suite_build(p, o, err)
                   : suite_control(p, o, &run->dir, &control, err);
    if (code == EXIT_PASS)
        code = run_and_report(p, o, &control, run, err);
    outcome_fini(run);
    bool soft = code == EXIT_INCONCLUSIVE || code == EXIT_SKIPPED;
    return soft && o->strict ? EXIT_FAIL : code;
}

void suite_failure_rate(size_t failed, size_t n, double *ret_low, double *ret_high) {
    struct judged_rate r = judged_rate(failed, n);
    *ret_low = r.low;
    *ret_high = r.high;
}

int suite_exit_code(const int *codes, size_t n) {
    static const int order[] = {EXIT_INTERRUPTED, EXIT_FAIL, EXIT_LEFTOVERS, EXIT_BROKEN,
                                EXIT_INCONCLUSIVE};
    for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++)
        for (size_t j = 0; j < n; j++)
            if (codes[j] == order[i])
                return order[i];
    for (size_t j = 0; j < n; j++)
        if (codes[j] != EXIT_SKIPPED)
            return EXIT_PASS;
    return n ? EXIT_SKIPPED : EXIT_PASS;
}
