/* told: what a report says of a recorded run that was planted. */
#pragma once

#include "tests/harness/checks/planted.h"

#include "reports/report.h"

/* A recorded run with something planted into it, judged. */
struct told {
    struct history history;
    struct rounds rounds;
    struct scenario scenario;
    struct verdict verdict;
    struct recorded_run run;
    struct buf text;
};

static void tell(struct told *t, const char *name, const struct edit *edits, const char *report,
                 struct report_style style) {
    *t = (struct told){.scenario = planted_scenario(name)};
    planted_load(&t->history, name, edits);
    rounds_load(&t->rounds, true, &t->history);
    struct trial trial = {.scenario = &t->scenario, .history = &t->history, .rounds = &t->rounds};
    verdict_judge(&t->verdict, &trial);
    t->run = (struct recorded_run){.dir = "runs/x",
                                   .scenario = &t->scenario,
                                   .history = &t->history,
                                   .rounds = &t->rounds,
                                   .verdict = &t->verdict};
    assert_int_equal(report_find(report)->render(&t->run, &style, &t->text, NULL), 0);
}

static void forget(struct told *t) {
    buf_fini(&t->text);
    rounds_fini(&t->rounds);
    history_fini(&t->history);
}

static inline void assert_says(const struct told *t, const char *text) {
    if (!strstr(buf_str(&t->text), text))
        fail_msg("\"%s\" is not in:\n%s", text, buf_str(&t->text));
}
