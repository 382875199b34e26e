/* Prints a report of a recorded run. */
#include "base/str.h"
#include "harness/judge/recording.h"
#include "reports/report.h"
#include "harness/verbs.h"

#include <stdio.h>

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

static int render(const struct arguments *a) {
    const char *name = arguments_value(a, "--to");
    struct recording r;
    BUF_FINI struct buf complaint = {0};
    struct err err = {0};
    if (a->files_n != 1)
        return verb_usage_error(a->verb, a->files_n ? "one directory at a time" : "which run?");
    if (arguments_value(a, "--programs") && arguments_value(a, "--no-programs"))
        return verb_usage_error(a->verb, "either --programs or --no-programs");
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
    .usage = "report DIR [--to REPORT] [--programs]",
    .summary = "render a recorded run: for people, for programs, for a CI server",
    .example = "report runs/tour-1-20260105-093000 --to junit",
    .options =
        (const struct verb_option[]){
            {"--to", "REPORT", "terminal (default), html, json, junit, svg; see list reports"},
            VERB_PROGRAMS,
            {0}},
    .run = render,
};
