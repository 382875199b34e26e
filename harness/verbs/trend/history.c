/* Keeps the verdicts and times of many runs, shows them and tells when they have become worse. */
#include "harness/verbs/trend/trend.h"

#include "base/str.h"
#include "harness/trend/logbook.h"

#include <errno.h>

int history_read(const struct arguments *a, struct logbook *ret) {
    const char *file = arguments_value(a, "--file");
    struct err err = {0};
    int r = logbook_read(ret, file ? file : TREND_FILE, &err);
    if (r == -ENOENT)
        return verb_usage_error(a->verb, "%s: add runs to it by history add", err.msg);
    if (r < 0)
        return verb_broken(a->verb, &err);
    for (size_t i = 0; i < ret->damaged.n; i++)
        fprintf(stderr, "rankquake history: %s\n", ret->damaged.v[i]);
    return 0;
}

static int main_history(const struct arguments *a) {
    static const struct {
        const char *word;
        int (*run)(const struct arguments *a);
    } words[] = {{"add", history_add}, {"gate", history_gate}, {"show", history_show}};
    static const char *const names[] = {"add", "gate", "show", NULL};
    if (!a->files_n)
        return verb_usage_error(a->verb, "add, show or gate?");
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (str_eq(a->files[0], words[i].word))
            return words[i].run(a);
    const char *near = str_nearest(a->files[0], names);
    if (near)
        return verb_usage_error(a->verb, "there is no history %s; did you mean %s?", a->files[0],
                                near);
    return verb_usage_error(a->verb, "there is no history %s: add, show or gate", a->files[0]);
}

const struct verb verb_history = {
    .name = "history",
    .usage = "history add RUN... | history show | history gate [--against BRANCH] [options]",
    .summary = "keep verdicts and times of many runs, show them over commits, stop at slower ones",
    .example = "history add runs/tour-1-20260105-093000 --commit 1f3c5e7 --branch main",
    .options =
        (const struct verb_option[]){
            {"--file", "FILE", "the trend file, or a directory of them (default: " TREND_FILE ")"},
            {"--branch", "NAME",
             "add: of the runs (default: the CI server's, else git's); gate: whose newest commit "
             "is "
             "judged; show: only this"},
            {"--commit", "ID",
             "add: of the runs (default: the CI server's, else git's); gate: what is judged"},
            {"--machine", "LABEL",
             "add: runs of one label are compared (default: the processor and how many)"},
            {"--against", "BRANCH", "gate: what is compared with (default: main)"},
            {"--runs", "N", "gate, show: at least so many runs on each side (default: 10)"},
            {"--slower", "PERCENT", "gate, show: what is slower by less is let pass (default: 10)"},
            {"--scenario", "NAME", "gate, show: only this"},
            {"--measure", "NAME",
             "gate, show: step, goodput, kill/detect ... (default: job and every recover); may be "
             "repeated"},
            {"--page", "FILE", "show: writes a page with a chart for each measure"},
            {0}},
    .operands = "add|gate|show|DIR",
    .run = main_history,
};
