#include "harness/verbs/sim/progress.h"

#include "base/sys/clock.h"

#include <inttypes.h>

void progress_begin(struct progress *p, uint64_t seeds, bool silent,
                    const struct headway_wish *wish) {
    struct headway_spec spec = {.out = stdout,
                                .verb = "sim",
                                .unit = "seeds",
                                .total = seeds < INT64_MAX ? (int64_t)seeds : 0,
                                .hourly = true,
                                .wish = *wish};
    *p = (struct progress){.begun_ns = clock_monotonic_ns()};
    if (!silent)
        headway_begin(&p->headway, &spec);
}

void progress_note(const struct seeds_tally *t, struct buf *out) {
    int marks = 0;
    for (int i = 0; i < SIM_MARKS_N; i++)
        marks += t->marks[i] > 0;
    buf_printf(out, "marks %d of %d  violations %" PRIu64, marks, SIM_MARKS_N, t->violated);
}

void progress_seen(struct progress *p, const struct seeds_tally *t) {
    BUF_FINI struct buf note = {0};
    progress_note(t, &note);
    headway_at(&p->headway, (int64_t)t->seeds, buf_str(&note));
}

void progress_end(struct progress *p) {
    headway_end(&p->headway);
}
