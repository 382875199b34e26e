/* Judges a recorded run again. */
#include "harness/ci/pipeline.h"
#include "base/sys/printing.h"
#include "harness/judge/recording.h"
#include "reports/headway.h"
#include "reports/report.h"
#include "harness/verbs.h"

#include <stdio.h>

/* The verdict is told even where it cannot be kept: the directory may be somebody else's. */
static void keep(const struct recording *r) {
    struct buf text = {0};
    struct err err = {0};
    verdict_text(&r->verdict, &text);
    if (folder_write(&r->folder, "verdict.json", text.data, text.len, &err) < 0 ||
        reports_write(&r->run, &err) < 0)
        fprintf(stderr, "rankquake judge: %s\n", err.msg);
    buf_fini(&text);
}

static void on_judged(void *arg, size_t done, size_t of) {
    struct headway *h = arg;
    h->spec.total = (int64_t)of;
    headway_at(h, (int64_t)done, NULL);
}

/* A history from elsewhere has no directory of its own to write reports to. */
static int judge_source(const struct recording_source *given, const struct headway_wish *wish) {
    struct recording r;
    struct recording_source source = *given, *from = &source;
    struct headway headway;
    BUF_FINI struct buf complaint = {0};
    struct err err = {0};
    /* The report has standard output for itself; elsewhere than at a terminal nobody waits long. */
    headway_begin(
        &headway,
        &(struct headway_spec){
            .out = stderr, .verb = "judge", .unit = "checks", .no_lines = true, .wish = *wish});
    headway_at(&headway, 0, "reading the history");
    source.judged = on_judged;
    source.judged_arg = &headway;
    int read = recording_read(&r, from, &complaint);
    headway_end(&headway);
    if (read < 0) {
        fprintf(stderr, "rankquake judge: %s", buf_str(&complaint));
        return EXIT_USAGE_ERROR;
    }
    int code = r.verdict.exit_code;
    if (from->dir)
        keep(&r);
    if (report_print(report_find("terminal"), &r.run, stdout, &err) < 0)
        code = verb_broken(&verb_judge, &err);
    recording_fini(&r);
    return code;
}

/* One of them is judged, so the reports lie in it. */
static int judge_ci(const struct recording_source *from, int code) {
    struct pipeline p = {0};
    if (code == EXIT_USAGE_ERROR)
        return code;
    pipeline_begin(&p, from->dir);
    pipeline_take(&p, from->dir, from->programs);
    return pipeline_end(&p, "judge", from->dir, code);
}

static int judge(const struct arguments *a) {
    struct recording_source from = {.scenario = arguments_value(a, "--scenario"),
                                    .programs = arguments_value(a, "--programs")};
    if (from.programs && arguments_value(a, "--no-programs"))
        return verb_usage_error(a->verb, "either --programs or --no-programs");
    if (a->files_n != 1)
        return verb_usage_error(a->verb, a->files_n ? "one directory at a time" : "which run?");
    struct headway_wish wish;
    int bad = arguments_headway(a, &wish);
    if (bad)
        return bad;
    *(from.scenario ? &from.history : &from.dir) = a->files[0];
    bool ci = arguments_value(a, "--ci");
    if (ci && !from.dir)
        return verb_usage_error(a->verb, "--ci writes into the directory of a run; a history from "
                                         "elsewhere has none");
    if (ci)
        printing_be_plain();
    int code = judge_source(&from, &wish);
    return ci ? judge_ci(&from, code) : code;
}

const struct verb verb_judge = {
    .name = "judge",
    .usage = "judge DIR [--programs] [--ci], or judge HISTORY --scenario FILE [--programs]",
    .summary = "judge a recorded run again, offline, and write its reports anew",
    .example = "judge runs/tour-1-20260105-093000",
    .operands = "DIR|FILE",
    .options =
        (const struct verb_option[]){
            {"--scenario", "FILE",
             "the scenario to judge a history from elsewhere by; only the verdict is printed"},
            {"--ci", NULL,
             "as a step of a CI server: its reports in DIR, its summary and annotations, no "
             "secrets"},
            VERB_PROGRAMS,
            VERB_HEADWAY,
            {0}},
    .run = judge,
};
