/* Prints a report of a recorded run, or the curve of several. */
#include "harness/judge/recording.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys/printing.h"
#include "harness/ci/pipeline.h"
#include "reports/curve/curve.h"
#include "reports/report.h"
#include "harness/play/suite.h"
#include "harness/verbs.h"

#include <stdio.h>
#include <stdlib.h>

static const struct report *find(const char *name) {
    const char *names[32] = {0};
    for (size_t i = 0; reports[i] && i + 1 < sizeof(names) / sizeof(*names); i++)
        names[i] = reports[i]->name;
    const struct report *found = report_find(name);
    const char *near = found ? NULL : str_nearest(name, names);
    if (near)
        verb_usage_error(&verb_report, "there is no report %s; did you mean %s?", name, near);
    else if (!found)
        verb_usage_error(&verb_report, "there is no report %s; see rankquake list reports", name);
    return found;
}

/* ---- several runs of a sweep ---- */

static int read_runs(struct curve *c, const struct arguments *a) {
    for (size_t i = 0; i < a->files_n; i++) {
        struct recording *r = mem_new(struct recording);
        BUF_FINI struct buf complaint = {0};
        struct recording_source from = {.dir = a->files[i],
                                        .programs = arguments_value(a, "--programs")};
        bool read = recording_read(r, &from, &complaint) == 0;
        if (read) {
            curve_add(c, &r->run, a->files[i]);
            recording_fini(r);
        } else {
            fprintf(stderr, "rankquake report: %s", buf_str(&complaint));
        }
        free(r);
        if (!read)
            return EXIT_USAGE_ERROR;
    }
    return 0;
}

static int render_curve(const struct arguments *a, const char *name) {
    const struct curve_report *report = curve_report_find(name);
    struct report_style style = report_style_of(stdout);
    BUF_FINI struct buf text = {0};
    struct curve c = {0};
    struct err err = {0};
    if (!report)
        return verb_usage_error(
            a->verb, "--to %s: several runs are drawn as html, markdown, svg or terminal", name);
    int code = read_runs(&c, a);
    if (code == 0 && curve_settle(&c, &err) < 0)
        code = verb_usage_error(a->verb, "%s", err.msg);
    if (code == 0) {
        report->render(&c, &style, &text);
        printing_put(stdout, buf_str(&text), text.len);
    }
    curve_fini(&c);
    return code;
}

/* ---- for a CI server ---- */

/* The worst of them is the code of the batch, and not ours: they were judged, and that was asked. */
static int render_ci(const struct arguments *a) {
    const char *out = arguments_value(a, "--out");
    struct pipeline p = {0};
    if (arguments_value(a, "--to"))
        return verb_usage_error(a->verb, "--ci chooses the reports; leave --to out");
    pipeline_begin(&p, out ? out : ".");
    for (size_t i = 0; i < a->files_n; i++)
        pipeline_take(&p, a->files[i], arguments_value(a, "--programs"));
    int *codes = mem_array(int, p.n + 1);
    for (size_t i = 0; i < p.n; i++)
        codes[i] = p.v[i].exit_code;
    int failed = p.failed.code, code = suite_exit_code(codes, p.n);
    free(codes);
    pipeline_end(&p, "report", "report", code);
    return failed ? EXIT_USAGE_ERROR : EXIT_PASS;
}

/* ---- one ---- */

static int render(const struct arguments *a) {
    const char *name = arguments_value(a, "--to");
    struct recording r;
    BUF_FINI struct buf complaint = {0};
    struct err err = {0};
    if (!a->files_n)
        return verb_usage_error(a->verb, "which run?");
    if (arguments_value(a, "--programs") && arguments_value(a, "--no-programs"))
        return verb_usage_error(a->verb, "either --programs or --no-programs");
    if (arguments_value(a, "--ci"))
        return render_ci(a);
    if (a->files_n > 1)
        return render_curve(a, name ? name : "terminal");
    const struct report *report = find(name ? name : "terminal");
    if (!report)
        return EXIT_USAGE_ERROR;
    int code = EXIT_USAGE_ERROR;
    struct recording_source from = {.dir = a->files[0],
                                    .programs = arguments_value(a, "--programs")};
    if (recording_read(&r, &from, &complaint) < 0) {
        fprintf(stderr, "rankquake report: %s", buf_str(&complaint));
    } else {
        bool printed = report_print(report, &r.run, stdout, &err) == 0;
        code = printed ? EXIT_PASS : verb_broken(a->verb, &err);
        recording_fini(&r);
    }
    return code;
}

const struct verb verb_report = {
    .name = "report",
    .usage = "report DIR... [--to REPORT | --ci [--out DIR]] [--programs]",
    .summary =
        "render a recorded run for people, programs or a CI server; several of a sweep as a curve",
    .example = "report runs/tour-1-20260105-093000 --to junit",
    .operands = "DIR",
    .options =
        (const struct verb_option[]){
            {"--to", "REPORT",
             "terminal (default), csv, ctrf, github, gitlab, html, json, junit, markdown, "
             "prometheus, "
             "svg, tap, trace; see list reports; of several runs terminal, html, svg or markdown"},
            {"--ci", NULL,
             "as a step of a CI server: reports of all of them in --out, its summary and "
             "annotations, no secrets"},
            {"--out", "DIR", "where --ci writes them (default: here)"},
            VERB_PROGRAMS,
            {0}},
    .run = render,
};
