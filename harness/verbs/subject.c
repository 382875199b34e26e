/* rankquake subject: the program that trials of faults strike; started by rankquake's own scenarios. */
#include "harness/trial/subject.h"

#include "base/str.h"
#include "harness/verbs.h"

#include <stdio.h>
#include <string.h>

static const char usage[] = "rankquake subject: started by rankquake itself, with a history\n";

static int subject_main(int argc, char **argv) {
    struct subject_task s = {0};
    int64_t patience_ms = 0;
    for (int i = 1; i < argc; i++)
        if (str_eq(argv[i], "--paces"))
            s.paces = true;
        else if (str_eq(argv[i], "--lasts"))
            s.lasts = true;
        else if (str_eq(argv[i], "--wants"))
            s.wants = true;
        else if (str_eq(argv[i], "--fails"))
            s.fails = true;
        else if (str_starts(argv[i], "--saves="))
            s.saves = strchr(argv[i], '=') + 1;
        else if (str_starts(argv[i], "--asks="))
            s.asks = strchr(argv[i], '=') + 1;
        else if (str_starts(argv[i], "--patience-ms="))
            str_to_i64(strchr(argv[i], '=') + 1, 0, 1000000, &patience_ms);
        else
            s.history = argv[i];
    s.patience_ns = patience_ms * 1000000;
    if (!s.history) {
        fputs(usage, stderr);
        return EXIT_USAGE_ERROR;
    }
    return subject_run(&s);
}

const struct verb verb_subject = {
    .name = "subject",
    .usage = "subject HISTORY",
    .options = (const struct verb_option[]){{0}},
    .main = subject_main,
};
