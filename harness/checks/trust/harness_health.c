#include "harness/checks/check.h"

static const char broken[] = "Harness: it recorded the run from beginning to end.";

static void judge(const struct trial *t, struct finding *f) {
    const struct history *h = t->history;
    int64_t last_ns = h->n ? h->records[h->n - 1]->t_ns : 0;
    if (h->torn)
        finding_fail(f, broken, "a history that ends with a whole line",
                     "the last line of the history was cut off: the harness was killed");
    else if (!history_newest(h, SOURCE_HARNESS, "job-end"))
        finding_fail(f, broken, "a record of how the job ended",
                     "the history stops while the job is running: the harness was killed");
    else if (!history_newest(h, SOURCE_HARNESS, "health"))
        finding_fail(f, broken, "a look over the host after the run",
                     "the history stops before the nodes were down: the harness was killed");
    else
        finding_pass(f, "%zu records; its loop was late by %.1f ms at most",
                     (size_t)h->records[h->n - 1]->seq, (double)check_lag_ns(h, 0, last_ns) / 1e6);
}

const struct check check_harness_health = {
    .name = "harness_health",
    .summary = "the harness recorded the run from beginning to end",
    .text = "A verdict is only worth what was recorded. This check fails when the history is cut "
            "off or lacks its end, and shows by how much the harness's own loop was late; times "
            "that are shorter than five times that are not judged.",
    .example = "rankquake run scenarios/tour.yaml",
    .class = CLASS_HARNESS,
    .sources = 0,
    .judge = judge,
};
